# Tests HTTP/2.  A client that is answered before its body is sent takes the reset
# of its stream for an error, so a full queue refuses after the body.  A stream may
# be reset while its connection remains open.
#
# The clients are curl, over TLS, since without it Debian's gives each stream a
# connection of its own; and, to reset one stream, some frames written by hand.

use strict;
use warnings;

use lib 't/lib';
use IO::Socket::INET;
use JSON::PP ();
use Test::More;
use VLM;

my $BODY = 3_000_000;
my $dir;

# A second server block has HTTP/2 and logs the connection of each stream.
sub http2 {
    my (%conf) = @_;

    my $tls = VLM::free_port();
    my $plain = VLM::free_port();
    my $s = VLM->new(%conf);

    $dir = "$s->{dir}/curl";
    mkdir $dir or die "$dir: $!";

    system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
           . " -addext subjectAltName=IP:127.0.0.1"
           . " -keyout $dir/key.pem -out $dir/cert.pem 2>$dir/openssl.log") == 0
        or die VLM::slurp("$dir/openssl.log");

    $s->{tls} = "https://127.0.0.1:$tls";
    $s->{plain} = $plain;
    $s->{http} = <<"_EOC_";
    vlm_cors *;
    log_format h2 '\$server_protocol \$status \$connection \$args';

    server {
        listen 127.0.0.1:$tls ssl http2;
        listen 127.0.0.1:$plain http2;
        ssl_certificate $dir/cert.pem;
        ssl_certificate_key $dir/key.pem;
        access_log $s->{dir}/logs/h2.log h2;

        location ~ ^/(api|v1|uploads|result)/ {
            vlm_pass live;
        }
    }
_EOC_

    return $s->start->ready;
}


# Writes a chat to a file, padded with an unknown member.
sub body {
    my ($session, $picture, $bytes) = @_;

    my $body = JSON::PP->new->encode({
        %{ VLM::chat_body($session, 'count', image => $picture) },
        padding => 'x' x ($bytes || 0),
    });

    VLM::spew("$dir/$session.json", $body);

    return "$dir/$session.json";
}


# Returns curl's arguments for one chat; its head and body go to files named after it.
sub words {
    my ($s, $session, $file) = @_;

    return ('-s', '--cacert', "$dir/cert.pem", '-H', 'Expect:',
            '-H', 'Content-Type: application/json', '--data-binary', "\@$file",
            '-D', "$dir/$session.head", '-o', "$dir/$session.body",
            "$s->{tls}/api/chat?$session");
}


sub curl {
    my (@words) = @_;

    my $pid = fork();
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        exec 'curl', @words or POSIX::_exit(127);
    }

    return $pid;
}


# Returns the exit statuses by pid once so many have ended.
sub ended {
    my ($n, @pids) = @_;

    my %status;

    VLM::wait_for(sub {
        for my $pid (grep { !defined $status{$_} } @pids) {
            $status{$pid} = $? if waitpid($pid, POSIX::WNOHANG()) == $pid;
        }
        return keys %status >= $n;
    });

    return \%status;
}


sub leave {
    my (@pids) = @_;

    kill 'KILL', @pids;
    waitpid $_, 0 for @pids;
}


# Returns the sessions whose answer is a complete refusal of the queue.
sub refused {
    my (@sessions) = @_;

    return grep {
        my $head = VLM::slurp("$dir/$_.head");
        my $json = eval { JSON::PP->new->decode(VLM::slurp("$dir/$_.body")) };

        $head =~ m{^HTTP/2 429 } && $head =~ /^retry-after: \d+\r$/m
            && $head =~ m{^content-type: application/json\r$}m
            && $head =~ /^access-control-allow-origin: \*\r$/m
            && $json && $json->{error} =~ /\b2 requests\b/;
    } @sessions;
}


# ---- frames ----------------------------------------------------------------

use constant { DATA => 0, HEADERS => 1, RST_STREAM => 3, SETTINGS => 4 };
use constant { END_STREAM => 1, END_HEADERS => 4, CANCEL => 8 };

sub frame {
    my ($type, $flags, $stream, $payload) = @_;

    return substr(pack('N', length $payload), 1)
           . pack('CCN', $type, $flags, $stream) . $payload;
}


# Makes a chat on a stream with literal names and values, shorter than 127 bytes.
sub stream {
    my ($stream, $session, $body) = @_;

    my @head = (':method' => 'POST', ':scheme' => 'http',
                ':path' => "/api/chat?$session", ':authority' => 'localhost',
                'content-type' => 'application/json');
    my $head = '';

    $head .= pack('x C/a* C/a*', splice @head, 0, 2) while @head;

    return frame(HEADERS, END_HEADERS, $stream, $head)
           . frame(DATA, END_STREAM, $stream, $body);
}


# ---- ordinary requests -----------------------------------------------------

