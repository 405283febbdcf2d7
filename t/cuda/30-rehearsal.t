# `make gpu` without a GPU: it says so, and with the emulated device in its place
# each of its parts comes to its end, so that on a card nothing but measuring is
# left to do.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use File::Path ();
use JSON::PP ();
use Test::More;
use VLM;

my $ROOT = Cwd::getcwd();
my $DIR = "$ROOT/build/live/rehearsal";

File::Path::remove_tree($DIR);
File::Path::make_path($DIR);

sub gpu {
    my (@words) = @_;

    my $out = `python3 bench/gpu.py --out $DIR/gpu.json --data $DIR/data @words 2>&1`;

    return ($? >> 8, $out);
}

$ENV{VLM_SMI} = "$DIR/none";

my ($status, $out) = gpu();

is($status, 1, 'without a GPU nothing is measured');
like($out, qr/^nothing was measured: there is no NVIDIA GPU: /, 'which is said');
ok(!-e "$DIR/gpu.json", 'and nothing written');

($status, $out) = gpu('--parts', 'nothing');
is($status, 2, 'a part that there is not');
like($out, qr/^no part nothing; there are build, sanitizer, parity, /, 'is named');

$ENV{VLM_SMI} = "$ROOT/t/cuda/nvidia-smi";

($status, $out) = gpu('--emulated');
is($status, 0, 'the rehearsal passes') or diag($out);

my $told = JSON::PP->new->utf8->decode(VLM::slurp("$DIR/gpu.json"));

is_deeply([sort keys %{ $told->{parts} }],
          [qw(build demo fidelity memory parity sanitizer speed)], 'with all of its parts');
is_deeply([grep { $told->{parts}{$_}{failed} } keys %{ $told->{parts} }], [], 'none of which failed');
ok($told->{parts}{parity}{of}{rows_test}{passed}, 'operations were compared');
is($told->{parts}{demo}{of}{same}, $told->{parts}{demo}{of}{scenes}, 'the answers are the CPU\'s');
is($told->{parts}{speed}{of}{'tiny-4'}{at_once}, 5, 'five were asked at once');
cmp_ok($told->{parts}{memory}{of}{'tiny-1'}{peak}, '>', 0, 'memory was looked at');
like($out, qr/these are no figures of a GPU/, 'the table says what it is');
like($out, qr/^\| tiny \| 1 \| \d+ \| \d+ \| \d+ \|$/m, 'and has the memory');

# Some parts, and the others as they were.
($status, $out) = gpu('--emulated', '--parts', 'build');
is($status, 0, 'a part alone');

my $again = JSON::PP->new->utf8->decode(VLM::slurp("$DIR/gpu.json"));

is_deeply($again->{parts}{speed}, $told->{parts}{speed}, 'leaves the others as they were');
like(`python3 bench/gpu.py --table $DIR/gpu.json`, qr/^\| tiny \| 4 \|/m,
     'the tables are made again from the file');

done_testing();
