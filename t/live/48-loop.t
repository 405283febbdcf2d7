# Tests a hung event loop: the other workers report it at once, and after "stall"
# its worker is replaced.  A worker that was stopped and resumed is not replaced.

use strict;
use warnings;

use lib 't/lib';
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

my $SYS_PTRACE = 101;                   # x86-64's
my ($PTRACE_SEIZE, $PTRACE_INTERRUPT) = (0x4206, 0x4207);
my $WALL = 0x40000000;
my $STALL = 5;                          # s

my $s = VLM->new(name => 'loop', workers => 3, listen => 'reuseport',
                 server => 'location = /metrics { vlm_status live; }',
                 engine => "thinking off; max_tokens 8; stall ${STALL}s;")->start->ready;

sub body { { messages => [{ role => 'user', content => 'hi' }], max_tokens => 2 } }

# Returns connections of other workers than this one.
sub others {
    my ($pid) = @_;
    my @others;

    for (1 .. 400) {
        my $c = $s->connection;
        push @others, $c if $c->{worker} != $pid;
        last if @others == 8;
    }

    return @others;
}

sub ask_on {
    my ($c, $method, $path, $body) = @_;

    my $text = VLM::request_text($method, $path, $body, { Connection => 'keep-alive' });

    $c->{raw} = '';
    $c->{begun} = time;
    $c->send($text);
    $c->more until $c->done || $c->response->{whole};

    return $c->response;
}

sub state_on { ask_on($_[0], 'GET', '/api/health')->{json}{state} || '' }


# ---- stopped as a whole --------------------------------------------------------------

my $pid = $s->designated;
my ($health, @chats) = others($pid);

# A refused connection is closed.
sub chat { ask_on(shift @chats, 'POST', '/v1/chat/completions', body()) }

is(chat()->{code}, 200, 'a question, through another worker');

kill 'STOP', $pid;

ok(VLM::wait_for(sub { state_on($health) eq 'stalled' }), 'another worker reports a stopped worker as stalled');

my $r = chat();

is($r->{code}, 503, 'other workers refuse requests for it');
is($r->{json}{error}{message}, q(The model's worker does not answer), 'the refusal has the reason');
like($r->{headers}{'retry-after'} || '', qr/^\d+$/, 'the refusal has Retry-After');
is(ask_on($health, 'GET', '/api/tasks')->{code}, 200, 'another worker answers requests without the engine');
like(ask_on($health, 'GET', '/metrics')->{body}, qr/^vlm_state\{state="stalled"\} 1$/m, 'the metrics have the same');

# The stop is longer than "stall".  A stopped process cannot be replaced, and is not after it resumes.
sleep $STALL;
kill 'CONT', $pid;

ok(VLM::wait_for(sub { state_on($health) eq 'ready' }), 'the worker resumes');
sleep 1;
is($s->designated, $pid, 'the worker is the same');
is(chat()->{code}, 200, 'the worker answers');


# ---- the loop alone hangs ------------------------------------------------------------

my $start = time;

syscall($SYS_PTRACE, $PTRACE_SEIZE, $pid, 0, 0) == -1 and die "ptrace: $!";
syscall($SYS_PTRACE, $PTRACE_INTERRUPT, $pid, 0, 0);

ok(VLM::wait_for(sub { state_on($health) eq 'stalled' }), 'a loop that hangs is stalled');
is(chat()->{code}, 503, 'a request is refused without a wait');

my $next = VLM::wait_for(sub {
    waitpid $pid, $WALL | POSIX::WNOHANG();
    my $new = $s->designated;
    return $new && $new != $pid ? $new : 0;
});

ok($next, 'its worker is replaced');
cmp_ok(time - $start, '>', $STALL - 1, 'the worker is not ended before "stall"');

$s->ready;
is($s->health->{heartbeat}{restarts}, 1, 'health has counted it');
is($s->post('/v1/chat/completions', body())->{code}, 200, 'questions are answered again');
ok($s->log_has(qr/\[crit\].*the event loop has stood still for \d+ ms: its worker is replaced/), 'the log has the reason');

ok($s->stop, 'the server stops in time');
$s->check_log(undef, qr/exited on signal 9/);

done_testing();
