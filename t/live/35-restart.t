# Tests that sessions survive a restart, and waiting requests a crash of the worker
# that owns the model.

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

my $s = VLM->new(name => 'restart', workers => 2,
                 engine => 'thinking off; slots 2; queue 64 timeout=1h;'
                           . ' max_tokens 32; sampling temperature=0;');

$s->start->ready;

my $picture = $s->upload('t/fidelity/pictures/118x62.png');
my $first = $s->chat('s', 'How many cups are there?', image => $picture);

is($first->{code}, 200, 'a turn');

my $before = $s->get('/api/history/s')->{body};

# ---- a restart --------------------------------------------------------------

ok($s->stop('QUIT'), 'the server stops');
$s->start->ready;

is($s->get('/api/history/s')->{body}, $before, 'the history is the same');
is($s->get("/uploads/$picture")->{code}, 200, 'the picture exists');
is($s->chat('s', 'And now?')->{json}{turn_number}, 4,
   'the session goes on, with its picture');

# ---- a crash of all processes -----------------------------------------------

$before = $s->get('/api/history/s')->{body};
$s->kill_all;
sleep 0.2;

eval { $s->start->ready };
is($@, '', 'nginx starts after kill -9, although the old socket remains');

is($s->get('/api/history/s')->{body}, $before,
   'every turn that was answered is there');

# ---- the worker that has the model ------------------------------------------

for my $round (1 .. 3) {
    my $designated = $s->designated;

    ok($designated, "round $round: one worker has the model");

    my @requests = map { $s->begin_chat("r$round-$_", 'How many cups are there?',
                                        image => $picture) } 1 .. 6;

    kill 'KILL', $designated;

    my $start = time;
    my @answers = $s->end_all(@requests);

    # A request is cut or has a 503, and is never answered wrongly or left without an end.
    my @odd = grep { $_->{code} !~ /^(?:0|200|502|503)$/
                     || $_->{code} eq '200' && !$_->{whole} } @answers;

    is(scalar @odd, 0, 'each answer is whole, has Retry-After, or is cut off')
        or diag(join "\n", map { "$_->{code} $_->{body}" } @odd);

    for my $r (grep { $_->{code} =~ /^50/ } @answers) {
        like($r->{headers}{'content-type'} || '', qr{^application/json},
             'the refusal is JSON');
        ok($r->{json} && $r->{json}{error}, 'the refusal has a message');
    }

    my $next = VLM::wait_for(sub {
        my $pid = $s->designated;
        return $pid && $pid != $designated ? $pid : 0;
    });

    ok($next, 'a successor takes the model');

    $s->ready;
    is($s->chat("after$round", 'hi', image => $picture)->{code}, 200,
       'the server answers');
}

ok($s->stop, 'the server stops in time');
$s->check_log(undef, qr/exited on signal 9/);

done_testing();
