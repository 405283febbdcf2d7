# Tests several engines behind one location: the body's "model" chooses one, whichever worker has it and whichever
# accepted the request; lists have all of them; and one that hangs or is full leaves the others as they are.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use MIME::Base64 qw(encode_base64);
use Test::More;
use VLM;

my $ROOT = Cwd::getcwd();
my $ENGINE = 'weights f32; sampling temperature=0 repetition_penalty=1; max_tokens 12; stall 1h; store STORE;';

# Each engine has a location of its own, too: its answers are those to compare with.
my @names = qw(live bloom third);
my $s = VLM->new(name => 'models', workers => 2, pass => "@names", listen => 'reuseport');
my $each = $ENGINE =~ s/STORE/$s->{store_dir}/r;

$s->{main} = 'thread_pool bloom threads=1; thread_pool third threads=1;';
$s->{http} = <<"_EOC_";
    log_format engines '\$status \$request_uri \$vlm_engine \$vlm_prompt_tokens \$vlm_finish_reason';
    client_body_buffer_size 16k;

    vlm_engine bloom {
        model $ROOT/demo/model-bloom;
        alias translator;
        lora $ROOT/demo/adapters rank=8;
        thread_pool bloom;
        queue 2;
        $each
    }

    vlm_engine third {
        model $ROOT/demo/model-3;
        thread_pool third;
        thinking off;
        $each
    }
_EOC_
$s->{engine} = 'thinking off; ' . $each =~ s/ store \S+;//r;
$s->{server} = join "\n", "access_log $s->{dir}/logs/access.log live;",
                          "access_log $s->{dir}/logs/engines.log engines;",
                          "location /generate-lite { vlm_pass @names; }",
                          map { "location /$_/ { rewrite ^/$_(/.*) \$1 break; vlm_pass $_; }"
                                . " location = /metrics-$_ { vlm_status $_; }" } @names;

$s->start;
is($s->get('/api/health/live')->{code}, 200, 'the server is alive');
ok(VLM::wait_for(sub { $s->get('/api/health/ready')->{code} eq '200' }), 'all engines are ready') or diag($s->log);

my %pid = map { $_ => $s->get("/$_/api/health")->{json}{heartbeat}{pid} } @names;
isnt($pid{bloom}, $pid{third}, 'two workers have the models');
is($pid{bloom}, $pid{live}, 'two engines share one of them');

my $picture = do { local $/; open my $in, '<:raw', 'demo/pictures/table-01.png' or die; <$in> };
my $url = 'data:image/png;base64,' . encode_base64($picture, '');

# A connection of each worker; an answer closes it.
sub at {
    my ($pid) = @_;

    for (1 .. 400) {
        my $c = $s->connection;
        return $c if $c->{worker} == $pid;
    }

    die "no connection of worker $pid\n";
}

sub ask_at {
    my ($pid, $method, $path, $body) = @_;

    my $c = at($pid);
    $c->send(VLM::request_text($method, $path, $body));
    return $c->end;
}

sub text {
    my ($r) = @_;

    my $j = $r->{json};

    return join '', $r->{body} =~ /"(?:text|content)": ?"((?:[^"\\]|\\.)*)"/g if !$j;
    return $j->{choices} ? $j->{choices}[0]{message} ? $j->{choices}[0]{message}{content} : $j->{choices}[0]{text}
                         : $j->{response} // ($j->{message} ? $j->{message}{content} : $j->{answer});
}

sub error { my ($r) = @_; ref $r->{json}{error} ? $r->{json}{error}{message} : $r->{json}{error} }


# ---- an answer of each engine, from each worker -------------------------------------------

my %chat = (messages => [{ role => 'user', content => 'How many objects are on the table?' }], max_tokens => 8);
my %see = (max_tokens => 12, messages => [{ role => 'user', content => [
    { type => 'image_url', image_url => { url => $url } }, { type => 'text', text => 'What is 2 plus 3?' }] }]);
my %prompt = (prompt => 'Translate to Hindi: Good morning', max_tokens => 12);
my %body = (live => ['/v1/chat/completions', \%see], third => ['/v1/chat/completions', \%see],
            bloom => ['/v1/completions', \%prompt]);
my %own;

