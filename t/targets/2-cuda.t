# Tests `make cuda` and `make cuda-matrix` with the newest and the oldest CUDA, a few architectures each, in a copy
# of the tree, whose library is not in the way of one that was built here.  The newest nvcc is the machine's, or the
# one that test-cuda got from PyPI, the oldest is Debian's.

use strict;
use warnings;

use lib 't/lib';
use Cwd qw(getcwd);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use Test::More;
use VLM;

delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL SAN ENGINE_BUILD NVCC)};

my $TOP = getcwd();
my $COPY = "$TOP/build/cuda-copy";
my $DEBIAN = "$TOP/build/nvcc-debian";
my $TMP = tempdir(CLEANUP => 1);

# A program below $TMP.
sub program {
    my ($path, $text) = @_;

    make_path("$TMP/$path" =~ s{/[^/]*$}{}r);
    VLM::spew("$TMP/$path", "#!/bin/sh\n$text\n");
    chmod 0755, "$TMP/$path" or die "$path: $!\n";

    return "$TMP/$path";
}

sub said {
    my ($command) = @_;
    my $said = `$command 2>&1`;

    chomp $said;

    return $said;
}

# ---- the choice ------------------------------------------------------------------

program("cuda-$_/nvcc", "echo 'Cuda compilation tools, release $_, V$_.1'") for qw(10.2 11.2 11.8 12.4 12.10 13.0);
program('broken/nvcc', 'exit 1');

