# Tests that nginx's phases before the content apply to a location with vlm_pass,
# once, at any worker: the timeout of a body, limits of connections and of requests,
# authorization by a subrequest.

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

my $PATIENCE = 2;                              # client_body_timeout, s

# Each case has a server_name; a refusal comes before the body.
sub servers {
    my ($port) = @_;

    return <<"_EOC_";
    vlm_cors *;
    client_body_timeout ${PATIENCE}s;
    limit_conn_zone \$binary_remote_addr zone=conns:1m;
    limit_req_zone \$binary_remote_addr zone=reqs:1m rate=1r/m;

    server {
        listen 127.0.0.1:$port;
        server_name conns;
        limit_conn conns 2;
        limit_conn_status 429;
        location / { vlm_pass live; }
    }

    server {
        listen 127.0.0.1:$port;
        server_name reqs;
        limit_req zone=reqs burst=3 nodelay;
        location / { vlm_pass live; }
    }

    server {
        listen 127.0.0.1:$port;
        server_name guarded;
        auth_request /may;
        location = /may {
            if (\$http_authorization != "Bearer right") { return 401; }
            return 204;
        }
        location / { vlm_pass live; }
    }
_EOC_
}

# Sends a chat to the server of this name, with optional headers.
sub begin {
    my ($s, $host, $session, $picture, %headers) = @_;

    return $s->begin('POST', '/api/chat',
                     VLM::chat_body($session, 'count', image => $picture),
                     { Host => $host, %headers });
}

for my $workers (1, 3) {
    my $port = VLM::free_port();
    my $s = VLM->new(VLM::slow(name => "in-front-$workers", workers => $workers,
                               port => $port, listen => 'default_server',
                               http => servers($port),
                               engine => 'slots 2; queue 8 timeout=1h;'));

    $s->start->ready;

    my $how = "$workers workers";
    my $picture = $s->upload('t/fidelity/pictures/40x30.png');

    # ---- client_body_timeout -----------------------------------------------------

    # Some requests come to a worker without the model: the hop has no such timeout.
    my $start = time;
    my @half = map { $s->begin('POST', '/api/chat', '{"session_id": "half", ',
                               { 'Content-Length' => 1000,
                                 'Content-Type' => 'application/json' }) } 1 .. 6;
    my @cut = $s->end_all(@half);
    my @took = sort { $a <=> $b } map { $_->{seconds} } @cut;

    is(scalar(grep { $_->done } @half), 6, "$how: client_body_timeout: a client that stops within its body is disconnected");
    cmp_ok($took[0], '>', $PATIENCE - 0.5, "$how: the client is not disconnected before its time");
    ok(VLM::wait_for(sub {
        6 == (() = VLM::slurp($s->dir . '/logs/access.log') =~ m{ 408 /api/chat }g);
    }), 'the log says 408 of each');
    ok($s->busy(0, 0), 'no request is left');

    # ---- limit_conn --------------------------------------------------------------

    my @two = map { begin($s, 'conns', "conn$_", $picture) } 1, 2;
    ok($s->busy(2, 0), "$how: limit_conn: two of a client run");

    my $r = begin($s, 'conns', 'conn3', $picture)->end;
    is($r->{code}, 429, 'the third is refused');
    is($r->{headers}{'retry-after'}, 1, 'the refusal has Retry-After');
    ok($r->{json}{error}, 'in JSON') or diag($r->{raw});
    is($r->{headers}{'access-control-allow-origin'}, '*', 'any page may read the refusal');
    is($s->get('/api/tasks')->{code}, 200, 'other servers do not count it');

    $two[0]->leave;
    ok($s->busy(1, 0), 'one client leaves');

    my $third = begin($s, 'conns', 'conn3', $picture);
    ok($s->busy(2, 0), 'another request is accepted');
    $_->leave for $two[1], $third;
    ok($s->busy(0, 0), 'all clients leave');

    # ---- limit_req ---------------------------------------------------------------

    my @codes = map {
        $s->begin('GET', '/api/tasks', undef, { Host => 'reqs' })->end->{code} } 1 .. 2;
    my $chat = begin($s, 'reqs', 'req', $picture);
    ok($s->busy(1, 0), "$how: limit_req: a chat among others runs");
    push @codes, map {
        $s->begin('GET', '/api/tasks', undef, { Host => 'reqs' })->end->{code} } 1 .. 2;

    is("@codes", '200 200 200 503', 'one and a burst of three: each counts once, by the hop, too');

    $r = $s->begin('POST', '/api/chat', '', { Host => 'reqs', 'Content-Length' => 5_000_000,
                                              'Content-Type' => 'application/json' });
    $r->more;
    $r = $r->response;
    is($r->{code}, 503, 'a chat is refused before its body is sent, with the status of limit_req');
    is($r->{headers}{'retry-after'}, 1, 'the refusal has Retry-After');
    like($r->{headers}{'content-type'} || '', qr{^application/json}, 'the refusal is JSON');
    $chat->leave;
    ok($s->busy(0, 0), 'no request is left');

    # ---- auth_request ------------------------------------------------------------

    for my $token (undef, 'Bearer wrong') {
        $r = begin($s, 'guarded', 'guarded', $picture,
                   $token ? (Authorization => $token) : ())->end;
        is($r->{code}, 401, "$how: auth_request: a request " . ($token ? 'with a wrong token' : 'without a token') . ' is refused');
        ok($r->{json}{error}, 'in JSON') or diag($r->{raw});
    }

    is($s->health->{queue}{running}, 0, 'the engine receives no request');

    my $may = begin($s, 'guarded', 'guarded', $picture, Authorization => 'Bearer right');
    ok($s->busy(1, 0), 'an authorized request runs');
    $may->leave;
    ok($s->busy(0, 0), 'its client leaves');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();
