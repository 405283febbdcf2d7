# Runs conf/minimal.conf with the walls of the drop-in for systemd: its capabilities, no new privileges,
# its system calls, and a root of which it may write what ReadWritePaths lists.  The reader of PDF files
# runs within them, too.

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use VLM;
use Walls;

plan skip_all => 'a read-only root is made by root' if $> != 0;
plan skip_all => 'reports of sanitizers are outside of the walls' if $ENV{VLM_REPORTS};

my %set = VLM::slurp('conf/systemd/nginx.service.d/vlm.conf') =~ /^(\w+)=(.+)$/mg;
my @paths = grep { s{^/}{root/} } split ' ', $set{ReadWritePaths};         # not those that may be missing
my $rights = join ',', '-all', map { '+' . lc s/^CAP_//r } split ' ', $set{CapabilityBoundingSet};

is($set{NoNewPrivileges}, 'yes', 'the drop-in allows no new privileges');
is($set{ProtectSystem}, 'strict', 'and a read-only root');

my $s = VLM->new(name => 'service');
my $dir = $s->dir;
my $at = Walls::build($s, \@paths, $set{SystemCallFilter}, "--bounding-set=$rights");
my $text = VLM::slurp('conf/minimal.conf');
my $temp = join ' ', map { "${_}_temp_path /var/lib/nginx/$_;" } qw(client_body proxy fastcgi uwsgi scgi);

# A kernel without Landlock needs the other sandbox.
my $sandbox = syscall(444, 0, 0, 1) > 0 ? 'landlock' : 'seccomp';
$text =~ s{(        store .*\n)}{$1        documents on helper=$at->{root}/build/vlm-pdf sandbox=$sandbox;\n};

die "make documents builds build/vlm-pdf\n" unless -x 'build/vlm-pdf';

# Debian's nginx has these places by itself.
$text = "daemon off;\npid /run/nginx.pid;\n" . $text =~ s/^http \{\n/http {\n    access_log \/var\/log\/nginx\/access.log;\n    $temp\n/mr;

for ($text) {
    s{(?<= )(/run|/var/(?:log|lib)/nginx)/}{$at->{dir}/root$1/}g;
    s{modules/ngx_http_vlm_module\.so}{$at->{module}};
    s{/models/RoboBrain2\.0-3B}{$at->{root}/demo/model};
    s{listen 127\.0\.0\.1:5001}{"listen 127.0.0.1:" . $s->port}e;
    s{/usr/share/nginx-vlm/html}{$at->{root}/html};
}

$s->{conf} = $text;
$s->start->ready;

my $worker = VLM::slurp('/proc/' . $s->health->{heartbeat}{pid} . '/status');
my $user = getpwnam 'www-data';

like($worker, qr/^Uid:\s+$user\s/m, 'the worker with the model is the user of nginx.conf');
like($worker, qr/^CapEff:\s+0+$/m, 'without a right');
my $master = VLM::slurp('/proc/' . $s->pid . '/status');
like($master, qr/^NoNewPrivs:\s+1$/m, 'the master can get no more rights');
like($master, qr/^Seccomp:\s+2$/m, 'and not make every call');

my $picture = $s->upload('html/sample-1.png');
my $r = $s->chat('a', 'How many balls are there?', image => $picture);
is($r->{code}, 200, 'a question about a picture is answered') or diag($r->{body});
is((stat "$dir/root/var/lib/nginx/vlm")[4], $user, 'the store is that user\'s');

my $pdf = VLM::slurp('t/documents/files/latin.pdf');
my $form = "--xxxx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n\r\n$pdf\r\n--xxxx--\r\n";
my $id = $s->begin('POST', '/api/documents', $form, { 'Content-Type' => 'multipart/form-data; boundary=xxxx' })->end->{json}{id};
my $state = '';

VLM::wait_for(sub { ($state = $s->get("/api/documents/$id")->{json}{state} || '') =~ /^(?:ready|failed)$/ });
is($state, 'ready', 'a PDF file is read');
is($s->get("/api/documents/$id/pages/1.png")->{code}, 200, 'and a page drawn');

$s->signal('HUP');
ok(VLM::wait_for(sub { VLM::slurp("$dir/root/var/log/nginx/error.log") =~ /reconfiguring/ }), 'it reloads');
$s->ready;
is($s->chat('b', 'How many balls are there?', image => $picture)->{code}, 200, 'and answers after it');
ok($s->stop('QUIT'), 'SIGQUIT ends it');

unlike(VLM::slurp("$dir/root/var/log/nginx/error.log"), qr/Permission denied|not permitted|Read-only|\[(?:emerg|alert|crit|error)\]/,
       'nothing that nginx wanted to do was refused');

done_testing();
