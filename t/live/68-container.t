# Runs the container's nginx.conf as the container does: an ordinary user without rights, on a root
# that is read-only but for the volumes and /tmp.

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use VLM;
use Walls;

plan skip_all => 'a read-only root is made by root' if $> != 0;
plan skip_all => 'reports of sanitizers are outside of the walls' if $ENV{VLM_REPORTS};

my ($id) = VLM::slurp('conf/container/Containerfile') =~ /^USER (\d+):/m;
my $text = VLM::slurp('conf/container/nginx.conf');
my $s = VLM->new(name => 'container');
my $metrics = VLM::free_port();
my $dir = $s->dir;
my $at = Walls::build($s, [qw(tmp store cache)], '', '--reuid', $id, '--regid', $id, '--clear-groups',
                      '--bounding-set=-all', '--inh-caps=-all');

for ($text) {
    s{/tmp/}{$at->{dir}/tmp/}g;
    s{modules/ngx_http_vlm_module\.so}{$at->{module}};
    s{model  /model;}{model  $at->{root}/demo/model;};
    s{/var/lib/nginx-vlm}{$at->{dir}/store}g;
    s{/var/cache/nginx-vlm}{$at->{dir}/cache}g;
    s{listen 5001}{"listen 127.0.0.1:" . $s->port}e;
    s{listen 9113}{listen 127.0.0.1:$metrics};
    s{/usr/share/nginx-vlm/html}{$at->{root}/html};
}

$s->{conf} = "daemon off;\n$text";
VLM::spew("$dir/logs/$_", '') for qw(stderr.log error.log);
chown $id, $id, map { "$dir/$_" } qw(tmp store cache logs/stderr.log logs/error.log);

$s->start->ready;

my $status = VLM::slurp('/proc/' . $s->health->{heartbeat}{pid} . '/status');
like($status, qr/^Uid:\s+$id\s/m, 'the worker with the model is the user of the image');
like($status, qr/^CapBnd:\s+0+$/m, 'it has no rights');

my $picture = $s->upload('html/sample-1.png');
my $r = $s->chat('a', 'How many balls are there?', image => $picture);
is($r->{code}, 200, 'a question about a picture is answered') or diag($r->{body});
is($r->{json}{answer}, '2', 'and rightly');
ok(glob("$dir/store/*"), 'the session and the picture are in one volume');
is(scalar(my @cache = glob "$dir/cache/vlm-int8-*.bin"), 1, 'the quantised cache is in the other');
is($s->get('/page.css')->{code}, 200, 'the page is there');
like(VLM::Request->new($metrics, "GET /metrics HTTP/1.0\r\n\r\n")->end->{body}, qr/^vlm_ready 1$/m, 'metrics are at their port');
ok($s->stop('QUIT'), 'SIGQUIT ends it');

my $log = VLM::slurp("$dir/logs/stderr.log");
unlike($log, qr/Permission denied|Read-only|\[(?:emerg|alert|crit|error)\]/, 'nothing that nginx wanted to write was refused');
like($log, qr{GET /page\.css}, 'requests are in the log of the container');

done_testing();
