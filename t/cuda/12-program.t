# Tests the program vlm with a GPU's library beside it: doctor opens the device as a worker would, and
# bench measures it.

use strict;
use warnings;

use lib 't/lib';
use Cwd qw(getcwd);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use Test::More;

my ($MODULE) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES};
my $LIBRARY = dirname($MODULE) . '/libvlm_cuda.so';
my $TOP = tempdir(CLEANUP => 1);

for (['build/vlm', 'vlm'], [$LIBRARY, 'libvlm_cuda.so']) {
    copy($_->[0], "$TOP/$_->[1]") or die "$_->[0]: $!\n";
    chmod 0755, "$TOP/$_->[1]";
}


sub doctor {
    my ($words, @options) = @_;

    local $ENV{VLM_EMULATOR} = $words;
    my $said = `$TOP/vlm doctor demo/model --module $MODULE --user root @options 2>$TOP/stderr`;

    return ($? >> 8, $said);
}

my ($rc, $said) = doctor('', '--device cuda');
is($rc, 0, 'a GPU that is there stops nothing');
like($said, qr/^ok: the GPU takes the model: cuda:0, .*, with \d+m of its memory$/m, 'doctor has opened it');
unlike($said, qr/^\w+: the plan has/m, "the machine's memory is not asked about");

($rc, $said) = doctor('', '--device auto');
like($said, qr/^ok: the plan has \d+m, and this machine/m, 'device auto needs memory for the CPU, too');

for (['driver=0', qr/cuda:0: there is no NVIDIA driver/], ['devices=0', qr/cuda:0: there is no CUDA device/],
     ['driver=12020', qr/cuda:0: .* for this driver install nvidia-cuda-toolkit of Debian 12 or 13, .*/],
     ['bytes=' . 2 * 1024 * 1024, qr/cuda:0: .* has 2m free of 2m, the plan wants \d+m/])
{
    my ($words, $cause) = @$_;

    ($rc, $said) = doctor($words, '--device cuda');
    is($rc, 1, "$words stops device cuda");
    like($said, qr/^stop: .*$cause; device auto takes the cpu then$/m, 'the finding has the cause');

    ($rc, $said) = doctor($words, '--device auto');
    is($rc, 0, "$words does not stop device auto");
    like($said, qr/^warn: .*$cause; docs\/gpu\.md has the causes/m, 'the finding is a warning');
}

($rc, $said) = doctor('driver=12020 built_by=12040', '--device cuda');
is($rc, 0, 'a driver of an earlier minor version stops nothing');

my $table = `$TOP/vlm bench demo/model --device cuda --slots 1`;
is($?, 0, 'bench ends well');
like($table, qr/^\| device \| cuda:0, /m, 'on the device');
like($table, qr{^\| decode \| [\d.]+ tokens/s \(\d rounds?\) \|$}m, "a GPU's rate has no share of this machine's memory");
like($table, qr/^\| prompt of \d+ tokens \| [\d.]+ tokens/m, 'a slow device reads a shorter prompt');
like($table, qr/^\| first token, picture of 448x448 \| (?:[\d.]+ m?s|not measured: it takes about \d+ s)/m,
     'and a first token that would take too long is estimated');

done_testing();
