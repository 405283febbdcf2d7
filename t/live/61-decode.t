# Tests that a decode ends once its request is abandoned: because its client has left, its time in the
# queue has passed, or the server stops.  A video of 512 large frames is decoded for about a minute.
# A decode that went on to its end would count its pictures, or be killed by the master.  Requests that
# wait for memory meanwhile have threads of their own.  A decode without memory is the server's error.

use strict;
use warnings;

use lib 't/lib';
use Compress::Zlib ();
use JSON::PP ();
use MIME::Base64 qw(encode_base64);
use Test::More;
use VLM;

my ($WIDTH, $HEIGHT) = (6000, 5000);

my $png = png($WIDTH, $HEIGHT);
my $s = server('decode', 'queue 16 timeout=1h;')->start->ready;

my $whole = -VLM::processor($s->designated);
my $r = ask($s, 2)->end;

is($r->{code}, 200, 'a video of two such frames is answered') or diag($r->{body});
$whole = 256 * ($whole + VLM::processor($s->designated));

my $pictures = metrics($s)->{vlm_images_total};

cmp_ok($pictures, '>', 0, 'the pictures of an answered video are counted');

my $left = ask($s, 512);

ok(decodes($s), 'a video of 512 is decoded');
$left->leave;
ok(rests($s), 'its client leaves: the decode gives its memory back');
is(metrics($s)->{vlm_images_total}, $pictures, 'no picture was decoded to its end');

# The system has no more memory for this process: its address space is full.
SKIP: {
    skip 'a sanitizer ends a process without memory', 3 if $ENV{VLM_REPORTS};

    my $pid = $s->designated;
    my ($size) = VLM::slurp("/proc/$pid/status") =~ /^VmSize:\s+(\d+)/m;

    system("prlimit --pid $pid --as=" . ($size + 8000) * 1024 . ':unlimited') == 0 or die 'prlimit failed';
    $r = ask($s, 2)->end;
    system("prlimit --pid $pid --as=unlimited:unlimited") == 0 or die 'prlimit failed';

    is($r->{code}, 500, 'no memory for the pixels: the error is not the client\'s');
    like($r->{json}{error}{message}, qr/no memory/, 'the error says so');
    is(ask($s, 2)->end->{code}, 200, 'the same request is answered once there is memory');
    $pictures = metrics($s)->{vlm_images_total};
}

my @left = map { ask($s, 512) } 1 .. 12;

ok(decodes($s), 'twelve are decoded, or wait for it');
ok(VLM::wait_for(sub { metrics($s)->{vlm_http_memory_waits_total} > 0 }), 'some of them wait for memory');
is($s->post('/api/session')->{code}, 200, 'a session is made meanwhile, in a pool of two threads');
is($s->post('/v1/completions', { prompt => 'hi', max_tokens => 1 })->{code}, 200, 'a question of text is answered meanwhile');
ok(!grep({ $_->more(0) } @left), 'none of the twelve is answered before these');
$_->leave for @left;
is(ask($s, 2)->end->{code}, 200, 'their clients leave: another request has a thread and memory');
is(metrics($s)->{vlm_images_total}, $pictures + 1, 'none of the twelve was decoded to its end');

my $last = ask($s, 512);

ok(decodes($s), 'one more is decoded');
my $seconds = $s->end_designated;

ok(defined $seconds, 'SIGTERM during the decode: the worker ends by itself');
cmp_ok($seconds // 1e9, '<', $whole / 4, 'the decode does not go on to its end');
ok($s->stop, 'the server stops');
$s->check_log;

$s = server('decode-late', 'queue 8 timeout=2s;')->start->ready;

$r = ask($s, 512)->end;

is($r->{code}, 503, 'the time of a request in the queue passes during its decode');
ok(rests($s), 'the decode gives its memory back');
is(metrics($s)->{vlm_images_total}, 0, 'no picture was decoded to its end');

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();


# One such frame is decoded at a time.
sub server {
    my ($name, $queue) = @_;

    return VLM->new(name => $name, main => 'thread_pool default threads=2;',
                    server => 'location = /metrics { vlm_status live; }',
                    engine => "thinking off; slots 1; context 1k; max_tokens 4; http_memory 300m; $queue");
}


# Makes a PNG of one colour, one bit for each pixel.
sub png {
    my ($width, $height) = @_;

    my $row = "\0" x (1 + ($width + 7) / 8);

    return "\x89PNG\r\n\x1a\n" . join '', map {
        pack('N', length($_) - 4) . $_ . pack('N', Compress::Zlib::crc32($_))
    } 'IHDR' . pack('NNC5', $width, $height, 1, 0, 0, 0, 0),
      'IDAT' . Compress::Zlib::compress($row x $height), 'IEND';
}


# Asks about a video of so many frames, which differ in the bytes after the picture, as equal frames
# are decoded once.
sub ask {
    my ($s, $n) = @_;

    our $frames;

    return $s->begin('POST', '/v1/chat/completions', { messages => [{ role => 'user', content => [
        { type => 'video_url', video_url => { max_pixels => 784, url => 'data:video/jpeg;base64,'
          . join ',', map { encode_base64($png . pack('N', $frames++), '') } 1 .. $n } },
        { type => 'text', text => 'What is it?' }] }] });
}


sub metrics { JSON::PP->new->decode($_[0]->get('/metrics?format=json')->{body}) }

# The worker updates the zone twice a second.
sub decodes { my ($s) = @_; return VLM::wait_for(sub { metrics($s)->{vlm_http_memory_bytes}{used} >= 3 * $WIDTH * $HEIGHT }) }
sub rests { my ($s) = @_; return VLM::wait_for(sub { !metrics($s)->{vlm_http_memory_bytes}{used} }) }
