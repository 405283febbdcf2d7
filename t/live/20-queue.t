# Tests the queue: a full queue refuses before the body is read, a wait ends at its
# timeout, and a client that leaves frees its place.

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(time);
use VLM;

my $s = VLM->new(VLM::slow(name => 'queue', server => 'vlm_cors *;', workers => 2,
                           engine => 'slots 1; queue 2 timeout=5s;'));
my $picture;

$s->start->ready;
$picture = $s->upload('t/fidelity/pictures/40x30.png');

my $running = $s->begin_chat('a', 'count', image => $picture);

ok($s->busy(1, 0), 'the first leaves the queue at once');

my @waiting = map { $s->begin_chat($_, 'count', image => $picture) } 'b', 'c';

ok($s->busy(1, 2), 'two requests wait');

for my $i (1 .. 4) {
    my $r = $s->chat('d', 'count', image => $picture);

    is($r->{code}, 429, "the queue is full ($i)");
    like($r->{headers}{'retry-after'} || '', qr/^\d+$/, 'the refusal has Retry-After');
    like($r->{json}{error} || '', qr/\b2 requests\b/, 'the message has the number of waiting requests');
    is($r->{headers}{'access-control-allow-origin'}, '*', 'any page may read the refusal');
}

# The body is announced and not sent: the server refuses without waiting for it.
my $r = $s->begin('POST', '/api/chat', '',
                  { 'Content-Length' => 5_000_000,
                    'Content-Type' => 'application/json' });

$r->more;
is($r->response->{code}, 429, 'a body is refused before it is sent, with the same answer');
$r->leave;

$r = $s->get('/api/tasks');
is($r->{code}, 200, 'a request without the engine is answered meanwhile');

$r = $s->post('/api/session');
is($r->{code}, 200, 'a session is made meanwhile');

# A wait ends at its timeout.
for my $w ($s->end_all(@waiting)) {
    is($w->{code}, 503, 'a request waits no longer than the timeout');
    like($w->{headers}{'retry-after'} || '', qr/^\d+$/, 'the refusal has Retry-After');
    like($w->{json}{error} || '', qr/\b5 seconds\b/, 'the message has the time');
    cmp_ok($w->{seconds}, '>', 4.5, 'the refusal does not come before the timeout');
}

ok($s->busy(1, 0), 'the queue is empty again');

# A client that leaves frees its place at once.
my @held = map { $s->begin_chat("e$_", 'count', image => $picture) } 1, 2;

ok($s->busy(1, 2), 'the queue is full again');
$held[0]->leave;
ok($s->busy(1, 1), 'one request leaves the queue');

my $late = $s->begin_chat('f', 'count', image => $picture);

ok($s->busy(1, 2), 'another takes its place');

$running->leave;
ok($s->busy(1, 1), 'the running one leaves, the next in the queue runs');

$_->leave for $held[1], $late;
ok($s->busy(0, 0), 'no request is left');

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
