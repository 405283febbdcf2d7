# Runs the commands of docs/install.md for a container, and those of docs/scale.md for a registry, with Debian's
# podman, Docker, compose and registry.
#
# They are in a root of Debian 13 that t/install/namespaces makes a machine of its own.  No registry of images is
# asked: the image that the Containerfile begins with is Debian 12 by mmdebstrap, under its name.  The network is
# slirp4netns', so that apt in an image that is built has one, and this machine's is not changed.

use strict;
use warnings;

require './t/install/debian.pl';

use Commands;
use Cwd qw(getcwd);
use IPC::Open2 qw(open2);
use JSON::PP qw(decode_json);
use Test::More;
use VLM;

plan skip_all => 'namespaces need root' if $> != 0;

# Of Debian 13.  nftables and iptables are those of podman and of Docker.
my @PACKAGES = qw(curl docker-cli docker-compose docker-registry docker.io iproute2 iptables nftables podman
                  slirp4netns);

my $REGISTRY = '127.0.0.1:5000';
my $URL = 'http://127.0.0.1:5001';
my $CLIENTS = 6;                        # more than the server answers at a time

my $dir = getcwd() . '/build/roots/trixie';
my $root = "$dir/engines";
my $name = "nginx-vlm-test-$$";
my ($user) = VLM::slurp('conf/container/Containerfile') =~ /^USER (\d+):/m;
my %page = map { $_ => 0 } Commands::of_containers();
my ($machine, $first);                  # t/install/namespaces, and the first process of its machine
my $end;                                # the machine lives until this is closed


# ---- commands in the machine ----------------------------------------------------------

# Returns what the command prints, and sets $?.
sub prints {
    my ($command) = @_;

    open my $out, '-|', 't/install/namespaces', 'enter', $name, $first, $command or die "t/install/namespaces: $!\n";
    my $said = do { local $/; <$out> } // '';
    close $out;

    return $said;
}


# Without this command the others would fail, too.
sub runs {
    my ($command) = @_;
    my @said = split /\n/, prints($command);

    is($?, 0, $command) or die join("\n", @said > 40 ? @said[-40 .. -1] : @said), "\n";
}


# Runs the command of the page that begins so.
sub page {
    my ($begin) = @_;
    my @found = grep { index($_, $begin) == 0 } sort keys %page;

    die scalar(@found), " commands of the pages begin with $begin\n" if @found != 1;

    $page{$found[0]}++;

    runs($found[0] =~ s/REGISTRY/$REGISTRY/r);
}


sub is_true {
    my ($command) = @_;

    prints($command);

    return $? == 0;
}


sub becomes {
    my ($command, $what) = @_;

    ok(VLM::wait_for(sub { is_true($command) }), $what) or die prints("$command; tail -n 20 /var/log/*d.log");
}


# ---- the machine -------------------------------------------------------------------------

sub make_engines {
    if (!-e "$root/ready") {
        make_root('trixie', $root);
        run('sh', '-ec', 'echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/engines"; printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d"; '
                         . 'chmod +x "$1/usr/sbin/policy-rc.d"', 'sh', $root);
        in_root($root, 'apt-get -qq update; DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends '
                       . "install @PACKAGES >/dev/null");
        run('touch', "$root/ready");
    }

    # Nothing of an earlier run but the packages.
    run('sh', '-ec', 'root=$1; shift; for name; do rm -rf --one-file-system "$root/$name"; done', 'sh', $root,
        qw(models said var/lib/containers var/lib/docker var/lib/docker-registry));
    make_path("$root/models", "$root/said");
    run('cp', '-r', 'demo/model', "$root/models/MODEL");
    run('chmod', '-R', 'a+rX', "$root/models");

    # slirp4netns answers at this address, and asks the resolvers of this machine.
    run('cp', '/etc/resolv.conf', "$root/etc/resolv.outside");
    VLM::spew("$root/etc/resolv.conf", "nameserver 10.0.2.3\n");

    # podman speaks TLS with a registry but for those named here.  Debian's own settings have users with passwords.
    make_path("$root/etc/containers/registries.conf.d");
    VLM::spew("$root/etc/containers/registries.conf.d/test.conf", qq{[[registry]]\nlocation = "$REGISTRY"\ninsecure = true\n});
    VLM::spew("$root/etc/docker/registry/config.yml", <<"_EOC_");
version: 0.1
storage:
  filesystem:
    rootdirectory: /var/lib/docker-registry
http:
  addr: $REGISTRY
_EOC_
}


