# Tests a node that is off the network, and not dead: conf/scale-out.conf before three nodes with networks of
# their own, which share a Redis.  The front passes the node over, sends its question with a key to another,
# no session loses a turn or its order, and the node serves again when it is back.

use strict;
use warnings;

use lib 't/lib';
use Fleet;
use JSON::PP ();
use Test::More;
use VLM;

my $why = Fleet::alone();
plan skip_all => $why if $why;

my $f = Fleet->new(name => 'scale-cut', redis => 1, networks => 1, fail_timeout => '1s',
                   VLM::slow(engine => 'slots 1; queue 2 timeout=1h;'));
my $front = $f->start->front;

sub question {
    my ($session, $text, $tokens, %headers) = @_;

    return $f->begin('/api/chat', VLM::chat_body($session, $text, text_only => JSON::PP::true, max_tokens => $tokens), %headers);
}

sub questions {
    my ($r) = $f->ended($f->begin("/api/history/$_[0]"));

    return join ' ', map { $_->{content} } grep { $_->{role} eq 'user' } @{ ref $r->{json} eq 'ARRAY' ? $r->{json} : [] };
}

my @at = grep { $f->home($_) eq '1' } map { "s$_" } 1 .. 60;
cmp_ok(scalar @at, '>=', 3, 'sessions are at the first node') or die "too few are\n";
my ($cut, $keyed, $other) = @at;

for ($cut, $keyed, $other) {
    my ($r, $nodes) = $f->ended(question($_, 'one', 1));
    is("$r->{code} $nodes", '200 1', "session $_ begins there");
}

# ---- the node is cut off ---------------------------------------------------------

my $without = question($cut, 'two', 3500);
ok($f->node(1)->busy(1, 0), 'a question without a key runs');
my $with = question($keyed, 'two', 1, 'Idempotency-Key' => 'k-1');
ok($f->node(1)->busy(1, 1), 'one with a key waits behind it');

$f->cut(1);
ok(VLM::wait_for(sub { !$f->node(1)->listening }), 'the node cannot be reached');

for my $text (qw(two three)) {
    my ($r, $nodes) = $f->ended(question($other, $text, 1));

    is($r->{code}, 200, "session $other goes on") or diag($r->{raw});
    like($nodes, qr/^(?:1 )*[23]$/, 'at another node');
}

is(questions($other), 'one two three', 'with its turns in order');

my ($r, $nodes) = $f->ended($with);
is($r->{code}, 200, 'the question with a key is answered') or diag($r->{raw});
like($nodes, qr/^(?:1 )+[23]$/, 'by another node');
cmp_ok($r->{seconds}, '<', 100, 'when the front\'s kernel has missed the node, before a time of nginx passes');

($r, $nodes) = $f->ended($without);
is("$r->{code} $nodes", '502 1', 'the one without is not repeated');
is($r->{json}{error}, 'The node ended during this request', 'its client is told why');

($r, $nodes) = $f->ended(question($cut, 'three', 1));
is($r->{code}, 200, 'its session goes on') or diag($r->{raw});
is(questions($cut), 'one three', 'without it');

# ---- and is back ------------------------------------------------------------------

$f->rejoin(1);

ok(VLM::wait_for(sub { $f->home($other) eq '1' }), 'the node has its sessions again');
ok($f->node(1)->busy(0, 0), 'and leaves the questions of before');

my %want = ($cut => 'one three four', $keyed => 'one two four', $other => 'one two three four');

for ($cut, $keyed, $other) {
    my ($r, $nodes) = $f->ended(question($_, 'four', 1));

    is("$r->{code} $nodes", '200 1', "session $_ goes on there") or diag($r->{raw});
    is(questions($_), $want{$_}, 'each turn is stored once, in order');
}

ok($front->stop, 'the front stops in time');
ok($_->stop, "$_->{name} stops in time") for $f->nodes;
$_->check_log for $front, $f->nodes;

done_testing();
