# Tests the causes for which a GPU cannot be used: the log and /api/health name
# each with its numbers, and "device auto" uses the CPU.  Only the worker that
# owns the model opens the device; nginx -t does not.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use Emulated;
use File::Copy ();
use File::Path ();
use Test::More;
use VLM;

my $MB = 1024 * 1024;
my $GB = 1024 * $MB;

my @causes = (
    ['no driver', '', 'driver=0', qr/cuda:0: there is no NVIDIA driver/],
    ['a driver that is too old', '', 'driver=12040',
     qr/cuda:0: the NVIDIA driver is too old: it knows CUDA 12\.4, and the library, which CUDA 13\.0 has built, wants a driver from 580 on; for this driver install nvidia-cuda-toolkit of Debian 12 or 13, or CUDA 12 of NVIDIA \(JetPack 6: 12\.6\), then "make cuda"/],
    ['no device', '', 'devices=0', qr/cuda:0: there is no CUDA device/],
    ['no such device', ':2', '',
     qr/cuda:2: this machine has 1 CUDA device, the last is cuda:0/],
    ['one of several', ':3', 'devices=3',
     qr/cuda:3: this machine has 3 CUDA devices, the last is cuda:2/],
    ['a device that is too old', '', 'arch=61', qr/cuda:0: emulator 0 is of sm_61, sm_75 is the least/],
    ['a device that is too small', '', "bytes=" . 2 * $MB,
     qr/cuda:0: emulator 0 has 2m free of 2m, the plan wants \d+m/],
    ['a device whose memory is in use', '', "bytes=$GB used=" . 1022 * $MB,
     qr/cuda:0: emulator 0 has 2m free of 1024m, the plan wants \d+m/],
    ['a device in exclusive use', '', 'fail=46@4', qr/cuda:0: .* \(error 46, at open\)/],
);

my $n = 0;

for my $case (@causes) {
    my ($name, $index, $words, $sentence) = @$case;
    my $s = Emulated::server(name => 'cause-' . ++$n, device => "cuda$index", words => $words)
            ->start;

    ok(VLM::wait_for(sub { ($s->health->{state} || '') eq 'failed' }),
       "$name: device cuda$index fails");
    like($s->health->{reason}, qr/^$sentence$/, 'health names the cause');
    like($s->log, qr/\[crit\].*vlm_engine "live": $sentence$/m, 'the log names the cause');
    is($s->health->{status}, 'unhealthy', 'the status is unhealthy');

    my $r = Emulated::ask($s, 'What?')->end;
    is($r->{code}, 503, 'a question has a 503');
    is(scalar(my @workers = $s->workers), 1, 'the worker does not exit');
    ok($s->stop, 'the server stops in time');
    $s->check_log;

    next if $index;

    $s = Emulated::server(name => "cause-$n", device => 'auto', words => $words)->start->ready;
    like($s->health->{device}, qr/^cpu, /, "$name: device auto takes the CPU");
    like($s->health->{device_reason}, qr/^device auto took the cpu: $sentence$/,
         'health has the reason');
    is(Emulated::ask($s, 'What?')->end->{code}, 200, 'the CPU answers');
    ok($s->stop, 'the server stops in time');
}

# ---- no library ------------------------------------------------------------------

{
    my $module = $ENV{TEST_NGINX_LOAD_MODULES};
    my $dir = "$VLM::LIVE/alone";

    File::Path::make_path($dir);
    File::Copy::copy($module, "$dir/ngx_http_vlm_module.so") or die "$dir: $!";
    local $ENV{TEST_NGINX_LOAD_MODULES} = "$dir/ngx_http_vlm_module.so";

    my $s = Emulated::server(name => 'cause-alone')->start;

    ok(VLM::wait_for(sub { ($s->health->{state} || '') eq 'failed' }), 'no library');
    is($s->health->{reason}, "device cuda:0: there is no $dir/libvlm_cuda.so (make cuda)",
       'health has the expected path');
    $s->stop;

    $s = Emulated::server(name => 'cause-alone', device => 'auto')->start->ready;
    is($s->health->{device_reason}, 'device auto took the cpu: there is no libvlm_cuda.so',
       'device auto takes the CPU and has the reason');
    $s->stop;

    VLM::spew("$dir/libvlm_cuda.so", 'not one');
    $s = Emulated::server(name => 'cause-alone')->start;
    ok(VLM::wait_for(sub { ($s->health->{state} || '') eq 'failed' }), 'an engine with a broken library has failed');
    like($s->health->{reason}, qr{^device cuda:0: \Q$dir\E/libvlm_cuda\.so: }, 'the reason names the library');
    $s->stop;
    unlink "$dir/libvlm_cuda.so";
}

