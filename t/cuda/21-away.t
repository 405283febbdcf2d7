# Tests a GPU that is lost repeatedly: the pauses grow, "device auto" uses the CPU
# for some time and then the GPU again, and "device cuda" waits for the GPU.

use strict;
use warnings;

use lib 't/lib';
use Emulated;
use Test::More;
use Time::HiRes qw(sleep time);

my $n = 0;

sub ask { return Emulated::ask($_[0], 'What is ' . ++$n . '?')->end->{code} }

# Loses the worker; returns the time until the next one answers.
sub lose {
    my ($s) = @_;

    my $pid = $s->designated;
    my $start = time;

    Emulated::tell($s, 'fail=700@10');
    is(ask($s), 503, 'the GPU is lost');
    VLM::wait_for(sub { my $new = $s->designated; $new && $new != $pid })
        or diag($s->log);
    $s->ready;

    return time - $start;
}

# ---- lost when it is opened ------------------------------------------------------

{
    my $s = Emulated::server(name => 'away-open', device => 'auto', words => 'fail=719@4')->start;

    VLM::wait_for(sub { ($s->health->{device} // '') =~ /^cpu/ }) or diag($s->log);

    like($s->health->{device_reason}, qr/the GPU was lost 3 times in 5 minutes/,
         'a GPU that is lost three times when it is opened is not opened again');
    is(scalar(() = $s->log =~ /exited with code 70/g), 3, 'before that it is opened three times');
    $s->stop;
}

# ---- auto ------------------------------------------------------------------------

my $s = Emulated::server(name => 'away', device => 'auto retry=4s', workers => 2)->start->ready;

like($s->health->{device}, qr/^cuda:0, emulator/, 'device auto uses the GPU');
is($s->health->{device_reason}, 'device auto took cuda:0: the library and a device are there',
   'health has the reason');
ok($s->log_has(qr/device auto took cuda:0: the library and a device are there/), 'the log has the reason');

my @pauses = (lose($s), lose($s));

cmp_ok($pauses[0], '<', 5, 'after the first loss the next worker loads at once');
cmp_ok($pauses[1], '>=', 1, 'after the second loss it loads a second later');
like($s->health->{device}, qr/^cuda:0/, 'the GPU is used again');
is(Emulated::metric($s, 'vlm_device_losses_total'), 2, 'both losses are counted');

my $loaders = Emulated::loaders($s);
my $left = time;

lose($s);

like($s->health->{device}, qr/^cpu, /, 'after the third loss the CPU answers');
is($s->health->{device_reason},
   'device auto took the cpu: the GPU was lost 3 times in 5 minutes, it is tried again in 4 s',
   'health has the reason');
is($s->health->{plan}{device}, 0, 'the plan is the CPU\'s');
like($s->log, qr/\[warn\].*device auto took the cpu: the GPU was lost 3 times/, 'the log has a warning');
cmp_ok(Emulated::metric($s, 'vlm_device_away_seconds'), '>', 0, 'a metric has the remaining time');
is(ask($s), 200, 'a question is answered');
is(scalar Emulated::loaders($s), $loaders, 'the worker does not load the library');

ok($s->reload, 'the server reloads');
$s->ready;
like($s->health->{device}, qr/^cpu, /, 'a reload does not change the device');

# Requests are in flight and in the queue while the engine returns to the GPU; none is lost.
my $long = Emulated::ask($s, 'Tell a long story', max_tokens => 900);
my @codes;

push @codes, ask($s) while $s->health->{device} !~ /^cuda/ && time - $left < 30;

is(scalar(grep { $_ != 200 } @codes), 0, 'questions are answered during the return to the GPU')
    or diag("@codes");
is($long->end->{code}, 200, 'a long answer is completed, too');
$s->ready;
like($s->health->{device}, qr/^cuda:0/, 'the GPU is used again');
cmp_ok(time - $left, '>=', 4, 'the return is not early');
is($s->health->{device_reason}, 'device auto took cuda:0: the library and a device are there',
   'health has the first reason again');
cmp_ok(Emulated::metric($s, 'vlm_device_away_seconds'), '==', 0, 'the metric is 0');
is(ask($s), 200, 'the GPU answers');

ok($s->reload, 'the server reloads');
$s->ready;
like($s->health->{device}, qr/^cuda:0/, 'a restart does not count the losses again');
ok($s->stop, 'the server stops in time');
$s->check_log;

# ---- a reload while the CPU has a request, before the return to the GPU -------------

{
    local $Emulated::ENGINE = $Emulated::ENGINE =~ s/context 1k/context 64k/r =~ s/(?<=max_tokens )32/60000/r;

    my $s = Emulated::server(name => 'away-reload', device => 'auto retry=4s',
                             model => VLM::slow_model(),
                             engine => 'reload overlap; weights bf16;')->start->ready;

    lose($s) for 1 .. 3;
    like($s->health->{device}, qr/^cpu, /, 'the CPU answers');

    my $long = Emulated::ask($s, 'Tell a long story', max_tokens => 60_000);

    ok(VLM::wait_for(sub { Emulated::metric($s, 'vlm_device_away_seconds') == 0 }),
       'the return is due');
    ok(!$s->drain($long) && !$long->done, 'the CPU is still making an answer then');

    # From then on no request is started, though a slot is free.
    my ($short, $polls);

    ok(VLM::wait_for(sub {
        ($short, $polls) = (Emulated::ask($s, 'What is it?'), 0) if !$short || $short->done;
        $s->drain($short);
        return ++$polls > 50;
    }), 'the model is to be closed when the answer ends');

    # The driver of the next worker hangs, so that it does not take over.
    my ($old, $main) = ($s->designated, $s->{main});

    $s->{main} =~ s/VLM_EMULATOR=[^"]*/$& fail=hang\@4/ or die;
    $s->write_conf;
    $s->signal('HUP');
    ok($s->log_has(qr/ $old#.*gracefully shutting down/), 'the server reloads');
    like($s->health->{device} // 'none', qr/^cpu, /, 'the model is still on the CPU');

    $short->leave;
    $long->leave;
    ok(VLM::wait_for(sub { !kill 0, $old }), 'the old worker ends with its last request');
    ok($s->log !~ /$old exited on signal/, 'no signal ends the old worker');
    ok($s->log !~ / $old#.*answers until the next worker/, 'the old worker did not log that it answers');

    $s->{main} = $main;
    $s->write_conf;
    $s->signal('HUP');
    kill 'KILL', grep { $_ != $old } $s->workers;
    $s->ready;
    ok(VLM::wait_for(sub { ask($s) == 200 }), 'a worker that opens the GPU answers');
    ok($s->stop, 'the server stops in time');
    $s->check_log(undef, qr/exited on signal 9/);
}

# ---- cuda ------------------------------------------------------------------------

$s = Emulated::server(name => 'cuda', device => 'cuda')->start->ready;

my ($pause) = (lose($s), lose($s), lose($s))[2];

cmp_ok($pause, '>=', 2, 'under device cuda the third pause is longer');
like($s->health->{device}, qr/^cuda:0/, 'the device remains the GPU');
is($s->health->{device_reason},
   'the device was lost 3 times in 5 minutes: it is loaded again after 2 s', 'health has the pause');
like($s->log, qr/\[warn\].*was lost 3 times in 5 minutes: it is loaded again after 2 s/,
     'the log has the pause');

# During the pause the state is "loading", and requests wait in the queue.
Emulated::tell($s, 'fail=719@10');
is(ask($s), 503, 'the GPU is lost once more');
ok(VLM::wait_for(sub { ($s->health->{state} || '') eq 'loading' }), 'during the pause the state is loading');
like($s->health->{device_reason}, qr/lost 4 times in 5 minutes: it is loaded again after 4 s/,
     'health says when the load begins');

my $start = time;

is(ask($s), 200, 'a request during the pause is answered');
cmp_ok(time - $start, '>', 2, 'the answer comes after the pause');
ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
