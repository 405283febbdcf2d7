# Tests `make cuda` and `make cuda-matrix` with one architecture, in a copy of the tree, whose library is not
# in the way of one that was built here.  nvcc is the machine's, or the one that test-cuda got from PyPI.

use strict;
use warnings;

use lib 't/lib';
use Cwd qw(getcwd);
use File::Path qw(make_path remove_tree);
use Test::More;
use VLM;

delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL SAN ENGINE_BUILD)};

my $TOP = getcwd();
my $COPY = "$TOP/build/cuda-copy";
my $ARCH = 89;                          # cuda/test/compile has three others

remove_tree($COPY);
make_path("$COPY/build");
symlink "$TOP/build/nvcc", "$COPY/build/nvcc" or die "symlink: $!\n";
system("tar --exclude=engine/build -cf - Makefile cuda engine lib t/deps | tar -C $COPY -xf -") == 0 or die "no copy\n";

my $said = `cd $COPY && make cuda ARCHS=$ARCH 2>&1`;

is($?, 0, 'make cuda compiles the library') or diag(substr $said, -4000);
like(`nm -D --defined-only $COPY/build/libvlm_cuda.so`, qr/^\w+ T vlm_cuda_open\n\z/, 'which has its one symbol');

my %kernels = map { $_ => 1 } VLM::slurp('cuda/limits.txt') =~ /^([a-z]\S*) /mg;

$said = `cd $COPY && make -s cuda-matrix ARCHS=$ARCH 2>&1`;

is($?, 0, 'make cuda-matrix finds no limit exceeded') or diag($said);
is(join(' ', sort $said =~ /^([a-z]\S*) +\d+ +\d+ +\d+ +\d+$/mg), join(' ', sort keys %kernels), 'it prints what each kernel takes');

my @logs = map { VLM::slurp($_) } glob "$COPY/build/cuda/card/*.log";

is(join(' ', sort keys %{{ map { $_ => 1 } map { /Compiling entry function '\S+' for '(\S+)'/g } @logs }}), "sm_$ARCH", 'they were compiled for that one');

remove_tree($COPY);

done_testing();
