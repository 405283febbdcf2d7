# Sends twelve requests of every kind (VLM_EACH= another multiple of three), which are answered, refused
# or cut, with a reload in the middle.  make test-valgrind runs this test under memcheck, which checks every
# read and every branch.

use strict;
use warnings;

use lib 't/lib';
use MIME::Base64 qw(encode_base64);
use Test::More;
use Time::HiRes qw(sleep);
use VLM;

my $EACH = $ENV{VLM_EACH} || 12;
my $LIMIT = $ENV{VLM_REPORTS} ? '1200s' : '120s';          # memcheck takes its time
my $FORM = { 'Content-Type' => 'multipart/form-data; boundary=b' };
my ($YES, $NO) = (JSON::PP::true, JSON::PP::false);

my $s = VLM->new(name => 'every-kind', workers => 2,
                 engine => "slots 3; context 2k; queue 64 timeout=$LIMIT; timeout $LIMIT;"
                           . ' max_tokens 24; sampling temperature=0; stall 300s;',
                 server => 'location = /metrics { vlm_status live; }');

$s->start->ready;

my $bytes = VLM::slurp('t/fidelity/pictures/118x62.png');
my $data = 'data:image/png;base64,' . encode_base64($bytes, '');
my $picture = $s->upload('t/fidelity/pictures/118x62.png');

sub ask { my ($path, $body, $headers) = @_; $s->begin('POST', $path, $body, $headers) }

sub content {
    return [{ role => 'user', content => [{ type => 'image_url', image_url => { url => $data } },
                                          { type => 'text', text => "How many cups, $_[0]?" }] }];
}

sub ollama {
    my (%more) = @_;

    return { model => 'live', messages => [{ role => 'user', content => 'cups?',
                                             images => [encode_base64($bytes, '')] }], %more };
}

