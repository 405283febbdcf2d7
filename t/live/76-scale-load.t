# Tests a front and three nodes under load for some seconds, with and without a Redis, by t/scale: a node is
# killed and started, another drained, removed and added, and where nodes can have networks of their own
# the third is cut off for a while; no request is lost, and each session has its questions once and in
# order.  t/scale is not content with a request that is lost, by records of such and by one that the front
# loses.

use strict;
use warnings;

use lib 't/lib';
use Lost;
use Test::More;
use VLM;

# ---- which requests are lost --------------------------------------------------------

# A question that node 1, killed from 10 s to 11 s, had from 9 s on; the client knows at 12 s.
my %question = (tag => 'a', keyed => 0, begun => 9, at => 12, code => 502, whole => 1,
                body => '{"error":"The node ended during this request"}');
my @ends = ({ node => 1, from => 10, gone => 11 }, { node => 3, from => 90, gone => 91 });

sub is_lost {
    my ($lost, $name, $node, %more) = @_;

    is(scalar Lost::among([{ %question, %more }], { a => $node }, \@ends, 6), $lost, $name);
}

is_lost(0, 'a question that was with a node when this was killed, without a key, is cut', 1);
is_lost(0, 'so is a stream without its end', 1, code => 200, whole => 0, body => 'data: {}');
is_lost(0, 'and one that the front gave up later', 1, at => 40);
is_lost(0, 'and one of another node that ended', 3, begun => 89, at => 115);

is_lost(1, 'one with a key is lost', 1, keyed => 1);
is_lost(1, 'so is one of a node that lives', 2);
is_lost(1, 'and of one that ends at another time', 3);
is_lost(1, 'and one that no node had', undef);
is_lost(1, 'and one that failed before the kill', 1, at => 9.5);
is_lost(1, 'and one that began after it', 1, begun => 11.5);
is_lost(1, 'and one with another answer', 1, code => 500, body => '{"error":"it failed"}');
is_lost(1, 'and a 502 that is not the front\'s', 1, body => '{"error":"Bad Gateway"}');
is_lost(1, 'and a refusal', 1, code => 503);
is_lost(1, 'and one without any answer', 1, code => 0, whole => 0, body => '');
is_lost(1, 'and a wrong answer that is whole', 1, code => 200, body => '{}');
is(scalar Lost::among([map { { %question } } 1 .. 8], { a => 1 }, \@ends, 6), 2, 'a kill cuts no more than one of each client');


# ---- under load ---------------------------------------------------------------------

sub is_content {
    my ($name, $said, $done) = @_;

    is($?, 0, "$name is content") or diag($said);
    like($said, qr/^\Q$done\E(?:$|,)/m, 'all was done to nodes');
    like($said, qr/^[1-9]\d* answered in /m, 'requests were answered');
    like($said, qr/ [1-9]\d* sessions in order$/m, 'sessions were compared');
    like($said, qr/^disordered 0\nlost 0$/m, 'none was lost');
}

my $done = 'killed 1, started 1, drained 1, stopped 1, removed 1, added 1';

my $said = `t/scale --seconds 2 --nodes 1 --talks 2 --fault 2>&1`;

is($? >> 8, 1, 't/scale is not content with a lost question') or diag($said);
like($said, qr/^\{.*"tag":"c2-1-\d+-1".*\}\ndisordered 0\nlost 1$/m, 'which it names and counts');

# The make that runs this test may build for a sanitizer.
is_content('make scale', scalar `env -u MAKEFLAGS -u SAN -u ENGINE_BUILD make -s scale SECONDS=6 2>&1`, $done);

my $why = `unshare --net ip link add name a type veth peer name b 2>&1`;
my $alone = $? == 0;

is_content('with a Redis', $said = `t/scale --seconds 6 --redis ${\ ($alone ? '--networks' : '')} 2>&1`, $done);

SKIP: {
    skip "no network of its own: $why", 1 if !$alone;
    like($said, qr/, cut off 1, rejoined 1$/m, 'one was cut off');
}


# ---- the table ----------------------------------------------------------------------

# Of one second each, so that its figures say nothing.
my ($head, @rows) = split /\n/, $said = `t/scale --measure --seconds 1 2>&1`;
my @want = VLM::slurp('docs/scale.md') =~ /^\Q$head\E\n(?:\|[-:|]+\|\n)(\|.*\n)(\|.*\n)(\|.*\n)(\|.*\n)(\|.*\n)/m;

is($?, 0, 't/scale --measure prints a table') or diag($said);
cmp_ok(scalar @want, '>', 0, 'whose columns are those of docs/scale.md');
is(join("\n", map { tr/ //sr =~ /^(\| \d \|[^|]*)\| [\d.]+ \| \d+ \| [\d.]+, [\d.]+ \| [\d.]+ \| \d+ % \| \d+ % \|$/ } @rows),
   join("\n", map { /^(\| \d \|[^|]*)\|/ } @want), 'and its rows');

done_testing();
