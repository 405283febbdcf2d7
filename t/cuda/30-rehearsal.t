# Tests `make gpu` without a GPU: it reports that there is none, and with the
# emulated device each of its parts completes, so that on a card only the
# figures are new.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use File::Path ();
use JSON::PP ();
use Test::More;
use VLM;

my $ROOT = Cwd::getcwd();
my $DIR = "$VLM::LIVE/rehearsal";

File::Path::remove_tree($DIR);
File::Path::make_path("$DIR/tmp");

# The jobserver of the make that runs this test is not open here; each make of a part has its own.
$ENV{MAKEFLAGS} =~ s/\s(?:-j\d*|--jobserver-\S+)//g if defined $ENV{MAKEFLAGS};

$ENV{TMPDIR} = "$DIR/tmp";              # for its servers only
$ENV{VLM_SMI_MORE} = 310;               # MiB, of which 300 are the driver's
$ENV{VLM_EMULATOR} = 'takes=' . (300 << 20);

sub gpu {
    my (@words) = @_;

    my $out = `python3 bench/gpu.py --out $DIR/gpu.json --data $DIR/data @words 2>&1`;

    return ($? >> 8, $out);
}

# Calls one of its functions; returns its result or its error.
sub says {
    my ($call) = @_;

    my $script = "import gpu\ntry: print(gpu.$call)\nexcept gpu.BenchError as e: print('error:', e)";

    return `PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bench python3 -c "$script" 2>&1`;
}

$ENV{VLM_SMI} = "$DIR/none";

my ($status, $out) = gpu();

is($status, 1, 'without a GPU nothing is measured');
like($out, qr/^nothing was measured: there is no NVIDIA GPU: /, 'the message says that there is no GPU');
ok(!-e "$DIR/gpu.json", 'no file is written');

($status, $out) = gpu('--parts', 'nothing');
is($status, 2, 'an unknown part is refused');
like($out, qr/^no part nothing; there are build, sanitizer, parity, /, 'the message names the part and the known ones');

$ENV{VLM_SMI} = "$ROOT/t/cuda/nvidia-smi";

($status, $out) = gpu('--emulated');
is($status, 0, 'the rehearsal passes') or diag($out);

my $told = JSON::PP->new->utf8->decode(VLM::slurp("$DIR/gpu.json"));

is_deeply([sort keys %{ $told->{parts} }],
          [qw(build demo fidelity memory parity sanitizer speed)], 'the rehearsal has all parts');
is_deeply([grep { $told->{parts}{$_}{failed} } keys %{ $told->{parts} }], [], 'no part failed');
is(scalar(keys %{ $told->{parts}{sanitizer}{of} }), 10, 'the sanitizer has its programs, by name');
ok($told->{parts}{parity}{of}{rows_test}{passed}, 'operations were compared');
is($told->{parts}{demo}{of}{same}, $told->{parts}{demo}{of}{scenes}, 'the answers are the CPU\'s');
is($told->{parts}{speed}{of}{'tiny-4'}{at_once}, 5, 'five were asked at once');
cmp_ok($told->{parts}{memory}{of}{'tiny-1'}{peak}, '>', 0, 'the memory was measured');
like($out, qr/these are no figures of a GPU/, 'the table says that it is a rehearsal');
like($out, qr/^\| tiny \| 1 \| \d+ \| 300 \| 310 \| 310 \|$/m, 'the table has the memory');

# A run of some parts leaves the results of the others unchanged.
($status, $out) = gpu('--emulated', '--parts', 'build');
is($status, 0, 'a part runs alone');

my $again = JSON::PP->new->utf8->decode(VLM::slurp("$DIR/gpu.json"));

is_deeply($again->{parts}{speed}, $told->{parts}{speed}, 'the other parts are unchanged');
like(`python3 bench/gpu.py --table $DIR/gpu.json`, qr/^\| tiny \| 4 \|/m,
     'the tables are made again from the file');

is_deeply($again->{parts}{speed}{on}, $told->{parts}{speed}{on}, 'their machine is unchanged');

my $other = { parts => { %{ $told->{parts} },
    demo => { of => { scenes => 300, alike => 298, same => 271 },
              on => { gpu => 'A card', driver => '9', commit => 'abc', emulated => JSON::PP::false } } } };

open(my $out_file, '>', "$DIR/other.json") or die $!;
print $out_file JSON::PP->new->utf8->encode($other);
close($out_file);

like(`python3 bench/gpu.py --table $DIR/other.json`,
     qr/^On A card, driver 9, commit abc:\n\nOf the demo's 300 scenes the GPU answers 298 [^\n]*, 271 [^\n]*\n(?!\n\|)/m,
     'the results of another card have a table of their own');

# All parts share one time limit.
my $began = time;
($status, $out) = gpu('--emulated', '--seconds', 1, '--parts', '"memory speed"');
is($status, 1, 'parts beyond the time limit fail');
like($out, qr/^memory +\d+\.\d s  (?!passed).*\nspeed +0\.\d s  the 1 s are over$/m, 'the message names the limit');
cmp_ok(time - $began, '<', 300, 'the parts end at the limit');

is(scalar(() = `make -n --no-print-directory gpu 2>&1` =~ /^/mg), 1, 'nothing is built before the check for a GPU');

# Results that must fail.
$ENV{VLM_SMI_MORE} = 380;
($status, $out) = gpu('--emulated', '--parts', 'memory');
is($status, 1, 'a peak 70 MiB off the plan');
like($out, qr/^memory .* tiny-1: 380 MiB at most, \d+ planned and 300 of the driver's own; tiny-4: /m, 'the memory part fails');

my $items = "[{'text': 'q', 'task': 'grounding'}] * 300, ['[9, 20]'] * 300";
my $words = "[{'text': 'q', 'task': 'general'}] * 300, ['9'] * 300";

like(says("alike({}, 300, $items, ['[9, 20]'] * 290 + ['[9, 28]'] * 7 + ['[9, 29]'] * 3)"),
     qr/^\{.*'same': 290, 'alike': 297/, '297 answers of 300 within 8 pixels pass');
like(says("alike({}, 300, $items, ['[9, 20]'] * 296 + ['[9, 29]'] * 4)"),
     qr/^error: the GPU answers 296 of 300 /, '296 answers within 8 pixels are too few');
like(says("alike({}, 300, $items, ['[9, 20]'] * 296 + ['[9, 20, 20]'] * 4)"),
     qr/^error: the GPU answers 296 of 300 /, 'as many answers with another number of places are');
like(says("alike({}, 300, $words, ['9'] * 296 + ['8'] * 4)"),
     qr/^error: the GPU answers 296 of 300 /, 'and as many with another count of objects');
like(says("alike({}, 300, [], [], [])"), qr/^error: there are 0 scenes, 300 are wanted/,
     'no scenes fail');
like(says("rms([[1, 2]], [[1, 2], [3, 4]])"), qr/^error: rows of logits are \[2\] long/,
     'logits with a missing row fail');
like(says("rms([], [])"), qr/^error: rows of logits are \[\] long/, 'logits without rows fail');
like(says("rms([[1]], [[1, 2]])"), qr/^error: rows of logits are \[1\] long/, 'logits with a missing value fail');
like(says("near('m', {'m': {'gpu': float('nan')}})"), qr/^error: m: logits are nan /,
     'logits that are not numbers fail');

done_testing();
