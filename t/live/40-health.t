# Tests that health is right at every worker while the model loads, works, hangs or
# is gone, and that a hung worker is replaced.

use strict;
use warnings;

use lib 't/lib';
use Fcntl qw(:flock);
use Test::More;
use Time::HiRes qw(time);
use VLM;

my $WALL = 0x40000000;
my $STALL = 8;                          # s

# ---- during the load ---------------------------------------------------------

my $s = VLM->new(VLM::slow(name => 'health', workers => 3,
                           engine => "slots 1; queue 4 timeout=1h; stall ${STALL}s;",
                           server => 'location = /metrics { vlm_status live; }'));

# This test holds the lock, which keeps the model from being loaded.
mkdir $s->dir . '/store';
open my $lock, '>', $s->dir . '/store/live.lock' or die;
flock $lock, LOCK_EX or die;

$s->start;

my $r = $s->get('/api/health');
is($r->{json}{state}, 'loading', 'a worker without the lock is loading');
is($r->{json}{status}, 'healthy', 'a loading server is healthy');
ok(!$r->{json}{model_loaded}, 'the model is not loaded');

is($s->get('/api/health/live')->{code}, 200, 'the liveness probe succeeds');
$r = $s->get('/api/health/ready');
is($r->{code}, 503, 'the readiness probe has a 503');
is($r->{json}{error}{message}, 'Loading model', 'the message is that of llama-server');
is($r->{json}{error}{type}, 'unavailable_error', 'the error has its type');
like($r->{headers}{'retry-after'} || '', qr/^\d+$/, 'the answer has Retry-After');

close $lock;
$s->ready;

is($s->get('/api/health/ready')->{code}, 200, 'the readiness probe succeeds');
is($s->health->{state}, 'ready', 'the state is ready');

# ---- during an answer --------------------------------------------------------

my $picture = $s->upload('t/fidelity/pictures/118x62.png');
my $one = $s->begin_chat('one', 'hi', image => $picture);

ok($s->busy(1, 0), 'one runs in the only slot');
is($s->health->{state}, 'busy', 'the engine is busy');
is($s->get('/api/health/ready')->{code}, 200, 'a busy server is ready');

# A busy engine is not a hung one: the age of its heartbeat falls again and again.
my ($beats, $age) = (0, 0);

ok(VLM::wait_for(sub {
    my $last = $age;
    $age = $s->health->{heartbeat}{engine_ms};
    return ($beats += $age < $last) >= 5;
}), 'the engine has a heartbeat');

$one->leave;
ok($s->busy(0, 0), 'its client leaves');

# ---- a stopped worker --------------------------------------------------------

my $pid = $s->designated;
is($s->health->{heartbeat}{pid}, $pid, 'health has the pid of the worker');

# The connections of the stopped worker are not used.
my @others;

for (1 .. 400) {
    my $c = $s->connection;
    push @others, $c if $c->{worker} != $pid;
    last if @others == 2;
}

ok(scalar @others, 'other workers can be asked');

kill 'STOP', $pid;

sub health_on {
    my ($c) = @_;

    $c->{raw} = '';
    $c->send("GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    $c->more until $c->done || $c->response->{whole};

    return $c->response;
}

my $state = sub {
    my ($where) = @_;

    return VLM::wait_for(sub {
        my $r = health_on($others[0]);
        return ($r->{json}{state} || '') eq $where ? $r : undef;
    });
};

$r = $state->('stalled');
ok($r, 'another worker reports a stopped worker as stalled');
is($r && $r->{json}{status}, 'unhealthy', 'a stalled server is unhealthy');
like($r && $r->{json}{reason} || '', qr/event loop/, 'health has the reason');

kill 'CONT', $pid;
ok($state->('ready'), 'the server is ready after the worker resumes');

# ---- an engine that hangs ----------------------------------------------------

$_->leave for @others;

my $prepared = sub { ($s->get('/metrics')->{body} =~ /^vlm_prepare_seconds_count (\d+)$/m)[0] };
my $before = $prepared->();

my $two = $s->begin_chat('two', 'hi', image => $picture);
ok($s->busy(1, 0), 'one runs');
my $three = $s->begin_chat('three', 'hi', image => $picture);
ok($s->busy(1, 1), 'another request waits');

# A thread of the engine's pool makes the prompt.  If that thread were stopped then, it
# would never return the request, and this is not the case under test.
ok(VLM::wait_for(sub { $prepared->() >= $before + 2 }), 'both prompts are made');

my @threads = grep { $_ != $pid } map { m{(\d+)$} } glob "/proc/$pid/task/*";

# Every thread except the event loop's is stopped, the engine's in its arithmetic.
my $only_engine = sub {
    my @busy = grep { !VLM::waits($_) } @_;
    return @busy == 1 && VLM::computes($busy[0]);
};

ok(VLM::halt($only_engine, @threads), 'only the engine computes, and it is stopped with all threads but the loop\'s');

my $start = time;

my $reap = sub { waitpid($_, $WALL | POSIX::WNOHANG()) for @threads };

my ($a, $b) = $s->end_all($two, $three);
my $took = time - $start;

is($a->{code}, 503, 'the running request has a 503');
like($a->{json}{error} || '', qr/stalled/, 'its message says that the engine has stalled');
is($b->{code}, 503, 'the waiting request has a 503');
like($_->{headers}{'retry-after'} || '', qr/^\d+$/, 'the refusal has Retry-After') for $a, $b;
cmp_ok($took, '>', $STALL - 1, 'the refusal does not come before "stall"');

my $next = VLM::wait_for(sub {
    $reap->();
    my $new = $s->designated;
    return $new && $new != $pid ? $new : 0;
});

ok($next, 'its worker is replaced');
$s->ready;
is($s->health->{heartbeat}{restarts}, 1, 'health has counted the restart');
is($s->get('/api/history/one')->{code} =~ /^(?:200|404)$/ ? 1 : 0, 1, 'the store answers');
ok($s->log_has(qr/\[crit\].*has made no progress for \d+ ms: its worker is replaced/),
   'the log says why');

# ---- a crash -----------------------------------------------------------------

kill 'KILL', $next;
ok(VLM::wait_for(sub {
    my $new = $s->designated;
    return $new && $new != $next;
}), 'a killed worker is replaced');
$s->ready;
is($s->health->{heartbeat}{restarts}, 2, 'health has counted the crash');

ok($s->stop, 'the server stops in time');
$s->check_log(undef, qr/exited on signal 9/);

done_testing();
