# Tests that the version is the same everywhere, and that a reload warns of a new
# module.

use strict;
use warnings;

use lib 't/lib';
use File::Basename qw(dirname);
use File::Copy qw(copy);
use Test::More;
use VLM;

my ($version) = VLM::slurp('engine/vlm.h') =~ /^#define VLM_VERSION "([^"]+)"/m;
my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || 'build/ngx_http_vlm_module.so';
my $vlm = dirname($module) . '/vlm';

like($version, qr/^\d+\.\d+\.\d+$/, 'engine/vlm.h has the version');
like(VLM::slurp('CHANGELOG.md'), qr/^# Changes\n.*?^## \Q$version\E$/ms, 'CHANGELOG.md has a section for it');
is((VLM::slurp('CHANGELOG.md') =~ /^## (\S+)$/m)[0], $version, 'the version is the first section of CHANGELOG.md');
like(VLM::slurp($_), qr/^# /, "there is $_") for 'CONTRIBUTING.md', 'SECURITY.md';
like(VLM::slurp('LICENSE'), qr/Redistribution and use in source and binary forms.*are\s+permitted/s, "LICENSE is as permissive as nginx's");
is(`$vlm --version`, "vlm $version\n", 'vlm --version prints the version');


my $s = VLM->new(name => 'version', server => 'location = /metrics { vlm_status live; }');
my $copy = $s->dir . '/module.so';

copy($module, $copy) or die "$copy: $!";
local $ENV{TEST_NGINX_LOAD_MODULES} = $copy;

$s->start->ready;

ok($s->log_has(qr/\[notice\] .*: nginx-vlm \Q$version\E$/m), 'the log has the version at a start');
is($s->health->{version}, $version, '/api/health has the version');
like($s->get('/metrics')->{body}, qr/^vlm_info\{[^}]*version="\Q$version\E"\} 1$/m, 'vlm_info has the version');

ok($s->reload, 'the server reloads with the same file');
unlike($s->log, qr/was replaced/, 'that reload logs no warning');

# "install" makes another file with the same name.
unlink $copy;
copy($module, $copy) or die "$copy: $!";

ok($s->reload, 'the server reloads with another file');
like($s->log, qr/\[warn\] .*"\Q$copy\E" was replaced after nginx had loaded it.*a restart takes the new file/,
     'warns that the old code goes on');

$s->check_log;
$s->stop;

done_testing();
