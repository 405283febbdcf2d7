# Tests requirements of docs/dev/reliability.md from outside, by their numbers there; the
# page names the tests of the others.  bench/promises.py measures the times.

use strict;
use warnings;

use lib 't/lib';
use Compress::Zlib ();
use IO::Socket::INET;
use List::Util qw(max sum);
use MIME::Base64 qw(encode_base64);
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

my $PICTURE = 't/fidelity/pictures/40x30.png';

# A field of /proc/PID/status, in bytes.
sub status_of {
    my ($pid, $field) = @_;

    return VLM::slurp("/proc/$pid/status") =~ /^$field:\s+(\d+) kB/m ? $1 * 1024 : 0;
}

# Returns the memory of these processes; shared pages count once.
sub memory_of {
    return sum(map { VLM::slurp("/proc/$_/smaps_rollup") =~ /^Pss_Anon:\s+(\d+) kB/m ? $1 * 1024 : 0 }
               @_);
}

# All bits are zero, so 20,000 x 20,000 of them are some 50 KB.
sub bomb {
    my ($side) = @_;

    my $rows = Compress::Zlib::compress("\0" x ($side * (1 + $side / 8)), 9);
    my $chunk = sub { pack('N a4', length $_[1], $_[0]) . $_[1]
                      . pack('N', Compress::Zlib::crc32($_[0] . $_[1])) };

    return "\x89PNG\r\n\x1a\n" . $chunk->('IHDR', pack('NNCCCCC', $side, $side, 1, 0, 0, 0, 0))
           . $chunk->('IDAT', $rows) . $chunk->('IEND', '');
}

sub openai {
    my ($url) = @_;

    return { messages => [{ role => 'user', content => [
        { type => 'image_url', image_url => { url => $url } }, { type => 'text', text => '?' }] }] };
}


# ---- 1, 2, 3, 7, 12: one slot, and answers that do not end ----------------------

my $s = VLM->new(VLM::slow(name => 'twelve', workers => 2,
                           engine => 'slots 1; queue 16 timeout=1h; stall 60s;'));
$s->start->ready;

my $picture = $s->upload($PICTURE);
my $running = $s->begin_chat('runs', 'count', image => $picture);
ok($s->busy(1, 0), '1: one runs');

my @line = map { $s->begin_chat("w$_", 'count', image => $picture) } 1 .. 16;
ok($s->busy(1, 16), '1: sixteen wait');

my $next = $s->begin('POST', '/api/chat', '', { 'Content-Length' => 5_000_000,
                                                'Content-Type' => 'application/json' });
$next->more;
is($next->response->{code}, 429, '1: the next is refused, and its body not read');
like($next->response->{headers}{'retry-after'} || '', qr/^\d+$/, '1: the refusal has Retry-After');
$next->leave;

$_->leave for $running, @line;
ok($s->busy(0, 0), '1: all of them leave');

# ---- 2

my $png = openai('data:image/png;base64,' . encode_base64(bomb(20000), ''));
my $pid = $s->designated;
ok(VLM::wait_for(sub { !$s->health->{filling} }), 'all planned memory is taken');

my $before = status_of($pid, 'VmHWM');

for (1 .. 10) {
    my $r = $s->begin('POST', '/v1/chat/completions', $png)->end;
    is($r->{code}, 400, '2: 20,000 x 20,000 pixels are refused');
    like($r->{json}{error}{message}, qr/^PNG of 20000x20000 pixels/, '2: the message has the numbers');
}

cmp_ok(status_of($pid, 'VmHWM') - $before, '<', (16 << 20) * VLM::slower(), '2: memory does not grow');

# ---- 12

my $trap = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', Blocking => 0);
my $url = 'http://127.0.0.1:' . $trap->sockport . '/cup.png';

for my $r ($s->post('/v1/chat/completions', openai($url)),
           $s->post('/api/chat', { model => 'live', messages => [
               { role => 'user', content => '?', images => [$url] }] }),
           $s->chat('url', '?', image => $url)) {
    is($r->{code}, 400, '12: the address of a picture is refused');
}

sleep 0.2;
ok(!$trap->accept, '12: the server makes no connection');

# ---- 3

my $large = $s->upload(VLM::bmp(1200, 800));
my $text = join ' ', map { "word$_" } 1 .. 400;

# whether another request has the slot, the request that is cancelled, and the time that it is given first
my %stages = (
    vision  => [0, sub { ('count', image => $large) }, 0.5],
    prefill => [0, sub { ("$text $_[0]", image => $picture) }, 0.15],
    decode  => [0, sub { ('count', image => $picture, stream => JSON::PP::true) }, undef],
    line    => [1, sub { ('count', image => $picture) }, 0.1],
);

