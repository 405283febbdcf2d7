# Tests the bounds of a picture's pixels: of one request, and the engine's min_pixels.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use MIME::Base64 qw(encode_base64);
use Script;
use Test::More;
use VLM;

my $model = Script::model('pixels', bounding => ['[10, 20, ', '60, 50]'], '' => ['I see it']);
my $s = VLM->new(name => 'pixels', model => $model, engine => 'thinking off; max_pixels 200704;')->start->ready;

my $large = VLM::bmp(800, 600);
my $small = VLM::bmp(112, 56);
my $n = 0;


# ---- of a chat -------------------------------------------------------------------

{
    my $plain = seen($s, $large);
    my $less = seen($s, $large, max_pixels => 50176);

    cmp_ok(area($plain), '>', 180_000, 'a picture without bounds is as large as max_pixels lets it be');
    cmp_ok(area($less), '<=', 50176, 'a picture with a bound of its own is smaller');
    cmp_ok(area($less), '>', 40_000, 'the picture is not smaller than the bound needs');
    is($plain->{tokens} - $less->{tokens}, (area($plain) - area($less)) / 784, 'its cells are tokens');

    my $again = seen($s, $large);

    is_deeply([@$again{qw(size tokens)}], [@$plain{qw(size tokens)}], 'the next request is not bound by it');
    is($again->{cached}, 1, 'a repeated picture has the cached features of its own size');

    is(seen($s, $small)->{size}, undef, 'a small picture is not resized');
    cmp_ok(area(seen($s, $small, min_pixels => 100_000)), '>=', 100_000, 'a bound enlarges it');
    cmp_ok(area(seen($s, $large, detail => 'low', max_pixels => 40_000)), '<=', 40_000,
           'the smaller of two bounds counts');
    is_deeply(seen($s, $large, detail => $_)->{size}, $plain->{size}, "detail $_ is as large as without it")
        for qw(high auto);
}

for ([{ max_pixels => 200705 }, 'max_pixels is 200705, it may be a whole number from 1 to 200704'],
     [{ min_pixels => 0 }, 'min_pixels is 0, it may be a whole number from 1 to 200704'],
     [{ min_pixels => 9000, max_pixels => 8000 }, 'min_pixels is 9000, more than max_pixels 8000'],
     [{ detail => 'full' }, 'detail is not low, high or auto'])
{
    my ($bounds, $error) = @$_;
    my $r = $s->chat('refused', 'it', image => $s->upload($small), %$bounds);

    is("$r->{code} $r->{json}{error}", "400 $error", $error);
}

{
    my $r = $s->chat('one cell', 'it', image => $s->upload($small), max_pixels => 783);

    is($r->{code}, 400, 'less than a cell of the model is refused');
    like($r->{json}{error}, qr/max_pixels 783, one cell of the model has 28x28/, 'the message has both numbers');

    $r = $s->post('/api/pipeline', { session_id => 'p', message => 'it', image => $s->upload($large),
                                     max_pixels => 50176 });
    cmp_ok(area({ size => $r->{json}{image_resized} }), '<=', 50176, 'a pipeline has a bound, too');
}


# ---- inside image_url ------------------------------------------------------------

{
    my $plain = openai($large);

    cmp_ok(openai($large, max_pixels => 50176), '<', $plain - 150, 'a bound of an image_url');
    cmp_ok(openai($small, min_pixels => 100_000), '>', openai($small) + 100, 'min_pixels of an image_url enlarges the picture');
    is(openai($large, detail => 'auto'), $plain, 'detail auto is as large as without it');

    my $r = completion($large, max_pixels => 1e9);

    is($r->{code}, 400, 'a bound beyond the configured one is refused');
    is($r->{json}{error}{message}, 'max_pixels is 1000000000, it may be a whole number from 1 to 200704',
       'the message has both numbers');
    is($r->{json}{error}{param}, 'messages.0.content.0', 'the error names the place of the picture');
}


# ---- beside Ollama's images ------------------------------------------------------

for my $endpoint (qw(chat generate)) {
    my $plain = ollama($endpoint, $large);

    cmp_ok(ollama($endpoint, $large, max_pixels => 50176), '<', $plain - 150, "$endpoint: a bound beside images");
    cmp_ok(ollama($endpoint, $small, min_pixels => 100_000), '>', ollama($endpoint, $small) + 100,
           "$endpoint: min_pixels enlarges the picture");
    is(ollama($endpoint, $large, detail => 'high'), $plain, "$endpoint: detail high is as large as without it");

    my $r = asked($endpoint, $large, max_pixels => 200_705);

    is("$r->{code} $r->{json}{error}", '400 max_pixels is 200705, it may be a whole number from 1 to 200704',
       "$endpoint: a bound beyond the configured one is refused");
}


# ---- of the engine ---------------------------------------------------------------

{
    my $more = VLM->new(name => 'pixels-more', model => $model,
                        engine => 'thinking off; max_pixels 401408; min_pixels 150000;')->start->ready;

    cmp_ok(area(seen($more, $large, detail => 'low')), '<=', 512 * 512, 'detail low has 512 x 512 pixels at most');
    cmp_ok(area(seen($more, $small)), '>=', 150_000, 'min_pixels enlarges a small picture');
    is(seen($more, $small, min_pixels => 1)->{size}, undef, 'a request may ask for less');
    cmp_ok(area(seen($more, $small, max_pixels => 50176)), '<=', 50176, 'a picture is within its own max_pixels');

    ok($more->stop, 'the server stops in time');
    $more->check_log;
}

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();


# The picture as the model saw it: its size, if it was resized, and the prompt's tokens.
sub seen {
    my ($server, $file, %bounds) = @_;

    my $r = $server->chat('s' . ++$n, 'it', image => $server->upload($file), timings => JSON::PP::true, %bounds);

    is($r->{code}, 200, 'a chat is answered') or diag($r->{body});

    return { size => $r->{json}{image_resized}, tokens => $r->{json}{usage}{prompt_tokens},
             cached => $r->{json}{timings}{image_cache_n} };
}

sub area { my ($seen) = @_; return $seen->{size}[0] * $seen->{size}[1] }

sub completion {
    my ($file, %bounds) = @_;

    my $url = 'data:image/bmp;base64,' . encode_base64(VLM::slurp($file), '');

    return $s->post('/v1/chat/completions', { messages => [{ role => 'user', content => [
        { type => 'image_url', image_url => { url => $url, %bounds } }, { type => 'text', text => 'it' } ] }] });
}

sub openai {
    my $r = completion(@_);

    is($r->{code}, 200, 'a completion') or diag($r->{body});

    return $r->{json}{usage}{prompt_tokens};
}

sub asked {
    my ($endpoint, $file, %bounds) = @_;

    my %images = (images => [encode_base64(VLM::slurp($file), '')], %bounds);

    return $s->post("/api/$endpoint", { stream => JSON::PP::false, $endpoint eq 'generate'
        ? (prompt => 'it', %images) : (messages => [{ role => 'user', content => 'it', %images }]) });
}

sub ollama {
    my $r = asked(@_);

    is($r->{code}, 200, 'an answer in Ollama\'s form') or diag($r->{body});

    return $r->{json}{prompt_eval_count};
}