# the name, the status of an answer, and a request; the second part is invalid input
my @kinds = (
    ['robobrain',        200, sub { $s->begin_chat("a$_[0]", 'How many cups?', image => $picture) }],
    ['robobrain stream', 200, sub { $s->begin_chat("b$_[0]", 'cups?', image => $data, stream => $YES) }],
    ['a second turn',    200, sub { $s->begin_chat('turns', 'And now?', image => $picture) }],
    ['thinking',         200, sub { $s->begin_chat("t$_[0]", 'cups?', image => $picture,
                                                   enable_thinking => $YES) }],
    ['grounding, drawn', 200, sub { $s->begin_chat("g$_[0]", 'the red cup', image => $picture,
                                                   task => 'grounding') }],
    ['task auto',        200, sub { $s->begin_chat("c$_[0]", 'point at it', image => $picture,
                                                   task => 'auto') }],
    ['pipeline',         200, sub { ask('/api/pipeline', { session_id => "p$_[0]", image => $picture,
                                                           message => 'grasp the red cup' }) }],
    ['decompose',        200, sub { ask('/api/decompose', { query => 'grasp the red cup' }) }],
    ['title',            200, sub { ask('/api/generate-title', { message => "cups $_[0]" }) }],
    ['openai',           200, sub { ask('/v1/chat/completions', { messages => content($_[0]) }) }],
    ['openai stream',    200, sub { ask('/v1/chat/completions', {
                              messages => content($_[0]), stream => $YES,
                              stream_options => { include_usage => $YES } }) }],
    ['openai, all wishes', 200, sub { ask('/v1/chat/completions', {
                              messages => content($_[0]), logprobs => $YES, top_logprobs => 5,
                              frequency_penalty => 1, presence_penalty => -1, seed => 7,
                              temperature => 1.2, top_p => 0.9, top_k => 20, stop => ['zz', "\n"],
                              logit_bias => { 5 => -100, 7 => 3 } }) }],
    ['openai json',      200, sub { ask('/v1/chat/completions', {
                              messages => content($_[0]), response_format => { type => 'json_object' } }) }],
    ['openai text',      200, sub { ask('/v1/completions', { prompt => "cups $_[0]", max_tokens => 5 }) }],
    ['ollama',           200, sub { ask('/api/chat', ollama(stream => $NO)) }],
    ['ollama stream',    200, sub { ask('/api/chat', ollama(options => { num_predict => 9 })) }],
    ['ollama generate',  200, sub { ask('/api/generate', { prompt => "cups $_[0]", stream => $NO }) }],
    ['models',           200, sub { $s->begin('GET', ('/v1/models', '/api/tags', '/api/ps')[$_[0] % 3]) }],
    ['show',             200, sub { ask('/api/show', { model => 'live' }) }],
    ['upload',           200, sub { ask('/api/upload', "--b\r\nContent-Disposition: form-data; name=\"file\"; "
                                        . "filename=\"$_[0].png\"\r\n\r\n$bytes\r\n--b--\r\n", $FORM) }],
    ['an uploaded file', 200, sub { $s->begin('GET', "/uploads/$picture") }],
    ['session',          200, sub { ask('/api/session', {}) }],
    ['history',          200, sub { $s->begin('GET', "/api/history/a$_[0]") }],
    ['reset',            200, sub { ask("/api/session/b$_[0]/reset", {}) }],
    ['delete',           200, sub { $s->begin('DELETE', "/api/session/b$_[0]") }],
    ['health',           200, sub { $s->begin('GET', '/api/health' . ('', '/live', '/ready')[$_[0] % 3]) }],
    ['metrics',          200, sub { $s->begin('GET', '/metrics' . ('', '?format=json')[$_[0] % 2]) }],
    ['tasks',            200, sub { $s->begin('GET', '/api/tasks') }],

    ['half a body',      400, sub { ask('/api/chat', '{"session_id": "a", ') }],
    ['no text',          400, sub { ask('/v1/chat/completions', "\x00\xff" x 50) }],
    ['a nest',           400, sub { ask('/api/generate', '[' x 5000) }],
    ['no base64',        400, sub { $s->begin_chat("n$_[0]", 'cups?', image => 'data:image/png;base64,!!') }],
    ['half a picture',   400, sub { $s->begin_chat("h$_[0]", 'cups?', image => 'data:image/png;base64,'
                                        . encode_base64(substr($bytes, 0, 60 + 40 * $_[0]), '')) }],
    ['an address',       400, sub { ask('/v1/chat/completions', { messages => [{ role => 'user', content => [
                              { type => 'image_url', image_url => { url => 'http://127.0.0.1/' } }] }] }) }],
    ['too long',         400, sub { ask('/v1/chat/completions', { messages => [
                              { role => 'user', content => 'x ' x 40000 }] }) }],
    ['half a form',      400, sub { ask('/api/upload', "--b\r\nContent-Disposition: form-d", $FORM) }],
    ['nowhere',          404, sub { $s->begin('GET', '/api/nowhere') }],
    ['the wrong method', 405, sub { $s->begin('PUT', '/api/health') }],
);

my $half = @kinds / 2;

for my $i (0 .. $#kinds) {
    my ($name, $code, $begin) = @{ $kinds[$i] };
    my @answers;

    # Three requests run at a time, as many as there are slots.
    for my $first (0 .. $EACH / 3 - 1) {
        push @answers, $s->end_all(map { $begin->(3 * $first + $_) } 0 .. 2);
    }

    is(scalar(grep { $_->{code} eq $code && $_->{whole} } @answers), $EACH, "$name: $EACH times $code")
        or diag(join "\n", map { "$_->{code} " . substr($_->{body}, 0, 200) }
                           grep { $_->{code} ne $code } @answers);

    if ($i == int $half) {
        ok($s->reload, 'a reload');
        $s->ready;
    }
}

# Clients leave while their requests are read, prepared, submitted and answered.
for my $i (0 .. 3 * $EACH) {
    my $r = $i % 2 ? $kinds[1][2]->("l$i") : $kinds[10][2]->("l$i");
    sleep $i * 0.004;
    $r->leave;
}

ok($s->busy(0, 0), 'no request of a client that left remains');
is($s->chat('last', 'How many cups?', image => $picture)->{code}, 200, 'the next is answered');

ok($s->stop('QUIT', 60), 'the server stops in time');
$s->check_log;

done_testing();
