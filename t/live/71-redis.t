# Tests servers that share a Redis: a session goes on at another server, its requests keep
# their order among servers, a server's death loses no stored turn, and a Redis that is
# away, or hangs, refuses sessions alone and is used again when it is back.

use strict;
use warnings;

use lib 't/lib';
use File::Path ();
use IO::Socket::UNIX;
use IO::Socket::INET;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);
use VLM;

my $root = "$VLM::LIVE/redis";
my $socket = "/tmp/vlm-live-redis-$$.sock";         # a unix socket's path has 107 bytes at most
my $PASSWORD = 'se cret/1';
my $PNG = 't/fidelity/pictures/40x30.png';
my $redis;

File::Path::remove_tree($root);
File::Path::make_path("$root/redis");

# ---- Redis ------------------------------------------------------------------

sub start_redis {
    $redis = fork();
    die "fork: $!" unless defined $redis;

    if ($redis == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', "$root/redis.log";
        open STDERR, '>&', \*STDOUT;
        { exec qw(redis-server --port 0 --save), '', qw(--appendonly yes --appendfsync always),
               '--unixsocket', $socket, '--dir', "$root/redis", '--requirepass', $PASSWORD; }
        POSIX::_exit(127);
    }

    my $up = VLM::wait_for(sub {
        waitpid($redis, POSIX::WNOHANG()) == 0 or die "redis-server does not run: t/deps test installs it\n";
        (redis('PING') // '') eq 'PONG';
    });

    die "redis-server does not answer\n" unless $up;
}

sub stop_redis {
    return unless $redis;
    kill 'CONT', $redis;
    kill 'TERM', $redis;
    waitpid $redis, 0;
    $redis = undef;
}

# Sends a command for the servers' database; returns a number, a text, or undef.
sub redis {
    my $s = IO::Socket::UNIX->new(Peer => $socket) or return undef;
    my $text = join '', map { my @words = @$_; '*' . @words . "\r\n" . join '', map { '$' . length($_) . "\r\n$_\r\n" } @words }
                        ['AUTH', $PASSWORD], ['SELECT', 3], [@_];
    print $s $text;
    <$s> && <$s> or return undef;                   # of AUTH and SELECT
    my $line = <$s> // return undef;
    $line =~ s/\r\n//;
    return <$s> =~ s/\r\n//r if $line =~ /^\$\d/;
    return $line =~ /^[:+](.*)/ ? $1 : undef;
}

END {
    my $status = $?;
    stop_redis();
    unlink $socket;
    $? = $status;
}

my $encoded = $PASSWORD =~ s/([^\w.-])/sprintf '%%%02x', ord $1/ger;

sub server {
    my ($name, %more) = @_;

    return VLM->new(name => $name, engine => 'thinking off; max_tokens 4; sampling temperature=0;', %more,
                    store_dir => "redis://:$encoded\@unix:$socket:/3",
                    store => "uploads=$root/files directory=$VLM::LIVE/$name/store");
}

sub questions {
    my ($server, $session) = @_;
    my $r = $server->get("/api/history/$session");

    return $r->{code} eq '200' ? map { $_->{content} } grep { $_->{role} eq 'user' } @{ $r->{json} } : "$r->{code}";
}

start_redis();

my ($one, $two) = map { $_->start->ready } server('redis-a'), server('redis-b');

# ---- a session goes on at the other server ----------------------------------

my $picture = $one->upload($PNG);

is($two->get("/uploads/$picture")->{code}, 200, 'the other server has the picture, too');

my $r = $one->chat('s', 'one', image => $picture);
is($r->{code}, 200, 'a session begins at one server');
is($r->{json}{turn_number}, 2, 'its first turn is stored');

$r = $two->chat('s', 'two');
is($r->{code}, 200, 'and goes on at the other, with the picture');
is($r->{json}{turn_number}, 4, 'which has both turns');
ok($r->{json}{context_used}, 'and has read the first');

is(join(' ', questions($_, 's')), 'one two', "$_->{name} has the history") for $one, $two;

my $again = { 'Idempotency-Key' => 'k1' };
my @same = map { $_->begin('POST', '/api/chat', VLM::chat_body('s', 'three'), $again)->end } $one, $two;

is($same[1]{json}{response}, $same[0]{json}{response}, 'a request repeated at the other server gets its answer');
is(join(' ', questions($one, 's')), 'one two three', 'and is stored once');

ok(VLM::wait_for(sub { $two->health->{active_sessions} == 1 }), 'sessions are counted, at both');
is($one->post('/api/session')->{code}, 200, 'a session is made');
is($two->begin('DELETE', '/api/session/s')->end->{code}, 200, 'and one is deleted');
is(join(' ', questions($one, 's')), '404', 'for both');

# ---- tenants ------------------------------------------------------------------

# A server with a salt beside those that have none: a key without one is as it was.
{
    my $salted = server('redis-salt', engine => 'thinking off; max_tokens 4; cache_salt $http_x_tenant;')->start->ready;
    my $as = sub { my ($tenant, $verb, $path, $body) = @_; $salted->begin($verb, $path, $body, $tenant ? { 'X-Tenant' => $tenant } : {})->end };

    is($one->chat('old', 'before', image => $picture)->{code}, 200, 'a session of a server without a salt');
    is($as->('', 'GET', '/api/history/old')->{json}[0]{content}, 'before', 'is that of clients without a salt at another');
    is($as->('a', 'POST', '/api/chat', VLM::chat_body('mine', 'secret', image => $picture))->{json}{turn_number}, 2, 'a tenant has a session');

    for my $want (['GET', '/api/history/mine'], ['POST', '/api/session/mine/reset'], ['DELETE', '/api/session/mine']) {
        is($as->($_, @$want)->{code}, 404, "@$want by another finds none") for 'b', '';
        is($one->begin(@$want)->end->{code}, 404, 'nor at a server without a salt');
    }

    is($as->('a', 'GET', '/api/history/old')->{code}, 404, 'nor does a tenant have that of a client without a salt');
    is($as->('b', 'POST', '/api/chat', VLM::chat_body('mine', 'other', image => $picture))->{json}{turn_number}, 2, 'the id is another session for another');
    is(scalar @{ $as->('a', 'GET', '/api/history/mine')->{json} }, 2, 'and its own is as it was');
    is($as->($_->[0], 'DELETE', "/api/session/$_->[1]")->{code}, 200, 'each is deleted by its own client') for ['a', 'mine'], ['b', 'mine'], ['', 'old'];
    ok($salted->stop, 'it stops in time');
}

# ---- order --------------------------------------------------------------------

# A third server has the lease, so all requests wait, each for the state before the next is sent.
{
    my $far = (time + 3600) * 1000;

    redis('ZADD', 'vlm:q:order', 1, 'third');
    redis('HSET', 'vlm:x:order', 'third', sprintf '%.0f', $far);

    my @sent;
    my @servers = ($one, $two, $two, $one, $two, $one);

    for my $i (0 .. $#servers) {
        push @sent, $servers[$i]->begin_chat('order', "q$i", image => $picture);
        ok(VLM::wait_for(sub { redis('ZCARD', 'vlm:q:order') == $i + 2 }), "request $i is in line");
    }

    is($one->chat('other', 'hi', image => $picture)->{code}, 200, 'another session does not wait');

    # One that leaves has no place in line any more.
    my $leaver = $one->begin_chat('order', 'left', image => $picture);
    ok(VLM::wait_for(sub { redis('ZCARD', 'vlm:q:order') == 8 }), 'one more is in line');
    $leaver->leave;
    ok(VLM::wait_for(sub { redis('ZCARD', 'vlm:q:order') == 7 }), 'and leaves it with its client');

    redis('ZREM', 'vlm:q:order', 'third');

    my @answers = $one->end_all(@sent);

    is(scalar(grep { $_->{code} eq '200' } @answers), 6, 'all are answered');
    is(join(' ', questions($one, 'order')), 'q0 q1 q2 q3 q4 q5', 'in the order in which they came to either server');
    is(join(' ', map { $_->{json}{turn_number} } @answers), '2 4 6 8 10 12', 'and their turns have these numbers');
    ok(VLM::wait_for(sub { redis('EXISTS', 'vlm:q:order') == 0 }), 'the line is empty then');
}

# As they come: none is lost, and those of one server stay in order.
{
    my @sent = map { my $i = $_; map { $_->begin_chat('crowd', substr($_->{name}, -1) . $i, image => $picture) } $one, $two } 1 .. 5;
    my @answers = $one->end_all(@sent);
    my @stored = questions($two, 'crowd');

    is(scalar(grep { $_->{code} eq '200' } @answers), 10, 'ten at once are answered');
    is(scalar @stored, 10, 'and stored');
    is(join(',', sort { $a <=> $b } map { $_->{json}{turn_number} } @answers), join(',', map { 2 * $_ } 1 .. 10),
       'one after the other');
}

# The same request at both at once, as a front sends it again: one of them has the turn of the other.
{
    my @twice = map { $_->begin('POST', '/api/chat', VLM::chat_body('twice', 'hi', image => $picture), { 'Idempotency-Key' => 'k2' }) } $one, $two;
    my @answers = $one->end_all(@twice);

    is(join(' ', map { $_->{code} } @answers), '200 200', 'a request at both at once is answered twice');
    is($answers[0]{json}{response}, $answers[1]{json}{response}, 'with the same answer');
    is(join(' ', questions($one, 'twice')), 'hi', 'and stored once');
}

# ---- the death of a server ------------------------------------------------------

{
    my $c = server('redis-slow', VLM::slow(engine => ''))->start->ready;

    is($two->chat('mortal', 'first', image => $picture)->{code}, 200, 'a turn is stored');

    my $cut = $c->begin_chat('mortal', 'cut', image => $picture);

    ok($c->busy(1), 'a slow server answers the next question');

    # Its place is kept for longer than it lasts.
    my $waits = $two->begin_chat('mortal', 'third', image => $picture);
    my $until = sub { redis('EVAL', "return redis.call('HGET', 'vlm:x:mortal', redis.call('ZRANGE', 'vlm:q:mortal', 0, 0)[1])", 0) };
    my $kept = $until->();

    ok(VLM::wait_for(sub { $until->() > $kept }), 'and keeps its place in the line');
    ok(!$waits->done, 'the other server waits');

    $c->kill_all;

    my ($after) = $two->end_all($waits);

    is($after->{code}, 200, 'when it has died, the other goes on');
    is($after->{json}{turn_number}, 4, 'behind the turns that were stored');
    is(join(' ', questions($one, 'mortal')), 'first third', 'of which none is lost');
}

# A server that is thought dead and is not: its place is passed while it answers.
{
    my %slow = VLM::slow(engine => '');
    my $c = server('redis-fenced', %slow, engine => $slow{engine} =~ s/max_tokens \d+/max_tokens 300/r)->start->ready;
    my $late = $c->begin_chat('fenced', 'late', image => $picture);

    ok($c->busy(1), 'a slow server answers a question');

    my $pid = $c->health->{heartbeat}{pid};

    kill 'STOP', $pid;

    my $waits = $two->begin_chat('fenced', 'next', image => $picture);

    ok(VLM::wait_for(sub { redis('ZCARD', 'vlm:q:fenced') == 2 }), 'and stands still, with the next question behind it');
    redis('EVAL', "return redis.call('HSET', 'vlm:x:fenced', redis.call('ZRANGE', 'vlm:q:fenced', 0, 0)[1], 1)", 0);

    my ($next) = $two->end_all($waits);

    is($next->{code}, 200, 'when its time has passed, the other goes on');
    is($next->{json}{turn_number}, 2, 'and stores its turn');

    kill 'CONT', $pid;

    my ($r) = $c->end_all($late);

    is($r->{code}, 200, 'the slow server gives its answer');
    ok($c->log_has(qr/a turn was not stored: store redis .*: the lease of the session was lost/), 'and says that it was too late');
    is(join(' ', questions($one, 'fenced')), 'next', 'so that no turn is behind one that came later');
    ok($c->stop, 'it stops in time');
}

# ---- a Redis that is away or hangs ------------------------------------------------

sub refused {
    my ($what) = @_;

    my $r = $one->chat('away', 'hi', image => $picture);

    is($r->{code}, 503, "$what: a chat with a session is refused");
    is($r->{headers}{'retry-after'}, 1, "$what: for a moment");
    like($r->{body}, qr/The store does not answer, try again/, "$what: with the reason");
    is($one->post('/api/session')->{code}, 503, "$what: so is a new session");
    is($one->post('/v1/chat/completions', { messages => [{ role => 'user', content => 'hi' }] })->{code}, 200,
       "$what: a chat without one is answered");
    like($one->health->{store_reason} // '', qr/^store redis unix:.* (?:does not answer|cannot be reached)/, "$what: health says it");
}

is($one->chat('away', 'before', image => $picture)->{code}, 200, 'a session is there before');

stop_redis();
refused('away');
start_redis();

ok(VLM::wait_for(sub { !defined $one->health->{store_reason} }), 'health forgets a Redis that is back, without a request');
is($one->chat('away', 'after', image => $picture)->{code}, 200, 'and it is used without a reload');
is(join(' ', questions($two, 'away')), 'before after', 'with what it had');

kill 'STOP', $redis;
refused('hangs');
kill 'CONT', $redis;

ok(VLM::wait_for(sub { $one->chat('away', 'then', image => $picture)->{code} eq '200' }), 'one that answers again is used, too');

# ---- a Redis that takes no writes ---------------------------------------------------

redis('CONFIG', 'SET', 'min-replicas-to-write', 1);

$r = $one->chat('away', 'none', image => $picture);
is($r->{code}, 503, 'a Redis without its replicas: a chat with a session is refused');
is($r->{headers}{'retry-after'}, 1, 'for a moment');
like($r->{body}, qr/The store takes no writes at the moment, try again/, 'with the reason');
is($one->post('/api/session')->{code}, 503, 'so is a new session');

redis('CONFIG', 'SET', 'min-replicas-to-write', 0);
is($one->chat('away', 'again', image => $picture)->{code}, 200, 'and it is used at once when it has them');

# ---- Redis is away at the start ----------------------------------------------------

{
    stop_redis();

    my $late = server('redis-late')->start->ready;

    ok($late->log_has(qr/cannot be reached: sessions and uploads are refused, other chats are answered/),
       'a server starts without Redis');
    start_redis();
    ok(VLM::wait_for(sub { ($late->chat('away', 'late', image => $picture)->{code} // '') eq '200' }),
       'and has sessions when it is there');
    ok($late->stop, 'it stops in time');
    $late->check_log;
    unlike($late->log, qr/cret/, 'the password is in no log');
}

# ---- configurations that are refused -------------------------------------------------

for ([qr/uploads=path names the directory of pictures/, "redis://:$encoded\@unix:$socket", ''],
     [qr/documents are kept by one server, in SQLite/, "redis://:$encoded\@unix:$socket", "uploads=$root/files; documents on"],
     [qr/an address begins with redis:\/\/|before the "@" come/, "redis://$encoded\@h", "uploads=$root/files"],
     [qr/an address begins with redis:\/\//, "valkey://:$encoded\@h", "uploads=$root/files"],
     [qr/an address begins with redis:\/\//, "Redis://:$encoded\@h", "uploads=$root/files"],
     [qr/a port is a number from 1 to 65535/, "redis://:$encoded\@h:0", "uploads=$root/files"],
     [qr/TLS to Redis is not supported/, "rediss://:$encoded\@h", "uploads=$root/files"],
     [qr/the address of a Redis is the first value of store/, "$root/none", "redis://:$encoded\@h"],
     [qr/uploads= and directory= are for/, "$root/none", "uploads=$root/files"])
{
    my ($sentence, $where, $more) = @$_;
    my $said = VLM->new(name => 'redis-conf', engine => 'thinking off;', store_dir => $where, store => $more)->check_conf;

    like($said, $sentence, "nginx -t: $sentence");
    unlike($said, qr/cret/, 'without the password');
}

ok($_->stop, "$_->{name} stops in time") for $one, $two;

for ($one, $two) {
    $_->check_log;
    unlike($_->log, qr/cret/, 'the password is in no log');
}

done_testing();
