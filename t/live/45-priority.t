# Who is next: priority with its ageing, and fairness among clients; in the
# worker with the model, and through the hop, where nobody can forge it.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use List::Util qw(max);
use Script;
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

# Every answer takes as long as any other: some 100 ms.
$Script::MLP = 16384;

my $model = Script::model('priority', '' => ['On', ' then', ' on', undef]);
my $AGE = 1;                           # s
my $n = 0;

sub server {
    my (%conf) = @_;

    return VLM->new(model => $model, %conf,
                    engine => 'thinking off; weights f32; threads 1; max_tokens 3000; context 4k; '
                              . "slots 1; queue 100 timeout=60s; $conf{engine}")->start->ready;
}

sub ask {
    my ($s, %headers) = @_;

    my $r = $s->begin('POST', '/v1/chat/completions?n=' . ++$n,
                      { max_tokens => delete $headers{tokens} || 60, messages => [{ role => 'user', content => "hi $n" }] },
                      \%headers);
    $r->{n} = $n;

    return $r;
}

# Waits for the next of them that ends.
sub next_end {
    my ($s, @requests) = @_;

    my $had = grep { $_->done } @requests;

    return VLM::wait_for(20, sub { $s->drain(@requests); (grep { $_->done } @requests) > $had });
}

# Those that have ended, in the order of their ends.
sub by_end {
    return sort { $a->{ended} <=> $b->{ended} } @_;
}


# ---- fair ------------------------------------------------------------------------

for my $workers (1, 3) {
    my $s = server(name => "fair-$workers", workers => $workers,
                   engine => 'fair $http_x_client;');

    # A forged header is nobody's word, whichever worker reads it.
    my @forged = ('X-Vlm-Line' => '10 0000000000000001');

    my @many = map { ask($s, 'X-Client' => 'many', @forged) } 1 .. 50;
    ok($s->busy(1, 49), "$workers: a client has 49 in line");

    ok(next_end($s, @many), 'one of them ends');
    my $before = grep { $_->done } @many;
    my $first = ask($s, 'X-Client' => 'another');
    VLM::wait_for(20, sub { $s->drain(@many, $first); $first->done });
    my $passed = grep { $_->done && $_->{ended} <= $first->{ended} } @many;

    is($first->response->{code}, 200, "$workers: another's first is answered");
    is($passed - $before, 1,
       "$workers: one client with 50 waiting delays another's first by at most one service time");

    # Who has several takes turns with who has many.
    my @several = map { ask($s, 'X-Client' => 'another') } 1 .. 8;
    my @alone = map { ask($s) } 1, 2;
    $s->end_all(30, @several, @alone, @many);

    my @turns = grep { $_->{ended} > $first->{ended} } by_end(@many, @several);
    my %several = map { $_->{n} => 1 } @several;
    my $last = max grep { $several{$turns[$_]{n}} } 0 .. $#turns;

    cmp_ok($last, '>=', 14, "$workers: who has eight");
    cmp_ok($last, '<=', 20, "$workers: takes turns with who has many");

    cmp_ok((grep { $_->{ended} < $alone[1]{ended} } @turns), '<=', 4,
           "$workers: without a client, each is on its own");
    is(join(' ', map { $_->{n} } by_end(@several)), join(' ', map { $_->{n} } @several),
       "$workers: of one client they come in order") if $workers == 1;
    is((grep { $_->response->{code} != 200 } @many, @several, @alone), 0, "$workers: all are answered");

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- priority ---------------------------------------------------------------------

for my $workers (1, 3) {
    my $s = server(name => "priority-$workers", workers => $workers,
                   http => 'map $http_x_key $how { default normal; gold high; lead low; iron -99; x rubbish; }',
                   engine => "priority \$how age=${AGE}m;");

    my @order;

    # In the order in which they should end; they come in another one.
    my $first = ask($s, tokens => 3000, 'X-Vlm-Line' => '10 0000000000000001');
    ok($s->busy(1, 0), "$workers: one runs");

    my %r = map {
        my $r = ask($s, tokens => 240, 'X-Key' => $_);         # long enough to see which ends first
        $s->busy(1, 1 + @order);
        push @order, $_;
        ($_ => $r);
    } qw(iron lead none x gold);

    $first->leave;
    $s->end_all(30, values %r);

    is(join(' ', sort { $r{$a}{ended} <=> $r{$b}{ended} } keys %r), 'gold none x lead iron',
       "$workers: the highest first, then by arrival; what is no priority is the usual one");

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- ageing -----------------------------------------------------------------------

{
    my $s = server(name => 'ageing', http => 'map $http_x_key $how { default high; lead low; }',
                   engine => "priority \$how age=${AGE}s;");

    # More than is served, until well beyond what two levels are worth.
    my @high = map { ask($s) } 1 .. 3;
    ok($s->busy(1, 2), 'two of high priority wait');

    my $low = ask($s, 'X-Key' => 'lead');
    my $least = 100;

    my $late = sub { grep { $_->{begun} > $low->{begun} + 2 * $AGE + 0.3 } @high };

    while (time < $low->{begun} + 60 && $late->() < 7) {
        my $waiting = $s->health->{queue}{waiting};

        push @high, ask($s), ask($s) if $waiting < 25;
        $least = $waiting if $waiting < $least;
        sleep 0.02;
        $s->drain($low, @high);
    }

    $s->end_all(60, $low, @high);
    cmp_ok($least, '>', 0, 'there was always one of them');
    is($low->response->{code}, 200, 'one of low priority is answered');

    my @early = grep { $_->{begun} < $low->{begun} + 2 * $AGE - 0.3 } @high;
    my @late = $late->();

    cmp_ok(scalar @late, '>', 5, 'many came too late to pass it');
    is((grep { $_->{ended} > $low->{ended} } @early), 0, 'it lets by what comes within its age');
    is((grep { $_->{ended} < $low->{ended} } @late), 0, 'and nothing that comes later');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();