# Root without CAP_SYS_RESOURCE cannot give a container more open files and processes than it has itself, as engines
# do.  Then podman's settings have its own numbers, and so does what Docker's runtime is told in place of
# compose.yaml's.
sub bound_files {
    my $words = '';

    unlink "$root/etc/containers/containers.conf";

    if (system('prlimit --nofile=1048576:1048576 true 2>/dev/null') != 0) {
        my ($files, $processes) = split ' ', run('bash', '-c', 'ulimit -Hn -Hu | sed "s/.* //"');

        diag("root has $files open files on this machine, and so have containers");
        VLM::spew("$root/etc/containers/containers.conf",
                  qq{[containers]\ndefault_ulimits = ["nofile=$files:$files", "nproc=$processes:$processes"]\n});
        VLM::spew("$root/usr/local/bin/bounded-runc", <<"_EOC_");
#!/bin/sh
last=
for word; do
    case \$last in
        --bundle)  file=\$word/config.json ;;
        --process) file=\$word ;;
        *)         file= ;;
    esac
    [ ! -e "\$file" ] || sed -Ei 's/("type":"RLIMIT_NOFILE","hard":)[0-9]+,"soft":[0-9]+/\\1$files,"soft":$files/' "\$file"
    last=\$word
done
exec runc "\$@"
_EOC_
        chmod 0755, "$root/usr/local/bin/bounded-runc";
        $words = '--add-runtime bounded=/usr/local/bin/bounded-runc --default-runtime bounded';
    }

    return $words;
}


