# Tests docs/directives.md against the server: each bound on the page is tried with
# `nginx -t`, at its value and one step beyond, and each default is compared with the
# server's.

use strict;
use warnings;

use lib 't/lib';
use Cwd qw(cwd);
use File::Path qw(make_path remove_tree);
use Shipped;
use Test::More;
use VLM;

my $root = cwd();
my $dir = "$root/build/directives";
my $port = VLM::free_port();
my $code = join('', map { VLM::slurp($_) } glob 'http/conf/*.c') . VLM::slurp('engine/run/conf.c');
my ($page) = VLM::slurp('docs/directives.md') =~ /^## vlm_engine\n(.*?)^## vlm_pass\n/ms;
my %section = $page =~ /^### (\w+)\n(.*?)(?=^### |\z)/msg;

# A kernel without Landlock needs the other sandbox.
my $documents = "documents on helper=$root/t/asan-nginx" . (syscall(444, 0, 0, 1) > 0 ? '' : ' sandbox=seccomp');

# The format of each value, and the smallest step beyond it.
my %number = (
    'context'             => ['context %s; max_tokens 1', 1],
    'slots'               => ['slots %s', 1],
    'max_pixels'          => ['max_pixels %s', 1],
    'min_pixels'          => ['max_pixels 67108864; min_pixels %s', 1],
    'features'            => ['features %s', 1],
    'lora max'            => ["lora $root/html max=%s", 1],
    'lora rank'           => ["lora $root/html rank=%s", 1],
    'max_tokens'          => ['context 1m; max_tokens %s', 1],
    'memory'              => ['memory %s', 1024],
    'threads'             => ['device cpu ops=plain; threads %s', 1],
    'timeout'             => ['timeout %s', 0.001],
    'stall'               => ['stall %s', 0.001],
    'http_memory'         => ['http_memory %s', 1024],
    'queue number'        => ['queue %s', 1],
    'queue timeout'       => ['queue 1 timeout=%s', 0.001],
    'priority age'        => ['priority 1 age=%s', 0.001],
    'fair age'            => ['fair $remote_addr age=%s', 0.001],
    'breaker failures'    => ['breaker failures=%s', 1],
    'breaker pause'       => ['breaker pause=%s', 0.001],
    'store expires'       => ["store $dir/store expires=%s", 1],
    'store max'           => ["store $dir/store max=%s", 1024],
    'documents file'      => ["$documents file=%s", 1],
    'documents pages'     => ["$documents pages=%s", 1],
    'documents characters' => ["$documents characters=%s", 1],
    'documents memory'    => ["$documents memory=%s", 1024],
    'documents time'      => ["$documents time=%s", 1],
    'documents ocr_time'  => ["$documents ocr_time=%s", 1],
    'documents jobs'      => ["$documents jobs=%s", 1],
    'sampling temperature'        => ['sampling temperature=%s', 0.000001],
    'sampling top_k'              => ['sampling top_k=%s', 1],
    'sampling top_p'              => ['sampling top_p=%s', 0.000001],
    'sampling repetition_penalty' => ['sampling repetition_penalty=%s', 0.000001],
);

# The code of defaults that a plan does not show.
my %default = (
    'max_tokens'    => qr/conf->max_tokens = (\d+);/,
    'queue number'  => qr/eng->conf\.queue_size = (\d+);/,
    'queue timeout' => qr/eng->conf\.queue_timeout = (\d+);/,
    'timeout'       => qr/eng->conf\.timeout = (\d+);/,
    'breaker failures' => qr/eng->conf\.failures = (\d+);/,
    'breaker pause' => qr/eng->conf\.pause = (\d+);/,
);

remove_tree($dir);
make_path("$dir/logs");


# Returns the output of nginx -t for these parameters.
sub check {
    my ($parameters) = @_;

    my $load = join "\n", map { "load_module $_;" }
                          split ' ', $ENV{TEST_NGINX_LOAD_MODULES}
                                     || "$root/build/ngx_http_vlm_module.so";
    my $temp = join "\n", map { "    ${_}_temp_path $dir/$_;" }
                          qw(client_body proxy fastcgi uwsgi scgi);
    my $store = $parameters =~ /\bstore / ? '' : "store $dir/store;";

    VLM::spew("$dir/nginx.conf", <<"_EOC_");
$load
pid $dir/nginx.pid;
thread_pool vlm threads=1;

events { }

http {
    access_log off;
$temp
    vlm_engine e {
        model $root/demo/model;
        $store
        $parameters;
    }

    server {
        listen 127.0.0.1:$port;
        location / { vlm_pass e; }
    }
}
_EOC_

    my $binary = $ENV{TEST_NGINX_BINARY} || 'nginx';
    my $said = `$binary -t -p $dir/ -c $dir/nginx.conf -e stderr 2>&1`;

    $said .= "\nkilled by signal " . ($? & 127) if $? & 127;

    return $said;
}


