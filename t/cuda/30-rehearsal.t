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
File::Path::make_path("$DIR/tmp");

$ENV{TMPDIR} = "$DIR/tmp";              # where its servers are, and nobody else's
$ENV{VLM_SMI_MORE} = 310;               # of them 300 are the driver's
$ENV{VLM_EMULATOR} = 'takes=' . (300 << 20);

sub gpu {
    my (@words) = @_;

    my $out = `python3 bench/gpu.py --out $DIR/gpu.json --data $DIR/data @words 2>&1`;

    return ($? >> 8, $out);
}

# What one of its functions says to that: a word, or the trouble.
sub says {
    my ($call) = @_;

    my $script = "import gpu\ntry: print(gpu.$call)\nexcept gpu.BenchError as e: print('error:', e)";

    return `PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bench python3 -c "$script" 2>&1`;
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
is(scalar(keys %{ $told->{parts}{sanitizer}{of} }), 8, 'the sanitizer has its programs, by name');
ok($told->{parts}{parity}{of}{rows_test}{passed}, 'operations were compared');
is($told->{parts}{demo}{of}{same}, $told->{parts}{demo}{of}{scenes}, 'the answers are the CPU\'s');
is($told->{parts}{speed}{of}{'tiny-4'}{at_once}, 5, 'five were asked at once');
cmp_ok($told->{parts}{memory}{of}{'tiny-1'}{peak}, '>', 0, 'memory was looked at');
like($out, qr/these are no figures of a GPU/, 'the table says what it is');
like($out, qr/^\| tiny \| 1 \| \d+ \| 300 \| 310 \| 310 \|$/m, 'and has the memory');

# Some parts, and the others as they were.
($status, $out) = gpu('--emulated', '--parts', 'build');
is($status, 0, 'a part alone');

my $again = JSON::PP->new->utf8->decode(VLM::slurp("$DIR/gpu.json"));

is_deeply($again->{parts}{speed}, $told->{parts}{speed}, 'leaves the others as they were');
like(`python3 bench/gpu.py --table $DIR/gpu.json`, qr/^\| tiny \| 4 \|/m,
     'the tables are made again from the file');

is_deeply($again->{parts}{speed}{on}, $told->{parts}{speed}{on}, 'and what they were measured on');

my $other = { parts => { %{ $told->{parts} },
    demo => { of => { scenes => 300, same => 298 },
              on => { gpu => 'A card', driver => '9', commit => 'abc', emulated => JSON::PP::false } } } };

open(my $out_file, '>', "$DIR/other.json") or die $!;
print $out_file JSON::PP->new->utf8->encode($other);
close($out_file);

like(`python3 bench/gpu.py --table $DIR/other.json`,
     qr/^On A card, driver 9, commit abc:\n\nOf the demo's 300 scenes the GPU answers 298 [^\n]*\n(?!\n\|)/m,
     'what was measured on another card has a table of its own');

# The time is one for all.
my $began = time;
($status, $out) = gpu('--emulated', '--seconds', 1, '--parts', '"memory speed"');
is($status, 1, 'parts for which the time does not last');
like($out, qr/^memory +1\.\d s  (?!passed).*\nspeed +0\.\d s  the 1 s are over$/m, 'say so');
cmp_ok(time - $began, '<', 30, 'and end with it');

is(`make -n --no-print-directory gpu | wc -l`, "1\n", 'nothing is built before a GPU is looked for');

# What may not pass.
$ENV{VLM_SMI_MORE} = 380;
($status, $out) = gpu('--emulated', '--parts', 'memory');
is($status, 1, 'a peak 70 MiB off the plan');
like($out, qr/^memory .* tiny-1: 380 MiB at most, \d+ planned and 300 of the driver's own; tiny-4: /m, 'is not passed');

my $items = "[{'text': 'q'}] * 300, ['a'] * 300";

like(says("alike({}, 300, $items, ['a'] * 297 + ['b'] * 3)"), qr/^\{.*'same': 297/,
     '297 of 300 scenes that are the same');
like(says("alike({}, 300, $items, ['a'] * 296 + ['b'] * 4)"),
     qr/^error: the GPU answers 296 of 300 /, '296 are too few');
like(says("alike({}, 300, [], [], [])"), qr/^error: there are 0 scenes, 300 are wanted/,
     'as are none');
like(says("rms([[1, 2]], [[1, 2], [3, 4]])"), qr/^error: rows of logits are \[2\] long/,
     'logits of which a row is missing');
like(says("rms([], [])"), qr/^error: rows of logits are \[\] long/, 'or all');
like(says("rms([[1]], [[1, 2]])"), qr/^error: rows of logits are \[1\] long/, 'or a value');
like(says("near('m', {'m': {'gpu': float('nan')}})"), qr/^error: m: logits are nan /,
     'or that are no numbers');

done_testing();
