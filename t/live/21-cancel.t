# Tests that a client that leaves frees its slot at every stage of its request.

use strict;
use warnings;

use lib 't/lib';
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Time::HiRes qw(sleep);
use VLM;

my $s = VLM->new(VLM::slow(name => 'cancel', workers => 2,
                           engine => 'slots 2; queue 8 timeout=1h;'));

$s->start->ready;

my $picture = $s->upload('t/fidelity/pictures/200x150.png');

for my $how ('closes', 'half-closes', 'resets') {
    for my $i (1 .. 3) {
        my $r = $s->begin_chat("$how$i", 'count', image => $picture);

        ok($s->busy(1), "running ($i)");

        if ($how eq 'half-closes') {
            shutdown $r->{sock}, 1;

        } else {
            setsockopt $r->{sock}, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0)
                if $how eq 'resets';
            $r->leave;
        }

        ok($s->busy(0), "the client $how: the slot is free");
        $r->leave;
    }
}

# Clients leave while their request is read, prepared or submitted.
for my $i (0 .. 39) {
    my $r = $s->begin_chat("early$i", 'count', image => $picture);
    sleep $i * 0.002;
    $r->leave;
}

ok($s->busy(0, 0), 'forty clients that leave within 80 ms leave no request behind');

# A client that leaves does not change the other answer in the batch.
my $stays = $s->begin_chat('stays', 'count', image => $picture);
ok($s->busy(1), 'a request runs');

for my $i (1 .. 5) {
    my $goes = $s->begin_chat("goes$i", 'count', image => $picture);
    ok($s->busy(2), 'another runs beside it');
    $goes->leave;
    ok($s->busy(1), 'its client leaves');
}

ok(!$stays->done, 'the first still runs');
$stays->leave;

# A cancelled answer is not stored.
ok($s->busy(0, 0), 'no request is left');

my $r = $s->get('/api/history/stays');
ok($r->{code} eq '404' || $r->{body} =~ /^\[\]\s*$/,
   'a cancelled turn is in no history') or diag($r->{body});

ok($s->stop, 'the server stops in time');
$s->check_log;

# A client leaves while the vision encoder works for seconds, which stops at once.
# "running" in health is the engine's own count: it falls with a job's last event.
$s = VLM->new(VLM::slow(name => 'cancel-picture',
                        engine => 'slots 1; queue 8 timeout=1h;'));

$s->start->ready;

my $large = $s->upload(VLM::bmp(1200, 800));

my $whole = $s->begin_chat('whole', 'count', image => $large);
ok($s->busy(1, 0), 'a large picture is read');

my $next = $s->begin_chat('next', 'count', image => $large);
ok($s->busy(1, 1), 'another waits');
$whole->leave;
ok($s->busy(1, 0), 'its client leaves: the other is read');

$next->leave;
ok($s->busy(0, 0), 'the other client leaves: the slot is free');

my $last = $s->begin_chat('last', 'count', image => $large);
ok($s->busy(1, 0), 'a third is read');

my $seconds = $s->end_designated;

ok(defined $seconds, 'SIGTERM within a picture: the worker ends by itself');
ok($s->stop, 'the server stops');
$s->check_log;

done_testing();
