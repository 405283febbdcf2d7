# Tests influences other than questions: headers about files, very long headers,
# other users of the machine, less memory than planned, and a picture that unpacks
# to more than its header says.

use strict;
use warnings;

use lib 't/lib';
use Compress::Zlib ();
use MIME::Base64 qw(encode_base64);
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

my $ENGINE = 'thinking off; slots 2; context 4k; queue 64 timeout=1h; max_tokens 4;'
             . ' sampling temperature=0; max_pixels 50176;';

sub question { { messages => [{ role => 'user', content => $_[0] }] } }

sub status_of {
    my ($pid, $name) = @_;

    return (VLM::slurp("/proc/$pid/status") =~ /$name:\s+(\d+)/)[0];
}


# ---- headers -----------------------------------------------------------------

for my $workers (1, 3) {
    my $s = VLM->new(name => "headers-$workers", workers => $workers, engine => $ENGINE,
                     server => 'large_client_header_buffers 4 64k;');
    $s->start->ready;

    my %asked = ('If-None-Match' => '*', 'If-Match' => '"x"',
                 'If-Modified-Since' => 'Sat, 01 Jan 2050 00:00:00 GMT',
                 'If-Unmodified-Since' => 'Sat, 01 Jan 2000 00:00:00 GMT');

    for my $name (sort keys %asked) {
        my @codes = map {
            ($s->begin('POST', '/v1/chat/completions', question('hi'), { $name => $asked{$name} })->end->{code},
             $s->begin('GET', '/api/health', undef, { $name => $asked{$name} })->end->{code})
        } 1 .. 3;
        is("@codes", '200 200 200 200 200 200', "$workers workers: $name is about files");
    }

    for my $bytes (7000, 20000, 60000) {
        my @codes = map { $_->end->{code} }
                    map { $s->begin('POST', '/v1/chat/completions', question('hi'), { Cookie => 'a' x $bytes }) }
                    1 .. 9;
        is("@codes", '200 ' x 8 . '200', "$workers workers: a header of $bytes bytes, at any worker");
    }

    my $file = $s->upload('demo/pictures/table-01.png');
    my $etag = $s->get("/uploads/$file")->{headers}{etag};
    is($s->begin('GET', "/uploads/$file", undef, { 'If-None-Match' => $etag })->end->{code}, 304,
       'a file has not changed');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- users -------------------------------------------------------------------

{
    my $s = VLM->new(name => 'closed', workers => 1, engine => $ENGINE);

    mkdir $s->dir . '/store', 0755;
    chmod 0755, $s->dir . '/store';

    $s->start->ready;
    $s->upload('demo/pictures/table-01.png');
    is($s->chat('secret', 'hi')->{code}, 200, 'a turn is stored');

    my @open = grep { (stat $_)[2] & 077 && !-S } glob $s->dir . '/store/{vlm*,uploads,results,documents}';
    is("@open", '', 'no file is open to others in a directory that is open to all');
    cmp_ok(scalar(() = glob $s->dir . '/store/vlm.db*'), '>', 1, 'SQLite has made files, too');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- a crash of a worker -----------------------------------------------------

{
    my $s = VLM->new(VLM::slow(name => 'crash', workers => 3, listen => 'reuseport', engine => 'slots 2; queue 64 timeout=1h;',
                               server => 'location = /status { vlm_status live; }'));
    $s->start->ready;

    # three requests at other workers
    my $pid = $s->designated;
    my @all;

    for (1 .. 200) {
        my $c = $s->connection;
        push @all, $c if $c->{worker} != $pid;
        last if @all == 3;
    }

    my $picture = $s->upload('t/fidelity/pictures/40x30.png');

    # One after the other: the store of three at once may refuse one as busy.
    for my $i (0 .. 2) {
        $s->chat_on($all[$i], "s$i", 'count', image => $picture);
        $s->busy($i < 2 ? $i + 1 : 2, $i < 2 ? 0 : 1);
    }

    ok($s->busy(2, 1), 'two run and one waits');

    kill 'KILL', $pid;

    my @r = $s->end_all(@all);
    my $told = grep { $_->{code} eq '503' } @r;
    is($told, 3, 'the worker is killed: all have 503');

    my $lines = () = $s->log =~ /refused, unavailable: The model's worker has ended/g;
    is($lines, $told, 'a line of the log for each');

    my ($counted) = $s->get('/status')->{body} =~ /vlm_requests_rejected_total\{[^}]*unavailable[^}]*\} (\d+)/;
    is($counted, $told, 'the metrics count them');

    $s->ready;
    ok($s->stop, 'the server stops in time');
    $s->check_log(undef, qr/exited on signal 9|refused, unavailable|upstream prematurely|recv\(\) failed|connect\(\)/);
}


