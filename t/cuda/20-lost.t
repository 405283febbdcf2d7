# Tests a GPU that fails, through nginx: the effect of each class of CUDA's errors
# on the request in flight, on the worker, and on the next request.

use strict;
use warnings;

use lib 't/lib';
use Emulated;
use Test::More;
use Time::HiRes qw(time);

my $REFUSED = 'the device goes on';
my $LOST = 'the worker is replaced';

# These are the classes of cuda/fault.c; 4242 is an unknown error.
my @classes = (
    [1, $REFUSED], [2, $REFUSED], [701, $REFUSED],
    [46, $LOST], [214, $LOST], [700, $LOST], [719, $LOST], [999, $LOST], [4242, $LOST],
);

# Each error occurs at a different call of an answer.
my @calls = (1, 4, 9, 16, 25);

sub fresh { return Emulated::server(@_, engine => 'queue 8 timeout=30s;')->start->ready }

sub replaced {
    my ($s, $pid) = @_;

    return VLM::wait_for(sub { my $new = $s->designated; $new && $new != $pid });
}

my $s = fresh(name => 'lost');
my $want = Emulated::ask($s, 'What is this?')->end;
my $n = 0;

is($want->{code}, 200, 'the emulated GPU answers');

for my $case (@classes) {
    my ($code, $then) = @$case;
    my $pid = $s->designated;
    my $at = $calls[$n++ % @calls];

    # After some losses the pauses are long; t/cuda/21-away.t tests them.
    if ($then eq $LOST && Emulated::metric($s, 'vlm_device_losses_total') >= 2) {
        $s->stop;
        $s = fresh(name => "lost-$code");
        $pid = $s->designated;
    }

    Emulated::tell($s, "fail=$code\@$at");

    # Each question differs, because the rows of the same prompt would come from the cache.
    my $r = Emulated::ask($s, "What is $code?")->end;

    is($r->{code}, 503, "error $code at call $at: the request has a 503");
    like($r->{headers}{'retry-after'} || '', qr/^\d+$/, 'the 503 has Retry-After');
    like($r->{json}{error}{message}, $then eq $LOST ? qr/device is lost/ : qr/memory is short/,
         'with the cause');
    ok($s->log_has(qr/cuda:0.*\(error $code, at /), 'the log has the error and its place');

    if ($then eq $LOST) {
        ok(replaced($s, $pid), $then);
        ok($s->log_has(qr/worker process $pid exited with code 70/), 'the worker exits with 70');

    } else {
        is($s->designated, $pid, $then);
    }

    $s->ready;
    $r = Emulated::ask($s, 'What is this?')->end;
    is($r->{code}, 200, 'the next request is answered');
    is($r->{json}{choices}[0]{message}{content}, $want->{json}{choices}[0]{message}{content},
       'the answer is the same as before');
}

# ---- several at once, and a stream -----------------------------------------------

$s->stop;
$s = fresh(name => 'lost-many');

my $pid = $s->designated;
my @many = map { Emulated::ask($s, "Who is $_?", max_tokens => 32) } 1 .. 4;

Emulated::tell($s, 'fail=719@30');

my @codes = map { $_->{code} } $s->end_all(@many);

is(scalar(grep { $_ == 503 || $_ == 200 } @codes), 4, 'each of four requests has an answer or a 503')
    or diag("@codes");
ok(scalar(grep { $_ == 503 } @codes) >= 2, 'the requests in flight have a 503');
ok(replaced($s, $pid), $LOST);
$s->ready;

$pid = $s->designated;

my $stream = Emulated::ask($s, 'Tell me', stream => JSON::PP::true, max_tokens => 32);

$stream->more(10) until $stream->done || $stream->{raw} =~ /"content":"[^"]/;
Emulated::tell($s, 'fail=700@1');

my $r = $stream->end;
like($r->{body}, qr/"error":\{[^}]*device is lost/, 'a stream ends with the error');
ok(replaced($s, $pid), $LOST);
$s->ready;

# ---- while it loads --------------------------------------------------------------

$s->stop;

for my $code (719, 46) {
    $s = Emulated::server(name => "lost-open-$code", words => "fail=$code\@4")->start;

    if ($code == 719) {
        ok($s->log_has(qr/exited with code 70(?s:.*)exited with code 70/),
           'a device that is lost when it is opened is opened again');

    } else {
        ok($s->log_has(qr/\(error 46\b/), 'a device in exclusive use of another process fails');
        ok(!VLM::wait_for(2, sub { $s->log() =~ /exited/ }), 'the device is not opened again');
    }

    $s->stop('TERM');
}

# Opening a device has as many calls as there are kernels; a call that fails then ends the worker, too.
for my $at (60, 120, 240, 480) {
    $s = Emulated::server(name => 'lost-load', words => "fail=700\@$at")->start;
    $s->log_has(qr/exited with code 70|model loaded/);
    last if $s->log() =~ /cuda:0 is lost: /;
    $s->stop;
}

ok($s->log_has(qr/cuda:0 is lost: .*error 700/), 'a device is lost during the load');
ok($s->log_has(qr/exited with code 70(?s:.*)exited with code 70/), 'two workers after each other load the model');
$s->stop('TERM');

# ---- a kernel that hangs ---------------------------------------------------------

$s = Emulated::server(name => 'lost-hang', engine => 'stall 2s; queue 8 timeout=30s;')->start->ready;
$pid = $s->designated;
Emulated::tell($s, 'fail=hang@10');

$r = Emulated::ask($s, 'What hangs?')->end;
is($r->{code}, 503, 'a request whose kernel hangs has a 503');
like($r->{json}{error}{message}, qr/stalled/, 'the message says that the engine has stalled');
ok(replaced($s, $pid), 'the worker is replaced, though its thread hangs');
$s->ready;
is(Emulated::ask($s, 'What is this?')->end->{code}, 200, 'the next request is answered');
$s->check_log(undef, qr/exited on signal 9/);

# ---- a request that causes the loss ----------------------------------------------

for my $round (1, 2) {
    $pid = $s->designated;
    Emulated::tell($s, 'fail=700@10');
    is(Emulated::ask($s, 'the guilty one')->end->{code}, 503, "round $round: the request has a 503");
    ok(replaced($s, $pid), $LOST);
    $s->ready(60);
}

$r = Emulated::ask($s, 'the guilty one')->end;
is($r->{code}, 400, 'a request that was in flight at two losses is not run a third time');
is(Emulated::ask($s, 'another one')->end->{code}, 200, 'other requests are run');

# ---- nothing leaks ---------------------------------------------------------------

$s->stop;
$s = fresh(name => 'lost-leak');
$pid = $s->designated;

sub resident {
    return VLM::slurp("/proc/$pid/status") =~ /^VmRSS:\s+(\d+) kB/m ? $1 : 0;
}

sub refuse {
    my ($times) = @_;

    for my $i (1 .. $times) {
        Emulated::tell($s, 'fail=2@' . (1 + $i % 20));
        Emulated::ask($s, "What is $i of $times?", max_tokens => 2)->end;
    }
}

refuse(40);

my $before = resident();

refuse(200);

is($s->designated, $pid, 'after 240 refusals the worker is the same');
# A sanitizer delays the reuse of freed memory.
cmp_ok(resident() - $before, '<', $ENV{VLM_EMULATED} ? 16384 : 1024, 'its memory has not grown, in KiB');
ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