for my $workers (1, 2) {
    my $s = http2(name => "http2-$workers", workers => $workers,
                  engine => 'thinking off; sampling temperature=0;');
    my @get = ('-s', '--cacert', "$dir/cert.pem", '-w', ' %{http_version} %{http_code}');
    my $picture = 't/fidelity/pictures/40x30.png';
    my $said = sub { open my $in, '-|', 'curl', @get, @_ or die "curl: $!"; join '', <$in> };

    like($said->("$s->{tls}/api/tasks"), qr/"tasks".* 2 200$/s,
         "$workers workers: HTTP/2");

    my $upload = $said->('-F', "file=\@$picture", "$s->{tls}/api/upload");
    my ($name) = $upload =~ /"filename":\s*"([^"]+)".* 2 200$/s;

    ok($name, 'a picture is uploaded') or diag($upload);

    for my $turn (2, 4) {
        like($said->('-H', 'Content-Type: application/json', '--data-binary',
                     '@' . body('plain', $turn == 2 ? $name : undef, $BODY),
                     "$s->{tls}/api/chat"),
             qr/"answer":"[^"]+".*"turn_number":$turn\b.* 2 200$/s,
             "a chat of three million bytes is answered: entry $turn");
    }

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- the full queue --------------------------------------------------------

for my $workers (1, 2) {
    my $s = http2(VLM::slow(name => "http2-line-$workers", workers => $workers,
                            engine => 'slots 1; queue 2 timeout=1h;'));
    my $picture = $s->upload('t/fidelity/pictures/40x30.png');
    my @many = map { "many$_" } 1 .. 14;
    my %pid = map { $_ => curl(words($s, $_, body($_, $picture, $BODY))) } @many;

    my $status = ended(11, values %pid);

    ok($s->busy(1, 2), "$workers workers, 14 at once: one runs, two wait");
    is((grep { !defined $status->{$_} && waitpid($_, POSIX::WNOHANG()) } values %pid), 0,
       'the others have their answer, these none');
    is(scalar(grep { $_ == 0 } values %$status), 11, 'no request ends with an error');
    is(scalar refused(@many), 11, 'each refusal has a 429, Retry-After and a message');

    my @late = map { "late$_" } 1 .. 14;
    my @pids = map { curl(words($s, $_, body($_, $picture, $BODY))) } @late;

    $status = ended(14, @pids);
    is(scalar(grep { defined $_ && $_ == 0 } @$status{@pids}), 14,
       'a queue that is full already: 14 more have their answer');
    is(scalar refused(@late), 14, 'all refusals have 429');

    # A browser sends its requests as streams of one connection.
    my @streams = map { "stream$_" } 1 .. 14;
    my $one = curl('-Z', map { ($_ > 1 ? '--next' : (),
                                words($s, "stream$_", body("stream$_", $picture, $BODY))) }
                             1 .. 14);

    $status = ended(1, $one);
    is($status->{$one}, 0, '14 streams of one curl have their answer');
    is(scalar refused(@streams), 14, 'all refusals have 429');

    # A client that is killed frees its place, running or waiting.
    my @stay = grep { !-s "$dir/$_.head" } @many;

    is(scalar @stay, 3, 'three requests have no answer yet');

    for my $left ([1, 1], [1, 0], [0, 0]) {
        leave($pid{shift @stay});
        ok($s->busy(@$left), "one is killed: $left->[0] runs, $left->[1] wait");
    }

    # A stream ends by RST_STREAM; its connection and the other stream remain.
    my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                     PeerPort => $s->{plain}) or die $!;

    $sock->syswrite("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" . frame(SETTINGS, 0, 0, '')
                    . stream(1, 'goes', VLM::slurp(body('goes', $picture))));
    ok($s->busy(1, 0), 'a stream runs');

    $sock->syswrite(stream(3, 'stays', VLM::slurp(body('stays', $picture))));
    ok($s->busy(1, 1), 'another stream of the connection waits');

    $sock->syswrite(frame(RST_STREAM, 0, 1, pack('N', CANCEL)));
    ok($s->busy(1, 0), 'the first is reset: the other has the slot');
    ok(VLM::wait_for(sub { VLM::slurp("$s->{dir}/logs/h2.log") =~ / 499 \d+ goes$/m }), 'the log has the end of the first');
    ok($s->busy(1, 0), 'the other stream still runs');

    close $sock;
    ok($s->busy(0, 0), 'the other stream ends with its connection');
    ok(VLM::wait_for(sub { VLM::slurp("$s->{dir}/logs/h2.log") =~ / 499 \d+ stays$/m }), 'the log has the end of the other stream');

    my %connection = map { /^HTTP\/2\.0 499 (\d+) (goes|stays)$/ ? ($2 => $1) : () }
                     split /\n/, VLM::slurp("$s->{dir}/logs/h2.log");

    ok($connection{goes}, 'the log has the connection of the first');
    is($connection{goes}, $connection{stays}, 'both streams have the same connection');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();
