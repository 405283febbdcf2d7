# Tests http_memory: requests that are too large together wait for each other, the
# refusal of one that is too large alone has both numbers, and the memory in use is
# within the limit.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use VLM;

my $s = VLM->new(name => 'memory', workers => 1,
                 engine => 'thinking off; slots 4; queue 64 timeout=1h;'
                           . ' http_memory 48m; max_tokens 8; sampling temperature=0;',
                 server => 'location = /metrics { vlm_status live; }');

$s->start->ready;

sub memory { JSON::PP->new->decode($s->get('/metrics?format=json')->{body}) }

# The budget counts 44.7m for 2600 x 2000, so one picture is decoded at a time.
my $picture = $s->upload(VLM::bmp(2600, 2000));
my @answers = $s->end_all(map {
    $s->begin_chat("s$_", 'How many cups are there?', image => $picture) } 1 .. 8);

is(join(' ', map { $_->{code} } @answers), join(' ', (200) x 8), 'eight at once are answered');

# The worker updates the zone twice a second.
my $m;
ok(VLM::wait_for(sub {
    $m = memory();
    return $m->{vlm_http_memory_waits_total} > 0 && !$m->{vlm_http_memory_bytes}{used};
}), 'some requests waited, and at the end no memory is held');
cmp_ok($m->{vlm_http_memory_bytes}{peak}, '<=', $m->{vlm_http_memory_bytes}{limit},
       'never more than there is');
cmp_ok($m->{vlm_http_memory_bytes}{peak}, '>=', 2600 * 2000 * 9, 'the peak includes one picture');

my $r = $s->chat('big', 'hi', image => $s->upload(VLM::bmp(3000, 2500)));
is($r->{code}, 400, 'a picture that never fits');
like($r->{json}{error}, qr/^The picture may take 65m of memory, http_memory is 48m$/,
     'the refusal has both numbers');

$r = $s->post('/v1/chat/completions', { messages => [{ role => 'user', content => [
    { type => 'text', text => 'x' x 15_000_000 }] }] });
is($r->{code}, 400, 'a body that never fits');
like($r->{json}{error}{message}, qr/^The request may take 51m of memory, http_memory is 48m$/,
     'the refusal has both numbers');

is($s->chat('next', 'hi', image => $picture)->{code}, 200, 'the next is answered');

# The tokenizer took 140 MB for one word of three million letters.
ok(VLM::wait_for(sub { !$s->health->{filling} }), 'all planned memory is taken');

my ($calm) = VLM::slurp('/proc/' . $s->designated . '/status') =~ /VmHWM:\s+(\d+)/;
$r = $s->post('/v1/chat/completions', { messages => [{ role => 'user', content => [
    { type => 'text', text => 'x' x 3_000_000 }] }] });
is($r->{code}, 400, 'a text that is too long even in the longest tokens');
like($r->{json}{error}{message}, qr/\d+ tokens/, 'the message has the least number of tokens');
my ($grown) = VLM::slurp('/proc/' . $s->designated . '/status') =~ /VmHWM:\s+(\d+)/;
cmp_ok($grown - $calm, '<', 60000 * VLM::slower(), 'memory does not grow for this text');

# A small file has a header of 20,000 x 20,000 pixels.
my $bomb = pack('a2VvvV VVVvvVVVVVV', 'BM', 54, 0, 0, 54, 40, 20000, 20000, 1, 24, 0,
                0, 2835, 2835, 0, 0);
ok(VLM::wait_for(sub { !$s->health->{filling} }), 'all planned memory is taken');

my ($before) = VLM::slurp('/proc/' . $s->designated . '/status') =~ /VmHWM:\s+(\d+)/;
$r = $s->begin('POST', '/api/upload', "--b\r\nContent-Disposition: form-data; name=\"file\"; "
              . "filename=\"a.bmp\"\r\n\r\n$bomb\r\n--b--\r\n",
              { 'Content-Type' => 'multipart/form-data; boundary=b' })->end;
$r = $s->chat('bomb', 'hi', image => $r->{json}{filename}) if $r->{code} eq '200';
is($r->{code}, 400, 'a bomb is refused');
my ($after) = VLM::slurp('/proc/' . $s->designated . '/status') =~ /VmHWM:\s+(\d+)/;
cmp_ok($after - $before, '<', 20000, 'the refusal takes no memory');

# A worker without descriptors cannot open the picture: the server's fault, not the client's.
# A connection that closes late frees one, so the request is repeated.
my $pid = $s->designated;
my ($most) = VLM::slurp("/proc/$pid/limits") =~ /^Max open files +(\d+)/m;

$r = VLM::wait_for(sub {
    my $connection = $s->connection;
    my $free = 0;
    $free++ while -l "/proc/$pid/fd/$free";

    system("prlimit --pid $pid --nofile=$free:$most") == 0 or die 'prlimit failed';
    $s->chat_on($connection, 'descriptors', 'hi', image => $picture);
    $connection->more until $connection->done || $connection->response->{whole};
    system("prlimit --pid $pid --nofile=$most:$most");

    my $answer = $connection->response;
    $connection->leave;
    return $answer->{code} eq '200' ? undef : $answer;
});

is($r && $r->{code}, 500, 'a picture that cannot be opened is a server error');
like($r && $r->{json}{error}, qr/^The image cannot be read/, 'the error has its reason');
is($s->chat('descriptors', 'hi', image => $picture)->{code}, 200, 'the picture is answered once there are descriptors');

ok($s->stop, 'the server stops in time');
$s->check_log(undef, qr/24: Too many open files/);

done_testing();
