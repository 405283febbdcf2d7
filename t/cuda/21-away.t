# A GPU that is lost again and again: the pauses grow, "device auto" goes to the
# CPU for a while and comes back, "device cuda" stays and says so.

use strict;
use warnings;

use lib 't/lib';
use Emulated;
use Test::More;
use Time::HiRes qw(sleep time);

my $n = 0;

sub ask { return Emulated::ask($_[0], 'What is ' . ++$n . '?')->end->{code} }

# The worker goes, another one comes: the time it took until that one answers.
sub lose {
    my ($s) = @_;

    my $pid = $s->designated;
    my $start = time;

    Emulated::tell($s, 'fail=700@10');
    is(ask($s), 503, 'the GPU is lost');
    VLM::wait_for(20, sub { my $new = $s->designated; $new && $new != $pid })
        or diag($s->log);
    $s->ready;

    return time - $start;
}

# ---- lost when it is opened ---------------------------------------------------------

{
    my $s = Emulated::server(name => 'away-open', device => 'auto', words => 'fail=719@4')->start;

    VLM::wait_for(30, sub { ($s->health->{device} // '') =~ /^cpu/ }) or diag($s->log);

    like($s->health->{device_reason}, qr/the GPU was lost 3 times in 5 minutes/,
         'a GPU that is lost three times when it is opened is left alone');
    is(scalar(() = $s->log =~ /exited with code 70/g), 3, 'not before');
    $s->stop;
}

# ---- auto ---------------------------------------------------------------------------

my $s = Emulated::server(name => 'away', device => 'auto retry=4s', workers => 2)->start->ready;

like($s->health->{device}, qr/^cuda:0, emulator/, 'auto has the GPU');
is($s->health->{device_reason}, 'device auto took cuda:0: the library and a device are there',
   'and says why');
ok($s->log_has(qr/device auto took cuda:0: the library and a device are there/), 'in the log, too');

my @pauses = (lose($s), lose($s));

cmp_ok($pauses[0], '<', 5, 'after the first loss the next worker loads at once');
cmp_ok($pauses[1], '>=', 1, 'after the second a second later');
like($s->health->{device}, qr/^cuda:0/, 'on the GPU');
is(Emulated::metric($s, 'vlm_device_losses_total'), 2, 'both are counted');

my $loaders = Emulated::loaders($s);
my $left = time;

lose($s);

like($s->health->{device}, qr/^cpu, /, 'after the third the CPU answers');
is($s->health->{device_reason},
   'device auto took the cpu: the GPU was lost 3 times in 5 minutes, it is tried again in 4 s',
   'and health says why');
is($s->health->{plan}{device}, 0, 'by the CPU\'s plan');
like($s->log, qr/\[warn\].*device auto took the cpu: the GPU was lost 3 times/, 'the log, too');
cmp_ok(Emulated::metric($s, 'vlm_device_away_seconds'), '>', 0, 'the time is a metric');
is(ask($s), 200, 'a question is answered');
is(scalar Emulated::loaders($s), $loaders, 'by a worker that never loads the library');

ok($s->reload, 'a reload');
$s->ready;
like($s->health->{device}, qr/^cpu, /, 'does not change that');

# Requests at work and in line while it goes back, and none is lost.
my $long = Emulated::ask($s, 'Tell a long story', max_tokens => 900);
my @codes;

push @codes, ask($s) while $s->health->{device} !~ /^cuda/ && time - $left < 30;

is(scalar(grep { $_ != 200 } @codes), 0, 'questions are answered on the way back to the GPU')
    or diag("@codes");
is($long->end->{code}, 200, 'a long one, too');
$s->ready;
like($s->health->{device}, qr/^cuda:0/, 'then the GPU is back');
cmp_ok(time - $left, '>=', 4, 'not before its time');
is($s->health->{device_reason}, 'device auto took cuda:0: the library and a device are there',
   'with the reason of old');
cmp_ok(Emulated::metric($s, 'vlm_device_away_seconds'), '==', 0, 'the metric says so');
is(ask($s), 200, 'and it answers');

ok($s->reload, 'a reload');
$s->ready;
like($s->health->{device}, qr/^cuda:0/, 'does not count the losses again');
ok($s->stop, 'the server stops in time');
$s->check_log;

# ---- cuda ---------------------------------------------------------------------------

$s = Emulated::server(name => 'stays', device => 'cuda')->start->ready;

my ($pause) = (lose($s), lose($s), lose($s))[2];

cmp_ok($pause, '>=', 2, 'under device cuda the third pause is longer');
like($s->health->{device}, qr/^cuda:0/, 'and the GPU stays');
is($s->health->{device_reason},
   'the device was lost 3 times in 5 minutes: it is loaded again after 2 s', 'as health says');
like($s->log, qr/\[warn\].*was lost 3 times in 5 minutes: it is loaded again after 2 s/,
     'and the log');

# While it waits it says that it loads; who asks waits in line.
Emulated::tell($s, 'fail=719@10');
is(ask($s), 503, 'once more');
ok(VLM::wait_for(5, sub { ($s->health->{state} || '') eq 'loading' }), 'while it waits it loads');
like($s->health->{device_reason}, qr/lost 4 times in 5 minutes: it is loaded again after 4 s/,
     'and says when');

my $start = time;

is(ask($s), 200, 'who asks meanwhile is answered');
cmp_ok(time - $start, '>', 2, 'after the pause');
ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