# ---- a picture that unpacks to more than it says -----------------------------

sub chunk {
    my ($type, $data) = @_;

    return pack('N a4', length $data, $type) . $data . pack('N', Compress::Zlib::crc32($type . $data));
}

sub png {
    my ($width, $height, $ihdr, $data) = @_;

    return "\x89PNG\r\n\x1a\n" . chunk('IHDR', pack('NN', $width, $height) . $ihdr)
           . chunk('IDAT', Compress::Zlib::compress($data)) . chunk('IEND', '');
}

# 16-bit RGBA in seven passes needs most memory.
sub interlaced {
    my ($side) = @_;

    my $data = '';

    for my $pass ([0, 0, 8, 8], [4, 0, 8, 8], [0, 4, 4, 8], [2, 0, 4, 4], [0, 2, 2, 4], [1, 0, 2, 2], [0, 1, 1, 2]) {
        my ($x, $y, $dx, $dy) = @$pass;
        my $columns = int(($side - $x + $dx - 1) / $dx);
        my $rows = int(($side - $y + $dy - 1) / $dy);

        $data .= ("\0" . "\x12\x34\x56\x78\x9a\xbc\xff\xff" x $columns) x $rows if $columns > 0;
    }

    return png($side, $side, "\x10\x06\0\0\x01", $data);
}

{
    my $s = VLM->new(name => 'unpacks', workers => 1, engine => "$ENGINE http_memory 32m;",
                     http => 'client_max_body_size 8m;');
    $s->start->ready;

    my $ask = sub {
        return $s->begin('POST', '/v1/chat/completions', { messages => [{ role => 'user', content => [
            { type => 'image_url', image_url => { url => 'data:image/png;base64,' . encode_base64($_[0], '') } },
            { type => 'text', text => '?' }] }] });
    };

    ok(VLM::wait_for(sub { !$s->health->{filling} }), 'all planned memory is taken');

    my $pid = $s->designated;
    my $bomb = png(20, 20, "\x08\x02\0\0\0", "\0" x 180_000_000);

    $ask->(png(20, 20, "\x08\x02\0\0\0", ("\0" . 'abc' x 20) x 20))->end;
    my $before = status_of($pid, 'VmHWM');

    for my $r (map { $_->end } map { $ask->($bomb) } 1 .. 6) {
        is($r->{code}, 400, 'pixels of 1 kB that unpack to 180 MB');
        like($r->{json}{error}{message}, qr/^PNG of 20x20 pixels: more than \d+ compressed bytes for \d+ bytes of rows/, 'the refusal names the reason');
    }

    cmp_ok(status_of($pid, 'VmHWM') - $before, '<', 32768 * VLM::slower(), 'the picture takes less than http_memory');

    is($ask->(interlaced($_))->end->{code}, 200, "16-bit RGBA in seven passes, ${_}x$_") for 1, 33, 400;

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- less memory than was planned --------------------------------------------

# Without a pause, a worker that is killed while it takes memory would be killed again at full speed.
{
    my $s = VLM->new(VLM::slow(name => 'short', workers => 2, engine => 'slots 1; queue 8 timeout=1h; features 64;'));

    $s->start;

    my $dead = 0;

    for my $death (1, 2) {
        my $pid = VLM::wait_for(sub {
            my $h = $s->health;
            return $h->{filling} && $h->{heartbeat}{pid} != $dead ? $h->{heartbeat}{pid} : 0;
        });
        ok($pid, 'the worker is ready while memory is still being taken');
        kill 'KILL', $dead = $pid;
    }

    ok(VLM::wait_for(sub { $s->log =~ /2 loads in 5 minutes have ended with their worker: the next one/ }),
       'a worker that is killed then counts as killed in the load');
    $s->ready;
    ok(VLM::wait_for(sub { !$s->health->{filling} }), 'all memory is taken in the end');
    ok($s->stop, 'the server stops in time');
    $s->check_log(undef, qr/exited on signal 9|loads in 5 minutes/);
}

done_testing();
