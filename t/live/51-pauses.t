# Tests a load that repeatedly crashes its worker: each pause before the next load is
# twice the last, and waiting requests are answered in the end.

use strict;
use warnings;

use lib 't/lib';
use Fcntl qw(:flock);
use Test::More;
use Time::HiRes qw(time);
use VLM;

my $s = VLM->new(name => 'pauses', workers => 2, engine => 'thinking off; max_tokens 8;');

# This test holds the lock, which keeps the model from being loaded.
mkdir $s->dir . '/store';
open my $lock, '>', $s->dir . '/store/live.lock' or die;
flock $lock, LOCK_EX or die;

$s->start;

sub pid { $_[0]->health->{heartbeat}{pid} || 0 }

# Kills the worker that loads; another one takes over.
sub dies {
    my $pid = VLM::wait_for(sub { pid($s) });

    kill 'KILL', $pid;

    return VLM::wait_for(sub { my $new = pid($s); $new && $new != $pid ? $new : 0 });
}

my $start;

for my $death (1 .. 4) {
    $start = time;
    ok(dies(), "crash $death: another worker takes over");
    is($s->health->{state}, 'loading', 'the state is loading');
}

my $r = $s->begin('POST', '/v1/chat/completions', { messages => [{ role => 'user', content => 'hi' }] });

close $lock;
is($r->end->{code}, 200, 'the lock is free: a waiting request is answered after the load');
cmp_ok(time - $start, '>', 4, 'the fourth pause has four seconds');

my @said = $s->log =~ /(\d) loads in 5 minutes have ended with their worker: the next one begins in (\d+) ms/g;
is("@said", '2 1000 3 2000 4 4000', 'the log says each pause, twice the last');
is($s->health->{heartbeat}{restarts}, 4, 'health has the number of restarts');

# A worker that crashes with a loaded model is replaced at once.
ok(VLM::wait_for(sub { !$s->health->{filling} }), 'all planned memory is taken');
ok(dies(), 'a worker crashes after the load');
$s->ready;
is(scalar(() = $s->log =~ /loads in 5 minutes have ended with their worker/g), 3, 'the next load is not delayed');

ok($s->stop, 'the server stops in time');
$s->check_log(undef, qr/exited on signal 9/);

done_testing();
