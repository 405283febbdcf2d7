# Where the module looks for vlm-pdf, the reader of documents: beside itself, then where `make install`
# and the packages put it.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use File::Copy ();
use File::Path ();
use Test::More;
use VLM;

my $root = Cwd::getcwd();
my $installed = '/usr/libexec/nginx-vlm';

die "make documents builds $root/build/vlm-pdf\n" unless -x "$root/build/vlm-pdf";

# A kernel without Landlock needs the other sandbox.
my $sandbox = syscall(444, 0, 0, 1) > 0 ? '' : 'sandbox=seccomp';

# A module in a directory of its own.
my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || "$root/build/ngx_http_vlm_module.so";
my $dir = "$VLM::LIVE/helper-module";

File::Path::make_path($dir);
File::Copy::copy($module, $dir) or die "$module: $!";
$ENV{TEST_NGINX_LOAD_MODULES} = "$dir/ngx_http_vlm_module.so";

# A /usr/libexec that the server alone sees, made by root or by root of a user namespace.
sub libexec {
    my ($script) = @_;
    my @root = $> == 0 ? () : '--map-root-user';
    my $self = $> == 0 ? '' : "unshare --map-user=$> --map-group=" . (split ' ', $))[0];

    return ('unshare', '--mount', @root, 'sh', '-ec',
            "mount -t tmpfs none /usr/libexec; $script; exec $self \"\$@\"", 'sh');
}

sub server {
    my ($name, $script, $more) = @_;

    return VLM->new(name => $name, under => [libexec($script)], engine => "documents on $sandbox $more; thinking off;");
}

like(server('helper-none', ':', '')->check_conf,
     qr{documents needs vlm-pdf, but neither "\Q$dir\E/vlm-pdf" nor "$installed/vlm-pdf" can be run: "make documents" builds it, helper=path says where it is \(2: No such file},
     'nginx -t names the paths that it tried');

like(server('helper-mode', "mkdir $installed; echo >$installed/vlm-pdf", '')->check_conf,
     qr{nor "$installed/vlm-pdf" can be run: .* \(13: Permission denied},
     'a file that cannot be run is not the same as none');

like(server('helper-given', "mkdir $installed; cp $root/build/vlm-pdf $installed", 'helper=/nowhere/vlm-pdf')->check_conf,
     qr{"/nowhere/vlm-pdf" cannot be run, which reads the documents: .* \(2: No such file},
     'one that is named is not looked for elsewhere');

# The model serves without it, and it is found once it is there.
{
    my $later = Cwd::getcwd() . '/build/live/helper-later-pdf';

    unlink $later;

    my $s = server('helper-later', ':', "helper=$later")->start->ready;
    is($s->chat('c', 'Where is the cup?')->{code}, 200, 'the model answers without vlm-pdf');

    is($s->health->{documents}{reason}, "$later cannot be run", 'health says why it reads no documents');

    my $read = sub {
        my $id = $s->begin('POST', '/api/documents',
                           "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n\r\n"
                           . VLM::slurp('t/documents/files/latin.pdf') . "% $_[0]\r\n--x--\r\n",
                           { 'Content-Type' => 'multipart/form-data; boundary=x' })->end->{json}{id};
        my $doc;

        VLM::wait_for(sub { ($doc = $s->get("/api/documents/$id")->{json})->{state} =~ /^(?:ready|failed)$/ });
        return $doc;
    };

    is($read->(1)->{state}, 'failed', 'a document is not read');
    like($s->log, qr{\[error\].* document \S+: $later cannot be run: No such file}, 'the log says why');
    system('cp', "$root/build/vlm-pdf", $later) == 0 or die "cp: $?";
    is($read->(2)->{state}, 'ready', 'the next one is');
    ok(VLM::wait_for(sub { !$s->health->{documents}{reason} }), 'and health has no reason any more');
    ok($s->stop, 'the server ends');
}

my $s = server('helper-installed', "mkdir $installed; cp $root/build/vlm-pdf $installed", '')->start->ready;
my $pdf = VLM::slurp('t/documents/files/latin.pdf');
my $r = $s->begin('POST', '/api/documents',
                  "--xxxx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n\r\n$pdf\r\n--xxxx--\r\n",
                  { 'Content-Type' => 'multipart/form-data; boundary=xxxx' })->end;

is($r->{code}, 202, 'the installed program is found without helper=');
ok(VLM::wait_for(sub { $s->get("/api/documents/$r->{json}{id}")->{json}{state} eq 'ready' }), 'and reads documents');

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