# Converts to units: 1m is a minute for parameters in seconds, and a megabyte for others.
sub units {
    my ($text, $time) = @_;

    my ($n, $unit) = $text =~ /^([\d.]+)(ms|[smhdkg]?)$/ or return undef;
    my %unit = $time ? ('' => 1, ms => 0.001, s => 1, m => 60, h => 3600, d => 86400)
                     : ('' => 1, k => 1024, m => 1024 ** 2, g => 1024 ** 3);

    return $n * $unit{$unit};
}


# Formats a number of units for a configuration.
sub written {
    my ($n, $time) = @_;

    return sprintf('%.0fms', $n * 1000) if $time;
    return sprintf('%.6f', $n) =~ s/\.?0+$//r;
}


sub refused {
    my ($said) = @_;

    return $said !~ /test is successful/
           && $said =~ /\[emerg\] .*(?:is not|invalid|leaves no room|needed)/;
}


# ---- every parameter has its section ---------------------------------------

my @names = grep { $_ ne 'prepare' }                # removed: its use is an error with advice
            $code =~ /^    (?:\{ ngx_string|ngx_http_vlm_number|VALUE|BOUND|WORD)\("(\w+)"(?:\)?, \d+)?, /mg;

cmp_ok(scalar @names, '>', 15, 'the code has a table of parameters');
cmp_ok(scalar @names, '<=', 33, 'the table has at most 33 parameters');
is(join(' ', sort keys %section), join(' ', sort @names),
   'each parameter has a section, and each section a parameter');

{
    my ($whole, $changes) = map { VLM::slurp($_) } qw(docs/directives.md CHANGELOG.md);
    my %head = $whole =~ /^###? (\w+)\n\n((?:    .*\n)+)/mg;
    my %version = $changes =~ /^## ([\d.]+)(?: - [^\n]*)?\n(.*?)(?=^## |\z)/msg;

    for my $name (@names, qw(vlm_engine vlm_pass vlm_cors vlm_status)) {
        like($head{$name} // '', qr/^    Syntax:   \S.*^    Default:  \S.*^    Context:  \S.*^    Since:    \S.*^    Example:  \S/ms,
             "$name has its syntax, default, context, version and an example");

        my ($since) = ($head{$name} // '') =~ /^    Since:    ([\d.]+)/m;

        ok(exists $version{$since // ''}, "$name: a version of CHANGELOG.md");
        like($version{$since // ''} // '', qr/`$name\b/, "$name: CHANGELOG.md names it") if ($since // '') ne '0.1.0';
    }
}

{
    my $full = VLM::slurp('conf/full.conf');

    is(join(' ', grep { $full !~ /^ {8}$_ /m } @names), '', 'conf/full.conf has every parameter');
}


# ---- the generated text ----------------------------------------------------

{
    my ($quoted) = VLM::slurp('docs/directives.md') =~ /^## The generated text\n(.*)/ms;
    my ($texts) = VLM::slurp('http/conf/conf.c') =~ /^(static char  ngx_http_vlm_server_text.*?)^char \*$/ms;
    my @lines = grep { /;$/ } map { s/\\"/"/gr } $texts =~ /^    " *(.*?)\\n"/mg;
    my @missing;

    for my $line (@lines) {
        my $pattern = join '[A-Z]+', map { quotemeta } split /%V|%ui/, $line, -1;

        push @missing, $line unless $quoted =~ /^ *$pattern/m;
    }

    cmp_ok(scalar @lines, '>', 30, 'the code has the generated text');
    is(join("\n", @missing), '', 'the page quotes every line of it');
}


# ---- bounds ----------------------------------------------------------------

my %seen;

for my $name (sort keys %section) {
    my ($values) = $section{$name} =~ /^    Values:   (.*(?:\n {14}\S.*)*)/m or next;

    next if $values =~ /names|bytes/;

    for my $one (split /,\s+/, $values) {
        next if $one =~ /^less than/;

        my ($key, $low, $high) = $one =~ /^(?:(\w+) )?([\d.]+\w*) (?:to ([\d.]+\w*)|or more)$/
            or fail("$name: \"$one\" is a range") || next;
        my $what = defined $key ? "$name $key" : $name;
        my ($form, $step) = @{ $number{$what} || [] };

        ok($form, "$what: this test has its format") or next;
        $seen{$what} = 1;

        my $time = $what =~ /time|expires|stall|age|pause/;
        my ($from, $to) = map { defined ? units($_, $time) : undef } $low, $high;

        # "memory 1m" is a size, but too little for a plan.
        my $said = check(sprintf $form, $low);
        ok($said =~ /test is successful/ || $said =~ /memory is 1m/, "$what $low is taken")
            or diag($said);

        ok(refused(check(sprintf $form, $from ? written($from - $step, $time) : '-1')),
           "$what: less is refused");

        next unless defined $high;

        $said = check(sprintf $form, $high);
        like($said, qr/test is successful/, "$what $high is taken");
        ok(refused(check(sprintf $form, written($to + $step, $time))),
           "$what: more is refused");
    }
}

is(join(' ', sort keys %seen), join(' ', sort keys %number), 'all numbers have bounds');

like(check('alias ' . join ' ', map { "a$_" } 1 .. 32), qr/successful/, '32 aliases');
like(check('alias ' . join ' ', map { "a$_" } 1 .. 33), qr/it takes 1 to 32/, 'more aliases are refused');

for my $bytes (107, 108) {
    my $path = "$dir/";

    $path .= 's' x ($bytes - length $path);

    my $said = check("socket $path");

    like($said, $bytes == 107 ? qr/successful/ : qr/108 bytes.* may have 107/,
         "a socket's path of $bytes bytes");
}


# ---- defaults --------------------------------------------------------------

my ($plan) = check('thinking auto') =~ /(\d+m planned.*)/;

for my $name (sort keys %section) {
    my ($text) = $section{$name} =~ /^    Default:  ($name [^;]*);/m or next;

    next if $name eq 'store';

    my $said = check($text);

    like($said, qr/\Q$plan\E/, "$text: the same plan as without it") or diag($said);

    my @values = $name eq 'queue' ? $text =~ /^queue (\S+) timeout=(\S+)$/
               : $name eq 'breaker' ? $text =~ /^breaker failures=(\S+) pause=(\S+)$/
               : $text =~ / (\S+)$/;
    my @whats = $name eq 'queue' ? ('queue number', 'queue timeout')
              : $name eq 'breaker' ? ('breaker failures', 'breaker pause') : $name;

    for my $what (@whats) {
        my $value = shift @values;

        next unless $default{$what};

        my $time = $what =~ /time|pause/;

        like($code, $default{$what}, "$what has a default in the code");
        is(units($value, $time) * ($time ? 1000 : 1), $code =~ $default{$what} && $1,
           "the default is $value");
    }
}


# ---- nginx -t on a terminal ------------------------------------------------

for my $level (qw(notice error)) {
    my %shipped = Shipped::all();
    my $text = $shipped{'minimal.conf'} =~ s/error\.log notice/error.log $level/r;

    make_path("$dir/$level/logs");
    VLM::spew("$dir/nginx.conf", Shipped::placed($text, "$dir/$level", VLM::free_port()));

    my $run = ($ENV{TEST_NGINX_BINARY} || 'nginx') . " -t -p $dir/ -c $dir/nginx.conf -e $dir/logs/first.log";
    my $said = `$run 2>&1`;

    my $plans = () = $said =~ /^nginx: vlm_engine "robobrain": \d+m planned \(weights \d+m, vision \d+m, kv \d+m,/mg;

    is($plans, 1, "nginx -t prints the plan on the terminal, with error_log ... $level") or diag($said);
    is(`$run -q 2>&1`, '', 'nginx -t -q prints nothing');
}


# ---- snippets --------------------------------------------------------------

my ($n, $maps) = (0, '');

for my $file ('README.md', sort glob 'docs/*.md docs/dev/*.md') {
    for my $snippet (Shipped::snippets($file)) {
        my ($first) = $snippet =~ /^\s*(.*)/;
        my %at = (main => 'thread_pool vlm threads=1;', http => '', engine => '', server => '');

        if ($snippet =~ /^http \{/m) {
            $at{main} = '';
        } else {
            $at{$snippet =~ /^location /m ? 'server'
                : $snippet =~ /^(?:map|vlm_engine|vlm_cors|server|log_format) /m ? 'http' : 'engine'} = $snippet;

            $snippet = "http { $maps$at{http}\n"
                     . "vlm_engine " . ($at{http} =~ /vlm_engine/ ? 'other' : 'robobrain')
                     . " { " . ($at{engine} =~ /^model /m ? '' : $at{engine} =~ /^lora / ? 'model /models/bloomz-560m;'
                        : 'model /models/RoboBrain2.0-3B;')
                     . ($at{http} =~ /vlm_engine/ ? ' thread_pool other;' : '')
                     . ($at{engine} =~ /^store /m ? '' : " store $dir/store;") . " $at{engine} }\n"
                     . "server { listen 127.0.0.1:5001; $at{server} } }\n";
            $snippet = "load_module modules/ngx_http_vlm_module.so;\nthread_pool vlm threads=1;\n"
                     . "thread_pool other threads=1;\nevents { }\n$snippet";
        }

        # nginx's default is a file of root's.
        $snippet =~ s/^http \{\K/ access_log off;/m unless $snippet =~ /^ *access_log /m;

        VLM::spew("$dir/nginx.conf", Shipped::placed($snippet, $dir, VLM::free_port()));

        my $binary = $ENV{TEST_NGINX_BINARY} || 'nginx';
        my $said = `$binary -t -p $dir/ -c $dir/nginx.conf -e stderr 2>&1`;

        like($said, qr/test is successful/, "$file: $first") or diag($snippet, $said);
        $maps .= $at{http} if $at{http} =~ /^map /;
        $n++;
    }
}

cmp_ok($n, '>=', 12, 'the pages have snippets');

done_testing();
