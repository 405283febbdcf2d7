# Tests conf/scale-out.conf over three nodes of conf/scale-out-node.conf that share a store:
# a session and a prompt's beginning stay at one node; a node that is full, loads or is gone
# is passed over; a question that was begun is repeated only with an Idempotency-Key; streams
# come through at once; a node is drained, removed and added by the commands of
# docs/scale.md, and two nodes and a front come to be by them.

use strict;
use warnings;

use lib 't/lib';
use Commands;
use Fcntl qw(:flock);
use File::Copy qw(copy);
use Fleet;
use IO::Select;
use JSON::PP ();
use Socket qw(PF_INET SOCK_STREAM SOL_SOCKET SO_REUSEADDR inet_aton sockaddr_in);
use Test::More;
use VLM;

my $page = VLM::slurp('docs/scale.md');

# ---- the paths of both configurations ---------------------------------------------

my ($conf, $node) = map { VLM::slurp("conf/$_.conf") } qw(scale-out scale-out-node);
my @asks = grep { !m{_lora_adapter$} }
           VLM::slurp('http/api/route.c') =~ /(?:DIALECT\(|\{ ngx_string\()"(\/[^"*]+)"\)?, \w*POST,[^}]*?&ngx_http/g;
my ($passed) = VLM::slurp('conf/full.conf') =~ /location ~ (\S+) \{/;
my ($nodes_own) = $node =~ /location ~ (\S+) \{/;

cmp_ok(scalar @asks, '>', 10, 'the table of routes names those that ask the model');

my @cautious = map { $_->[0] } grep { $_->[1] =~ /\@unsent/ } map { [/location ~ (\S+) \{(.*)/s] }
               $conf =~ /^(        location ~ .*?^        \})/msg;

is(scalar @cautious, 2, 'two locations of the front do not repeat what was begun');
is(join(' ', grep { my $path = $_; !grep { $path =~ /$_/ } @cautious } @asks), '', 'they have all paths that ask the model');
is($nodes_own, $passed =~ s/\|health//r, 'a node has the paths of conf/full.conf, and health apart');


# ---- three nodes ------------------------------------------------------------------

my $f = Fleet->new(name => 'scale', fail_timeout => '1s', VLM::slow(engine => 'slots 1; queue 1 timeout=1h;'));
my $front = $f->start->front;

sub question {
    my ($session, %more) = @_;

    my $key = delete $more{key};

    return $f->begin('/api/chat', VLM::chat_body($session, 'count', text_only => JSON::PP::true, max_tokens => 1, %more),
                     $key ? ('Idempotency-Key' => $key) : ());
}

sub messages {
    my ($path, $key, @texts) = @_;

    my @roles = ('system', map { $_ % 2 ? 'user' : 'assistant' } 1 .. $#texts);
    my @messages = map { { role => $roles[$_], content => $texts[$_] } } 0 .. $#texts;

    return $f->begin($path, { messages => \@messages, max_tokens => 1, options => { num_predict => 1 },
                              stream => JSON::PP::false, $key ? (prompt_cache_key => $key) : () });
}

# Each node's sessions.
my %at;

for my $n (1 .. 200) {
    push @{ $at{$f->home("s$n")} }, "s$n";
    last if 3 == grep { @{ $at{$_} || [] } >= 4 } 1 .. 3;
}

is(join(' ', sort keys %at), '1 2 3', 'sessions are at all nodes');


# ---- affinity ------------------------------------------------------------------

for my $n (1 .. 3) {
    my ($r, $nodes) = $f->ended(question($at{$n}[0]));
    is("$r->{code} $nodes", "200 $n", "node $n: a question goes where the session's history is");

    ($r, $nodes) = $f->ended($f->begin('/api/chat', VLM::chat_body($at{$n}[0], 'x' x 300_000, text_only => JSON::PP::true),
                                       'X-Session-Id' => $at{$n}[0]));
    is("$r->{code} $nodes", "400 $n", 'so does a body that is not in memory, by the header');
}

my ($turn) = $f->ended(question($at{1}[0]));
is($turn->{json}{turn_number}, 4, 'the session goes on');
is(scalar @{ ($f->ended($f->begin("/api/history/$at{1}[0]")))[0]{json} }, 4, 'its history has all of it');

my %seen;

for my $path ('/v1/chat/completions', '/api/chat') {
    my $odd = 0;

    for my $n (1 .. 8) {
        my @talk = ('You are terse.', "question $n {");
        my ($r, $first) = $f->ended(messages($path, undef, @talk));
        my ($again, $second) = $f->ended(messages($path, undef, @talk, 'an answer', 'and then?'));

        $odd++ unless $first eq $second && $r->{code} == 200 && $again->{code} == 200;
        $seen{$path}{$first}++;
    }

    is($odd, 0, "$path: a conversation stays at its node while it grows");
    cmp_ok(scalar keys %{ $seen{$path} }, '>', 1, 'conversations with one system message are spread');
}

my %keyed = map { (($f->ended(messages('/v1/chat/completions', 'robot 7', 'Be terse.', "q $_")))[1] => 1) } 1 .. 6;
is(scalar keys %keyed, 1, 'prompt_cache_key keeps prompts together');

my %taken;
$taken{($f->ended($f->begin('/api/tasks')))[1]}++ for 1 .. 6;
is(join(' ', map { "$_:$taken{$_}" } sort keys %taken), '1:2 2:2 3:2', 'the rest is spread evenly');


# ---- a full node ----------------------------------------------------------------

# Occupies the slot and the queue of a node.
sub occupy {
    my ($n, @sessions) = @_;

    my @begun = map {
        my $r = question($sessions[$_], max_tokens => 3500);
        $f->node($n)->busy(1, $_) or die "node $n is not busy\n";
        $r;
    } 0, 1;

    return @begun;
}

my @begun = occupy(1, @{ $at{1} });
my ($r, $nodes, $said) = $f->ended(question($at{1}[2]));
is($r->{code}, 200, 'a full node is passed over');
like("$nodes: $said", qr/^1 [23]: 429 200$/, 'after its refusal, which came before the question was begun');

push @begun, map { occupy($_, @{ $at{$_} }) } 2, 3;
($r, $nodes, $said) = $f->ended(question($at{2}[2]));
is($r->{code}, 429, 'if all are full, the client is refused');
is(join(' ', sort split ' ', $nodes), '1 2 3', 'after all were asked');
like($r->{headers}{'retry-after'} || '', qr/^\d+$/, 'Retry-After is the node\'s');

$_->leave for @begun;
ok($f->node($_)->busy(0, 0), "clients of the front leave node $_, too") for 1 .. 3;


# ---- a node that loads -----------------------------------------------------------

# This test holds the lock, which keeps the model from being loaded.
ok($f->node(3)->stop, 'a node stops');
open my $lock, '>', $f->store . '/node3.lock' or die;
flock $lock, LOCK_EX or die;
$f->node(3)->start;

($r, $nodes, $said) = $f->ended(question($at{3}[0]));
is($r->{code}, 200, 'a node that loads is passed over') or diag($r->{raw});
like("$nodes: $said", qr/^3 [12]: 429 200$/, 'after its refusal');

my @codes = map { ($f->ended($f->begin('/api/tasks')))[0]{code} } 1 .. 6;
is("@codes", '200 200 200 200 200 200', 'by other requests, too');

$r = $f->node(3)->begin('POST', '/v1/chat/completions', {})->end;
is("$r->{code} $r->{headers}{'retry-after'}", '429 5', 'the node itself refuses, with Retry-After');
is($f->node(3)->get('/health/live')->{code}, 200, 'and is alive');

close $lock;
Fleet::wait_ready($f->node(3));
ok(VLM::wait_for(sub { $f->home($at{3}[0]) eq '3' }), 'its sessions come back to it');


# ---- streams ----------------------------------------------------------------------

my $stream = $f->begin('/v1/chat/completions', { stream => JSON::PP::true, messages => [{ role => 'user', content => 'count' }] });

ok(VLM::wait_for(sub { $stream->more(1); 3 <= (() = $stream->{raw} =~ /"content":"[^"]/g) }),
   'events of a stream come while it goes on') or diag($stream->{raw});
ok(!$stream->done, 'which it does');
is(scalar(grep { ($f->node($_)->health->{queue}{running} || 0) == 1 } 1 .. 3), 1, 'one node answers it');
$stream->leave;
ok($f->node($_)->busy(0, 0), "node $_ has nothing to do after the client has left") for 1 .. 3;


# ---- a node that is killed ----------------------------------------------------------

my $without = question($at{1}[0], max_tokens => 3500);
ok($f->node(1)->busy(1, 0), 'a question without a key runs');
my $with = question($at{1}[1], key => 'k-1');
ok($f->node(1)->busy(1, 1), 'one with a key waits');

# A worker that is being killed still listens for a moment.
sub killed {
    my ($node) = @_;

    $node->kill_all;
    ok(VLM::wait_for(sub { !$node->listening }), 'a node is killed');
}

killed($f->node(1));

my $odd = 0;

ok(VLM::wait_for(sub {
    my ($r, $nodes) = $f->ended(question($at{1}[0]));
    $odd++ unless $r->{code} == 200 && $nodes =~ /^(?:1 )*[23]$/;
    return $nodes =~ /^1 /;
}), 'a question to which its node refuses the connection goes to another');
is($odd, 0, 'all are answered');

($r, $nodes) = $f->ended($with);
is($r->{code}, 200, 'the one with a key is answered') or diag($r->{raw});
like($nodes, qr/^1 [23]$/, 'by another node');

my @history = @{ ($f->ended($f->begin("/api/history/$at{1}[1]")))[0]{json} };
is(join(' ', map { $_->{role} } @history[-2, -1]), 'user assistant', 'its turn is stored');

($r, $nodes) = $f->ended($without);
is("$r->{code} $nodes", '502 1', 'the one without is not repeated');
is($r->{json}{error}, 'The node ended during this request', 'its client is told why');

is(($f->ended(question($at{1}[0])))[0]{json}{turn_number} > 2 ? 1 : 0, 1, 'other nodes know its sessions');

$f->node(1)->start;
Fleet::wait_ready($f->node(1));
ok(VLM::wait_for(sub { $f->home($at{1}[0]) eq '1' }), 'its sessions come back to it');


# ---- a node that is drained, removed, added -------------------------------------------

my $last = $f->begin('/v1/chat/completions', { stream => JSON::PP::true, max_tokens => 40, prompt_cache_key => $at{2}[0],
                                               messages => [{ role => 'user', content => 'count' }] });
ok($f->node(2)->busy(1, 0), 'node 2 answers a stream');

# The page's commands.  The last section here runs those of its first one, and t/install/containers.t these.
my %in_a_container = map { $_ => 1 } Commands::of_containers();

my ($steps) = $page =~ /^(## From nothing to two nodes.*?)^## /ms or die "no steps\n";
my @all = map { s/\s+# .*//r } map { split /\n/ } $page =~ /^```sh\n(.*?)^```/msg;
my %known = map { $_ => 1 } @all;

my @commands = $page =~ s/\Q$steps\E//r =~ m{^(sed -i .* /etc/nginx/nginx\.conf)$}mg;
is(scalar @commands, 5, 'it has five commands that change the front');
my ($by_client, $down, $up, $remove, $add) = @commands;

my ($image) = grep { m{^sed -i .* conf/kubernetes/} } @all;
my ($packages, $pictures) = $steps =~ /^(apt install .*)\n(install -d .*)$/m or die "no packages and directory\n";
my @making = $steps =~ /^((?:cp|sed) .*)$/mg;
my %run = map { $_ => 1 } @commands, $image, @making, $packages, $pictures;
my ($ask, $asking, $ready, $reload, @rest) = sort grep { !$run{$_} && !$in_a_container{$_} && !Commands::run_by($_) } keys %known;
is(scalar @making, 5, 'five that make configurations');
like($asking, qr{^curl .*/api/chat }, 'and one that asks');
is("@rest", '', 'and the others are run here, too');

$f->command($down)->reload($reload);
like($f->home($at{2}[0]), qr/^[13]$/, 'after the reload its sessions are elsewhere');
($r, $nodes) = $f->ended($last);
like($r->{body}, qr/\[DONE\]\s*$/, 'the stream has its end');
is($nodes, 2, 'of the drained node');

ok($ask =~ s/10\.0\.0\.2:5001/$f->address(2)/e, 'a command asks the drained node');
ok(VLM::wait_for(sub {
    my $queue = JSON::PP::decode_json(`$ask`)->{queue};
    return $queue->{running} == 0 && $queue->{waiting} == 0;
}), 'which says that nothing runs and waits');

$f->command($up)->reload($reload);
is($f->home($at{2}[0]), 2, 'a drained node gets its sessions again');

$f->command($remove)->reload($reload);
ok($f->node(2)->stop, 'a node that was removed stops');
is($f->home($at{1}[0]) . $f->home($at{3}[0]), '13', 'sessions of other nodes stay where they are');
is(($f->ended(question($at{2}[1])))[0]{code}, 200, 'those of the removed node are answered');

$f->node(2)->start;
Fleet::wait_ready($f->node(2));
$f->command($add =~ s/10\.0\.0\.4/10.0.0.2/r)->reload;
is(join('', map { $f->home($at{$_}[0]) } 1 .. 3), '123', 'a node that is added gets its sessions');


# ---- a store for each node ---------------------------------------------------------------

my %own;

$f->command($by_client)->reload;
is(scalar(() = $front->{conf} =~ /^ +hash \$by_client consistent;$/mg), 2, 'the command changes both lists');

for my $n (1 .. 3) {
    $own{($f->ended($_->()))[1]}++ for sub { $f->begin('/api/tasks') }, sub { question($at{$n}[0]) };
}

is(scalar keys %own, 1, 'with it all requests of a client go to one node');


# ---- a machine that is gone ----------------------------------------------------------------

# A port whose queue of connections is full answers no further one, as if its machine were off.
$f->list(1, 2, 3)->reload;
ok($f->node(2)->stop, 'node 2 stops');

my $address = sockaddr_in($f->node(2)->port, inet_aton('127.0.0.1'));
my @open;

socket my $silent, PF_INET, SOCK_STREAM, 0 or die "socket: $!";
setsockopt $silent, SOL_SOCKET, SO_REUSEADDR, 1;
bind $silent, $address or die "bind: $!";
listen $silent, 0 or die "listen: $!";

for (1 .. 10) {
    socket my $c, PF_INET, SOCK_STREAM, 0 or die "socket: $!";
    $c->blocking(0);
    connect $c, $address;
    push @open, $c;
    last if @open > 1 && !IO::Select->new($c)->can_write(0.5);
}

cmp_ok(scalar @open, '<', 10, 'its port takes no more connections');

($r, $nodes) = $f->ended(question($at{2}[0]));
is($r->{code}, 200, 'a question whose connection is not answered goes to another node');
like($nodes, qr/^(?:2 )+[13]$/, 'after the one that does not answer');
cmp_ok($r->{seconds}, '>', 1.5, 'which has its time');
close $_ for @open, $silent;


# ---- no node ---------------------------------------------------------------------------

killed($_) for $f->nodes;

for my $try ('a connection is refused', 'all are known to be gone') {
    $r = question($at{1}[0])->end;
    is("$r->{code} $r->{headers}{'retry-after'}", '503 5', "no node: $try");
    is($r->{json}{error}, 'No node can be reached', 'in JSON');
}

is(messages('/v1/chat/completions', undef, 'a', 'b')->end->{json}{error}{type}, 'server_error', 'in the form of /v1');

ok($front->stop, 'the front stops in time');
$front->check_log;
$_->check_log for $f->nodes;


# ---- from nothing to two nodes and a front -------------------------------------------------

my ($store) = $page =~ /^(store redis:.*)$/m;

$f = Fleet->new(name => 'scale-steps', nodes => 2, steps => 1, redis => 1, engine => 'device cpu; thinking off; max_tokens 24;');

for my $n (1, 2) {
    my $made = $f->shipped('conf/scale-out-node.conf', $n);

    like($made, qr{^        model +/models/MODEL;$}m, "node $n has the checkpoint");
    like($made, qr{^        listen 10\.0\.0\.$n:5001 }m, 'its address');
    like($made, qr{^        \Q$store\E$}m, 'and the page\'s store');
}

is(join(' ', $f->shipped('conf/scale-out.conf') =~ /^        server (\S+)/mg), join(' ', ('10.0.0.1:5001', '10.0.0.2:5001') x 2),
   'the front has two nodes');

# They are installed, so that apt says what it would do.
my $planned = `LC_ALL=C ${\($packages =~ s/install/install --simulate/r)} 2>/dev/null`;
is($?, 0, 'apt takes the command that installs packages');
like($planned, qr/^\d+ upgraded, 0 newly installed, /m, 'this test has these packages');

my $whose = $> == 0 ? getpwnam 'www-data' : $>;
my ($user, $group) = (scalar getpwuid $whose, scalar getgrgid((getpwuid $whose)[3]));
system($pictures =~ s{/srv/vlm}{$f->store}er =~ s/-o www-data -g www-data/-o $user -g $group/r) == 0 or die "$pictures failed\n";
my @stat = stat $f->store;
is(sprintf('%o %d', $stat[2] & 07777, $stat[4]), "700 $whose", 'a command makes the directory of pictures');

$f->start->reload($reload);
$front = $f->front;

for my $n (1, 2) {
    my $command = $ready =~ s{10\.0\.0\.1:5001}{$f->address($n)}er;
    like(`$command`, qr{^HTTP/1\.1 200 }, "node $n says that its model is loaded");
}

ok($asking =~ s/127\.0\.0\.1:5000/"127.0.0.1:" . $front->port/e, 'a command asks the front');
my $answer = eval { JSON::PP::decode_json(`$asking`) } || {};
ok(length($answer->{answer} // ''), 'which has the answer') or diag(explain($answer));
is(join(' ', map { scalar @{ $_->get('/api/history/kitchen-1')->{json} } } $f->nodes), '2 2', 'both nodes have its turn');

ok($_->stop, 'it stops in time') for $front, $f->nodes;
$_->check_log for $front, $f->nodes;

my $manifest = "$VLM::LIVE/scale-steps-front/deployment.yaml";
copy('conf/kubernetes/deployment.yaml', $manifest) or die "copy: $!";
system($image =~ s{conf/kubernetes/deployment\.yaml}{$manifest}r) == 0 or die "$image failed\n";
like(VLM::slurp($manifest), qr{^ +image: REGISTRY/nginx-vlm:1$}m, 'the deployment names the image in its registry');

done_testing();
