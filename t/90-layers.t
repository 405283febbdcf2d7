# The walls between the layers, by grep: engine/ knows no nginx, the nginx side
# knows one header of the engine, CUDA is called in cuda/ only, a library from
# one file of a layer, and the module exports what nginx looks up.

use strict;
use warnings;

use File::Find ();
use Test::More;

my @C = sources(qr/\.(?:c|h|cu|cuh|cpp)$/, grep { -d } qw(engine cuda http));
push @C, glob '*.c';

my @ENGINE = grep { m{^engine/} } @C;
my @CUDA   = grep { m{^cuda/} } @C;
my @HTTP   = grep { m{^http/|^[^/]+$} } @C;
my $TOPICS = 'base|text|chat|image|load|model|run|ops';
my @SERVER = grep { !/_(?:test|fuzz)\.c$|fixture\.h$/ } @ENGINE, @HTTP;

cmp_ok(scalar @ENGINE, '>', 10, 'there is an engine to look at');
cmp_ok(scalar @HTTP, '>', 5, 'there is a server to look at');


# ---- the three layers ------------------------------------------------------

none('engine/ and cuda/ never say ngx_', qr/\bngx_/, @ENGINE, @CUDA);

none('the nginx side includes engine/vlm.h and no other header of the engine',
     qr{^\s*#\s*include\s*"(?:\.\./)*(?:engine/(?!vlm\.h")|(?:$TOPICS)/)}, @HTTP);

none('the engine includes nothing of the nginx side',
     qr{^\s*#\s*include\s*[<"].*(?:http/|nginx)}, @ENGINE, @CUDA);

none('CUDA is called in cuda/ only',
     qr/\b(?:cuda[A-Z]\w*|cu[A-Z][a-z]\w*)\s*\(/, @ENGINE, @HTTP);


# ---- a library is called from one file of a layer --------------------------

my @libraries = (
    ['pcre2',    qr{<pcre2\.h>},            'engine/text/split.c'],
    ['utf8proc', qr{<utf8proc\.h>},         'engine/text/norm.c'],
    ['libjpeg',  qr{<(?:jpeglib|jerror)\.h>}, 'engine/image/jpeg.c'],
    ['libpng',   qr{<png\.h>},              'engine/image/png.c'],
    ['webp',     qr{<webp/},                'engine/image/webp.c'],
    ['cJSON',    qr{[<"](?:cjson/)?cJSON\.h}i, 'engine/base/json.c'],
    ['sqlite',   qr{<sqlite3\.h>},          ''],
);

for my $library (@libraries) {
    my ($name, $include, $where) = @$library;

    $include = qr/^\s*#\s*include\s*$include/;

    my @engine = grep { has($_, $include) } grep { m{^engine/} } @SERVER;
    my @http = grep { has($_, $include) } grep { !m{^engine/} } @SERVER;

    is("@engine", $where, "$name in the engine: one file or none");
    cmp_ok(scalar @http, '<=', 1, "$name on the nginx side: one file or none")
        or diag(join "\n", @http);
}


# ---- what a server must not do ---------------------------------------------

my $END = qr/(?<![\w_>.])(?:exit|abort|assert|_exit)\s*\(/;
my $LAST = 'http/ngx_http_vlm_device.c';
my $CHILD = 'http/ngx_http_vlm_check.c';

none('nothing ends the process: no exit, abort or assert', $END,
     grep { !m{^engine/cli/} && $_ ne $LAST && $_ ne $CHILD } @SERVER);

is(scalar(grep { /$END/ } slurp_lines($LAST)), 1,
   'but where nginx has ended it already, and the driver would wait for a lost GPU');

none('longjmp() stays in the files of the libraries that fail by it', qr/\b(?:set|long)jmp\b/,
     grep { !m{^engine/image/(?:jpeg|png)\.c$} } @SERVER);
is(scalar(grep { /$END/ } slurp_lines($CHILD)), 1, 'and where a child has checked the files');

none('the engine reads no environment variables', qr/\bgetenv\s*\(/,
     grep { m{^engine/} && !m{^engine/cli/} } @SERVER);

none('no file is built with -ffast-math', qr/-ffast-math\s+[^,]|-Ofast/,
     grep { -e } qw(Makefile engine/Makefile cuda/Makefile config config.make));

none('nothing is left open', qr/\b(?:TODO|FIXME|XXX)\b/, @C);


# ---- how the code reads ----------------------------------------------------

none('the nginx side has 80 columns', qr/^.{81,}/, @HTTP);
none('the engine has 100 columns', qr/^(?!\s*cmocka_unit_test\().{101,}/, @ENGINE, @CUDA);
none('there are no tabs', qr/\t/, @C);

my @long = grep { lines($_) > 1000 } grep { !/_test\.c$/ } @C;

ok(!@long, 'no file has more than 1,000 lines')
    or diag(join "\n", @long);

# The clock on the wall may be set at any time: it dates turns and files, and
# nothing waits by it.
none('waits go by the monotonic clock', qr/CLOCK_REALTIME|gettimeofday\(|time\(NULL\)/,
     grep { !m{^http/ngx_http_vlm_(?:db|steps|store|store_sweep)\.c$|_test\.c$|_fuzz\.c$} } grep { /\.[ch]$/ } @SERVER);

my @silent = grep { !opens_with_comment($_) } grep { /\.c$/ } @SERVER;

ok(!@silent, 'every file says first what it holds')
    or diag(join "\n", @silent);


# ---- the tests -------------------------------------------------------------

none("what is in Test::Nginx's format leaves it to prove -I whose runner it is", qr/^use lib\b/,
     grep { has($_, qr/^use Test::Nginx::Socket/) } glob 't/*.t t/*/*.t');


# ---- the module ------------------------------------------------------------

my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES}
                          || 'build/ngx_http_vlm_module.so';
my %exported = map { $_ => 1 } grep { length }
               map { (split)[2] } `nm -D --defined-only $module`;

is(join(' ', sort keys %exported),
   'ngx_http_vlm_module ngx_module_names ngx_module_order ngx_modules',
   'the module exports what nginx looks up, and nothing else');

done_testing();


sub sources {
    my ($pattern, @dirs) = @_;

    my @files;

    File::Find::find({ no_chdir => 1, wanted => sub {
        $File::Find::prune = 1 if -d && m{^engine/build$};
        push @files, $_ if -f && $_ =~ $pattern;
    } }, @dirs) if @dirs;

    return sort @files;
}


sub has {
    my ($file, $pattern) = @_;

    open my $in, '<', $file or return 0;

    while (defined(my $line = <$in>)) {
        return 1 if $line =~ $pattern;
    }

    return 0;
}


# A line that speaks of something in a comment is no breach.
sub none {
    my ($name, $pattern, @files) = @_;

    my @found;

    for my $file (@files) {
        open my $in, '<:encoding(UTF-8)', $file or next;
        my $comment = 0;

        while (my $line = <$in>) {
            chomp(my $code = $line);

            if ($pattern !~ /TODO|\\t|\.\{/) {
                $code = strip($code, \$comment);
            }

            push @found, "$file:$.: $line" if $code =~ $pattern;
        }
    }

    ok(!@found, $name) or diag(join '', @found[0 .. (@found > 9 ? 9 : $#found)]);
}


sub strip {
    my ($code, $comment) = @_;

    if ($$comment) {
        return '' unless $code =~ s{^.*?\*/}{};
        $$comment = 0;
    }

    $code =~ s{/\*.*?\*/}{}g;
    $code =~ s{//.*$}{};
    $code =~ s{"(?:[^"\\]|\\.)*"}{""}g unless $code =~ /#\s*include/;
    $$comment = 1 if $code =~ s{/\*.*$}{};

    return $code;
}


sub slurp_lines {
    my ($file) = @_;

    open my $in, '<', $file or return;

    return <$in>;
}


sub lines {
    my ($file) = @_;

    open my $in, '<', $file or return 0;
    my $n = 0;
    $n++ while defined(my $line = <$in>);

    return $n;
}


sub opens_with_comment {
    my ($file) = @_;

    open my $in, '<', $file or return 0;
    local $/;

    return <$in> =~ m{^\s*/\*};
}
