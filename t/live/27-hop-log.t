# Tests that the access log has the figures of a request whichever worker accepted
# it, and of a stream, whose header is sent before the figures are known.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Script;
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

my $FORGED = '0123456789abcdef' x 2;

$Script::MLP = 16384;

my $model = Script::model('hop-log', brief => ['short', ' and', ' good'],
                          ''  => ['On', ' then', ' on', undef]);

my $s = VLM->new(name => 'hop-log', model => $model, workers => 3,
                 http => q(log_format vlm '$pid $arg_n q=$vlm_queue_time t=$vlm_ttft '
                           'p=$vlm_prompt_tokens c=$vlm_completion_tokens '
                           'f=$vlm_finish_reason s=$vlm_session.';),
                 server => 'access_log logs/vlm.log vlm;',
                 engine => 'thinking off; weights f32; threads 1; max_tokens 3000; '
                           . 'context 4k; timeout 2s; slots 2;')->start->ready;

my $picture = $s->upload('t/fidelity/pictures/40x30.png');
my $body = { model => 'live', max_tokens => 3, options => { num_predict => 3 } };
my $n = 0;

my %workers;

while (keys %workers < 3 && $n < 300) {
    my $r = chat('be brief', stream => 1);

    $workers{$r->{worker}}++;
    is($r->{headers}{'x-accel-buffering'}, 'no', 'X-Accel-Buffering is off for a proxy in front');
    check($r, qr/q=\d+\.\d{3} t=\d+\.\d{3} p=\d+ c=3 f=stop s=s$n\./, 'a stream');

    check(chat('be brief'), qr/q=\d+\.\d{3} t=\d+\.\d{3} p=\d+ c=3 f=stop s=s$n\./, 'an answer');

    check(ask('/v1/chat/completions', %$body, stream => JSON::PP::true,
              messages => [{ role => 'user', content => 'hi' }]),
          qr/t=\d+\.\d{3} p=\d+ c=3 f=length s=-\./, "OpenAI's");
    check(ask('/api/chat', %$body, messages => [{ role => 'user', content => 'hi' }]),
          qr/t=\d+\.\d{3} p=\d+ c=3 f=length s=-\./, "Ollama's");
}

is(scalar keys %workers, 3, 'all workers were asked');

for (1 .. 6) {
    my $r = chat('without end', stream => 1);

    like($r->{body}, qr/"status":504/, 'an answer takes too long');
    check($r, qr/t=\d+\.\d{3} p=- c=- f=cancelled s=s$n\./, 'the log has its end');
    last if $r->{worker} != $s->designated;
}

for (1 .. 6) {
    my $r = begin('/api/chat', { %{ VLM::chat_body('s' . ++$n, 'x', image => $picture) },
                                 stream => JSON::PP::true });

    ok($r->more && $r->more, 'a stream begins, whose client leaves');
    $r = (my $c = $r)->response;
    $c->leave;
    check($r, qr/p=- c=- f=cancelled s=s$n\./, 'the log has that end, too');
    ok($s->busy(0, 0), 'the request has ended');
    last if $r->{worker} != $s->designated;
}

# The log lines of other requests do not have these figures.
my %ids = map { /^\d+ (\d+) .* s=(s\d+)\.$/ ? ($1 => $2) : () } split /\n/, VLM::slurp("$s->{dir}/logs/vlm.log");

is(join(' ', grep { $ids{$_} ne "s$_" } sort keys %ids), '', 'each has its own session');

$s->get("/api/tasks?n=" . ++$n, undef, { 'X-Vlm-Id' => $FORGED });
like(line($n), qr/ q=- t=- p=- c=- f=- s=-\.$/, 'a request without the engine has no figures');

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();


# The number is in the URI, and therefore in the log.
sub begin {
    my ($path, $body) = @_;

    return $s->begin('POST', "$path?n=$n", $body,
                     { 'X-Vlm-Id' => $FORGED, 'X-Vlm-Usage' => '9 9 9 9 stop forged' });
}

sub ask {
    my ($path, %body) = @_;

    $n++;

    return begin($path, \%body)->end;
}

sub chat {
    my ($message, %more) = @_;

    $more{stream} = JSON::PP::true if $more{stream};
    $n++;

    return begin('/api/chat', VLM::chat_body("s$n", $message, image => $picture, %more))->end;
}

sub line {
    my ($n) = @_;

    my $line;

    VLM::wait_for(sub {
        ($line) = grep { /^\d+ $n / } split /\n/, VLM::slurp("$s->{dir}/logs/vlm.log");
    });

    return $line // '';
}

sub check {
    my ($r, $like, $name) = @_;

    my $line = line($n);

    like($line, qr/^$r->{worker} $n .*$like$/, $name);
    ok(!defined $r->{headers}{'x-vlm-usage'}, 'the client does not receive the internal header');
}
