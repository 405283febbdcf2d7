# Builds the packages in a root of one Debian, and tests them in a fresh one.
#
# Both roots are below build/roots/SUITE/.  The builder is kept for the next run; the fresh root is
# made each time.  The packages that nginx needs come from Debian's mirror, before the scenario of
# t/install/scenario begins: this has a network of its own, with nothing but its loopback.  It runs the
# blocks of docs/install.md for packages and systemd, from the page's text.
#
# The builder has the files that conf/container/Containerfile copies, and no others.

use strict;
use warnings;

use lib 't/lib';
use Commands;
use Cwd qw(getcwd);
use File::Path qw(make_path);
use POSIX ();
use Test::More;
use Time::HiRes qw(time);
use VLM;

my $CONTAINERFILE = 'conf/container/Containerfile';

# A stranger has an answer this soon, beginning with an empty root, on an idle machine.  Other load, of which more
# than this share of the processors is a sign, makes it later; then the way may take so much processor time, of
# which 11 s were measured, and the clock has a wide limit.
my $SOON = 180;
my $IDLE = 0.1;
my $PROCESSOR = 40;
my $LATE = 1200;


# Returns what the command prints; the test ends if it fails.
sub run {
    my (@command) = @_;

    open my $out, '-|', @command or die "$command[0]: $!\n";
    my $said = do { local $/; <$out> } // '';

    close $out or BAIL_OUT("@command: status $?\n$said");

    return $said;
}


sub in_root {
    my ($root, $script) = @_;

    return run('unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-ec',
               'mount -t proc proc "$1/proc"; exec chroot "$1" sh -ec "$2" 2>&1', 'sh', $root, $script);
}


# An archive of an empty Debian, which the first run makes.
sub make_archive {
    my ($suite) = @_;

    my $archive = "build/roots/$suite.tar";

    make_path('build/roots');
    run('sh', '-ec', 'mmdebstrap --quiet --variant=minbase --format=tar "$1" "$2.new" && mv "$2.new" "$2"', 'sh', $suite,
        $archive)
        unless -e $archive;

    return $archive;
}


sub make_root {
    my ($suite, $root) = @_;

    my $archive = make_archive($suite);

    run('rm', '-rf', '--one-file-system', $root);
    make_path($root);
    run('tar', '-xf', $archive, '-C', $root);

    # The way out of this network: its resolvers and, where a proxy has one of its own, its certificate authority.
    run('cp', '/etc/resolv.conf', "$root/etc/resolv.conf");
    run('sh', '-ec', 'test ! -d "$1" || cp -rT "$1" "$2$1"', 'sh', '/usr/local/share/ca-certificates', $root);
}


