# Tests events to waiting clients, clients that read slowly or not at all, and
# clients that leave early; also through the hop to the worker with the model,
# and over HTTP/2.

use strict;
use warnings;

use lib 't/lib';
use Fcntl qw(:flock);
use File::Path ();
use JSON::PP ();
use Script;
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

my $JSON = JSON::PP->new->utf8->canonical;
my $PICTURE = 't/fidelity/pictures/40x30.png';
my $SEND = $ENV{VLM_REPORTS} ? 8 : 2;          # send_timeout, s; sanitizers slow readers down

# An endless answer has some seconds, in which it becomes larger than the buffers of its connections.
my $long = 'x' x 150;

my @endless = ("a $long", " b $long", " c $long", undef);
my @brief = (brief => ['short', ' and', ' good']);

$Script::MLP = 32768;
my $slowest = Script::model('slow-client-slowest', '' => \@endless, @brief);

$Script::MLP = 8192;
my $slow = Script::model('slow-client', '' => \@endless, @brief);

$Script::MLP = 16;
my $fast = Script::model('slow-client-fast', '' => \@endless);


sub server {
    my (%conf) = @_;

    return VLM->new(listen => 'sndbuf=8k', model => $slow, %conf,
                    http => "send_timeout ${SEND}s; " . ($conf{http} || ''),
                    engine => 'thinking off; weights f32; threads 1; '
                              . 'max_tokens ' . ($conf{max} || 6000) . '; '
                              . "context 8k; timeout 1h; $conf{engine}")->start->ready;
}


# ---- waiting clients -------------------------------------------------------------------

