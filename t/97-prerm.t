# Runs the package's prerm on a configuration of the administrator's own: it names every directive
# that would keep nginx from starting without the module, and does not fail.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use File::Temp ();
use Test::More;
use VLM;

my $tmp = File::Temp->newdir;
my $dir = $tmp->dirname;
my $etc = "$dir/etc";
my $root = Cwd::getcwd();
my $module = $ENV{TEST_NGINX_LOAD_MODULES} || "$root/build/ngx_http_vlm_module.so";
my $script = VLM::slurp('conf/debian/libnginx-mod-http-vlm.prerm') =~ s{/etc/nginx}{$etc}gr =~ s/^#DEBHELPER#$//mr;

mkdir $_ or die "$_: $!" for $etc, map { "$etc/$_" } qw(sites-available sites-enabled modules-enabled more);
VLM::spew("$dir/prerm", $script);
chomp(my $nginx = $ENV{TEST_NGINX_BINARY} || `sh -c "command -v nginx"`);
VLM::spew("$dir/nginx", "#!/bin/sh\nPATH=$ENV{PATH} exec $nginx -p $dir/ -c $etc/nginx.conf -e stderr \"\$@\"\n");
chmod 0755, "$dir/nginx" or die;

my $LINK = "$etc/modules-enabled/50-mod-http-vlm.conf";

# Writes the configuration, and returns what prerm says at a removal, and its status.
sub removed {
    my ($action, $good) = @_;

    unlink glob "$etc/modules-enabled/* $etc/sites-enabled/*";
    VLM::spew("$dir/mod.conf", join '', map { "load_module $_;\n" } split ' ', $module);
    symlink "$dir/mod.conf", $LINK or die;
    symlink '../sites-available/vlm', "$etc/sites-enabled/vlm" or die;
    VLM::spew("$etc/sites-available/vlm", "server { listen unix:$dir/a.sock; }\n");
    VLM::spew("$dir/own.conf", "# vlm_engine in a comment\nlocation /api/ {\n    vlm_pass\trobot;\n}\n"
              . "location = /health { vlm_pass robot; } # vlm_pass other;\nadd_header X-Model \"a:\${vlm_engine}\";\nroot /; # \$vlm_none\n");
    VLM::spew("$etc/nginx.conf", <<"_EOC_" . ($good ? '' : "wrong;\n"));
include $etc/modules-enabled/*.conf;
pid $dir/pid;
error_log stderr;
thread_pool vlm threads=1;
events { }
http {
    access_log off;
    client_body_temp_path $dir/t1; proxy_temp_path $dir/t2; fastcgi_temp_path $dir/t3; uwsgi_temp_path $dir/t4; scgi_temp_path $dir/t5;
    include $etc/sites-enabled/*;
    vlm_engine robot {
        model $root/demo/model;
        store $dir/store;
    }
    server { listen unix:$dir/b.sock; include $dir/own.conf; }
}
_EOC_
    my $said = `PATH=$dir:\$PATH sh $dir/prerm $action 2>&1`;

    return ($said, $? >> 8);
}

my ($said, $status) = removed('remove', 1);
is($status, 0, 'the removal goes on');
like($said, qr/^The link \Q$etc\E\/sites-enabled\/vlm is removed/m, 'the site of the package is disabled');
like($said, qr/^nginx will neither start nor reload until these lines, which need the module, are removed:$/m, 'what is left is said');
like($said, qr/^\Q$etc\E\/nginx\.conf:10: vlm_engine robot \{$/m, 'with file and line');
like($said, qr/^\Q$dir\E\/own\.conf:3: vlm_pass\trobot;$/m, 'that of an included file elsewhere, too');
like($said, qr/^\Q$dir\E\/own\.conf:5: location = \/health \{ vlm_pass robot; \}/m, 'one behind another on its line');
like($said, qr/^\Q$dir\E\/own\.conf:6: add_header X-Model "a:\$\{vlm_engine\}";$/m, 'and a variable');
unlike($said, qr/none|comment|load_module/, "but no comment, nor what the package's own link loads");
ok(!-l $LINK && -l "$LINK.removed", 'the link of the module is put aside');

($said, $status) = removed('remove', 0);
is($status, 0, 'a configuration that nginx refuses: the removal goes on');
like($said, qr/^\Q$etc\E\/nginx\.conf:10: vlm_engine robot \{$/m, 'the files below /etc/nginx are searched');

($said, $status) = removed('upgrade', 1);
is("$status $said", '0 ', 'an upgrade says nothing');
ok(-l $LINK, 'and the module stays');

done_testing();
