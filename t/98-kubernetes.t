# Tests conf/kubernetes: each name, port, path, volume and metric that a file has is one of the other
# files, of the container or of the server.  t/clients compares the files with Kubernetes' schemas.

use strict;
use warnings;

use lib 't/lib';
use File::Basename qw(basename);
use JSON::PP qw(decode_json);
use Test::More;
use VLM;

my %file = map {
    my $json = `python3 -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' <$_`;
    basename($_, '.yaml') => decode_json($json || '{}');
} glob 'conf/kubernetes/*.yaml';

is(join(' ', sort keys %file), 'deployment horizontalpodautoscaler model poddisruptionbudget service servicemonitor',
   'the list of files');

my %api = (Deployment => 'apps/v1', HorizontalPodAutoscaler => 'autoscaling/v2', PersistentVolumeClaim => 'v1',
           PodDisruptionBudget => 'policy/v1', Service => 'v1', ServiceMonitor => 'monitoring.coreos.com/v1');

for my $name (sort keys %file) {
    my $f = $file{$name};

    is($f->{apiVersion}, $api{$f->{kind} || ''}, "$name: a kind with its version");
    like($f->{metadata}{name}, qr/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, "$name: it has a name");
    is(join(' ', grep { !/^(?:apiVersion|kind|metadata|spec)$/ } keys %$f), '', "$name: it has nothing else");
}

my $spec = $file{deployment}{spec};
my $pod = $spec->{template}{spec};
my ($container) = @{ $pod->{containers} };
my $image = VLM::slurp('conf/container/Containerfile');
my $conf = VLM::slurp('conf/container/nginx.conf');

# Returns a list of label=value.
sub labels { join ' ', map { "$_=$_[0]{$_}" } sort keys %{$_[0]} }


# ---- labels and names -------------------------------------------------------------------

my $labels = labels($spec->{template}{metadata}{labels});

cmp_ok(length $labels, '>', 0, 'pods have labels');
is(labels($spec->{selector}{matchLabels}), $labels, 'the deployment finds its pods');
is(labels($file{service}{spec}{selector}), $labels, 'the service finds them');
is(labels($file{poddisruptionbudget}{spec}{selector}{matchLabels}), $labels, 'the budget counts them');
is(labels($pod->{topologySpreadConstraints}[0]{labelSelector}{matchLabels}), $labels, 'they are spread over machines');
is(labels($file{servicemonitor}{spec}{selector}{matchLabels}), labels($file{service}{metadata}{labels}),
   'the monitor finds the service');

my $target = $file{horizontalpodautoscaler}{spec}{scaleTargetRef};
is("$target->{apiVersion} $target->{kind} $target->{name}",
   "$file{deployment}{apiVersion} $file{deployment}{kind} $file{deployment}{metadata}{name}", 'the autoscaler changes the deployment');


# ---- ports, paths, metrics -----------------------------------------------------------------