{
    my $s = server(name => 'waits', model => $slowest, engine => 'slots 1; queue 8 timeout=8s;');
    my $picture = $s->upload($PICTURE);

    my $runs = $s->begin_chat('runs', 'x', image => $picture);
    ok($s->busy(1, 0), 'a request runs');

    my $next = endless($s, 'next', $picture);
    ok($s->busy(1, 1), 'a request waits');
    my $last = endless($s, 'last', $picture);
    ok($s->busy(1, 2), 'another request waits');

    my $plain = $s->begin_chat('plain', 'be brief', image => $picture);

    cmp_ok(first_byte($next), '>', 1.8, 'no byte comes for two seconds');
    like($next->{raw}, qr{^HTTP/1\.1 200 .*\ncontent-type: text/event-stream}is, 'the first bytes have the header of a stream');
    like($next->response->{body}, qr/\A: place 1\n\n\z/, 'the event has the place in the queue');
    first_byte($last);
    like($last->response->{body}, qr/\A: place 2\n\n\z/, 'each request has its own place');

    ok($next->more, 'more comes two seconds later');
    like($next->response->{body}, qr/\A(?:: place 1\n\n){2}\z/, 'the place is sent again');

    # The next client takes the place of one that leaves.
    $next->leave;

    ok(VLM::wait_for(sub { $last->more(1); $last->response->{body} =~ /: place 1\n\n\z/ }),
       'the last request has place 1');

    my $r = $last->end;
    my @events = events($r->{body});

    is(scalar @events, 1, 'no slot became free in time');
    is($events[0][0], 'error', 'the last event is an error');
    is_deeply($events[0][1], { error => 'No slot became free within 8 seconds', status => 503 },
              'the error has its status');

    is($plain->end->{code}, 503, 'a client without events has that status');

    # Events before the header are not sent again.
    $runs->leave;
    ok($s->busy(0, 0), 'no request is left');

    $r = $s->chat('s', 'be brief', image => $picture, stream => JSON::PP::true);
    unlike($r->{body}, qr/^:/m, 'a request that does not wait has no event about its place');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- a refusal that comes late ---------------------------------------------------------

# An error that is an answer without events is an event after the header.  This test
# holds the lock, so the model is not loaded until it releases it.
{
    my $s = VLM->new(name => 'late', model => $fast, engine => 'thinking off;');

    File::Path::make_path("$s->{dir}/store");
    open my $lock, '>', "$s->{dir}/store/live.lock" or die "live.lock: $!";
    flock $lock, LOCK_EX or die "live.lock: $!";

    $s->start;

    my $picture = $s->upload($PICTURE);
    my $none = endless($s, 'none', undef);
    my $task = $s->begin_chat('task', 'x', image => $picture, task => 'dance',
                              stream => JSON::PP::true);

    ok($none->more && $task->more, 'two have their header while the model loads');
    close $lock;

    my @late = map { [events($_->end->{body})] } $none, $task;
    my @plain = map { $_->{json} } $s->chat('none', 'x'),
                $s->chat('task', 'x', image => $picture, task => 'dance');

    for my $i (0, 1) {
        is_deeply($late[$i], [['answer', $plain[$i]]], 'a refusal is as it is without events');
        ok(length $plain[$i]{error}, "$plain[$i]{error}");
    }

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- slow readers, here and through the hop --------------------------------------------

for my $workers (1, 4) {
    my $s = server(name => "slow$workers", workers => $workers,
                   max => 4500, engine => 'slots 2; queue 8;');
    my $picture = $s->upload($PICTURE);

    # A client that reads nothing is dropped; another client is not affected.
    my $dead = lazy($s, $workers, 'dead', $picture);
    my $beside = endless($s, 'beside', $picture);

    ok($s->busy(2, 0), "$workers workers: two run");

    read_until($beside, sub { ($s->health->{queue}{running} || 0) < 2 });

    cmp_ok(time - $dead->{begun}, '>', $SEND, 'a client that reads nothing is dropped after send_timeout');
    ok($s->log_has(qr/timed out/), 'the log has the timeout') if $workers == 1;

    my @told = events($beside->response->{body});
    cmp_ok(scalar @told, '>', 10, "meanwhile its neighbour's tokens come one by one");
    ok(!$beside->done, "the neighbour's answer is not at its end");

    $beside->leave;
    ok($s->busy(0, 0), 'no request is left');
    like($s->get('/api/history/dead')->{body}, qr/^\[\]$|not found/, 'a cancelled answer is not stored');

    # A client that reads slowly is not dropped; it receives the missed text as one larger piece.
    my $lazy = lazy($s, $workers, 'lazy', $picture);
    my $end = time + $SEND + 3;

    while (time < $end) {
        sleep 0.1;
        $lazy->read_some if IO::Select->new($lazy->{sock})->can_read(0);
    }

    my $r = $lazy->end;
    my @events = events($r->{body});
    my ($name, $answer) = @{ pop @events };

    ok($r->{whole}, 'a client that reads slowly receives the whole answer');
    is($name, 'answer', 'the last event is the answer');
    ok($answer->{answer} eq join('', map { $_->[1]{text} } @events), 'its pieces form the answer');
    cmp_ok(length $answer->{answer}, '>', 600_000, 'the answer is long');
    cmp_ok(scalar @events, '<', $answer->{usage}{completion_tokens}, 'some pieces have several tokens');

    # A client that leaves frees its slot.
    for my $i (1 .. 3) {
        my $gone = endless($s, "gone$i", $picture);

        ok($gone->more && $gone->more, 'the client has a part of the answer');
        $gone->leave;

        ok($s->busy(0, 0), 'its client leaves, and the slot is free');
    }

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- many ------------------------------------------------------------------------------

{
    my $n = 50;
    my $s = server(name => 'many', model => $fast, engine => "slots 4; queue 64;", max => 600);
    my $picture = $s->upload($PICTURE);

    $s->chat('warm', 'x', image => $picture);

    my ($worker) = $s->workers;
    my $before = rss($worker);
    my @dead = map { lazy($s, 1, "dead$_", $picture) } 1 .. $n;
    my $most = 0;

    my $left = VLM::wait_for(sub {
        my $now = rss($worker);
        $most = $now if $now > $most;
        my $line = $s->health->{queue};
        return $line->{running} == 0 && $line->{waiting} == 0;
    });

    ok($left, "$n that read nothing are dropped, or have their answer on the way");

    # An answer of 100 kB is held as text and as a chunk, each at most twice as large,
    # and once more when a buffer grows.  AddressSanitizer delays the reuse of freed
    # memory.
    my $each = $ENV{VLM_REPORTS} ? 4096 : 1024;

    cmp_ok($most - $before, '<', $each * $n, 'their memory is bounded');
    diag(sprintf 'worker: %d kB, with %d slow readers at most %d kB', $before, $n, $most);

    my $r = $s->chat('s', 'x', image => $picture, stream => JSON::PP::true);
    is($r->{code}, 200, 'the next request is answered');

    $_->leave for @dead;

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- HTTP/2 ----------------------------------------------------------------------------

{
    my $port = VLM::free_port();
    my $s = server(name => 'events2', workers => 4, engine => 'slots 1; queue 8;',
                   http => "server { listen 127.0.0.1:$port http2; location / { vlm_pass live; } }");
    my $picture = $s->upload($PICTURE);

    for my $i (1 .. 4) {
        my $body = curl($s, $port, $picture, "two$i", 'be brief');
        my @events = events($body);

        is($events[-1][0], 'answer', 'HTTP/2: a stream is answered');
        is(join('', map { $_->[1]{text} } @events[0 .. $#events - 1]), 'short and good', 'HTTP/2: the text comes in pieces');
    }

    my $pid = curl_begin($s, $port, $picture, 'goes', 'x');
    ok($s->busy(1, 0), 'a request runs');
    kill 'KILL', $pid;
    waitpid $pid, 0;
    ok($s->busy(0, 0), 'its client leaves');

    # The connection could take more, but the stream takes at most 300 bytes.
    my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die $!;

    my $start = time;
    $sock->syswrite("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" . frame(4, 0, 0, pack('nN', 4, 300))
                    . h2_chat($JSON->encode(VLM::chat_body('window', 'x', image => $picture,
                                                          stream => JSON::PP::true))));
    ok($s->busy(1, 0), 'a stream without room runs');
    ok($s->busy(0, 0), 'its client is dropped');
    cmp_ok(time - $start, '>', $SEND, 'the client is not dropped at once');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();


# ---- clients ---------------------------------------------------------------------------

sub endless {
    my ($s, $session, $picture) = @_;

    return $s->begin_chat($session, 'x', image => $picture, stream => JSON::PP::true);
}

# Makes a client with a tiny receive buffer, which reads only on request;
# with several workers its request takes the hop.
sub lazy {
    my ($s, $workers, $session, $picture) = @_;

    my $text = VLM::request_text('POST', '/api/chat',
        VLM::chat_body($session, 'x', image => $picture, stream => JSON::PP::true, timings => JSON::PP::true),
        { Connection => 'keep-alive' });

    for (1 .. 50) {
        my $r = $s->narrow;

        if ($workers > 1) {
            $r->send(VLM::request_text('GET', '/api/tasks', undef, { Connection => 'keep-alive' }));
            $r->more until $r->done || $r->response->{whole};

            if ($r->response->{worker} == $s->designated) {
                $r->leave;
                next;
            }

            $r->{raw} = '';
        }

        # The next request is the only one of its connection.
        $text =~ s/Connection: keep-alive/Connection: close/;
        $r->send($text);

        return $r;
    }

    die "all connections are of the worker with the model\n";
}

# Reads, so that this client is not dropped, until a condition is true.
sub read_until {
    my ($r, $happened) = @_;

    return VLM::wait_for(sub { $r->more(0.1); $r->done || $happened->() });
}

sub first_byte {
    my ($r) = @_;

    $r->more;

    return time - $r->{begun};
}


# Returns [name, data] of each complete event, without comments.
sub events {
    my ($body) = @_;

    return map { /^event: (\w+)\ndata: (.*)\z/ ? [$1, $JSON->decode($2)] : () }
           grep { !/^:/ } $body =~ /\G(.*?)\n\n/gs;
}

sub rss {
    my ($pid) = @_;

    return VLM::slurp("/proc/$pid/status") =~ /^VmRSS:\s+(\d+) kB/m ? $1 : 0;
}

# HTTP/2: makes a frame of a type, and a chat as the first stream of a connection,
# with literal names and values.
sub frame {
    my ($type, $flags, $stream, $payload) = @_;

    return substr(pack('N', length $payload), 1)
           . pack('CCN', $type, $flags, $stream) . $payload;
}

sub h2_chat {
    my ($body) = @_;

    my @head = (':method' => 'POST', ':scheme' => 'http', ':path' => '/api/chat',
                ':authority' => 'localhost', 'content-type' => 'application/json');
    my $head = '';

    $head .= pack('x C/a* C/a*', splice @head, 0, 2) while @head;

    return frame(1, 4, 1, $head) . frame(0, 1, 1, $body);
}

sub curl_begin {
    my ($s, $port, $picture, $session, $message) = @_;

    my $file = "$s->{dir}/$session";

    VLM::spew("$file.json", $JSON->encode(VLM::chat_body($session, $message, image => $picture,
                                                         stream => JSON::PP::true)));

    my $pid = fork();
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        exec 'curl', '-sN', '--http2-prior-knowledge', '-o', "$file.body",
             '-H', 'Content-Type: application/json', '--data-binary', "\@$file.json",
             "http://127.0.0.1:$port/api/chat" or POSIX::_exit(127);
    }

    return $pid;
}

sub curl {
    my ($s, $port, $picture, $session, $message) = @_;

    waitpid curl_begin($s, $port, $picture, $session, $message), 0;

    return VLM::slurp("$s->{dir}/$session.body");
}
