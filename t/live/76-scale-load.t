# Tests a front and three nodes that share a Redis under load for some seconds, by t/scale: a node is
# killed and started, another drained, removed and added, and where nodes can have networks of their own
# the third is cut off for a while; no request is lost, and each session has its questions once and in
# order.

use strict;
use warnings;

use Test::More;

sub load {
    my ($done, @options) = @_;

    my $said = `t/scale --seconds 6 --redis @options 2>&1`;

    is($?, 0, "t/scale @options is content") or diag($said);
    like($said, qr/^\Q$done\E$/m, 'all was done to nodes');
    like($said, qr/^[1-9]\d* answered in /m, 'requests were answered');
    like($said, qr/ [1-9]\d* sessions in order$/m, 'sessions were compared');
    like($said, qr/^disordered 0\nlost 0$/m, 'none was lost');
}

my $done = 'killed 1, started 1, drained 1, stopped 1, removed 1, added 1';

load($done);

SKIP: {
    my $why = `unshare --net ip link add a type veth peer name b 2>&1`;

    skip "no network of its own: $why", 5 if $? != 0;
    load("$done, cut off 1, rejoined 1", '--networks');
}

done_testing();