# ---- memory, by nginx -t ---------------------------------------------------------

my $s = Emulated::server(name => 'cause-memory', engine => 'memory 401m;');
my ($status, $text) = Emulated::check($s);

is($status, 1, 'a model that does not fit into memory fails nginx -t');
like($text, qr/vlm_engine "live": \d+m needed \(weights \d+m, vision \d+m, kv \d+m, workspace \d+m, device 400m\), memory is 401m/,
     'the message is the plan\'s');

# Keys and values take 192 MiB; with a smaller context the model fits.
$s = Emulated::server(name => 'cause-memory', words => '', engine => 'memory 600m;');
$s->{engine} =~ s/context 1k; slots 2;/context 256k; slots 8;/;
($status, $text) = Emulated::check($s);

is($status, 1, 'a long context in many slots fails nginx -t');
like($text, qr/memory is 600m: context \d+k needs \d+m, slots \d+ needs \d+m/, 'the message names a remedy');
is(scalar Emulated::loaders($s), 0, 'nginx -t loads no library');

# Large pictures in a large model take more memory on the CPU than on a GPU.
$s = Emulated::server(name => 'cause-memory', device => 'auto', engine => 'memory 5200m;',
                      model => Cwd::getcwd() . '/build/fidelity/shape-3b');
$s->{engine} =~ s/max_pixels 3136; context 1k; slots 2;/max_pixels 8000000; context 4k; slots 1;/;
($status, $text) = Emulated::check($s);

is($status, 1, 'device auto needs memory for the model on the CPU, too');
like($text, qr/device auto may take the cpu: \d+m needed .*device 0m\), memory is 5200m/,
     'the message names the device that does not fit');

# This shape has no tokenizer, and the check for one comes after the check of the memory.
$s->{engine} =~ s/device auto/device cuda/;
like((Emulated::check($s))[1], qr/shape-3b: neither tokenizer\.json nor/, 'on the GPU alone it fits');

# ---- the process that opens the device -------------------------------------------

$s = Emulated::server(name => 'cause-touch', workers => 3);
($status, $text) = Emulated::check($s);

is($status, 0, 'nginx -t accepts the configuration');
like($text, qr/\d+m planned .*device 400m/, 'nginx -t prints the plan');
ok(!-e $s->dir . '/loaded', 'nginx -t has not loaded the library');

$s->start->ready;
is_deeply([Emulated::loaders($s)], [$s->designated], 'only the worker with the model loads the library');
isnt($s->designated, $s->pid, 'the master does not load it before the fork');

my $before = $s->designated;

ok($s->reload, 'the server reloads');
$s->ready;
is_deeply([Emulated::loaders($s)], [$before, $s->designated], 'the next worker loads it again');
ok($s->stop, 'the server stops in time');
$s->check_log;

# ---- the driver's own memory -----------------------------------------------------

my $MIB = 1 << 20;

$s = Emulated::server(name => 'cause-taken', words => 'used=' . 1000 * $MIB . ' takes=' . 300 * $MIB
                                                      . ' keeps=' . $MIB)->start->ready;
is($s->health->{device_overhead}, 302 * $MIB, 'the overhead is measured: the driver\'s own memory and two captured steps');
is($s->health->{plan}{device}, 400 * $MIB, 'health has the declared overhead, too');
like($s->log, qr/the device took 302m for itself, 400m of the plan were declared for that/,
     'the log has both');
like($s->get('/metrics')->{body}, qr/^vlm_device_overhead_bytes\S* 316669952$/m, 'the metrics have the overhead');
ok($s->stop, 'the server stops');
$s->check_log;

$s = Emulated::server(name => 'cause-taken', words => 'takes=' . 500 * $MIB)->start->ready;
like($s->log, qr/\[warn\].* the device took 500m for itself, 400m were declared/,
     'a larger overhead than the declared one is a warning');
ok($s->stop, 'the server stops');

done_testing();