for ([[qw(13.0 12.4 11.8)], '11.8'], [[qw(13.0 12.10 12.4)], '12.4'], [[qw(12.10 13.0)], '12.10'], [[qw(10.2 11.2 13.0)], '13.0'],
     [[qw(10.2 11.2)], undef], [[], undef])
{
    my ($there, $chosen) = @$_;

    is(said("cuda/toolkit nvcc $TMP/broken $TMP/none " . join ' ', map { "$TMP/cuda-$_" } @$there),
       defined $chosen ? "$TMP/cuda-$chosen/nvcc" : '', "of @$there " . ($chosen // 'none') . ' is chosen');
}

# A PATH without another nvcc, which the machine may have in the usual places.
like(said("PATH=$TMP/cuda-11.8:$TMP/cuda-12.4:/usr/bin:/bin cuda/toolkit nvcc"), qr{^\Q$TMP\E/cuda-11\.8/nvcc$|nvcc-debian|^/usr/bin/nvcc$},
     'PATH is looked into');
is(said("make -s --eval 'show: ; \@echo \$(NVCC)' show NVCC=/some/nvcc"), '/some/nvcc', 'NVCC= overrides');

# ---- what it says ----------------------------------------------------------------

for (['11.8', 450], ['12.4', 525], ['13.0', 580]) {
    my ($cuda, $driver) = @$_;

    is(said("VLM_DRIVER=/none cuda/toolkit words $TMP/cuda-$cuda/nvcc"),
       "CUDA $cuda has built it: it wants NVIDIA's driver, from $driver on.", "what a library of CUDA $cuda wants");
}

for (['13.0', '535.261.03', qr/is 535: install nvidia-cuda-toolkit of Debian 12 or 13, or CUDA 12 of NVIDIA \(JetPack 6: 12\.6\)/],
     ['13.0', '550.163.01', qr/is 550: install nvidia-cuda-toolkit of Debian 12 or 13/],
     ['13.0', '540.4.0', qr/is 540: install nvidia-cuda-toolkit of Debian 12 or 13/],
     ['12.4', '470.256.02', qr/is 470: install nvidia-cuda-toolkit of Debian 12 \(CUDA 11\.8\)/],
     ['11.8', '390.157', qr/is 390: install one from 450 on/], ['11.8', '450.80.02', undef],
     ['12.4', '535.261.03', undef], ['13.0', '580.159.04', undef])
{
    my ($cuda, $driver, $words) = @$_;

    VLM::spew("$TMP/driver", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  $driver  Thu May  8 18:44:05 UTC 2025\n");
    my $text = said("VLM_DRIVER=$TMP/driver cuda/toolkit words $TMP/cuda-$cuda/nvcc");

    if (defined $words) {
        like($text, $words, "what to install for driver $driver in the place of CUDA $cuda");
    } else {
        unlike($text, qr/of this machine/, "driver $driver takes what CUDA $cuda builds");
    }
}

# A host compiler that the toolkit takes.
make_path("$TMP/old/bin/../include/crt");
VLM::spew("$TMP/old/include/crt/host_config.h", "#if __GNUC__ > 9\n");
program('old/bin/nvcc', "echo 'release 11.8,'");
program('compilers/g++', 'echo 12');
like(said("PATH=$TMP/compilers:/usr/bin:/bin cuda/toolkit host $TMP/old/bin/nvcc"),
     qr/^CUDA 11\.8 takes g\+\+ up to version 9, and there is none: install g\+\+-9$/, 'a g++ that is too new is named');
program('compilers/g++-8', 'echo 8');
is(said("PATH=$TMP/compilers:/usr/bin:/bin cuda/toolkit host $TMP/old/bin/nvcc"), '-ccbin g++-8', 'an older one is taken');

# ---- the library -----------------------------------------------------------------

remove_tree($COPY);
make_path("$COPY/build");
symlink "$TOP/build/nvcc", "$COPY/build/nvcc" or die "symlink: $!\n";
system("tar --exclude=engine/build -cf - Makefile cuda engine lib t/deps | tar -C $COPY -xf -") == 0 or die "no copy\n";

my %kernels = map { $_ => 1 } grep { !/\@/ } VLM::slurp('cuda/limits.txt') =~ /^([a-z]\S*) /mg;

# Builds the library in the copy, and looks at it.
sub builds {
    my ($name, $before, $nvcc, @archs) = @_;
    my $said = `cd $COPY && $before make cuda ARCHS='@archs' $nvcc 2>&1`;

    is($?, 0, "$name: make cuda compiles the library within the limits") or diag(substr $said, -4000);
    like(`nm -D --defined-only $COPY/build/libvlm_cuda.so`, qr/^\w+ T vlm_cuda_open\n\z/, 'which has its one symbol');
    unlike(`readelf -d $COPY/build/libvlm_cuda.so`, qr/libcuda/, 'and needs no library of CUDA');
    system("cp build/vlm $COPY/build/vlm") == 0 or die "build/vlm: $!\n";
    like(`$COPY/build/vlm doctor demo/model --device cuda --module none 2>&1`, qr/there is no NVIDIA driver|the GPU takes the model/, 'and loads');
    is(join(' ', sort { $a cmp $b } keys %{{ map { $_ => 1 } $said =~ /^([a-z]\S*) +\d+ +\d+ +\d+ +\d+$/mg }}),
       join(' ', sort keys %kernels), 'it prints what each kernel takes');

    my @logs = map { VLM::slurp($_) } glob "$COPY/build/cuda/card/*.log";
    my %archs = map { $_ => 1 } map { /Compiling entry function '\S+' for '(\S+)'/g } @logs;

    is(join(' ', sort keys %archs), join(' ', map { "sm_$_" } @archs), 'the kernels were compiled for these cards');

    return $said;
}

my ($new) = grep { defined && /\S/ } map { my $n = said("cuda/toolkit nvcc $_"); $n }
            grep { said("cuda/toolkit version $_/nvcc") =~ /^1[23]/ }
            (split(/:/, $ENV{PATH}), '/usr/local/cuda/bin', glob "$TOP/build/nvcc/lib/python3*/site-packages/nvidia/cu13/bin");

# cuda/test/compile has three others.
builds('the newest CUDA', '', "NVCC=$new", 89);

my $said = `cd $COPY && make -s cuda-matrix ARCHS=89 NVCC=$new 2>&1`;

is($?, 0, 'make cuda-matrix finds no limit exceeded') or diag($said);

# Debian's toolkit stands in /usr, its headers behind those of /usr/local/include and its programs behind others in PATH:
# there are wrong ones.  The build sees them in a namespace of its own.
make_path("$TMP/usr/local/include/crt");
VLM::spew("$TMP/usr/local/include/$_", "#error of another toolkit\n")
    for qw(cuda_runtime.h cuda_runtime_api.h crt/host_config.h crt/host_defines.h driver_types.h vector_types.h device_types.h);
program("usr/local/bin/$_", "echo '$_ of another toolkit' >&2; exit 1") for qw(nvlink ptxas fatbinary cudafe++ cicc);

my $wrong = "PATH=$TMP/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin";
my $inside = "$wrong unshare -m " . program('inside', "mount -t overlay overlay -o lowerdir=$TMP/usr:$DEBIAN/usr:/usr /usr && exec \"\$@\"");

my ($debian, $least) = `. /etc/os-release; echo \$VERSION_ID` == 12 ? ('11.8', 450) : ('12.4', 525);

if (system("$inside true 2>/dev/null") == 0) {
    is(said("$inside cuda/toolkit nvcc"), '/usr/bin/nvcc', "Debian's toolkit is older than others");
    $said = builds("Debian's toolkit in /usr", $inside, '', 75, 90);

} else {
    $said = builds("Debian's toolkit in build/", $wrong, "NVCC=$DEBIAN/usr/bin/nvcc", 75, 90);
}

like($said, qr/^CUDA \Q$debian\E has built it: it wants NVIDIA's driver, from $least on\.$/m, 'it says which drivers take it');

remove_tree($COPY);

done_testing();
