# Starts every configuration of README and docs/ from the page's own text, and sends each the request that it
# is about: the one of %ABOUT for its directives, and a question.  The engines of many snippets run in one
# nginx.  t/live/58-shipped.t does so with conf/, and t/91-directives.t tries bounds and defaults.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use File::Basename qw(basename dirname);
use File::Path qw(make_path);
use JSON::PP ();
use POSIX ();
use Shipped;
use Test::More;
use VLM;

my $ROOT = Cwd::getcwd();
my $BATCH = 15;                         # engines of an nginx
my $HELPER = "$ROOT/build/vlm-pdf";
my $TCP = VLM::free_port();
my $SOCKET = "/tmp/vlm-pages-redis-$$.sock";        # a unix socket's path has 107 bytes at most
my ($MODULE) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || "$ROOT/build/ngx_http_vlm_module.so";
my ($PATHS) = VLM::slurp('conf/minimal.conf') =~ /location (~ \S+) \{/;
my %SIZE = (k => 1024, m => 1024 ** 2, g => 1024 ** 3);

# Clients of all pages: keys, logins and levels are headers.
my $HEADERS = { 'Authorization' => 'Bearer a-long-secret', 'Cookie' => 'login=ok', 'X-Robot' => 'arm-1' };

die "make documents builds $HELPER\n" unless -x $HELPER;
die "make documents builds $HELPER-ocr.so where Tesseract is: make deps-test\n" unless -e "$HELPER-ocr.so";

# A kernel without Landlock needs the other sandbox.
my $SANDBOX = syscall(444, 0, 0, 1) > 0 ? 'landlock' : 'seccomp';

# A machine with a GPU and the library for it uses them.
my $GPU = -e dirname($MODULE) . '/libvlm_cuda.so' && -e '/proc/driver/nvidia/version';


# ---- what a page has -------------------------------------------------------------------------------------

my (@engines, @servers, @wholes, $http);

for my $page ('README.md', sort glob 'docs/*.md docs/dev/*.md') {
    for my $text (Shipped::snippets($page)) {
        my ($first) = $text =~ /^\s*(.*?)\s*(?:#.*)?$/m;
        my $one = { page => $page, text => $text, name => "$page: $first" };

        if ($text =~ /^http \{/m) {
            push @wholes, $one;

        } elsif ($text =~ /^vlm_engine \w+ \{(.*)\}/ms) {
            push @engines, { %$one, text => $1 };

        } elsif ($text =~ /^(?:location|vlm_cors) /m) {
            push @servers, $one;

        } elsif ($text =~ /^(?:map|log_format) /m) {
            $http .= $text;

        } else {
            push @engines, $one;
        }
    }
}

cmp_ok(scalar @engines, '>', 35, 'the pages have engines');
cmp_ok(scalar @servers, '>=', 9, 'and locations');
cmp_ok(scalar @wholes, '>=', 2, 'and whole configurations');
like($http, qr/log_format vlm .*map \$http_authorization .*limit_req_zone/s, 'and parts of http');


# ---- two Redis -------------------------------------------------------------------------------------------

my @redis;

# Runs a server with these settings, which the pages' addresses are replaced by.
sub start_redis {
    my (@settings) = @_;
    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', '/dev/null';
        { exec qw(redis-server --save), '', '--dir', $VLM::LIVE, @settings; }
        POSIX::_exit(127);
    }

    push @redis, $pid;
}

sub redis_up {
    waitpid($_, POSIX::WNOHANG()) == 0 or die "redis-server does not run: t/deps test installs it\n" for @redis;

    return -S $SOCKET && IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $TCP);
}

END {
    my $status = $?;

    kill 'TERM', $_ and waitpid $_, 0 for @redis;
    unlink $SOCKET;
    $? = $status;
}


# ---- servers ---------------------------------------------------------------------------------------------

# Makes the model where Shipped.pm looks for it: the demo's weights, with the sizes of pictures that
# published checkpoints have.
sub make_model {
    my ($model) = @_;
    my $sizes = VLM::slurp('demo/model/preprocessor_config.json');

    $sizes =~ s/"min_pixels": \K\d+/3136/ && $sizes =~ s/"max_pixels": \K\d+/12845056/ or die "no sizes\n";

    make_path($model);
    symlink $_, "$model/" . basename($_) for grep { !/preprocessor/ } glob "$ROOT/demo/model/*";
    VLM::spew("$model/preprocessor_config.json", $sizes);
}

# Replaces what Shipped.pm does not know.
sub placed {
    my ($text, $s) = @_;
    my $dir = $s->dir;

    for ($text) {
        s{10\.0\.0\.9:6379}{127.0.0.1:$TCP}g;
        s{unix:/run/redis/redis\.sock}{unix:$SOCKET}g;
        s{/srv/vlm}{$dir/uploads}g;
        s{/var/cache/nginx-vlm}{$dir/cache}g;
        s{documents on\K}{ helper=$HELPER sandbox=$SANDBOX}g;
        s{access_log /var/log/nginx/vlm\.log}{access_log $dir/logs/vlm.log};
        s{127\.0\.0\.1:9000}{127.0.0.1:$s->{login}};
    }

    make_model("$dir/models/RoboBrain2.0-3B");
    make_path(map { "$dir/$_" } qw(uploads cache));

    return Shipped::placed($text, $dir, $s->port);
}

# One of vlm_engine, small where the snippet does not say how large.
sub engine {
    my ($one) = @_;
    my ($name, $text) = @$one{qw(engine text)};
    my $has = sub { $text =~ /^\s*$_[0]\s/m };

    $text .= "\nmodel " . ($has->('lora') ? '/models/bloomz-560m' : '/models/RoboBrain2.0-3B') . ';' unless $has->('model');
    $text .= "\ndocuments on;" if $has->('retrieval') && !$has->('documents');
    $text .= "\nstore $one->{dir}/store-$name;" unless $has->('store');
    $text .= "\nthread_pool $name;" unless $has->('thread_pool');
    $text .= "\ncontext " . ($text =~ /documents/ ? '4k' : '1k') . ';' unless $has->('context');
    $text .= "\nslots 1;" unless $has->('slots');
    $text .= "\nmax_pixels 50176;" unless $text =~ /_pixels/;
    $text .= "\nmax_tokens 32;" unless $has->('max_tokens');
    $text .= "\nfeatures 1;" unless $has->('features');

    return "vlm_engine $name {\n$text\n}\n"
           . "server {\nlisten 127.0.0.1:$one->{port};\nlocation $PATHS { vlm_pass $name; }\n"
           . "location = /metrics { vlm_status $name; }\n}\n";
}

# The location that a snippet has, or the usual one, of the engine "robobrain".
sub server {
    my ($one) = @_;
    my $text = $one->{text};

    $text .= "\nlocation $PATHS { vlm_pass robobrain; }" unless $text =~ /vlm_pass/ && $text !~ /rewrite/;
    $text .= "\nlocation /health { vlm_pass robobrain; }" unless $text =~ m{location /(?:health)? \{|health\|};

    return "server {\nlisten 127.0.0.1:$one->{port};\n$text\n}\n";
}

# Starts an nginx for these snippets; each gets a port and knows its server.
sub start {
    my ($name, @all) = @_;
    my $s = VLM->new(name => "pages-$name", login => VLM::free_port());

    for my $one (@all) {
        @$one{qw(s dir port)} = ($s, $s->dir, VLM::free_port());
        $one->{session} = 'kept-' . ($one->{engine} || 'robobrain');        # engines may share a store
    }

    $s->{port} = $all[0]{port};

    my @own = grep { $_->{engine} } @all;
    my $parts = join '', map { $_->{engine} ? engine($_) : server($_) } @all;
    my $pools = join '', map { "thread_pool $_->{engine} threads=1;\n" } @own;

    $parts .= "vlm_engine robobrain { model /models/RoboBrain2.0-3B; store $s->{dir}/store-robobrain; context 1k; max_pixels 50176; }\n"
        if @own < @all;

    $s->{conf} = placed(<<"_EOC_", $s);
load_module modules/ngx_http_vlm_module.so;
user www-data;
worker_processes 2;
error_log /var/log/nginx/error.log info;
thread_pool vlm threads=1;
$pools
events { worker_connections 1024; }

http {
    include /etc/nginx/mime.types;
$http
$parts
    server {
        listen 127.0.0.1:$s->{login};
        location / { if (\$http_cookie = "login=ok") { return 200; } return 401; }
    }
}
_EOC_

    return $s->start;
}

sub stop {
    my ($s) = @_;

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- requests --------------------------------------------------------------------------------------------

sub begin {
    my ($one, $method, $path, $body, %headers) = @_;

    return VLM::Request->new($one->{port}, VLM::request_text($method, $path, $body, { %$HEADERS, %headers }));
}

sub get { return begin($_[0], 'GET', $_[1])->end }
sub post { my ($one, $path, $body) = @_; return begin($one, 'POST', $path, $body)->end }
sub health { return get($_[0], '/api/health')->{json} || {} }

# A value of a metric, such as vlm_kv_tokens{part="size"}.
sub metric {
    my ($one, $metric) = @_;

    return (get($one, '/metrics')->{body} =~ /^\Q$metric\E (\S+)$/m)[0] // 'none';
}

sub completion {
    my ($one, $model) = @_;

    return post($one, '/v1/completions', { model => $model, prompt => 'Hi', max_tokens => 4 });
}

sub form {
    my ($one, $path, $file, %fields) = @_;
    my @parts = ((map { [$_, $fields{$_}] } sort keys %fields), ['file"; filename="' . basename($file), VLM::slurp($file)]);
    my $body = join '', map { "--xxxx\r\nContent-Disposition: form-data; name=\"$_->[0]\"\r\n\r\n$_->[1]\r\n" } @parts;

    return begin($one, 'POST', $path, "$body--xxxx--\r\n", 'Content-Type' => 'multipart/form-data; boundary=xxxx')->end;
}

# Asks about a picture of these pixels; returns the answer.
sub picture {
    my ($one, $width, $height) = @_;
    my $file = form($one, '/api/upload', VLM::bmp($width, $height))->{json}{filename};

    return post($one, '/api/chat', VLM::chat_body('picture', 'How many cups?', image => $file));
}

# Adds a document; returns it when it was read.
sub document {
    my ($one, $name) = @_;
    my $id = form($one, '/api/documents', "t/documents/files/$name.pdf", session_id => 'files')->{json}{id} // 'none';
    my $doc;

    VLM::wait_for(sub {
        $doc = get($one, "/api/documents/$id")->{json} || {};
        return ($doc->{state} || 'failed') =~ /^(?:ready|failed)$/;
    });

    return $doc;
}

# "bloom" has no chat.
sub question {
    my ($one) = @_;

    return $one->{text} =~ /bloom|^lora /m
           ? begin($one, 'POST', '/generate-lite', { prompt => 'Translate to Hindi: Hello', max_new_tokens => 8 })
           : begin($one, 'POST', '/api/chat', VLM::chat_body($one->{session}, 'How many cups?', text_only => JSON::PP::true));
}

sub answered {
    my ($one, $r) = @_;

    is($r->{code}, 200, "$one->{name}: a question is answered") or diag($r->{body}, $one->{s}->log);
    ok(length($r->{json}{answer} // $r->{json}{generated_text}), 'with words') or diag($r->{body});
}


# ---- what a directive is about ---------------------------------------------------------------------------

my ($usual, %tried);

# Of a directive that changes what no single request shows, the question is enough; other tests have it.
sub asked { return }

my %ABOUT = (
    (map { $_ => \&asked } qw(fair cache_salt priority timeout stall reload sampling max_tokens thread_pool)),

    model => sub {
        my ($one) = @_;

        ok(health($one)->{model_loaded}, 'the model is loaded');
    },

    alias => sub {
        my ($one, @names) = @_;

        is(completion($one, $_)->{code}, 200, "$_ is the model") for @names;
        is(completion($one, 'none-such')->{code}, 404, 'and another name is not');
    },

    device => sub {
        my ($one) = @_;

        like(health($one)->{device}, $GPU ? qr/^cuda:0/ : qr/^cpu/, 'a GPU if there is one, else the CPU');

        my $why = health($one)->{device_reason} // '';

        like($why, qr/^device auto took (?:the cpu|cuda:0): \w/, '/api/health says why');
        like($one->{s}->log, qr/\Q$why\E/, 'and the log');
    },

    weights => sub {
        my ($one, $type) = @_;

        like(get($one, '/metrics')->{body}, qr/^vlm_info\{.*weights="$type"/m, 'the weights have this form');
    },

    kv => sub {
        my ($one) = @_;

        cmp_ok(health($one)->{plan}{kv}, '<', 0.75 * health($usual)->{plan}{kv}, 'keys and values are smaller');
    },

    memory => sub {
        my ($one, $size) = @_;

        is(metric($one, 'vlm_memory_bytes{pool="limit"}'), bytes($size), 'the limit');
    },

    context => sub {
        my ($one, $tokens) = @_;

        is(metric($one, 'vlm_kv_tokens{part="size"}'), bytes($tokens), 'a slot has these tokens');
    },

    slots => sub {
        my ($one, $slots) = @_;

        is(metric($one, 'vlm_slots'), $slots, 'the slots');
    },

    max_pixels => sub {
        my ($one, $pixels) = @_;
        my $size = picture($one, 1000, 900)->{json}{image_resized} || [0, 0];

        cmp_ok($size->[0] * $size->[1], '<=', $pixels, 'a larger picture is scaled down');
        cmp_ok($size->[0] * $size->[1], '>', $pixels / 2, 'to about these pixels');
    },

    min_pixels => sub {
        my ($one, $pixels) = @_;
        my $size = picture($one, 84, 84)->{json}{image_resized} || [0, 0];

        cmp_ok($size->[0] * $size->[1], '>=', $pixels, 'a smaller picture is scaled up');
    },

    features => sub {
        my ($one) = @_;

        is(picture($one, 84, 84)->{code}, 200, 'a picture is asked about');
        cmp_ok(health($one)->{plan}{vision}, '>', health($usual)->{plan}{vision}, 'more pictures have room');
    },

    lora => sub {
        my ($one) = @_;
        my $r = post($one, '/generate-lite', { prompt => 'Translate to Hindi: Hello', adapter_path => 'adapters/gurukul_lite', max_new_tokens => 8 });

        is($r->{code}, 200, 'an adapter of the directory answers') or diag($r->{body});
        like(get($one, '/adapter/list')->{body}, qr/gurukul_lite/, 'and is listed');
    },

    # The words of the model's family have a system message.
    template => sub {
        my ($one) = @_;
        my $r = post($one, '/v1/chat/completions', { messages => [{ role => 'user', content => 'Hi' }], max_tokens => 1 });

        is($r->{code}, 200, 'a chat is answered') or diag($r->{body});
        cmp_ok($r->{json}{usage}{prompt_tokens}, '<', 16, 'its prompt has no system message');
    },

    thinking => sub {
        my ($one, $how) = @_;

        is(!!health($one)->{thinking}, $how eq 'on', 'whether it thinks');
    },

    tools => sub {
        my ($one) = @_;
        my $r = post($one, '/v1/chat/completions', { messages => [{ role => 'user', content => 'Hi' }],
                     tools => [{ type => 'function', function => { name => 'look', parameters => { type => 'object' } } }] });

        is($r->{code}, 200, 'a request with tools is answered') or diag($r->{body});
        ok(!$r->{json}{choices}[0]{message}{tool_calls}, 'without a call');
    },

    threads => sub {
        my ($one, $threads) = @_;

        like(health($one)->{device}, qr/\b$threads threads/, 'the threads');
    },

    queue => sub {
        my ($one, $places) = @_;

        is(health($one)->{queue}{limit}, $places, 'the places of the queue');
    },

    breaker => sub {
        my ($one) = @_;

        is(health($one)->{breaker}{state}, 'closed', 'there is a breaker');
    },

    http_memory => sub {
        my ($one, $size) = @_;

        is(metric($one, 'vlm_http_memory_bytes{part="limit"}'), bytes($size), 'the limit');
    },

    cache => sub {
        my ($one) = @_;

        my @files = glob "$one->{dir}/cache/vlm-int8-*.bin";

        ok(@files > 0, 'the quantised cache is there');
    },

    store => sub {
        my ($one, $where) = @_;

        return if $one->{text} =~ /bloom/;         # without sessions

        my $turns = get($one, "/api/history/$one->{session}")->{json};

        is(ref $turns eq 'ARRAY' ? scalar @$turns : 'none', 2, 'the session is stored');

        if ($where =~ /redis/) {
            my $r = form($one, '/api/upload', 'demo/pictures/table-01.png');

            ok(-s "$one->{dir}/uploads/uploads/$r->{json}{filename}", 'and an upload is in uploads=') or diag($r->{body});

        } else {
            ok(-s "$one->{dir}/store/vlm.db", 'in this directory');
        }
    },

    documents => sub {
        my ($one, @words) = @_;
        my $ocr = grep { /^ocr=/ } @words;
        my $doc = document($one, $ocr ? 'scan' : 'latin');

        is($doc->{state}, 'ready', 'a PDF file is read') or diag($doc->{error});
        is($doc->{ocr_pages}, 1, 'its page by OCR') if $ocr;

        my $r = post($one, '/api/ask', { session_id => 'files', question => 'What is replaced?', pages => 'text' });

        is($r->{code}, 200, 'and asked about') or diag($r->{body});
        ok(scalar @{ $r->{json}{sources} || [] }, 'with sources');

        if (grep { $_ eq 'legacy=on' } @words) {
            is(form($one, '/upload', 't/documents/files/latin.pdf')->{code}, 200, 'a client of the PDF service sends one');
            is(post($one, '/ask', { question => 'Hi' })->{code}, 200, 'and asks without a session');
        }
    },

    retrieval => sub {
        my ($one) = @_;

        ok(VLM::wait_for(sub { (health($one)->{documents}{encoder}{state} || '') eq 'ready' }), 'the encoder is loaded');
        is(document($one, 'latin')->{state}, 'ready', 'a document is read');
        ok(VLM::wait_for(sub { health($one)->{documents}{encoder}{waiting} == 0 }), 'and its pieces have vectors');
        cmp_ok(metric($one, 'vlm_document_pieces_encoded_total'), '>', 0, 'at least one');
    },

    socket => sub {
        my ($one) = @_;

        ok(-S "$one->{dir}/vlm.sock", 'the socket is there');
    },

    location => sub {
        my ($one) = @_;

        if ($one->{text} =~ /vlm_status/) {
            is(metric($one, 'vlm_up'), 1, 'metrics are at their path');
        }

        if ($one->{text} =~ m{rewrite \^(/\w+)}) {
            is(get($one, "$1/api/tasks")->{code}, 200, "paths below $1 are there");
            is(get($one, "$1/none")->{code}, 404, 'but no others');
        }

        if ($one->{text} =~ /root /) {
            my $r = get($one, '/');

            like($r->{body}, qr{<script[^>]* src="page\.js"}, 'the page is there');
            is($r->{headers}{'cache-control'}, 'no-cache', 'and a browser asks again');
        }

        if ($one->{text} =~ /Bearer|\$client|auth_request/) {
            my $r = VLM::Request->new($one->{port}, VLM::request_text('GET', '/api/tasks'))->end;

            is($r->{code}, 401, 'nothing without a key');
        }
    },

    vlm_cors => sub {
        my ($one, @origins) = @_;

        is(begin($one, 'GET', '/api/tasks', undef, Origin => $_)->end->{code}, 200, "pages of $_") for @origins;
        is(begin($one, 'GET', '/api/tasks', undef, Origin => 'http://elsewhere.example')->end->{code}, 403, 'and of no others');
    },
);

sub bytes {
    my ($n, $unit) = $_[0] =~ /^(\d+)([kmg]?)$/;

    return $n * ($SIZE{$unit} || 1);
}

# Asks all at once, then sends each what it is about.
sub try_all {
    my ($s, @all) = @_;

    for my $one (@all) {
        ok(VLM::wait_for(sub { health($one)->{model_loaded} || get($one, '/health')->{code} eq '200' }), "$one->{name}: the model is loaded")
            or diag($s->log);
    }

    my @r = $s->end_all(map { question($_) } @all);

    for my $i (0 .. $#all) {
        my $one = $all[$i];
        my $text = $one->{text} =~ s/#.*//mgr;

        answered($one, $r[$i]);

        # The directives of an engine, or the ones in front of a block.
        my @found = $text =~ /^(?:location|vlm_cors) /m ? $text =~ /^((?:location|vlm_cors) [^{;]*)/mg : $text =~ /([a-z_]+\s[^;]*);/g;

        ok(scalar @found, "$one->{name}: it has a directive");

        for (@found) {
            my ($name, @words) = split;

            ok($ABOUT{$name}, "$one->{name}: this test knows what $name is about") or next;
            $ABOUT{$name}->($one, @words);
            $tried{$name} = 1;
        }
    }
}


# ---- whole configurations --------------------------------------------------------------------------------

make_path($VLM::LIVE);
start_redis('--port', $TCP, '--bind', '127.0.0.1', '--requirepass', 'secret');
start_redis('--port', 0, '--unixsocket', $SOCKET);
ok(VLM::wait_for(\&redis_up), 'two Redis run');

for my $one (@wholes) {
    my $s = VLM->new(name => 'pages-whole', login => 0);

    @$one{qw(s dir port session)} = ($s, $s->dir, $s->port, 'kept');
    $s->{conf} = placed($one->{text}, $s);
    $s->start->ready;
    answered($one, question($one)->end);
    stop($s);
}


# ---- engines ---------------------------------------------------------------------------------------------

my $n = 0;

$_->{engine} = 'e' . $n++ for @engines;
($usual) = grep { $_->{text} =~ /^thinking/ } @engines;

# The engine that others are compared with is in each nginx.
my @rest = grep { $_ != $usual } @engines;

for my $batch (1 .. POSIX::ceil(@rest / $BATCH)) {
    my @some = ($usual, splice @rest, 0, $BATCH);
    my $s = start($batch, @some);

    try_all($s, @some);

    # The log that docs/operations.md has.
    my $line = qr{"POST /api/chat HTTP/1\.1" 200 \S+ queue=\d\S* ttft=\d\S* prompt=\d+ .*answer=\d+ end=(?:stop|length)};

    ok(VLM::wait_for(sub { VLM::slurp($s->dir . '/logs/vlm.log') =~ $line }), 'the access log has times and tokens');
    stop($s);
}


# ---- locations -------------------------------------------------------------------------------------------

{
    my $s = start('locations', @servers);

    try_all($s, @servers);
    stop($s);
}

is(join(' ', grep { !$tried{$_} } sort keys %ABOUT), '', 'each directive that the test knows is on a page');


# ---- a GPU that is not there -----------------------------------------------------------------------------

{
    my ($gpu) = grep { $_->{page} eq 'docs/gpu.md' } @engines;

    like($gpu->{text}, qr/"cuda" or "cuda:1": an error if it cannot be used/, 'docs/gpu.md says what "device cuda" does');

    my @cuda = map { { %$gpu, engine => "c$_->[0]", device => $_->[1], text => $gpu->{text} =~ s/auto;/$_->[1];/r } }
               [0, 'cuda'], [1, 'cuda:99'];
    my $s = start('cuda', @cuda);

    for my $one (@cuda) {
        if ($GPU && $one->{device} eq 'cuda') {
            ok(VLM::wait_for(sub { health($one)->{model_loaded} }), 'device cuda: the GPU has the model');
            next;
        }

        ok(VLM::wait_for(sub { (health($one)->{state} || '') eq 'failed' }), "device $one->{device}: without the GPU the load fails") or diag($s->log);
        is(question($one)->end->{code}, 503, 'questions are refused');
        like(health($one)->{reason} // '', qr/libvlm_cuda\.so|NVIDIA driver|CUDA device/, 'and /api/health says why');
    }

    like($s->log, qr/\[crit\] .* device cuda:99: \w/, 'the log says why');
    ok($s->stop, 'the server stops in time');
}

done_testing();