# The files that the first stage of conf/container/Containerfile copies.
sub copied {
    my ($stage) = VLM::slurp($CONTAINERFILE) =~ /^(FROM .*?)^FROM /ms;

    return map { my @words = split; @words[0 .. $#words - 1] } $stage =~ /^COPY (.*)/mg;
}


# Builds the packages from the files that the container's builder has, and returns lintian's words.
sub build {
    my ($suite, $root) = @_;

    if (!-e "$root/ready") {
        make_root($suite, $root);
        run('sh', '-ec', 'echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/builder"', 'sh', $root);
        in_root($root, 'apt-get -qq update; DEBIAN_FRONTEND=noninteractive apt-get -qq -y '
                       . '--no-install-recommends install make lintian >/dev/null');
        run('touch', "$root/ready");
    }

    # nvcc, 280 MB of wheels from PyPI, is kept with the builder.
    make_path("$root/src");
    run('find', "$root/src", '-mindepth', 1, '-not', '-path', "$root/src/build", '-not', '-path', "$root/src/build/nvcc*",
        '-delete');
    run('sh', '-ec', 'root=$1; shift; tar -c --exclude=engine/build "$@" | tar -x --no-same-owner -C "$root"', 'sh',
        "$root/src", copied());

    # One architecture is enough to test a package of it.
    in_root($root, 'cd /src; { make nvcc && make deb ARCHS=75; } >/src/deb.log 2>&1 || { tail -n 40 /src/deb.log; exit 1; }');

    return in_root($root, 'cd /src/build/deb; lintian --allow-root --fail-on none *.changes');
}


# The same packages under a higher version.
sub raise {
    my ($root) = @_;

    in_root($root, <<'_EOC_');
        mkdir /debs/next
        for deb in /debs/*.deb; do
            rm -rf /debs/tree
            dpkg-deb -R $deb /debs/tree
            sed -i 's/^\(Version: \|.*[( ]libnginx-mod-http-vlm (= \)\([^,)]*\)-1~/\1\2-2~/' /debs/tree/DEBIAN/control
            dpkg-deb -b /debs/tree /debs/next >/dev/null
        done
        rm -rf /debs/tree
_EOC_
}


# The reader's checkout, with what the commands name, and each block of the page as a script.
sub give_page {
    my ($root) = @_;
    my $n = 0;

    make_path("$root/models/checkout/build", "$root/models/checkout/conf", "$root/models/page");
    run('ln', '-s', '/debs', "$root/models/checkout/build/deb");
    run('ln', '-s', 'demo', "$root/models/MODEL");
    run('cp', '-r', 'conf/systemd', "$root/models/checkout/conf/");

    VLM::spew("$root/models/page/" . ++$n, $_) for Commands::in_a_root();
}


# Seconds of processor time that the whole machine has spent, and its number of processors.
sub machine {
    open my $in, '<', '/proc/stat' or die "/proc/stat: $!\n";
    my @lines = <$in>;

    my (undef, $user, $nice, $system, $idle, $wait, $irq, $softirq) = split ' ', $lines[0];

    return (($user + $nice + $system + $irq + $softirq) / POSIX::sysconf(POSIX::_SC_CLK_TCK()), scalar grep { /^cpu\d/ } @lines);
}


# Compares the way to the first answer with the limit; $own is its processor time.
sub soon_enough {
    my ($suite, $wall, $own, $busy, $processors) = @_;

    my $others = ($busy - $own) / ($wall * $processors);

    diag(sprintf '%s: %.0f s from an empty root to the first answer, %.0f s of a processor; others took %.0f%% of the machine',
         $suite, $wall, $own, 100 * $others);

    if ($others <= $IDLE) {
        cmp_ok($wall, '<=', $SOON, 'the way to it took three minutes at most');

    } else {
        cmp_ok($own, '<=', $PROCESSOR, "the way to it took $PROCESSOR s of a processor at most");
        cmp_ok($wall, '<=', $LATE, 'and twenty minutes at most');
    }
}


sub test_packages {
    my ($suite) = @_;

    plan skip_all => 'roots need root' if $> != 0;

    my $dir = getcwd() . "/build/roots/$suite";
    my ($builder, $root) = ("$dir/builder", "$dir/fresh");

    make_path($dir);
    my $lintian = build($suite, $builder);
    is($lintian, '', "lintian of $suite finds nothing");

    make_root($suite, $root);
    make_path("$root/debs", "$root/models");
    run('sh', '-ec', 'cp "$1"/src/build/deb/*.deb "$2/debs/"; cp -r demo/model "$2/models/demo"; '
                     . 'cp -r demo/model-3 "$2/models/demo-3"; cp html/sample-1.png t/install/scenario "$2/models/"; '
                     . 'openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost '
                     . '-keyout "$2/models/robobrain.key" -out "$2/models/robobrain.pem" 2>&1', 'sh', $builder, $root);
    raise($root);
    give_page($root);

    my $start = time;
    my ($busy) = machine();
    my (undef, undef, @before) = times;

    in_root($root, 'apt-get -qq update; '
                   . 'apt-get -qq -y --no-install-recommends --download-only install curl nginx procps /debs/*.deb >/dev/null');

    open my $tap, '-|', 'unshare', '--mount', '--pid', '--net', '--fork', '--kill-child', 'sh', '-ec',
         'ip link set lo up; mount -t proc proc "$1/proc"; exec chroot "$1" sh /models/scenario', 'sh', $root
        or die "unshare: $!\n";

    my (undef, undef, @after) = times;
    my $download = $after[0] + $after[1] - $before[0] - $before[1];
    my $ended = 0;

    while (<$tap>) {
        chomp;

        if (/^(not )?ok - (.*)/) {
            ok(!$1, $2);

        } elsif (/^processor time (\S+)$/) {
            my ($now, $processors) = machine();

            soon_enough($suite, time - $start, $download + $1, $now - $busy, $processors);

        } elsif (/^end$/) {
            $ended = 1;

        } else {
            diag($_);
        }
    }

    close $tap;
    ok($ended, 'the scenario came to its end');

    done_testing();
}

1;