for my $name (@names) {
    my ($path, $body) = @{ $body{$name} };
    my $r = $s->post("/$name$path", $body);

    is($r->{code}, 200, "$name answers in its own location");
    ok(length($own{$name} = text($r)), 'with a text') or diag($r->{body});

    for my $worker (sort { $a <=> $b } values %{{ reverse %{{ reverse %pid }} }}) {
        my $here = $worker == $pid{$name} ? 'its own' : 'the other';

        for my $model ($name, "\U$name", "$name:latest") {
            my $r = ask_at($worker, 'POST', $path, { %$body, model => $model });
            is(text($r), $own{$name}, "$model answers through $here worker");
            is($r->{json}{model}, $model, 'the answer repeats the name');
        }

        my $stream = ask_at($worker, 'POST', $path, { %$body, model => $name, stream => JSON::PP::true });
        like($stream->{body}, qr/data: \[DONE\]/, "$name streams through $here worker");
        is(text({ body => $stream->{body} }), $own{$name}, 'with the same text');
    }
}

isnt($own{live}, $own{third}, 'two models have two answers');

my @other = (['translator', 'an alias'], ['model-bloom', 'the name of the directory']);
is(text($s->post('/v1/completions', { %prompt, model => $_->[0] })), $own{bloom}, "$_->[1] is a model") for @other;

my $adapted = $s->post('/bloom/v1/completions', { %prompt, model => 'gurukul_lite' });
isnt(text($adapted), $own{bloom}, 'the adapter has an answer of its own');
is(text(ask_at($_, 'POST', '/v1/completions', { %prompt, model => 'gurukul_lite' })), text($adapted),
   'an adapter is a model') for values %pid;


# ---- bodies of every kind ---------------------------------------------------------------------

cmp_ok(length $url, '>', 16 * 1024, 'a picture exceeds the buffer of a body');

for my $worker ($pid{live}, $pid{third}) {
    my $json = JSON::PP->new->canonical->encode(\%see);

    for my $place ([$json =~ s/\}\z/, "model" : "third" }/r, 'last'], [$json =~ s/\A\{/{"mod\\u0065l":"third",/r, 'first']) {
        is(text(ask_at($worker, 'POST', '/v1/chat/completions', $place->[0])), $own{third},
           "a picture goes to the engine whose name comes $place->[1]");
    }

    my $c = at($worker);
    my $body = $json =~ s/\}\z/, "model": "third"}/r;
    $c->send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
    $c->send(sprintf "%x\r\n%s\r\n", length $_, $_) for unpack '(a9000)*', $body;
    $c->send("0\r\n\r\n");
    is(text($c->end), $own{third}, 'so does a body in chunks');
}

# Equal keys and other objects with this key.
is(text($s->post('/v1/completions', '{"model": "third", "x": {"model": "live"}, "model": "bloom", '
                 . substr JSON::PP->new->encode(\%prompt), 1)), $own{bloom}, 'the last of equal keys counts');


# ---- no model, an unknown one, none that is a text --------------------------------------------

for my $model ([], [model => ''], [model => undef]) {
    my $r = $s->post('/v1/chat/completions', { %see, @$model });
    is(text($r), $own{live}, 'without a model the first engine answers');
    is($r->{json}{model}, 'live', 'and says its name');
}

my $none = qr/^model "nobody" not found, the models here are "live", "bloom", "third"$/;

for my $path (qw(/v1/chat/completions /v1/completions /v1/responses /v1/embeddings /api/generate /api/embed
                 /api/embeddings /api/chat /api/pipeline /api/decompose /api/generate-title /api/show)) {
    my $r = $s->post($path, { %chat, %prompt, message => 'x', session_id => 'x', model => 'nobody' });
    is($r->{code}, 404, "an unknown model is a 404 of $path");
    like(error($r), $none, 'the error lists the models');
}

my $unknown = $s->post('/v1/chat/completions', { %chat, model => 'nobody' });
is($unknown->{json}{error}{code}, 'model_not_found', 'the error has its code');
is($unknown->{json}{error}{param}, 'model', 'and its field');
like(error($s->get('/v1/models/nobody')), $none, 'so does that of /v1/models/NAME');
is($s->post('/api/pull', { model => 'nobody' })->{code}, 403, 'an unknown model cannot be pulled');
is($s->post('/api/pull', { model => 'third', stream => JSON::PP::false })->{json}{status}, 'success',
   'a known one is there');

is($s->post('/v1/chat/completions', { %chat, model => 7 })->{code}, 400, 'a number is no model');
is($s->post('/v1/chat/completions', { %chat, model => 'x' x 300 })->{code}, 404, 'a name may be too long');
is($s->post('/v1/chat/completions', '{"model": "third"')->{code}, 400, 'a body that is cut is a 400');
is($s->post('/v1/chat/completions', '')->{code}, 400, 'so is none');
is($s->post('/live/v1/chat/completions', { %chat, model => 'third' })->{code}, 404,
   'a location with one engine knows that one alone');