sub start_machine {
    $machine = open2(my $from, $end, 'setsid', 't/install/namespaces', 'run', $name, $root, getcwd());
    ($first) = (<$from> // '') =~ /^ready (\d+)$/ or die "t/install/namespaces made no machine\n";

    # In the network of this machine, and among the processes of that one, with which it ends.
    system('nsenter', '--target', $first, '--mount', '--pid', 'unshare', '--mount', 'sh', '-c',
           'mount --bind /etc/resolv.outside /etc/resolv.conf; '
           . 'slirp4netns --configure --mtu=1500 1 tap0 >/var/log/slirp4netnsd.log 2>&1 &');
    becomes('ip route | grep default', 'the machine has a network');
}


END {
    if ($machine) {
        my $status = $?;

        close $end;
        waitpid $machine, 0;
        $? = $status;
    }
}

$SIG{$_} = sub { exit 1 } for qw(HUP INT TERM);


# ---- servers -------------------------------------------------------------------------------

sub ask {
    my ($session, $picture) = @_;
    my $body = qq({"session_id":"$session","image":"$picture","message":"How many balls are there?"});
    my $said = prints("curl -s -m 240 $URL/api/chat -d '$body'");

    return (eval { decode_json($said) } // {})->{answer} // $said;
}


# Asks the server of a container, and looks at its walls.
sub answers {
    my ($engine, $container, $session) = @_;
    my $exec = "$engine exec $container";

    becomes("curl -sf -m 5 $URL/health/ready", "$engine: the server is ready");

    my ($picture) = prints("curl -s -m 60 $URL/api/upload -F file=\@html/sample-1.png") =~ /"filename": *"([^"]*)"/;
    is(ask($session, $picture // ''), '2', "$engine: it answers rightly");
    like(prints("curl -s -m 60 $URL/"), qr/<title>/, "$engine: it has the page");

    my $status = prints("$exec cat /proc/1/status");
    like($status, qr/^Uid:\t$user\t$user\t$user\t$user$/m, "$engine: it is the user of the image");
    like($status, qr/^Cap$_:\t0+$/m, "$engine: it has no rights: $_") for qw(Prm Eff Bnd Amb);
    like($status, qr/^NoNewPrivs:\t1$/m, "$engine: and gets none");
    like(prints("$exec touch /x"), qr/Read-only file system/, "$engine: its root is read-only");
    is(prints("$exec sh -c 'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null'"),
       6 * 2**30 . "\n", "$engine: its memory is bounded");
    is(prints("$engine inspect -f '{{.Config.StopTimeout}}' $container"), "160\n", "$engine: it has 160 s for its answers");
    is(prints("$exec sh -c 'ls -d /debs /src /var/lib/apt/lists/* 2>/dev/null'"), '', "$engine: it has nothing that only the making needed");
    like(prints("$exec ls /var/lib/nginx-vlm"), qr/./, "$engine: the store is written");
    like(prints("$exec ls /var/cache/nginx-vlm"), qr/^vlm-int8-/m, "$engine: the quantised cache is written");
}


# Clients that ask for a stream after the other, until one is refused.
sub starts_clients {
    my ($engine) = @_;
    my $body = '{"prompt":"A quick brown fox","max_tokens":700,"min_tokens":700,"stream":true}';

    prints("for client in \$(seq $CLIENTS); do (n=0; while curl -sSfN -m 600 $URL/v1/completions -d '$body' "
           . ">/said/$engine-\$client-\$((n += 1)); do :; done; : >/said/$engine-\$client-end) >/said/$engine-err 2>&1 & done");
    ok(VLM::wait_for(sub { (grep { -s "$root/said/$engine-$_-1" } 1 .. $CLIENTS) == $CLIENTS }),
       "$engine: $CLIENTS clients have streams");
}


# Its container was stopped: each stream that began has its end, some of them after the signal.
sub has_streams {
    my ($engine, $container) = @_;

    ok(VLM::wait_for(sub { (() = glob "$root/said/$engine-*-end") == $CLIENTS }), "$engine: no client is answered any more");
    my @cut = grep { !/"finish_reason": ?"length".*\[DONE\]\s*\z/s } map { VLM::slurp($_) } grep { -s } glob "$root/said/$engine-*-[0-9]*";
    is(scalar @cut, 0, "$engine: each stream has its end") or diag(map { substr $_, -300 } @cut);
    is(prints("$engine inspect -f '{{.State.ExitCode}}' $container"), "0\n", "$engine: nginx ends well");

    # Each line begins with its time.
    my @log = split /\n/, prints("$engine logs -t $container");
    my ($signal) = map { /^(\S+) / } grep { /signal 3 \(SIGQUIT\) received/ } @log;
    ok($signal, "$engine: it had SIGQUIT");
    ok((grep { m{^(\S+) .*"POST /v1/completions } && $1 gt $signal } @log), "$engine: and answered after it");
    is(join("\n", grep { /Permission denied|Read-only|\[(?:emerg|alert|crit|error)\]/ } @log), '', "$engine: it may write what it wants to write");
}


sub turns {
    my ($session) = @_;

    my $turns = eval { decode_json(prints("curl -s -m 60 $URL/api/history/$session")) } // [];

    return scalar @$turns;
}


# ---- podman -----------------------------------------------------------------------------------

make_archive('bookworm');
make_engines();
my $docker_words = bound_files();
start_machine();

runs('podman import -q build/roots/bookworm.tar docker.io/library/debian:bookworm-slim');
page('podman build -t nginx-vlm ');
page('podman run ');
answers('podman', 'nginx-vlm', 'kitchen');
starts_clients('podman');
runs('podman stop nginx-vlm');
has_streams('podman', 'nginx-vlm');

prints('docker-registry serve /etc/docker/registry/config.yml >/var/log/registryd.log 2>&1 &');
becomes("curl -sf http://$REGISTRY/v2/", 'the registry answers');
page('podman build -t REGISTRY/');
page('podman push REGISTRY/');


# ---- Docker, which closes the machine to podman's networks ------------------------------------

prints("dockerd $docker_words >/var/log/dockerd.log 2>&1 &");
becomes('docker info >/dev/null 2>&1', 'Docker answers');

runs("docker pull -q $REGISTRY/nginx-vlm:1");
is(prints("docker image inspect -f '{{.Id}}' $REGISTRY/nginx-vlm:1"), 'sha256:' . prints("podman image inspect -f '{{.Id}}' nginx-vlm"),
   'the registry has the image that podman has built');
like(prints("docker run --rm --memory 64m -v /models/MODEL:/model:ro $REGISTRY/nginx-vlm:1 -t"), qr/\[warn\].* the control group may use 64m/,
     'its nginx warns of a bound that is too small');

runs('docker import build/roots/bookworm.tar debian:bookworm-slim');
page('MODEL=');
answers('docker', 'nginx-vlm-vlm-1', 'kitchen');
becomes("docker inspect -f '{{.State.Health.Status}}' nginx-vlm-vlm-1 | grep -x healthy", 'docker: the container becomes healthy');
is(turns('kitchen'), 2, 'docker: the session has its turn');
starts_clients('docker');
runs('docker stop nginx-vlm-vlm-1');
has_streams('docker', 'nginx-vlm-vlm-1');
runs('docker compose -p nginx-vlm down');
page('MODEL=');
becomes("curl -sf -m 5 $URL/health/ready", 'docker: it starts again');
is(turns('kitchen'), 2, 'docker: with the session');

is(join("\n", grep { !$page{$_} } sort keys %page), '', 'all commands of the pages were run');

done_testing();