for my $stage (sort keys %stages) {
    my ($beside, $ask, $delay) = @{ $stages{$stage} };
    my $other;

    if ($beside) {
        $other = $s->begin_chat('stays', 'count', image => $picture);
        ok($s->busy(1, 0), "3: $stage: the slot is taken");
    }

    for my $try (1 .. 4) {
        my $r = $s->begin_chat("$stage$try", $ask->($try));

        ok($s->busy(1, $beside ? 1 : 0), "3: $stage: it is there");
        defined $delay ? sleep $delay : $r->more;
        $r->leave;

        ok($s->busy($beside, 0), "3: $stage: it leaves, and the engine is free");
    }

    if ($other) {
        ok(!$other->done, "3: $stage: its neighbour does not notice");
        $other->leave;
        ok($s->busy(0, 0), "3: $stage: the client leaves, too");
    }
}

my $log = VLM::slurp($s->dir . '/logs/access.log');
cmp_ok(scalar(() = $log =~ m{ 499 /api/chat }g), '>=', 12, '3: the log says 499 of each without a header');

# ---- 7

$pid = $s->designated;
my $c;

for (1 .. 400) {
    $c = $s->connection;
    last if $c->{worker} != $pid;
}

isnt($c->{worker}, $pid, '7: there are connections of other workers');

sub on {
    my ($path) = @_;

    $c->{raw} = '';
    $c->send("GET $path HTTP/1.1\r\nHost: localhost\r\n\r\n");
    $c->more until $c->done || $c->response->{whole};

    return $c->response;
}

kill 'STOP', $pid;
my $ready = VLM::wait_for(sub { my $r = on('/api/health/ready'); $r->{code} eq '503' && $r });
ok($ready, '7: the worker is stopped: the readiness probe fails');
like($ready && $ready->{headers}{'retry-after'} || '', qr/^\d+$/, '7: the probe has Retry-After');
is(on('/api/health/live')->{code}, 200, '7: the liveness probe succeeds');
kill 'CONT', $pid;
ok(VLM::wait_for(sub { on('/api/health/ready')->{code} eq '200' }), '7: the worker resumes');
$c->leave;

ok($s->stop, 'the server stops in time');
$s->check_log;


# ---- 3, the neighbour; 4, 5 -----------------------------------------------------

$s = VLM->new(name => 'twelve-fast', workers => 3,
              engine => 'thinking off; slots 2; queue 64 timeout=1h; max_tokens 32;'
                        . ' sampling temperature=0; memory 200m;');
$s->start->ready;

$picture = $s->upload('demo/pictures/table-01.png');

my %alone = map { $_ => $s->chat('alone', $_, image => $picture)->{json}{answer} }
            'How many objects are on the table?', 'Do you see a red one?';

for my $question (sort keys %alone) {
    for my $i (1 .. 8) {
        my $stays = $s->begin_chat("s$i$question", $question, image => $picture);
        my $goes = $s->begin_chat("g$i$question", 'List all objects.', image => $picture);

        sleep 0.01 * $i;
        $goes->leave;
        is($stays->end->{json}{answer}, $alone{$question}, '3: beside a client that leaves the answer has the same bytes');
    }
}

# ---- 4

$pid = $s->designated;
kill 'KILL', $pid;

my %codes;

my $back = VLM::wait_for(sub {
    my $r = $s->get('/api/health/ready');
    $codes{$r->{code}}++;
    return $r->{code} eq '200' && $s->designated && $s->designated != $pid;
});

ok($back, '4: the model comes back by itself');
is(join(' ', grep { !/^(?:0|200|503)$/ } sort keys %codes), '', '4: health answers 503 until then');
cmp_ok($codes{0} // 0, '<=', 1, '4: only connections of the crashed worker are cut');

# ---- 5

$s->ready;

my $plan = $s->health->{plan}{total};
my $most = 0;
my (@open, @done, $n);

sub round_of_requests {
    while (@open < 4) {
        push @open, $s->begin_chat('r' . ++$n, 'How many objects are on the table?',
                                   image => $picture);
    }

    sleep 0.01;
    $s->drain(@open);
    push @done, grep { $_->done } @open;
    @open = grep { !$_->done } @open;
    $most = max($most, memory_of($s->pid, $s->workers));
}

round_of_requests() while @done < 20;
my $one = $most;

for (1 .. 4) {
    my %old = map { $_ => 1 } $s->workers;

    $s->signal('HUP');

    my $end = time + $VLM::PATIENCE;
    round_of_requests() until time > $end || !grep { $old{$_} } $s->workers;
    ok(time < $end, '5: a reload under load');
}

my @answers = ((map { $_->response } @done), $s->end_all(@open));
my @odd = grep { $_->{code} ne '200'
                 && !($_->{code} eq '503' && $_->{headers}{'retry-after'}) } @answers;

cmp_ok(scalar @answers, '>', 20, '5: many ask all the time');
is(scalar @odd, 0, '5: each is answered, or has Retry-After')
    or diag(join "\n", map { "$_->{code} $_->{body}" } @odd);
cmp_ok($most, '<', $one + $plan / 2 * VLM::slower(), '5: a second model is never in memory');

ok($s->stop, 'the server stops in time');
$s->check_log(undef, qr/exited on signal 9/);

done_testing();
