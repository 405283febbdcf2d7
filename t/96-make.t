# Tests the output of make: its targets, and its message about a port in use.

use strict;
use warnings;

use File::Path qw(remove_tree);
use IO::Socket::INET;
use Test::More;

# The variables of the make that runs these tests are removed.
delete @ENV{qw(MAKEFLAGS MFLAGS SAN ENGINE_BUILD)};

my $help = `make -s help`;
my ($phony) = do { local (@ARGV, $/) = 'Makefile'; <> } =~ /^\.PHONY: (.*?[^\\])\n/ms;
my %phony = map { $_ => 1 } split /[\s\\]+/, $phony;
my @listed = $help =~ /^make ([\w-]+) /mg;

is(join(' ', grep { !$phony{$_} } @listed), '', 'make help lists existing targets');
cmp_ok(scalar @listed, '>', 15, 'make help lists most targets');

my $taken = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', LocalPort => 0)
    or die "listen: $!";
my $port = $taken->sockport;
my $next = $port + 1;
my $said = `PORT=$port MODEL= conf/run.sh 2>&1`;

is($? >> 8, 1, 'make run on a port in use fails');
is($said, "make run: port $port is in use; \"make run PORT=$next\" takes another\n", 'with one line');

my $there = "build/install-$$";

is(system('make -s bench-programs >/dev/null 2>&1'), 0, 'the programs of make bench compile');
is(system("make -s install DESTDIR=$there >/dev/null 2>&1"), 0, 'make install succeeds');
ok(-s "$there/usr/$_", "make install has $_")
    for qw(lib/nginx/modules/ngx_http_vlm_module.so share/nginx-vlm/html/page.css
           share/doc/nginx-vlm/LICENSE share/doc/nginx-vlm/conf/minimal.conf);
remove_tree($there);

done_testing();
