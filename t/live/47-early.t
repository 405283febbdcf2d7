# Tests that a request whose texts and pictures alone exceed the context is refused
# with the numbers before it waits in the queue.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use MIME::Base64 qw(encode_base64);
use Test::More;
use VLM;

my $TEXT = 'a cup ' x 5000;
my $NUMBERS = qr/This model's maximum context length is 4096 tokens\. The prompt has at least \d{4,}, and an answer needs one\./;

my $file = VLM::slurp('t/fidelity/pictures/118x62.png');
my $url = 'data:image/png;base64,' . encode_base64($file, '');

# The picture has 32 x 32 cells.
my $large = 'data:image/bmp;base64,' . encode_base64(VLM::slurp(VLM::bmp(896, 896)), '');

sub openai {
    my ($s, @parts) = @_;

    return $s->begin('POST', '/v1/chat/completions', {
        max_tokens => 1, messages => [{ role => 'user', content => \@parts }] });
}

sub ollama {
    my ($s, @messages) = @_;

    return $s->begin('POST', '/api/chat', {
        model => 'live', stream => JSON::PP::false, options => { num_predict => 1 },
        messages => [map { { role => $_->[0], content => $_->[1] } } @messages] });
}

sub text { { type => 'text', text => $_[0] } }
sub image { { type => 'image_url', image_url => { url => $_[0] } } }

for my $workers (1, 3) {
    my $s = VLM->new(VLM::slow(name => "early-$workers", workers => $workers,
                               engine => 'slots 1; queue 8 timeout=1h;',
                               server => 'location = /metrics { vlm_status live; }'))->start->ready;
    my $picture = $s->upload('t/fidelity/pictures/40x30.png');
    my $runs = $s->begin('POST', '/v1/chat/completions', {
        max_tokens => 3000, messages => [{ role => 'user', content => 'hi' }] });
    ok($s->busy(1, 0), "$workers: one runs in the only slot");
    my $waits = openai($s, text('hi'));
    ok($s->busy(1, 1), 'another request waits');

    my @never = (
        ["RoboBrain's message", $s->begin_chat('s', $TEXT, image => $picture)],
        ["its pipeline", $s->begin('POST', '/api/pipeline', {
            session_id => 's', message => $TEXT, image => $picture })],
        ["OpenAI's messages", openai($s, text('a cup ' x 2500), text('a cup ' x 2500))],
        ["OpenAI's pictures", openai($s, (image($large)) x 5)],
        ["pictures and a text", openai($s, (image($large)) x 3, text('a cup ' x 1500))],
        ["OpenAI's prompt", $s->begin('POST', '/v1/completions', { prompt => $TEXT })],
        ["Ollama's last message", ollama($s, [user => 'hi'], [assistant => 'hi'], [user => $TEXT])],
        ["Ollama's system", ollama($s, [system => $TEXT], [user => 'hi'])],
        ["Ollama's prompt", $s->begin('POST', '/api/generate', { model => 'live', prompt => $TEXT })],
    );

    $s->end_all(map { $_->[1] } @never);

    for (@never) {
        my ($what, $r) = ($_->[0], $_->[1]->response);

        is($r->{code}, 400, "$workers: $what");
        like($r->{body}, $NUMBERS, "$workers: $what: the message has both numbers");
    }

    is($never[2][1]->response->{json}{error}{code}, 'context_length_exceeded', "$workers: OpenAI's code");
    ok($s->busy(1, 1), "$workers: the same two requests run and wait");
    ok(VLM::wait_for(sub { $s->get('/metrics')->{body} =~ /^vlm_requests_rejected_total\{reason="limit"\} 9$/m }),
       'nine have reached a limit');

    # A request that fits, or fits without a part of its history, waits.
    my @may = (ollama($s, [user => $TEXT], [assistant => 'hi'], [user => 'hi']),
               openai($s, (image($url)) x 3, text('hi')),
               openai($s, text('x' x 3900)));

    ok($s->busy(1, 4), "$workers: requests that may fit wait");

    # The last request has a long prompt.
    (pop @may)->leave;
    $runs->leave;
    is(join(' ', map { $_->{code} } $s->end_all($waits, @may)), '200 200 200', 'the waiting requests are answered')
        or diag(map { $_->response->{body} } @may);

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();
