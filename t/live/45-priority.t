# Tests the order of the queue: priority with its ageing, and fairness among clients,
# in the worker with the model and through the hop, where clients cannot forge it.
#
# Answers are endless: the request with output has the slot until its client leaves.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use List::Util qw(first max);
use Script;
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

$Script::MLP = 16384;

my $model = Script::model('priority', '' => ['On', ' then', ' on', undef]);
my $AGE = 2;                           # s
my $n = 0;

sub server {
    my (%conf) = @_;

    return VLM->new(model => $model, %conf,
                    engine => 'thinking off; weights f32; threads 1; max_tokens 32000; context 32k; '
                              . "timeout 1h; slots 1; queue 100 timeout=1h; $conf{engine}")->start->ready;
}

sub ask {
    my ($s, %headers) = @_;

    my $r = $s->begin('POST', '/v1/chat/completions',
                      { stream => JSON::PP::true, messages => [{ role => 'user', content => 'hi ' . ++$n }] },
                      \%headers);
    $r->{n} = $n;

    return $r;
}

# Ends the request that has the slot now, and returns it.
sub served {
    my ($s, @requests) = @_;

    my $r = VLM::wait_for(sub {
        $s->drain(@requests);
        return first { !$_->{left} && ($_->done || $_->{raw} =~ /"content":"[^"]/) } @requests;
    }) or return undef;

    $r->{code} = $r->response->{code};
    $r->{left} = 1;
    $r->leave;

    return $r;
}

# Returns all requests in the order in which they have the slot.
sub in_turn {
    my ($s, @requests) = @_;

    return map { served($s, @requests) // () } @requests;
}


# ---- fair -------------------------------------------------------------------------

for my $workers (1, 3) {
    my $s = server(name => "fair-$workers", workers => $workers,
                   engine => 'fair $http_x_client;');

    # A forged header has no effect at any worker.
    my @forged = ('X-Vlm-Line' => '10 0000000000000001');

    my @many = ask($s, 'X-Client' => 'many', @forged);
    ok($s->busy(1, 0), "$workers: a client has the slot");

    push @many, map { ask($s, 'X-Client' => 'many', @forged) } 2 .. 50;
    ok($s->busy(1, 49), '49 requests are in the queue');

    my $first = ask($s, 'X-Client' => 'another');
    ok($s->busy(1, 50), 'the request of another client is in the queue, too');

    served($s, @many);
    my $next = served($s, $first, @many);
    is($next, $first, "$workers: one client with 50 waiting delays another's first by at most one service time");
    is($next->{code}, 200, 'the request is answered');

    # A client with several takes turns with the one that has many.
    ok($s->busy(1, 48), "$workers: the next of the many has the slot");
    my @several = map { ask($s, 'X-Client' => 'another') } 1 .. 8;
    my @alone = map { ask($s) } 1, 2;
    ok($s->busy(1, 58), 'eight requests of another client and two of none come');

    my @all = in_turn($s, grep { !$_->{left} } @many, @several, @alone);
    my %place = map { $all[$_]{n} => $_ } 0 .. $#all;
    my %alone = map { $_->{n} => 1 } @alone;
    my @turns = grep { !$alone{$_->{n}} } @all;
    my %several = map { $_->{n} => 1 } @several;
    my $last = max grep { $several{$turns[$_]{n}} } 0 .. $#turns;

    cmp_ok($last, '>=', 14, "$workers: a client with eight requests is not served before one that has many");
    cmp_ok($last, '<=', 16, "$workers: nor after it: the two take turns");
    cmp_ok($place{$alone[1]{n}}, '<=', 4, "$workers: each request without a client counts as a client of its own");
    is(join(' ', map { $_->{n} } grep { $several{$_->{n}} } @all), join(' ', map { $_->{n} } @several),
       "$workers: of one client they come in order") if $workers == 1;
    is((grep { $_->{code} == 200 } @all), 59, "$workers: all are answered");

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- priority ---------------------------------------------------------------------

for my $workers (1, 3) {
    my $s = server(name => "priority-$workers", workers => $workers,
                   http => 'map $http_x_key $how { default normal; peak 99999999999999999999; gold high; lead low; iron -99; x rubbish; }',
                   engine => 'priority $how age=1h;');

    # The order of arrival differs from the expected order of service.
    my $first = ask($s, 'X-Vlm-Line' => '10 0000000000000001');
    ok($s->busy(1, 0), "$workers: one runs");

    my %key;
    my @r = map {
        my $r = ask($s, 'X-Key' => $_);
        $key{$r->{n}} = $_;
        $s->busy(1, scalar keys %key);
        $r;
    } qw(iron lead none x gold peak);

    $first->leave;

    is(join(' ', map { $key{$_->{n}} } in_turn($s, @r)), 'peak gold none x lead iron',
       "$workers: the highest first, then by arrival; what is no priority is the usual one");

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- ageing -----------------------------------------------------------------------

{
    my $s = server(name => 'ageing', http => 'map $http_x_key $how { default high; lead low; }',
                   engine => "priority \$how age=${AGE}s;");

    my $first = ask($s);
    ok($s->busy(1, 0), 'one runs');

    my $low = ask($s, 'X-Key' => 'lead');
    ok($s->busy(1, 1), 'one of low priority waits');
    my $there = time;

    # The requests arrive before waiting outweighs two levels.
    my @early;

    for my $i (1 .. 5) {
        my $r = ask($s);
        $s->busy(1, 1 + $i);
        push @early, $r;
        $r->{early} = time < $low->{begun} + 2 * $AGE - 0.5;
    }

    ok($early[0]{early}, 'some of high priority come within its age');

    # The time itself is the condition of this test.
    sleep max(0, $there + 2 * $AGE + 0.5 - time);

    my @late = map { ask($s) } 1 .. 5;
    ok($s->busy(1, 11), 'others come after it');
    $first->leave;

    my @order = in_turn($s, $low, @early, @late);
    my ($place) = grep { $order[$_] == $low } 0 .. $#order;
    my %place = map { $order[$_]{n} => $_ } 0 .. $#order;

    is($low->{code}, 200, 'the one of low priority is answered');
    is((grep { $_->{early} && $place{$_->{n}} > $place } @early), 0, 'requests that come within its age are served before it');
    is((grep { $place{$_->{n}} < $place } @late), 0, 'later requests are not served before it');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();
