# Checks the dependencies between layers by their sources: engine/ and lib/ do not use
# nginx, the nginx side uses one header of the engine, no floor calls a higher one, CUDA
# is called in cuda/ only, a library from one file of a layer, and the module exports
# only the symbols that nginx looks up.

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Find ();
use JSON::PP ();
use Test::More;

my @C = sources(qr/\.(?:c|h|cu|cuh|cpp)$/, grep { -d } qw(engine cuda lib http pdf));
push @C, glob '*.c';

my @ENGINE = grep { m{^engine/} } @C;
my @CUDA   = grep { m{^cuda/} } @C;
my @LIB    = grep { m{^lib/} && !/_(?:test|fuzz)\.c$|fixture\.h$/ } @C;
my @HTTP   = grep { m{^http/|^[^/]+$} } @C;
my $TOPICS = 'text|chat|grammar|image|format|family|load|model|run|ops|embed';
my @SERVER = grep { !/_(?:test|fuzz)\.c$|fixture\.h$/ } @ENGINE, @HTTP, @LIB;

cmp_ok(scalar @ENGINE, '>', 10, 'the engine has sources');
cmp_ok(scalar @HTTP, '>', 5, 'the server has sources');


# ---- the three layers ------------------------------------------------------

none('engine/ and cuda/ use no ngx_ names', qr/\bngx_/, @ENGINE, @CUDA);