my %port = map { $_->{name} => $_->{containerPort} } @{ $container->{ports} };
my %service = map { $_->{name} => $_->{targetPort} } @{ $file{service}{spec}{ports} };
my ($routes) = VLM::slurp('http/api/route.c');
my ($passed) = $conf =~ /location ~ (\S+) \{/;
my ($monitor) = @{ $file{servicemonitor}{spec}{endpoints} };

is(join(' ', sort { $a <=> $b } values %port), join(' ', sort { $a <=> $b } $conf =~ /^        listen (\d+);/mg), 'the ports are those of nginx.conf');
is(join(' ', map { $service{$_} } sort keys %service), join(' ', sort keys %port), 'the service has them by their names');
ok($service{$monitor->{port}}, 'the monitor names a port of the service');
like($conf, qr/listen $port{$monitor->{port}};[^}]*location = \Q$monitor->{path}\E \{\s+vlm_status \w+ from=any;/, 'which has the metrics, for other machines');

for my $probe (qw(livenessProbe readinessProbe)) {
    my $get = $container->{$probe}{httpGet};

    like($get->{path}, qr/$passed/, "$probe: nginx.conf passes $get->{path} to the module");
    ok(index($routes, qq("$get->{path}")) > 0, 'which answers it');
    is($get->{port}, 'http', 'at its port');
}

my ($metric) = @{ $file{horizontalpodautoscaler}{spec}{metrics} };
my $name = $metric->{pods}{metric}{name};

ok(index(VLM::slurp('http/status/status.c'), qq("$name")) > 0, "the server prints $name");
like(VLM::slurp('conf/kubernetes/horizontalpodautoscaler.yaml'), qr/seriesQuery: '$name\{/, 'the adapter\'s rule is for it');
is($metric->{pods}{target}{averageValue}, (VLM::slurp('docs/directives.md') =~ /^### slots\n.*?Default: +slots (\d+);/ms)[0],
   'a queue is as long as there are slots');
cmp_ok($file{horizontalpodautoscaler}{spec}{minReplicas}, '>=', $spec->{replicas}, 'the autoscaler takes no pod of the deployment');
cmp_ok($file{horizontalpodautoscaler}{spec}{maxReplicas}, '>', $spec->{replicas}, 'and may add some');
cmp_ok($file{poddisruptionbudget}{spec}{maxUnavailable}, '<', $spec->{replicas}, 'a drain leaves a pod');


# ---- rights and volumes -----------------------------------------------------------------------

my ($user, $group) = $image =~ /^USER (\d+):(\d+)/m;
my $rights = $container->{securityContext};

is("$pod->{securityContext}{runAsUser} $pod->{securityContext}{runAsGroup} $pod->{securityContext}{fsGroup}", "$user $group $group",
   'the user is that of the image');
ok($pod->{securityContext}{runAsNonRoot}, 'not root');
ok($rights->{readOnlyRootFilesystem}, 'the root is read-only');
ok(exists $rights->{allowPrivilegeEscalation} && !$rights->{allowPrivilegeEscalation}, 'no more rights can be had');
is("@{ $rights->{capabilities}{drop} }", 'ALL', 'there are none');

my %mount = map { $_->{mountPath} => $_ } @{ $container->{volumeMounts} };
my %volume = map { $_->{name} => $_ } @{ $pod->{volumes} };
my ($written) = $image =~ /^VOLUME (.*)/m;

is(join(' ', sort keys %mount), join(' ', sort '/model', '/tmp', @{ decode_json($written) }), 'the mounts are the model, the volumes of the image, and /tmp');
is(join(' ', sort map { $_->{name} } values %mount), join(' ', sort keys %volume), 'each volume is mounted');
ok($mount{'/model'}{readOnly}, 'the model is read-only');
is($volume{model}{persistentVolumeClaim}{claimName}, $file{model}{metadata}{name}, 'and on the claim of model.yaml');
like($volume{$_}{emptyDir}{sizeLimit}, qr/^\d+[MG]i$/, "$_ has a limit") for qw(store cache tmp);

my ($max) = VLM::slurp('docs/directives.md') =~ /^### store\n.*?Default: +store vlm max=(\d+)g;/ms;
cmp_ok(($volume{store}{emptyDir}{sizeLimit} =~ /^(\d+)Gi$/)[0], '>', $max, 'the store\'s limit is more than its max=');


# ---- a stop ------------------------------------------------------------------------------------------

my ($shutdown) = $conf =~ /worker_shutdown_timeout (\d+)s;/;
my ($sleep) = $container->{lifecycle}{preStop}{exec}{command}[1];

cmp_ok($pod->{terminationGracePeriodSeconds}, '>', $shutdown + $sleep, 'answers may end before a pod is killed');
cmp_ok($sleep, '>=', $container->{readinessProbe}{periodSeconds}, 'a pod that ends is known to be gone before');

done_testing();
