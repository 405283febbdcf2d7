# Tests the breaker: after repeated failures of the engine clients are refused at
# once for some time, then one request probes it, and an answer closes the breaker.

use strict;
use warnings;

use lib 't/lib';
use Script;
use Test::More;
use Time::HiRes qw(time);
use VLM;

$Script::MLP = 16384;

my $model = Script::model('breaker', '' => ['On', ' then', ' on', undef]);
my $PAUSE = 3;                         # s

sub server {
    my (%conf) = @_;

    return VLM->new(model => $model, workers => 3, listen => 'reuseport', %conf,
                    server => 'location = /metrics { vlm_status live; }',
                    engine => 'thinking off; weights f32; threads 1; max_tokens 3000; context 4k; '
                              . "slots 2; queue 16 timeout=1h; timeout 1h; $conf{engine}")->start->ready;
}

sub begin {
    my ($s, $tokens) = @_;

    return $s->begin('POST', '/v1/chat/completions',
                     { max_tokens => $tokens, messages => [{ role => 'user', content => 'hi' }] });
}

sub ask { begin(@_)->end }

# Kills the worker with the model; the next one takes over.  A crash while memory is
# taken counts as one in the load, which is repeated after a pause, so this waits.
sub dies {
    my ($s) = @_;

    VLM::wait_for(sub { !$s->health->{filling} });

    my $pid = $s->designated;

    kill 'KILL', $pid;

    VLM::wait_for(sub { my $new = $s->designated; $new && $new != $pid }) or return 0;
    $s->ready;

    return 1;
}

sub breaker { $_[0]->health->{breaker} }
sub opened { breaker($_[0])->{state} eq 'open' }


# The pause is longer than the test.
my $s = server(name => 'breaker', engine => 'breaker failures=2 pause=1h;');

is(breaker($s)->{state}, 'closed', 'the breaker is closed at first');
ok(dies($s), 'the engine crashes');
is(ask($s, 5)->{code}, 200, 'no request is refused after one failure');
is(breaker($s)->{failures}, 0, 'an answer resets the count');

# ---- open --------------------------------------------------------------------------

ok(dies($s), 'the engine crashes');
is(breaker($s)->{failures}, 1, 'the failure is counted');
ok(dies($s), 'the engine crashes again, without an answer in between');
ok(opened($s), 'the breaker is open');

my %workers;

for (1 .. 40) {
    my $r = ask($s, 5);

    is($r->{code}, 503, 'refused') if $r->{code} != 503 || !$workers{$r->{worker}}++;
    next if $workers{$r->{worker}} > 1;

    like($r->{json}{error}{message}, qr/^The engine has failed 2 times in a row, it is tried again in \d{4} seconds$/,
         'the refusal has the reason');
    is($r->{json}{error}{code}, 'engine_failing', 'the error has its code');
    like($r->{headers}{'retry-after'}, qr/^[1-9]\d*$/, 'the refusal has Retry-After');
}

is(scalar keys %workers, 3, 'by whichever worker') or diag(join ' ', keys %workers);

my $r = $s->get('/api/health/ready');
is($r->{code}, 503, 'the server is not ready');
like($r->{body}, qr/failed repeatedly/, 'the refusal has the reason');
like(breaker($s)->{reason}, qr/failed 2 times in a row/, 'health has the reason');
like($s->get('/metrics')->{body}, qr/^vlm_breaker\{state="open"\} 1$/m, 'the metrics have the state');

ok($s->stop, 'the server stops in time');
$s->check_log(undef, qr/exited on signal 9/);

# ---- a probe -----------------------------------------------------------------------

$s = server(name => 'breaker-probe', engine => "breaker failures=2 pause=${PAUSE}s;");

ok(dies($s), 'the engine crashes');
my $start = time;
ok(dies($s), 'the engine crashes again');
ok(VLM::wait_for(sub { !opened($s) }), 'the pause ends');
cmp_ok(time - $start, '>', $PAUSE - 0.5, 'the pause does not end before its time');
is($s->get('/api/health/ready')->{code}, 200, 'the server is ready for a probe');

my $probe = begin($s, 3000);
ok($s->busy(1, 0), 'one request is the probe');

$r = ask($s, 5);
is($r->{code}, 503, 'there is only one probe');
like($r->{json}{error}{message}, qr/2 times in a row, one request tries it now/, 'other requests are refused');

$probe->leave;
ok($s->busy(0, 0), 'the client of the probe leaves');

$probe = begin($s, 3000);
ok($s->busy(1, 0), 'the next request is the probe');
ok(dies($s), 'the engine fails once more');
is(breaker($s)->{failures}, 3, 'this is the third failure');
$probe->leave;

ok(VLM::wait_for(sub { !opened($s) }), 'that probe ends, too');
is(ask($s, 5)->{code}, 200, 'the next probe is answered');
is(breaker($s)->{state}, 'closed', 'the breaker is closed');

my @many = map { begin($s, 5) } 1 .. 6;
is((grep { $_->{code} == 200 } $s->end_all(@many)), 6, 'all requests are let through');

my $metrics = $s->get('/metrics')->{body};
like($metrics, qr/^vlm_breaker_opened_total 1$/m, 'the breaker was opened once');
like($metrics, qr/^vlm_requests_rejected_total\{reason="breaker"\} [1-9]\d*$/m, 'the metrics count the refusals');
ok($s->log_has(qr/\[crit\].*has failed 2 times in a row: requests are refused for ${PAUSE}000 ms/),
   'the log says when');
ok($s->log_has(qr/\[notice\].*answers again/), 'the log has the end of the pause');

ok($s->stop, 'the server stops in time');
$s->check_log(undef, qr/exited on signal 9/);

# ---- none --------------------------------------------------------------------------

$s = server(name => 'no-breaker', engine => 'breaker off;');

ok(dies($s), 'the engine crashes') for 1 .. 6;
is(ask($s, 5)->{code}, 200, 'a server without a breaker refuses no request');

ok($s->stop, 'the server stops in time');
$s->check_log(undef, qr/exited on signal 9/);

done_testing();