# ---- the other interfaces ---------------------------------------------------------------------

is(text($s->post('/api/generate', { model => 'bloom', prompt => $prompt{prompt}, stream => JSON::PP::false,
                                    options => { num_predict => 12 } })), $own{bloom}, "Ollama's generate");
is(text($s->post('/api/chat', { model => 'third', stream => JSON::PP::false, options => { num_predict => 12 },
                                messages => [{ role => 'user', content => 'What is 2 plus 3?',
                                               images => [encode_base64($picture, '')] }] })),
   $own{third}, "Ollama's chat");

for my $name (@names) {
    my $own = $s->post("/$name/v1/embeddings", { input => 'a cup' })->{json}{data}[0]{embedding};
    my $got = $s->post('/v1/embeddings', { input => 'a cup', model => $name })->{json};
    is_deeply($got->{data}[0]{embedding}, $own, "the vector of $name");
    is_deeply($s->post('/api/embed', { input => 'a cup', model => "$name:latest" })->{json}{embeddings},
              $s->post("/$name/api/embed", { input => 'a cup' })->{json}{embeddings}, "Ollama's, too");
}

my $responses = $s->post('/v1/responses', { model => 'third', max_output_tokens => 12, input => [
    { role => 'user', content => [{ type => 'input_image', image_url => $url },
                                  { type => 'input_text', text => 'What is 2 plus 3?' }] }] });
is($responses->{json}{output}[0]{content}[0]{text}, $own{third}, '/v1/responses');

# The LoRA service's name of a model is "base_model"; without it, and with its default, the first engine is meant.
for my $name (@names) {
    my %lite = (prompt => 'Good morning', max_new_tokens => 4, do_sample => JSON::PP::false);
    my $own = $s->post("/$name/generate-lite", \%lite)->{json};

    is($own->{prompt}, 'Good morning', "/generate-lite of $name");
    is($s->post('/generate-lite', { %lite, base_model => $name })->{json}{generated_text}, $own->{generated_text},
       'is chosen by base_model');
    is($s->post('/generate-lite', { %lite, base_model => 'gpt2' })->{json}{generated_text}, $own->{generated_text},
       'or is the default') if $name eq 'live';
}

is($s->post('/generate-lite', { prompt => 'x', base_model => 'nobody' })->{code}, 500, 'an unknown one is its 500');


# ---- sessions and uploads are shared -------------------------------------------------------------

my $file = $s->upload('demo/pictures/table-01.png');
my $turn = $s->chat('shared', 'What is on the table?', image => $file);
is($turn->{code}, 200, 'the first engine begins a session');
is($turn->{json}{turn_number}, 2, 'its turn is stored');
$turn = $s->chat('shared', 'Where is it?', model => 'third');
is($turn->{code}, 200, 'another engine answers in it') or diag($turn->{body});
is($turn->{json}{turn_number}, 4, 'its turn is the second');
ok($turn->{json}{context_used}, 'it has read the first');
is(scalar @{ $s->get('/api/history/shared')->{json} }, 4, 'the history has both');
is($s->chat('shared', 'x', model => 'bloom')->{code}, 400, 'a model without a chat template refuses');


# ---- lists -----------------------------------------------------------------------------------

my $models = $s->get('/v1/models')->{json}{data};
is(join(' ', map { $_->{id} } @$models), 'live bloom translator gurukul_lite third', '/v1/models lists all');
is((grep { $_->{id} eq 'gurukul_lite' } @$models)[0]{parent}, 'bloom', 'an adapter has its engine');
is($s->get("/v1/models/$_->{id}")->{json}{id}, $_->{id}, "/v1/models/$_->{id}") for @$models;

my $tags = join ' ', map { $_->{name} } @{ $s->get('/api/tags')->{json}{models} };
is($tags, 'live:latest bloom:latest translator:latest gurukul_lite:latest third:latest', '/api/tags lists all');
is(join(' ', map { $_->{name} } @{ $s->get('/api/ps')->{json}{models} }), 'live:latest bloom:latest third:latest',
   '/api/ps has the loaded ones');
is($s->post('/api/show', { model => $_->[0] })->{json}{model_info}{'general.basename'}, $_->[1], "/api/show of $_->[0]")
    for ['live', 'model'], ['bloom:latest', 'model-bloom'], ['gurukul_lite', 'model-bloom'], ['third', 'model-3'];
