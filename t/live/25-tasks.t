# Tests the questions that the server itself asks the model: the steps of a
# pipeline wait in the queue as requests do, and a title never waits.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Script;
use Test::More;
use IO::Socket::INET;
use Time::HiRes qw(sleep time);
use VLM;

my $PICTURE = 't/fidelity/pictures/40x30.png';

sub step {
    my ($n, $prompt) = @_;

    return { step => $n, task => 'general', prompt => $prompt,
             description => '', use_previous => JSON::PP::false };
}

# A step takes some tenths of a second; the answer to a question with "occupied" is
# endless.
$Script::MLP = 16384;

my $model = Script::model('turns',
    errand => [JSON::PP->new->encode([map { step($_, "a long step $_") } 1 .. 3])],
    long   => ['Step', map { " $_" } 1 .. 100],
    occupied => ['On', ' and', ' on', undef],
    Choose => ['general'],
    Name   => ['A title'],
    ''     => ['short']);

my $engine = 'thinking off; weights f32; threads 1; max_tokens 3500; context 6k;';


# ---- a pipeline among others -------------------------------------------------

for my $slots (1, 2) {
    my $s = VLM->new(name => "tasks$slots", model => $model, workers => 2,
                     engine => "$engine slots $slots;")->start->ready;
    my $picture = $s->upload($PICTURE);

    my @occupied = map { occupy($s, $picture, $_) } 2 .. $slots;

    my $pipeline = begin_pipeline($s, 'p', $picture);

    ok($s->busy($slots), "$slots: the pipeline runs");

    my $same = $s->begin_chat('p', 'the same', image => $picture);
    my $other = $s->begin_chat('q', 'another', image => $picture);

    my ($p, $a, $b) = $s->end_all($pipeline, $same, $other);

    is($p->{code}, 200, 'the pipeline is answered');
    is(scalar @{ $p->{json}{steps} }, 3, 'the answer has all steps');
    is($p->{json}{success}, JSON::PP::true, 'all steps succeed');
    is($b->{json}{answer}, 'short', 'the request that came in between is answered');
    cmp_ok($b->{seconds}, '<', $p->{seconds}, 'it is answered before the pipeline');

    my @times = answered($s, 'p');

    is(scalar @times, 4, 'all turns are stored');
    cmp_ok((answered($s, 'q'))[0], 'lt', $times[1],
           'the request that came in between is before the second step');
    like($a->{json}{answer}, qr/^Step 1 2 /, 'the same session has the steps in mind');
    is($a->{json}{turn_number}, 8, 'the turn number is that after the last step');

    $_->leave for @occupied;

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- one deadline for all, and a client that leaves --------------------------

{
    my $s = VLM->new(VLM::slow(name => 'deadline', engine => 'slots 1; timeout 2s;'))
               ->start->ready;
    my $picture = $s->upload($PICTURE);

    my $r = begin_pipeline($s, 'p', $picture)->end;

    is($r->{code}, 504, 'a pipeline has one deadline');
    like($r->{json}{error} || '', qr/\b2 seconds\b/, 'the message names the deadline');

    my $gone = begin_pipeline($s, 'p', $picture);

    ok($s->busy(1, 0), 'another runs');
    $gone->leave;
    ok($s->busy(0, 0), 'the slot is free when its client leaves');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

# The deadline also holds while a pipeline waits for its next step, behind a request
# that does not end before.
{
    my $s = VLM->new(name => 'between', model => $model,
                     engine => "$engine slots 1; timeout 2s;")->start->ready;
    my $picture = $s->upload($PICTURE);
    my $pipeline = begin_pipeline($s, 'p', $picture);

    ok($s->busy(1, 0), 'a pipeline runs');

    my $occupied = $s->begin_chat('o', 'an occupied slot', image => $picture);
    my ($p, $o) = $s->end_all($pipeline, $occupied);

    is($p->{code}, 504, 'the deadline holds while it waits');
    is($o->{code}, 504, 'the request that came in between has its deadline');
    cmp_ok($p->{seconds}, '<', $o->{seconds}, 'that deadline is later');
    ok($s->busy(0, 0), 'no request is left');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- titles ------------------------------------------------------------------

{
    my $s = VLM->new(VLM::slow(name => 'titles', workers => 2,
                               engine => 'slots 1; queue 1;'))->start;

    is(title($s), 'Where is the', 'a title is answered before the model is loaded');
    isnt($s->health->{state}, 'ready', 'indeed');

    $s->ready;

    my $picture = $s->upload($PICTURE);
    my $running = $s->begin_chat('a', 'count', image => $picture);

    ok($s->busy(1, 0), 'the slot is taken');
    is(title($s), 'Where is the', 'a title does not wait for the slot');

    my $waiting = $s->begin_chat('b', 'count', image => $picture);

    ok($s->busy(1, 1), 'the queue is full');
    is(title($s), 'Where is the', 'a title needs no place in the queue') for 1 .. 4;

    $_->leave for $running, $waiting;
    ok($s->busy(0, 0), 'all have left');

    # The answer reaches max_tokens, so it is not a title; it takes as long as the machine needs.
    is(title($s, 1), 'Where is the', 'a truncated answer is no title');

    # The check for a free slot comes after the body.
    my @late = map { late_title($s) } 1 .. 4;

    $running = $s->begin_chat('a', 'count', image => $picture);
    ok($s->busy(1, 0), 'the slot is taken');
    $waiting = $s->begin_chat('b', 'count', image => $picture);
    ok($s->busy(1, 1), 'the queue is full');

    like($_->(), qr/^HTTP\/1\.1 200 .*\{"title":"Where is the"\}/s,
         'a title whose body was late is not refused') for @late;

    $_->leave for $running, $waiting;

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

{
    my $s = VLM->new(name => 'named', model => $model, workers => 2,
                     engine => $engine)->start->ready;

    # The connection may be at either worker.
    is(title($s), 'A title', 'the model is asked for a title if a slot is free') for 1 .. 4;

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

{
    my $broken = Script::model('broken', '' => ['words']);

    my $s = VLM->new(name => 'broken', model => $broken, workers => 2)->start_broken;

    is($s->health->{state}, 'failed', 'a model that cannot be loaded');
    is(title($s), 'Where is the', 'has titles all the same') for 1 .. 4;

    my $r = begin_pipeline($s, 'p', undef)->end;

    is($r->{code}, 503, 'a pipeline has a 503');
    is($r->{json}{error}, 'Model not initialized', 'the answer has the reason');

    ok($s->stop, 'the server stops in time');
}

done_testing();


sub begin_pipeline {
    my ($s, $session, $picture) = @_;

    return $s->begin('POST', '/api/pipeline',
                     { session_id => $session, image => $picture,
                       message => 'run an errand' });
}


# Begins a request with an endless answer.
sub occupy {
    my ($s, $picture, $n) = @_;

    my $r = $s->begin_chat("occupied$n", 'an occupied slot', image => $picture);

    ok($s->busy($n - 1), 'a slot is occupied');

    return $r;
}


# Returns the times at which the answers of a session were stored.
sub answered {
    my ($s, $session) = @_;

    return map { $_->{timestamp} } grep { $_->{role} eq 'assistant' }
           @{ $s->get("/api/history/$session")->{json} };
}


sub title {
    my ($s, $by_model) = @_;

    my $start = time;
    my $r = $s->post('/api/generate-title', { message => 'Where is the mug?' });

    return "$r->{code}" if $r->{code} ne '200';
    # An answer of the slow model would take minutes.
    return 'late' if !$by_model && time - $start > 60;
    return $r->{json}{title};
}


# Sends the header; the returned sub sends the rest and reads the answer.
sub late_title {
    my ($s) = @_;

    my $c = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $s->port)
        or die "connect: $!";
    my $body = '{"message":"Where is the mug?"}';

    print $c "POST /api/generate-title HTTP/1.1\r\nHost: x\r\nConnection: close\r\n",
             'Content-Length: ', length($body), "\r\n\r\n";
    $c->flush;

    return sub {
        print $c $body;
        $c->flush;
        local $/;
        return scalar <$c>;
    };
}
