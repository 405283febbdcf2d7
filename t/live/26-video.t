# Tests videos of several frames in OpenAI's form: both spellings, both families, limits and refusals.

use strict;
use warnings;

use lib 't/lib';
use Cwd qw(getcwd);
use MIME::Base64 qw(encode_base64);
use Script;
use Test::More;
use VLM;

my %file = map { ($_ => encode_base64(VLM::slurp("t/fidelity/pictures/$_"), '')) }
           (map { "frame-$_.png" } 1 .. 5), '40x30.png', '151x109.jpg';
my @frames = map { $file{"frame-$_.png"} } 1 .. 5;
my $tiny = encode_base64(VLM::slurp(VLM::bmp(2, 2)), '');


# ---- Qwen2.5-VL: pairs of frames between one pair of tokens ------------------------

{
    my $s = server('video', getcwd() . '/demo/model', 'slots 1; http_memory 64m; context 1k;');
    my $two = tokens($s, url(@frames[0, 1]));
    my $pair = tokens($s, url(@frames[0 .. 3])) - $two;

    cmp_ok($pair, '>', 60, 'two more frames are tokens of the prompt');
    is(tokens($s, url(@frames[0 .. 2])), $two + $pair, 'three frames have as many as four');
    is(tokens($s, url($frames[0])), $two, 'one frame is as many tokens as two');
    is(tokens($s, list(2, @frames[0 .. 3])), $two + $pair, 'a list of pictures is the same');
    is(tokens($s, list(0.5, @frames[0 .. 3])), $two + $pair, 'the number of frames a second does not change the tokens');
    is(tokens($s, url(($file{'151x109.jpg'}) x 2)), tokens($s, url($file{'151x109.jpg'})),
       'a frame may be a JPEG, and occur twice');
    cmp_ok(tokens($s, url(@frames[0, 1]), picture()), '>', $two + 20, 'a picture may stand beside a video');
    cmp_ok(tokens($s, url(@frames[0, 1]), list(1, @frames[2, 3])), '>', $two + $pair, 'another video adds its own tokens');
    cmp_ok(tokens($s, bounded(max_pixels => 20000)), '<', $two - 40, 'max_pixels bounds a frame');
    cmp_ok(tokens($s, bounded(detail => 'low')), '>=', $two, 'detail low is larger than this model takes');

    my $first = ask($s, url(@frames[4, 3, 2, 1]))->{json};
    my $again = ask($s, url(@frames[4, 3, 2, 1]))->{json};

    is($first->{timings}{image_n}, 2, 'pairs of frames count as pictures');
    my $before = $first->{timings}{cache_n};

    cmp_ok($before, '<', 30, 'only what stands before the video is cached');
    is($again->{timings}{cache_n}, $again->{usage}{prompt_tokens} - 1, 'rows of the same video are used again');
    is($again->{timings}{image_cache_n}, 2, 'no pair is encoded twice');
    is($again->{choices}[0]{message}{content}, $first->{choices}[0]{message}{content}, 'the answer is the same');

    my $slower = ask($s, list(0.5, @frames[4, 3, 2, 1]))->{json};

    is($slower->{timings}{cache_n}, $before + $pair, 'rows of frames at another time are not used again');
    is($slower->{timings}{image_cache_n}, 2, 'the features of the pairs are cached');

    my @refused = (
        ['an address', video_url('http://127.0.0.1/a.mp4'), 'unsupported_video_format',
         qr/fetches nothing and decodes no video files, send the frames as "data:video\/jpeg;base64,FRAME,FRAME,\.\.\."/],
        ['a video file', video_url('data:video/mp4;base64,AAAA'), 'unsupported_video_format', qr/no video files/],
        ['frames not in base64', video_url('data:video/jpeg,abc'), 'unsupported_video_format', qr/data URL of frames/],
        ['no url', { type => 'video_url', video_url => {} }, undef, qr/has no video_url with a url/],
        ['a frame that is no base64', url($frames[0], '***'), undef, qr/not base64/],
        ['an empty frame', url($frames[0], ''), 'unsupported_image_format', qr/^Frame 2: /],
        ['no frame', url(), 'unsupported_image_format', qr/^Frame 1: /],
        ['a text as frame', url(encode_base64('text', '')), 'unsupported_image_format', qr/^Frame 1: /],
        ['another size', url($frames[0], $file{'40x30.png'}), undef,
         qr/^Frame 2 has 40x30 pixels, the first one 70x50: the frames of a video have one size$/],
        ['too many frames', url(($tiny) x 513), 'too_many_frames', qr/^The request has 513 frames, it may have 1 to 512$/],
        ['frames without end', video_url('data:video/jpeg;base64,' . ',' x 100_000), 'too_many_frames', qr/100001 frames/],
        ['more than fit', url(($tiny) x 200), 'context_length_exceeded',
         qr/^This model's maximum context length is 1024 tokens\. 200 frames need 8100, at 252x252 pixels: send fewer/],
        ['an empty list', list(2), 'too_many_frames', qr/has 0 frames/],
        ['a list with an address', { type => 'video', video => ['http://127.0.0.1/a.jpg'] }, 'image_url_not_supported', qr/^Frame 1 of /],
        ['a list of numbers', { type => 'video', video => [7] }, 'image_url_not_supported', qr/^Frame 1 of /],
        ['no list', { type => 'video' }, undef, qr/no video_url/],
        (map { ["fps $_", list($_, $frames[0]), undef, qr/^fps is no number from 0\.01 to 1000$/] } 0, -1, 'fast', 1001),
        ['too many pixels', { type => 'video', video => ["data:image/png;base64,$frames[0]"], max_pixels => 1e9 }, undef,
         qr/max_pixels is 1000000000, it may be/],
        ['less than a cell', { type => 'video', video => ["data:image/png;base64,$frames[0]"], max_pixels => 700 }, 'image_too_large',
         qr/max_pixels 700, one cell of the model has 28x28/],
    );

    for (@refused) {
        my ($name, $part, $code, $message) = @$_;
        my $r = ask($s, $part, 400);

        is($r->{code}, 400, "$name is refused");
        is($r->{json}{error}{code}, $code, 'the error has its code');
        like($r->{json}{error}{message}, $message, 'the error has a message');
        is($r->{json}{error}{param}, 'messages.0.content.0', 'the error names the place of the video');
    }

    like($s->get('/metrics')->{body}, qr/^vlm_prompt_images_total \d+$/m, 'the server still answers');
    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- memory: one frame as decoded, and all as the model sees them ----------------------

{
    my $s = server('video-memory', Script::model('video-memory', '' => ['I see it']),
                   'slots 1; context 16k; max_pixels 401408; http_memory 48m;');
    my $photo = jpeg(1500, 1000);

    cmp_ok(tokens($s, url(($photo) x 12)), '>', 6 * 480, 'twelve photos, of which one is decoded at a time');

    my $r = ask($s, url(($photo) x 40));

    is($r->{code}, 400, 'more frames than http_memory has room for are refused');
    like($r->{json}{error}{message}, qr/^The video may take \d+m of memory, http_memory is 48m$/, 'the message has both numbers');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- Qwen3-VL: the seconds in words, before each pair --------------------------------

{
    local $Script::FAMILY = 'qwen3_vl';

    my $s = server('video-3', Script::model('video-3', '' => ['I see it']), 'slots 1; context 1k;');
    my $two = tokens($s, url(@frames[0, 1]));
    my $four = tokens($s, url(@frames[0 .. 3]));

    is($four - $two, 4 + 2 + tokens_of($s, '<1.2 seconds>'), 'a pair is its cells, two tokens, and its time in words');
    is(tokens($s, url(@frames[0 .. 2])), $four - tokens_of($s, '<1.2 seconds>') + tokens_of($s, '<1.0 seconds>'),
       'the last of an odd number of frames is repeated');
    is(tokens($s, list(0.05, @frames[0, 1])), $two - tokens_of($s, '<0.2 seconds>') + tokens_of($s, '<10.0 seconds>'),
       'the time is by fps');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();


sub server {
    my ($name, $model, $engine) = @_;

    return VLM->new(name => $name, model => $model, server => 'location = /metrics { vlm_status live; }',
                    engine => "thinking off; $engine")->start->ready;
}

sub video_url { { type => 'video_url', video_url => { url => $_[0] } } }
sub url { video_url('data:video/jpeg;base64,' . join ',', @_) }
sub bounded { { type => 'video_url', video_url => { url => 'data:video/jpeg;base64,' . join(',', @frames[0, 1]), @_ } } }
sub picture { { type => 'image_url', image_url => { url => "data:image/png;base64,$file{'40x30.png'}" } } }

sub list {
    my ($fps, @pictures) = @_;

    return { type => 'video', video => [map { "data:image/png;base64,$_" } @pictures], fps => $fps };
}

sub ask {
    my ($s, @parts) = @_;

    pop @parts if !ref $parts[-1];

    return $s->post('/v1/chat/completions', { max_tokens => 4, temperature => 0, timings => JSON::PP::true, messages => [
        { role => 'user', content => [@parts, { type => 'text', text => 'What is it?' }] }] });
}

sub tokens {
    my $r = ask(@_);

    is($r->{code}, 200, 'a question about frames is answered') or diag($r->{body});

    return $r->{json}{usage}{prompt_tokens};
}

sub jpeg {
    my $file = VLM::bmp(@_);

    return encode_base64(scalar `cjpeg $file`, '');
}

# The tokens of a text that stands before a control token.
sub tokens_of {
    my ($s, $text) = @_;

    my @n = map { $s->post('/v1/chat/completions', { max_tokens => 1, messages => [{ role => 'user', content => $_ }] })
                    ->{json}{usage}{prompt_tokens} } '', $text;

    return $n[1] - $n[0];
}
