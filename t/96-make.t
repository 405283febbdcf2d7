# What make says to a person: its targets, and a port that is taken.

use strict;
use warnings;

use IO::Socket::INET;
use Test::More;

my $help = `make -s help`;
my ($phony) = do { local (@ARGV, $/) = 'Makefile'; <> } =~ /^\.PHONY: (.*?[^\\])\n/ms;
my %phony = map { $_ => 1 } split /[\s\\]+/, $phony;
my @listed = $help =~ /^make ([\w-]+) /mg;

is(join(' ', grep { !$phony{$_} } @listed), '', 'make help lists targets that there are');
cmp_ok(scalar @listed, '>', 15, 'and not few');

my $taken = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', LocalPort => 0)
    or die "listen: $!";
my $port = $taken->sockport;
my $next = $port + 1;
my $said = `PORT=$port MODEL= conf/run.sh 2>&1`;

is($? >> 8, 1, 'make run on a port that is taken fails');
is($said, "make run: port $port is in use; \"make run PORT=$next\" takes another\n", 'with one line');

done_testing();
