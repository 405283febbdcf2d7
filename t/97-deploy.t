# Tests what cannot run in every place: the container's recipe, the compose file, and the drop-in for
# systemd.  t/live/68-container.t runs the container's nginx.conf.

use strict;
use warnings;

use lib 't/lib';
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use JSON::PP qw(decode_json);
use Test::More;
use VLM;

delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)};       # of a make that runs the tests

my $TOP = tempdir(CLEANUP => 1);
my $control = VLM::slurp('conf/debian/control');
my %ours = map { $_ => 1 } $control =~ /^Package: (\S+)/mg;


# ---- the files of the packages -----------------------------------------------

# Words of the lists in conf/debian, which end with one of these.
sub packaged {
    my ($kind) = @_;

    return map { split } map { VLM::slurp($_) } glob "conf/debian/*.$kind";
}

my %packaged = map { $_ => 1 } packaged('docs'), packaged('examples');

is(join(' ', grep { !$packaged{$_} } 'README.md', glob 'docs/*.md'), '', 'each page of docs/ is in a package');

# conf/debian makes the packages, and conf/container is for a checkout.
is(join(' ', grep { !$packaged{$_} && !m{^conf/(?:debian|container|systemd)$} } glob('conf/*.conf'), grep { -d } glob 'conf/*'), '',
   'each example configuration is in a package');
ok($packaged{$_}, "$_ is in a package") for glob 'conf/systemd/*/*';
is(join(' ', grep { !-e } sort keys %packaged), '', 'the packages list no file that is gone');

