# Tests the section "The error log" of docs/metrics.md: the messages at each level of
# error_log, by one server with a log of each level.

use strict;
use warnings;

use lib 't/lib';
use Fcntl qw(:flock);
use Test::More;
use VLM;

my $s = VLM->new(name => 'log', engine => 'queue 2 timeout=100ms;');
my %level = map { $_ => $s->dir . "/logs/$_" } qw(error warn notice info);

$s->{main} = join "\n", map { "error_log $level{$_} $_;" } sort keys %level;

# The model is not loaded while this test holds the lock.
mkdir $s->dir . '/store';
open my $lock, '>', $s->dir . '/store/live.lock' or die "live.lock: $!";
flock $lock, LOCK_EX or die "live.lock: $!";

$s->start;

is($s->chat('a', 'hi')->{code}, 503, 'a question waits for too long');
is($s->post('/api/chat', {})->{code}, 400, 'another request is invalid');

close $lock;
$s->ready;

ok($s->log_has(qr/model loaded/), 'the model is loaded');

my %lines = (
    'refused, queue_timeout: ' => 'warn',
    'nginx-vlm \d+\.\d+\.\d+'  => 'notice',
    'model loaded'             => 'notice',
    'refused, input: '         => 'info',
);
my @levels = qw(error warn notice info);

for my $line (sort keys %lines) {
    my ($first) = grep { VLM::slurp($level{$_}) =~ /$line/ } @levels;

    is($first, $lines{$line}, "\"$line\" is there from level $lines{$line} on");
}

is(scalar(() = $s->log =~ /refused, queue_timeout: /g), 1, 'a refusal is one line');


# ---- the page's table of refusals ---------------------------------------------

my %page = VLM::slurp('docs/metrics.md') =~ /^\| `(\w+)` \| \d.*? \| `(warn|info|error)` \|$/mg;
my ($names) = VLM::slurp('http/life/metrics.c') =~ /ngx_http_vlm_refusal_names\[\] = \{\s*"none",(.*?)\};/s;
my ($info) = VLM::slurp('http/life/metrics.c') =~ /level = \((.*?)\)\s*\? NGX_LOG_INFO : NGX_LOG_WARN/s;

is(join(' ', sort keys %page), join(' ', sort $names =~ /"(\w+)"/g), 'the page has each reason');
is(join(' ', grep { $page{$_} eq 'info' } sort keys %page),
   join(' ', sort map { lc } $info =~ /NGX_HTTP_VLM_(\w+)/g), 'each reason of level info has that level in the code');

$s->check_log;
$s->stop;

done_testing();
