# The socket of the hop bypasses TLS, authentication and limits.  This file tests that
# other users cannot use it, during the start and later, in any directory.

use strict;
use warnings;

use lib 't/lib';
use File::Temp ();
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use Test::More;
use VLM;

my $NOBODY = 65534;

# An open directory that another user can reach.
my $open = File::Temp->newdir('vlm-XXXXXX', TMPDIR => 1);
chmod 0777, $open->dirname or die;

my $socket = $open->dirname . '/hop.sock';

my $s = VLM->new(name => 'socket', workers => 2,
                 engine => "thinking off; max_tokens 4; socket $socket;");

sub mode { (stat $socket)[2] & 07777 }

# Returns the answer to a request through the socket by this user.
sub asks {
    my ($uid) = @_;

    pipe my $in, my $out or die;

    my $pid = fork();
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        POSIX::setgid($uid) if $uid;
        POSIX::setuid($uid) if $uid;

        my $c = IO::Socket::UNIX->new(Type => SOCK_STREAM, Peer => $socket);
        my $said = $c ? '' : "not connected: $!";

        if ($c) {
            local $SIG{PIPE} = 'IGNORE';
            syswrite $c, "GET /v1/models HTTP/1.1\r\nHost: vlm\r\nConnection: close\r\n\r\n";
            while (sysread $c, $said, 4096, length $said) { }
        }

        syswrite $out, $said;
        POSIX::_exit(0);
    }

    close $out;
    my $said = do { local $/; <$in> } // '';
    waitpid $pid, 0;

    return $said;
}


# ---- while nginx starts ---------------------------------------------------------------

# nginx retries a port in use for seconds, with its sockets open.  While this port is in
# use, the start waits after the socket was made and before its owner is changed.
my $busy = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1', LocalPort => $s->port)
    or die "port: $!";

my $starts = fork();
die "fork: $!" unless defined $starts;

if ($starts == 0) {
    $s->write_conf;
    open STDERR, '>>', $s->dir . '/logs/stderr.log';
    { exec $s->command; }
    POSIX::_exit(127);
}

ok(VLM::wait_for(sub { $s->log =~ /bind\(\) to \S+ failed/ }), 'a start that waits for its port');
is(sprintf('%o', mode()), '600', 'the socket is closed to others');

close $busy;
$s->{pid} = $starts;

ok(VLM::wait_for(sub { $s->listening }), 'the start completes');
$s->ready;
is(sprintf('%o', mode()), '600', 'the socket has the same mode');


# ---- later ----------------------------------------------------------------------------

like(asks(0), qr{^HTTP/1\.1 [24]\d\d }, 'a process of the same user is answered');

SKIP: {
    skip 'only root can be another user', 5 if $> != 0;

    is(asks($NOBODY), 'not connected: Permission denied', 'another user cannot connect');

    # An older version, or an administrator, can leave this mode.
    chmod 0666, $socket or die;

    is(asks($NOBODY), '', 'another user receives no answer with an open mode of the file');
    ok($s->log_has(qr/\[warn\] .*user $NOBODY, to "unix:\S+" was closed: only workers may use this socket/),
       'the log has the refusal');
    like(asks(0), qr{^HTTP/1\.1 [24]\d\d }, 'the workers go on');

    ok($s->reload, 'the server reloads');
    $s->ready;
    is(sprintf('%o', mode()), '600', 'the reload closes the file again');
}

for (1 .. 4) {
    is($s->post('/v1/completions', { prompt => 'hi', max_tokens => 1 })->{code}, 200, 'answers come over it');
}

ok($s->stop, 'the server stops in time');
ok(!-e $socket, 'the socket is removed at the stop');
$s->check_log(undef, qr/bind\(\) to/);

done_testing();
