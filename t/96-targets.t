# Runs targets of make, and measurements of the pages, with short settings: load, figures, and those that only say what
# this machine lacks.
# Figures of a busy machine are not judged.

use strict;
use warnings;

use lib 't/lib';
use Cwd qw(getcwd);
use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);
use Test::More;
use VLM;

delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL SAN ENGINE_BUILD)};

my $TOP = getcwd() . '/build/small-targets';

remove_tree($TOP);
make_path("$TOP/bin");


# ---- load ------------------------------------------------------------------------------

my $said = `make -s soak SECONDS=9 2>&1`;

is($?, 0, 'make soak is content') or diag($said);
like($said, qr/^---- soak, (?:9|[1-9]\d) s, 32 clients$/m, 'it takes its time');
like($said, qr/^  $_ +[1-9]\d*$/m, "it has its $_") for qw(right reloads kills);
like($said, qr/^lost 0\n\z/m, 'none was lost');

# Memory that has just begun to be used grows, and is not judged.
for my $kind ('calm', 'pictures') {
    $said = `t/soak --$kind 60 2>&1`;

    like($said, qr/^  right +[1-9]\d*\n/m, "t/soak --$kind has right answers");
    like($said, qr/^lost 0\n\z/m, 'none was lost');
    is(join("\n", grep { !/ grew by / } $said =~ /^  wrong: (.*)/mg), '', 'and nothing else is wrong');
}


# ---- measurements ------------------------------------------------------------------------

# A busy machine exceeds the limits of bench-queue, for which its status is 1.
$said = `make -s bench-queue BRIEF=1 2>$TOP/errors`;
my @turns = map { [split] } $said =~ /^ +(\d.*)$/mg;

is(join(' ', map { $_->[0] } @turns), '8 200', 'make bench-queue has a short and a long queue') or diag($said, VLM::slurp("$TOP/errors"));
is(scalar(grep { $_->[2] > 0 && $_->[3] > 0 && $_->[6] > 0 } @turns), 2, 'each has tokens, and answers about the health');
cmp_ok($turns[1][1], '>', 10, 'requests are refused while the long one is full');
like($said, qr/^tokens by the engine's processor time \d\.\d+, by the clock \d\.\d+ of 0\.\d+ .*; health p99 [\d.]+ ms\n\z/m, 'it compares the two');

$said = `make -s bench-documents BRIEF=1 2>&1`;

is($?, 0, 'make bench-documents passes') or diag($said);
like($said, qr/^400 chunks: load [\d.]+ ms .*, by words [\d.]+ ms .*, by words and vectors [\d.]+ ms/m, 'it has the times of a search');
like($said, qr/^50 MB to 10 MiB: 40 documents removed, 10000000 bytes of 10 documents stay, \d+ ms$/m, 'and of a sweep');

$said = `bench/reading.py --rounds 1 2>&1`;

is($?, 0, 'bench/reading.py measures the reader of documents') or diag($said);
like($said, qr/^\{"name": "document_$_", "value": \d[\d.]*, "unit": "ms"/m, "it has $_")
    for qw(first_page page_ocr page_picture page_picture_han page_text);

# In a copy of the pages that the tables stand in.
make_path("$TOP/tree/$_") for qw(bench build docs);
copy($_, "$TOP/tree/$_") or die "$_: $!\n" for qw(bench/README.md bench/table.py docs/speed.md);
chmod 0755, "$TOP/tree/bench/table.py";

VLM::spew("$TOP/tree/build/bench.json",
          '[{"name": "decode_test", "value": 1234.5, "unit": "tokens/s", "limit": 2469, "share": 0.5}]');
VLM::spew("$TOP/tree/build/compare.json",
          '[{"name": "decode_over_llama_avx512", "value": 7.25, "unit": "x", "limit": null, "share": null}]');

$said = `cd $TOP/tree && bench/table.py --write 2>&1`;

is("$? $said", '0 ', 'bench/table.py --write writes tables');
like(VLM::slurp("$TOP/tree/bench/README.md"), qr/^\| `decode_test` \| 1,23[45] \| tokens\/s \| 2,469 \| 50 % \|$/m, 'figures into bench/README.md');
like(VLM::slurp("$TOP/tree/bench/README.md"), qr/^\| `decode_over_llama_avx512` \| 7\.25 \| x \|  \|  \|$/m, 'those of other engines, too');
like(VLM::slurp("$TOP/tree/docs/speed.md"), qr/^\| times as fast as \| llama\.cpp, `avx512` \|\n\|---\|---:\|\n\| tokens\/s \| 7\.25 \|$/m, 'ratios into docs/speed.md');


# ---- what is missing ---------------------------------------------------------------------

$said = `VLM_SMI=$TOP/none make -s gpu 2>&1`;

is($? >> 8, 2, 'make gpu without a GPU fails');
like($said, qr/^nothing was measured: there is no NVIDIA GPU: /, 'it says that there is none');

is(`make -s deps-ocr 2>&1`, '', 'make deps-ocr finds that nothing is missing, as make documents had OCR here');

sub program {
    my ($name, $text) = @_;

    VLM::spew("$TOP/bin/$name", "#!/bin/sh\n$text\n");
    chmod 0755, "$TOP/bin/$name";
}

# dpkg-query finds nothing of OCR; apt-get prints what it is told.
program('dpkg-query', q{/usr/bin/dpkg-query "$@" | grep -v tesseract});
program('apt-get', 'echo "apt-get $*"');
program('id', 'echo $USER_ID');
$ENV{PATH} = "$TOP/bin:$ENV{PATH}";

my $install = 'apt-get install -y --no-install-recommends libtesseract-dev tesseract-ocr-eng';

for my $user (0, 1000) {
    $ENV{USER_ID} = $user;
    $said = `make -s deps-ocr 2>/dev/null`;

    like($said, qr/^ +libtesseract-dev +words of scanned pages\n +tesseract-ocr-eng +/m, 'it names each package that is missing, and what for');

    if ($user == 0) {
        is($?, 0, 'root gets them');
        like($said, qr/^apt-get update.*\n$install /m, 'from Debian');
    } else {
        isnt($?, 0, 'others do not');
        like($said, qr/^ +sudo $install$/m, 'they are told how');
    }
}

done_testing();
