# Tests that requests of one session run in the order of their arrival: the second
# of two that are sent at once sees the picture and the turn of the first.

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(sleep);
use VLM;

my $s = VLM->new(name => 'order', workers => 2,
                 engine => 'thinking off; slots 4; max_tokens 32;'
                           . ' sampling temperature=0;');

$s->start->ready;

my $picture = $s->upload('t/fidelity/pictures/118x62.png');
my $other = $s->upload('t/fidelity/pictures/61x117.png');

for my $i (1 .. 10) {
    my $first = $s->begin_chat("s$i", 'How many cups are there?', image => $picture);
    $s->taken($first);
    my $second = $s->begin_chat("s$i", 'And where is it?');

    my @r = $s->end_all($first, $second);

    is(join(' ', map { $_->{code} } @r), '200 200', "two at once, round $i");
    is($r[1]{json}{error}, undef, 'the second has the first one\'s picture');
    is(join(' ', map { $_->{json}{turn_number} // '-' } @r), '2 4', 'the two turns are in order');
    ok(!$r[0]{json}{context_used} && $r[1]{json}{context_used},
       'the second sees the first one\'s turn');
}

# If the first fails, the second continues from the turns before it.
for my $i (1 .. 3) {
    $s->chat("f$i", 'hi', image => $picture);

    my $first = $s->begin_chat("f$i", 'hi', image => 'nothing.png');
    $s->taken($first);
    my $second = $s->begin_chat("f$i", 'hi');
    my @r = $s->end_all($first, $second);

    is(join(' ', map { $_->{code} } @r), '400 200', 'one fails, the next does not');
    is($r[1]{json}{turn_number}, 4, 'the next is the second turn');
}

# The same holds if the first client leaves.  One worker accepts in the order of connections.
ok($s->stop, 'the server stops in time');
$s->{workers} = 1;
$s->start->ready;

for my $i (1 .. 5) {
    my $first = $s->begin_chat("l$i", 'hi', image => $picture);
    my $second = $s->begin_chat("l$i", 'hi', image => $other);
    my $third = $s->begin_chat("l$i", 'hi');

    sleep 0.003 * $i;
    $first->leave;

    my @r = $s->end_all($second, $third);

    is(join(' ', map { $_->{code} } @r), '200 200',
       'one leaves, the next two do not wait for it');
    like(join(' ', map { $_->{json}{turn_number} // '-' } @r), qr/^(?:2 4|4 6)$/,
         'the turns are in order');
}

# After a reset or a delete in between, the turn in flight is not stored.
for my $how ('reset', 'delete') {
    my $slow = VLM->new(VLM::slow(name => "order-$how", workers => 2,
                                  engine => 'slots 2;'))->start->ready;
    my $cup = $slow->upload('t/fidelity/pictures/40x30.png');
    my $r = $slow->begin_chat('s', 'count', image => $cup);

    ok($slow->busy(1), "running, then $how");

    my $done = $how eq 'reset' ? $slow->post('/api/session/s/reset')
                               : $slow->begin('DELETE', '/api/session/s')->end;

    ok($done->{code} eq '200' || $done->{code} eq '404', "$how answers at once")
        or diag($done->{code});

    $r->leave;
    ok($slow->busy(0), 'the slot is free again');

    my $history = $slow->get('/api/history/s');
    ok($history->{code} eq '404' || $history->{body} =~ /^\[\]\s*$/,
       "after $how there is no turn");

    $slow->stop;
    $slow->check_log;
}

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
