# Reloads under load: nobody is refused, nothing is cut, nothing stays behind.

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

my $s = VLM->new(name => 'reload', workers => 2,
                 engine => 'thinking off; queue 64 timeout=60s; max_tokens 32;'
                           . ' sampling temperature=0;');

$s->start->ready;

my $picture = $s->upload('t/fidelity/pictures/118x62.png');
my @requests;
my $n = 0;

for my $round (1 .. 5) {
    my %old = map { $_ => 1 } $s->workers;

    for (1 .. 4) {
        push @requests, $s->begin_chat('s' . ++$n, "How many cups are there?",
                                       image => $picture);
    }

    $s->signal('HUP');
    sleep 0.05;

    for (1 .. 4) {
        push @requests, $s->begin_chat('s' . ++$n, "How many cups are there?",
                                       image => $picture);
        sleep 0.02;
    }

    my $gone = VLM::wait_for(60, sub {
        my @now = $s->workers;
        $s->drain(@requests);
        return @now >= 2 && !grep { $old{$_} } @now;
    });

    ok($gone, "reload $round: the old workers leave when they are done");
}

my @answers = $s->end_all(120, @requests);

is(scalar(grep { $_->{code} eq '200' && $_->{whole} } @answers), $n,
   "all $n answers are whole")
    or diag(join "\n", map { "$_->{code} $_->{body}" }
                       grep { $_->{code} ne '200' } @answers);

is(scalar(grep { ($_->{json}{turn_number} || 0) == 2 } @answers), $n,
   'each is the first turn of its session');

my %texts = map { ($_->{json}{answer} // 'none') => 1 } @answers;

is(scalar keys %texts, 1, 'all say the same') or diag(join "\n", keys %texts);

$s->ready;
is($s->get('/api/history/s1')->{code}, 200, 'sessions are still there');
is($s->health->{active_sessions} || 0, $n, 'all of them');

# A configuration that is wrong leaves everything as it is.
open my $out, '>>', $s->dir . '/nginx.conf' or die;
print $out "nonsense;\n";
close $out;

my @before = $s->workers;

$s->signal('HUP');
ok($s->log_has(qr/unknown directive "nonsense"/), 'a mistake is named');
is_deeply([$s->workers], \@before, 'and the workers stay');
is($s->chat('last', 'hi', image => $picture)->{code}, 200, 'and answer');

ok($s->stop('QUIT', 30), 'the server stops in time');
$s->check_log(undef, qr/unknown directive "nonsense"/);

done_testing();