is($s->post('/api/show', { name => 'third' })->{json}{model_info}{'general.basename'}, 'model-3', 'by its older field');
ok($s->get('/api/version')->{json}{version}, '/api/version');

my $health = $s->health;
is(join(' ', map { "$_->{model} $_->{state}" } @{ $health->{engines} }), 'live ready bloom ready third ready',
   '/api/health has each engine');
is($health->{model}, 'live', 'and otherwise the first');
ok(!exists $s->get('/live/api/health')->{json}{engines}, 'a location with one engine has no list');


# ---- what logs and metrics say ------------------------------------------------------------------

sub answered {
    my ($name) = @_;

    my $n = 0;
    $n += $_ for $s->get("/metrics-$name")->{body} =~ /^vlm_requests_answered_total\{[^}]*\} (\d+)/mg;
    return $n;
}

my $before = VLM::slurp("$s->{dir}/logs/engines.log");
my %count = map { $_ => answered($_) } @names;

for my $worker ($pid{live}, $pid{third}) {
    for my $stream (JSON::PP::false, JSON::PP::true) {
        ask_at($worker, 'POST', '/v1/chat/completions', { %chat, model => 'third', stream => $stream });
    }
}

my $line = qr{^200 /v1/chat/completions third \d+ (?:length|stop)$}m;
ok(VLM::wait_for(sub { 4 == (() = substr(VLM::slurp("$s->{dir}/logs/engines.log"), length $before) =~ /$line/g) }),
   'the log of either worker has the engine and its tokens')
    or diag(substr VLM::slurp("$s->{dir}/logs/engines.log"), length $before);
like($before, qr{^404 /v1/chat/completions live - -$}m, 'an unknown model is for no engine: the first one\'s name');
is(answered($_), $count{$_} + ($_ eq 'third' ? 4 : 0), "the metrics of $_ count its answers") for @names;


# ---- one engine's worker hangs ----------------------------------------------------------------------

# It accepts connections no more, but the kernel gives it some: these are open before.
my @open = map { at($pid{live}) } 1 .. 5;
my $watch = at($pid{live});

kill 'STOP', $pid{third};

sub ask_on {
    my ($c, $method, $path, $body, $headers) = @_;

    $c->{raw} = '';
    $c->send(VLM::request_text($method, $path, $body, $headers));
    $c->more until $c->done || $c->response->{whole};

    return $c->response;
}

ok(VLM::wait_for(sub {
    my $r = ask_on($watch, 'GET', '/api/health', undef, { Connection => 'keep-alive' });
    return $r->{json}{engines}[2]{state} eq 'stalled';
}), 'health says which engine hangs');
is(ask_on(shift @open, 'GET', '/api/health/ready')->{code}, 503, 'the server is not ready');
is(ask_on(shift @open, 'POST', '/v1/chat/completions', { %chat, model => 'third' })->{code}, 503,
   'that engine is not available');
is(text(ask_on(shift @open, 'POST', '/v1/chat/completions', { %see, model => 'live' })), $own{live}, 'the others answer');
is(text(ask_on(shift @open, 'POST', '/v1/completions', { %prompt, model => 'bloom' })), $own{bloom}, 'each of them');
is(scalar @{ ask_on(shift @open, 'GET', '/v1/models')->{json}{data} }, 5, 'the list is the same');

kill 'CONT', $pid{third};

ok(VLM::wait_for(sub { $s->get('/api/health/ready')->{code} eq '200' }), 'it goes on');
is(text($s->post('/v1/chat/completions', { %see, model => 'third' })), $own{third}, 'and answers');


# ---- a reload while a body arrives ------------------------------------------------------------------

my ($half) = at($pid{live});
my $text = VLM::request_text('POST', '/v1/chat/completions', { %see, model => 'third' });

$half->send(substr $text, 0, 1000);

my %old = map { $_ => 1 } $s->workers;
$s->signal('HUP');
ok(VLM::wait_for(sub { grep { !$old{$_} } $s->workers }), 'new workers start');
$half->send(substr $text, 1000);
is(text($half->end), $own{third}, 'a request whose body had begun to arrive is answered');
ok(VLM::wait_for(sub { !grep { $old{$_} } $s->workers }), 'the old workers exit');
ok(VLM::wait_for(sub { $s->get('/api/health/ready')->{code} eq '200' }), 'all engines are ready again');
is(text($s->post(@{ $body{$_} }[0], { %{ $body{$_}[1] }, model => $_ })), $own{$_}, "$_ answers again") for @names;

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