none('the nginx side includes engine/vlm.h and embedder.h, and no other header of the engine',
     qr{^\s*#\s*include\s*"(?:\.\./)*(?:engine/(?!(?:vlm|embedder)\.h")|(?:$TOPICS)/)}, @HTTP);

none('the engine includes nothing of the nginx side',
     qr{^\s*#\s*include\s*[<"].*(?:http/|nginx)}, @ENGINE, @CUDA);

my @brain = grep { has($_, qr/robobrain/i) } grep { !m{^engine/(?:cli|family)/} } @ENGINE, @CUDA;

ok(!@brain, 'engine/ and cuda/ know no RoboBrain: its tasks and shapes are in lib/robobrain/')
    or diag(join "\n", @brain);

none('CUDA is called in cuda/ only',
     qr/\b(?:cuda[A-Z]\w*|cu[A-Z][a-z]\w*)\s*\(/, @ENGINE, @HTTP);


# ---- families and forms of weights ------------------------------------------

# In code and texts, but for comments.
my @OTHERS = grep { !m{^engine/(?:family|cli)/|/sample\.h$} } @SERVER, grep { !m{/test/} } @CUDA;

my $NAMES = qr/qwen|bloom|\bbert|minilm|\[CLS\]|\[SEP\]|<\|\w+\|>|helpful\ assistant\.
               |word_embeddings\.|\bembeddings\.|embed_tokens|\blm_head|self_attn|_proj\b|layernorm|visual\.|model\.layers/xi;

my @named = map { my $file = $_; map { "$file: $_" } grep { /$NAMES/ } said($file) } @OTHERS;

ok(!@named, 'only engine/family/ knows names of a family, its tensors and its control tokens')
    or diag(@named);

my $WINDOWS = qr/\b(?:c|v|vc|vision)(?:->|\.)window\b/;

none('only engine/family/ knows the order of windows', $WINDOWS, @OTHERS);

none('only engine/format/ and the kernels tell forms of weights apart',
     qr/\bVLM_(?:F32|F16|BF16|INT8)\b/,
     grep { !m{^engine/(?:format|ops)/|^engine/vlm\.h$} } @SERVER);

none('a family knows no engine that runs', qr{^\s*#\s*include\s*"run/},
     grep { m{^engine/(?:family|format|load|image|chat|grammar|text|ops)/} && !/_(?:test|fuzz)\.c$/ } @ENGINE);


# ---- headers ----------------------------------------------------------------

# Of two headers with one guard a file that includes both has the first alone.
{
    my %guard;

    for my $file (grep { /\.(?:h|cuh)$/ } @C) {
        push @{$guard{$1}}, $file if join('', slurp_lines($file)) =~ /^#\s*ifndef\s+(\w+)\s*\n#\s*define\s+\g1\s*$/m;
    }

    my @shared = grep { @$_ > 1 } values %guard;

    cmp_ok(scalar keys %guard, '>', 100, 'headers have guards');
    ok(!@shared, 'each its own') or diag(map { "@$_\n" } @shared);
}


# ---- the floors of the nginx side ------------------------------------------

# A floor may call itself and the floors before it in this list.
my @FLOORS = qw(ground life wire line status api conf module);
my %FLOOR = map { $FLOORS[$_] => $_ } 0 .. $#FLOORS;

my @PRODUCT = grep { !/_(?:test|fuzz)\.c$/ } @HTTP;
my %code = map { $_ => code($_) } @PRODUCT;

{
    my @up;

    for my $file (@PRODUCT) {
        for my $header ($code{$file} =~ /^\s*#\s*include\s*"([^"]+\.h)"/gm) {
            my $other = resolve($file, $header);

            push @up, "$file includes $header\n"
                if $other =~ m{^http/} && $FLOOR{floor($other)} > $FLOOR{floor($file)};
        }
    }

    ok(!@up, 'no floor includes a header of a higher one') or diag(@up);

    my ($calls, $names) = calls();
    my @higher = grep { my ($from, $to) = split / /; $FLOOR{floor($to)} > $FLOOR{floor($from)} }
                 map { my $from = $_; map { "$from $_" } sort keys %{$calls->{$from}} }
                 sort keys %$calls;

    cmp_ok(scalar @higher, '<=', 0, 'no floor calls a higher one: events go up by one table')
        or diag(join "\n", @higher);

    my @circles = circles($calls);

    ok(@circles <= 1 && !grep({ @$_ > 2 } @circles), 'no files call each other in a circle, but one pair')
        or diag(join "\n", map { "@$_" } @circles);

    cmp_ok(lines('http/ngx_http_vlm.h'), '<=', 250, 'http/ngx_http_vlm.h has handles only');

    # A bound each for the interfaces that http/ was built for, and for all of it.  Documents, adapters,
    # embeddings, tools, /v1/responses, several models and sessions shared by servers came later.
    my $LATER = qr{^http/(?:api/(?:documents/|lite/|(?:adapter|choose|tools|embed)\.[ch]$|openai/(?:embeddings|responses)\.c$
                   |ollama/embed\.c$)|life/(?:reading|encoding|adapter|again)\.c$|line/lease\.c$)}x;
    my %sum = (first => 0, all => 0);

    for my $file (@PRODUCT) {
        $sum{all} += lines($file);
        $sum{first} += lines($file) unless $file =~ $LATER;
    }

    cmp_ok($sum{first}, '<=', 21_400, 'the first interfaces of http/ have at most 21,400 lines, without tests');
    cmp_ok($sum{all}, '<=', 29_080, 'and http/ with the interfaces that came later at most 29,080');
}

# ---- html/openapi.json has the paths and methods of route.c -------------------

{
    my $source = join '', slurp_lines('http/api/route.c');
    my $file = JSON::PP::decode_json(join '', slurp_lines('html/openapi.json'));
    my %routes;

    while ($source =~ /(?:HANDLER|DIALECT|THREAD|DOCUMENT)\("([^"]+)",\s*(\w+)|ngx_string\("([^"]+)"\),\s*(NGX_HTTP_[\w|]+)/g) {
        my ($path, $methods) = defined $1 ? ($1, $2) : ($3, $4);
        $path =~ s/\*+/*/;
        $routes{lc($_) . " $path"} = 1 for map { s/^NGX_HTTP_//r } split /\|/, $methods;
    }

    my %told;

    for my $path (keys %{$file->{paths}}) {
        $told{"$_ " . $path =~ s/\{\w+\}/*/gr} = 1 for keys %{$file->{paths}{$path}};
    }

    cmp_ok(scalar keys %routes, '>', 40, 'route.c has routes');
    is(join("\n", sort keys %told), join("\n", sort keys %routes), 'html/openapi.json has the routes of route.c');

    my ($version) = join('', slurp_lines('engine/vlm.h')) =~ /VLM_VERSION "([^"]+)"/;
    is($file->{info}{version}, $version, 'html/openapi.json has the version of the engine');
}

# ---- html/openapi.json has the fields of lib/api/fields.c -------------------------------

{
    my $file = JSON::PP::decode_json(join '', slurp_lines('html/openapi.json'));
    my $schemas = $file->{components}{schemas};
    my $body = sub { $file->{paths}{$_[0]}{post}{requestBody}{content}{'application/json'}{schema} };

    my %of = (
        BRAIN => $schemas->{RoboBrainQuestion}, OLLAMA => $schemas->{OllamaQuestion}, GENERATE => $body->('/api/generate'),
        CHAT => $body->('/v1/chat/completions'), TEXT => $body->('/v1/completions'), EMBED => $body->('/api/embed'),
        EMBEDDINGS => $body->('/v1/embeddings')->{oneOf}[0],
    );

    $of{OPTIONS} = $of{OLLAMA}{properties}{options};
    $of{STREAM} = $of{CHAT}{properties}{stream_options};

    my %type = (REAL => 'number', WHOLE => 'integer', ENDLESS => 'integer', FLAG => 'boolean');
    my ($most) = join('', slurp_lines('lib/base/logits.h')) =~ /VLM_TOP_LOGPROBS\s+(\d+)/;
    my ($n, @wrong);
    my $source = join '', slurp_lines('lib/api/fields.c');

    while ($source =~ /^    (NUMBER|FLAG|OTHER|READ)\("(\w+)", ([A-Z|]+), (?:(\w+)(?:, \w+, ([-.\d]+),\s+([-.\w]+))?)?/gm) {
        my ($row, $name, $objects, $type, $low, $high) = ($1, $2, $3, $4, $5, $6);

        $type = 'FLAG' if $row eq 'FLAG';
        $low = -1 if $type eq 'ENDLESS';
        $high = $most if ($high // '') eq 'VLM_TOP_LOGPROBS';
        next if $type eq 'ABSENT';

        for my $object (split /\|/, $objects) {
            my $told = $of{$object}{properties}{$name} || {};
            my ($kind) = ref $told->{type} ? @{$told->{type}} : '';
            $n++;

            push @wrong, "$object: $name"
                if !exists $of{$object}{properties}{$name} || $type{$type} && $kind ne $type{$type}
                   || $row eq 'NUMBER' && ($told->{minimum} != $low || $told->{maximum} != $high);
        }
    }

    cmp_ok($n, '>', 80, 'lib/api/fields.c has fields');
    is(join("\n", @wrong), '', 'html/openapi.json has the fields of lib/api/fields.c, with their types and ranges');
}

none('lib/ knows neither nginx nor the engine',
     qr{\bngx_|^\s*#\s*include\s*"(?!base/|api/|store/|robobrain/|document/)}, @LIB);


none('http/ and lib/ call no realpath()', qr/\brealpath\s*\(/, @HTTP, @LIB);

# ---- a library is called from one file of a layer --------------------------

my @libraries = (
    ['pcre2',    qr{<pcre2\.h>},            'engine/text/split.c'],
    ['utf8proc', qr{<utf8proc\.h>},         'engine/text/norm.c'],
    ['libjpeg',  qr{<(?:jpeglib|jerror)\.h>}, 'engine/image/jpeg.c'],
    ['libpng',   qr{<png\.h>},              'engine/image/png.c'],
    ['webp',     qr{<webp/},                'engine/image/webp.c'],
    ['cJSON',    qr{[<"](?:cjson/)?cJSON\.h}i, ''],
    ['sqlite',   qr{<sqlite3\.h>},          ''],
    ['hiredis',  qr{<hiredis\.h>},          ''],
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


# ---- forbidden calls -------------------------------------------------------

my $END = qr/(?<![\w_>.])(?:exit|abort|assert|_exit)\s*\(/;
my $LAST = 'http/life/device.c';
my $CHILD = 'lib/base/child.c';

none('nothing ends the process: no exit, abort or assert', $END,
     grep { !m{^engine/cli/} && $_ ne $LAST && $_ ne $CHILD } @SERVER);

is(scalar(grep { /$END/ } slurp_lines($LAST)), 1,
   'exit() is called only after nginx has ended, as the driver would wait for a lost GPU');

none('longjmp() is only in the files for libraries that report errors by it', qr/\b(?:set|long)jmp\b/,
     grep { !m{^engine/image/(?:jpeg|png)\.c$} } @SERVER);
is(scalar(grep { /$END/ } slurp_lines($CHILD)), 1, 'the process of child.c exits');

is(join(' ', grep { has($_, qr/\bmmap\s*\(/) } @SERVER), 'engine/ops/cpu.c lib/base/file.c',
   'files are mapped in lib/base/file.c alone, and the CPU device takes memory');

none('the engine reads no environment variables', qr/\bgetenv\s*\(/,
     grep { m{^engine/} && !m{^engine/cli/} } @SERVER);

none('no file is built with -ffast-math', qr/-ffast-math\s+[^,]|-Ofast/,
     grep { -e } qw(Makefile engine/Makefile cuda/Makefile config config.make));

none('no comment marks an open task', qr/\b(?:TODO|FIXME|XXX)\b/, @C);


# ---- style -----------------------------------------------------------------

none('the nginx side has 80 columns', qr/^.{81,}/, @HTTP);
none('the engine, lib/ and pdf/ have 100 columns', qr/^(?!\s*cmocka_unit_test\().{101,}/, @ENGINE, @CUDA,
     grep { m{^(?:lib|pdf)/} } @C);
none('there are no tabs', qr/\t/, @C);

my @long = grep { lines($_) > 1000 } @C;

ok(!@long, 'no file has more than 1,000 lines')
    or diag(join "\n", @long);

# The system time may be set at any moment: it dates turns and files, and is not used
# for waits.
none('waits use the monotonic clock', qr/CLOCK_REALTIME|gettimeofday\(|time\(NULL\)/,
     grep { !m{^(?:http/api/robobrain/steps|lib/store/(?:store|evict))\.c$|_test\.c$|_fuzz\.c$} }
     grep { /\.[ch]$/ } @SERVER);

my @silent = grep { !opens_with_comment($_) } grep { /\.c$/ } @SERVER;

ok(!@silent, 'every file begins with a comment about its content')
    or diag(join "\n", @silent);


# ---- the tests -------------------------------------------------------------

none("files in Test::Nginx's format leave the choice of the runner to prove -I", qr/^use lib\b/,
     grep { has($_, qr/^use Test::Nginx::Socket/) } glob 't/*.t t/*/*.t');


# ---- the module ------------------------------------------------------------

my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES}
                          || 'build/ngx_http_vlm_module.so';
my %exported = map { $_ => 1 } grep { length }
               map { (split)[2] } `nm -D --defined-only $module`;

is(join(' ', sort keys %exported),
   'ngx_http_vlm_module ngx_module_names ngx_module_order ngx_modules',
   'the module exports only the symbols that nginx looks up');

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


# Comments are not checked.
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


# The lines of a file without comments, texts included.
sub said {
    my ($file) = @_;

    my $code = join '', slurp_lines($file);

    $code =~ s{("(?:[^"\\\n]|\\.)*")|/\*.*?\*/}{$1 // ''}ges;

    return map { "$_\n" } split /\n/, $code;
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


# ---- floors and circles ----------------------------------------------------

sub floor {
    my ($file) = @_;

    return $file =~ m{^http/(\w+)/} ? $1 : $file =~ m{^http/} ? 'ground' : 'module';
}


# Returns the path of a header from the checkout's root; lib/ is searched, too.
sub resolve {
    my ($file, $header) = @_;

    my $path = dirname($file) . "/$header";

    1 while $path =~ s{(?:^|/)\.(?=/)}{} || $path =~ s{[^/]+/\.\./}{};

    return -e $path ? $path : "lib/$header";
}


# Returns the code of a file without comments and strings, except names of headers.
sub code {
    my ($file) = @_;

    my $comment = 0;

    return join "\n", map { strip($_, \$comment) } slurp_lines($file);
}


# $calls->{FILE}{OTHER} has the names that FILE uses and OTHER defines, without nginx's
# structure of the module, which every file uses.
sub calls {
    my (%defined, %calls);

    for my $file (grep { /\.c$/ } @PRODUCT) {
        while ($code{$file} =~ /^(ngx_http_vlm_\w+)\(/gm) {
            my ($name, $before) = ($1, substr $code{$file}, 0, $-[0]);

            $defined{$name} ||= $file unless $before =~ /^static [^\n]*\n+\z/m;
        }

        $defined{$1} ||= $file
            while $code{$file} =~ /^const [^;({]*?\b(ngx_http_vlm_\w+)(?:\[[^\]]*\])?\s*=/gm;
    }

    delete $defined{ngx_http_vlm_module};

    for my $file (grep { /\.c$/ } @PRODUCT) {
        for my $name ($code{$file} =~ /\b(ngx_http_vlm_\w+)/g) {
            my $other = $defined{$name};

            $calls{$file}{$other} = 1 if $other && $other ne $file;
        }
    }

    return \%calls;
}


# Returns the strongly connected components with more than one file, by Tarjan's algorithm.
sub circles {
    my ($calls) = @_;

    my ($n, %index, %low, @stack, %on, @found) = (0);
    my $visit;

    $visit = sub {
        my ($file) = @_;

        $index{$file} = $low{$file} = $n++;
        push @stack, $file;
        $on{$file} = 1;

        for my $other (sort keys %{$calls->{$file} || {}}) {
            if (!defined $index{$other}) {
                $visit->($other);
                $low{$file} = $low{$other} if $low{$other} < $low{$file};

            } elsif ($on{$other} && $index{$other} < $low{$file}) {
                $low{$file} = $index{$other};
            }
        }

        return if $low{$file} != $index{$file};

        my @circle;

        do {
            push @circle, pop @stack;
            delete $on{$circle[-1]};
        } while ($circle[-1] ne $file);

        push @found, [sort @circle] if @circle > 1;
    };

    for my $file (sort keys %$calls) {
        $visit->($file) unless defined $index{$file};
    }

    return @found;
}
