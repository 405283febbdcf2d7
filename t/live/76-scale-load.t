# Tests a front and three nodes that share a Redis under load for some seconds, by t/scale: a node is
# killed and started, another drained, removed and added; no request is lost, and each session has its
# questions once and in order.

use strict;
use warnings;

use Test::More;

my $said = `t/scale --seconds 6 --redis 2>&1`;

is($?, 0, 't/scale is content') or diag($said);
like($said, qr/^killed 1, started 1, drained 1, stopped 1, removed 1, added 1$/m, 'all was done to nodes');
like($said, qr/^[1-9]\d* answered in /m, 'requests were answered');
like($said, qr/ [1-9]\d* sessions in order$/m, 'sessions were compared');
like($said, qr/^disordered 0\nlost 0$/m, 'none was lost');

done_testing();
