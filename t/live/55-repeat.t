# Tests that a chat that is repeated with the same Idempotency-Key has one turn,
# whether the first request is in flight, was cut, or was answered by a worker that
# has exited.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use VLM;

my $s = VLM->new(name => 'repeat', workers => 2,
                 engine => 'thinking off; slots 1; max_tokens 32; sampling temperature=0;');

$s->start->ready;

my $picture = $s->upload('t/fidelity/pictures/40x30.png');

sub ask {
    my ($session, $key, %more) = @_;

    return $s->begin('POST', '/api/chat',
                     VLM::chat_body($session, 'count', image => $picture, %more),
                     { 'Idempotency-Key' => $key });
}

sub entries { scalar @{ $s->get("/api/history/$_[0]")->{json} } }

# The second of two requests that are sent at once waits for the first, and has the
# same answer.
{
    my $first = ask('flight', 'k1');
    ok($s->taken($first), 'a request is taken');
    my $second = ask('flight', 'k1');
    my @r = $s->end_all($first, $second);

    is(join(' ', map { $_->{code} } @r), '200 200', 'two equal requests at once are both answered');
    ok(length $r[0]{json}{answer}, 'the first answer has text');
    is($r[1]{json}{answer}, $r[0]{json}{answer}, 'both answers are the same');
    is($r[1]{json}{turn_number}, 2, 'both answers have the same turn number');
    is($r[0]{headers}{'idempotent-replayed'}, undef, 'the first was made');
    is($r[1]{headers}{'idempotent-replayed'}, 'true', 'the second answer is marked as replayed');
    is(entries('flight'), 2, 'there is one turn');
}

# The first request is cut at any stage.
for my $i (1 .. 5) {
    my $first = ask("cut$i", 'k1');
    $s->taken($first);
    $first->leave;
    my $r = ask("cut$i", 'k1')->end;

    is($r->{code}, 200, 'a client repeats it after a cut');
    is($r->{json}{turn_number}, 2, 'the repeated request has the first turn');
    is(entries("cut$i"), 2, 'the session has one turn');
}

# Another worker finds the turn in the store.
{
    my $before = $s->get('/api/history/flight')->{json}[1]{content};

    ok($s->reload, 'a reload');
    $s->ready;
    my $r = ask('flight', 'k1')->end;
    is($r->{json}{answer}, $before, 'the new worker returns the old one\'s answer');
    is(entries('flight'), 2, 'there is one turn still');

    my $stream = ask('flight', 'k2', stream => JSON::PP::true())->end;
    my $again = ask('flight', 'k2', stream => JSON::PP::true())->end;
    my ($one, $two) = map { my ($j) = $_->{body} =~ /event: answer\ndata: (.*)\n/; JSON::PP->new->utf8->decode($j) } $stream, $again;

    is($two->{answer}, $one->{answer}, 'a stream that is repeated is a stream');
    is($two->{turn_number}, 4, 'the stream has the stored turn');
    like($again->{body}, qr/^event: token\ndata: \{"text":"/m, 'the text comes as an event');
    is(entries('flight'), 4, 'there are two turns');
}

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