{
    my ($location) = VLM::slurp('conf/minimal.conf') =~ /^ *(location ~ .*)/m;

    ok(index(VLM::slurp($_), $location // die) > 0, "$_ serves the paths of conf/minimal.conf")
        for qw(conf/debian/sites-available/vlm conf/container/nginx.conf);
}


# ---- the Containerfile -------------------------------------------------------

my $recipe = VLM::slurp('conf/container/Containerfile');
my (@steps, %stage, $user, $stop, @volumes, @exposed);

(my $joined = $recipe) =~ s/^#.*\n//mg;
$joined =~ s/\\\n\s*/ /g;

for my $line (grep { /\S/ } split /\n/, $joined) {
    my ($word, $rest) = $line =~ /^([A-Z]+) (.*)/ or fail("an instruction: $line"), next;

    push @steps, [$word, $rest];
}

is(join(' ', grep { !/^(?:FROM|RUN|COPY|WORKDIR|VOLUME|EXPOSE|USER|STOPSIGNAL|ENTRYPOINT)$/ } map { $_->[0] } @steps), '',
   'the recipe has instructions of both podman and docker');

# The files of the context, without those of .dockerignore.
my @ignored = grep { /^[^#!]/ } split /\n/, VLM::slurp('.dockerignore');
my @kept = map { /^!(.*)/ } split /\n/, VLM::slurp('.dockerignore');
my @copied;

for (@steps) {
    my ($word, $rest) = @$_;

    if ($word eq 'FROM') {
        like($rest, qr{^docker\.io/library/debian:bookworm-slim( AS \w+)?$}, 'an image is Debian 12, with its registry');
        $stage{$1} = 1 if $rest =~ / AS (\w+)/;

    } elsif ($word eq 'COPY' && $rest =~ s/^--from=(\w+) //) {
        ok($stage{$1}, "COPY --from=$1 names a stage before it");
        like($rest, qr{^/src/build/deb/\*\.deb }, 'which has the packages where make deb leaves them');

    } elsif ($word eq 'COPY') {
        my @from = split ' ', $rest;
        my $to = pop @from;

        for my $file (@from) {
            ok(-e $file, "COPY's source $file is there");
            ok(!(grep { $file eq $_ || index($file, "$_/") == 0 } @ignored) || grep({ $file eq $_ } @kept),
               "and .dockerignore keeps it: $file");
            push @copied, $file if $to =~ m{^(?:\./|\w+/|t/deps)$};
        }

    } elsif ($word eq 'RUN') {
        VLM::spew("$TOP/run.sh", $rest);
        is(`sh -n $TOP/run.sh 2>&1`, '', 'a shell can read the line') or diag($rest);

        if (my ($list) = $rest =~ /apt-get install -y --no-install-recommends (.*?)(?: &&|$)/) {
            for my $package (split ' ', $list) {
                if ($package =~ m{^/debs/([\w-]+)_\*\.deb$}) {
                    ok($ours{$1}, "make deb builds $1");
                } else {
                    is(scalar(grep { $_ eq $package } split ' ', `apt-cache pkgnames $package`), 1, "Debian has $package");
                }
            }
        }

        is(`make -n -f Makefile DEPS=true $1 2>&1 >/dev/null`, '', "make has the target $1") if $rest =~ /^make (\w+)$/;
    }

    $user = $rest if $word eq 'USER';
    $stop = $rest if $word eq 'STOPSIGNAL';
    push @volumes, @{decode_json($rest)} if $word eq 'VOLUME';
    push @exposed, $rest if $word eq 'EXPOSE';
    is(join(' ', @{decode_json($rest)}), 'nginx -e stderr -g daemon off;', 'nginx runs in the foreground, as process 1')
        if $word eq 'ENTRYPOINT';
}

like($user, qr/^[1-9]\d*:[1-9]\d*$/, 'the last user is not root, and a number, so that Kubernetes can tell');

my ($packed) = VLM::slurp('conf/debian/build.sh') =~ /^tar -c --exclude=\S+ (.*?) \| tar/ms;
is(join(' ', sort grep { $_ ne 't/deps' } @copied), join(' ', sort split ' ', $packed =~ s/\\\n//r),
   'the image is built from the files that the packages are built from');


# ---- the configuration of the container ---------------------------------------

my $conf = VLM::slurp('conf/container/nginx.conf');

like($conf, qr/^        listen (\d+);/m, 'it listens on a port');
is("@exposed", $conf =~ /^        listen (\d+);/m ? $1 : '', 'which the image exposes');
is(join(' ', sort @volumes), join(' ', sort $conf =~ /^        (?:store|cache)  (\S+);/mg), 'the volumes are its store and its cache');
is(join(' ', grep { !m{^(?:/tmp|/dev/stdout)} } $conf =~ /^(?:pid|.*_temp_path|        socket|    access_log) +(\S+?)(?: .*)?;/mg), '',
   'it writes elsewhere into /tmp alone');


# ---- the compose file ----------------------------------------------------------

# t/clients compares it with the specification.
my $yaml = `python3 -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' <conf/container/compose.yaml`;
my $compose = $yaml ? decode_json($yaml) : {};
my $vlm = $compose->{services}{vlm} || {};

is(join(' ', sort keys %$compose), 'name services volumes', 'compose.yaml is YAML with the parts of a compose file');
is($vlm->{user}, $user, 'the user is that of the image');
ok($vlm->{read_only}, 'the root is read-only');
is("@{$vlm->{cap_drop}} @{$vlm->{security_opt}}", 'ALL no-new-privileges:true', 'there are no rights');
is($vlm->{stop_signal}, $stop, 'it is stopped as the image says');
is(join(' ', @{$vlm->{ports}}), "127.0.0.1:5001:@exposed", 'the port is open on this machine alone');
is("$vlm->{build}{context}/$vlm->{build}{dockerfile}", '../../conf/container/Containerfile', 'it builds the recipe');
ok(-e "conf/container/$vlm->{build}{context}/$vlm->{build}{dockerfile}", 'which is there');

# t/install/containers.t runs podman and Docker, by hand; the files of docs/install.md's commands are there, and know their
# variables.
my $page = VLM::slurp('docs/install.md');
my @named = $page =~ /^podman build .* -f (\S+) \.$/m;
my ($variables, $file) = $page =~ /^((?:[A-Z]+=\S+ )+)docker compose -f (\S+) up -d$/m;

is("@named $file", 'conf/container/Containerfile conf/container/compose.yaml', 'the commands of docs/install.md name these files');
like(VLM::slurp('conf/container/compose.yaml'), qr/\$\{$_:/, "compose.yaml knows $_") for $variables =~ /(\w+)=/g;

my %mount = map { /^(.+):(\/[\w\/-]+)(:ro)?$/ ? ($2 => [$1, $3 ? 'ro' : 'rw']) : () } @{$vlm->{volumes}};

is(join(' ', sort keys %mount), join(' ', sort '/model', @volumes), 'the mounts are the model and the volumes');
is($mount{'/model'}[1], 'ro', 'the model is read-only');
ok(exists $compose->{volumes}{$mount{$_}[0]}, "the volume of $_ is declared") for @volumes;
like("@{$vlm->{tmpfs}}", qr{^/tmp:size=\d+m,}, '/tmp is memory, with a bound');
like($vlm->{healthcheck}{test}[-1], qr{GET /api/health/ready }, 'the health check is the readiness probe');

my ($shutdown) = $conf =~ /worker_shutdown_timeout (\d+)s;/;
my ($answer) = VLM::slurp('docs/directives.md') =~ /^### timeout\n.*?Default: +timeout (\d+)s;/ms;

cmp_ok($shutdown, '>', $answer, 'an answer may end after a stop');
cmp_ok($vlm->{stop_grace_period} =~ /^(\d+)s$/ ? $1 : 0, '>', $shutdown, 'and nginx after that');

VLM::spew("$TOP/health.sh", $vlm->{healthcheck}{test}[-1]);
is(`bash -n $TOP/health.sh 2>&1`, '', 'bash can read the health check');


# ---- the drop-in for systemd ----------------------------------------------------

my $dropin = 'conf/systemd/nginx.service.d/vlm.conf';

make_path("$TOP/units/nginx.service.d");
copy($_, "$TOP/units/nginx.service") && last for grep { -e } map { "$_/nginx.service" } qw(/lib/systemd/system /usr/lib/systemd/system);
copy($dropin, "$TOP/units/nginx.service.d/vlm.conf") or die "$dropin: $!\n";

sub verified {
    return scalar `SYSTEMD_UNIT_PATH=$TOP/units: systemd-analyze verify --man=no $TOP/units/nginx.service 2>&1`;
}

is(verified(), '', 'systemd-analyze takes nginx.service with the drop-in');
VLM::spew("$TOP/units/nginx.service.d/vlm.conf", VLM::slurp($dropin) =~ s/^LimitNOFILE=.*/LimitNoFiles=many/mr);
like(verified(), qr/LimitNoFiles/, 'and would say if it did not');

my %set = VLM::slurp($dropin) =~ /^(\w+)=(.+)$/mg;
my ($retry) = $set{ExecStop} =~ m{^-/sbin/start-stop-daemon .* --retry QUIT/(\d+) };
my ($queue) = VLM::slurp('conf/full.conf') =~ /queue +\d+ timeout=(\d+)s/;

cmp_ok($retry, '>=', $answer + $queue, 'nginx has the time to answer the requests that wait');
cmp_ok($set{TimeoutStopSec}, '>', $retry, 'before systemd ends it');
is(join(' ', grep { exists $set{$_} } qw(PrivateDevices DevicePolicy MemoryDenyWriteExecute LimitMEMLOCK)), '',
   'it has nothing that a GPU would miss');

done_testing();
