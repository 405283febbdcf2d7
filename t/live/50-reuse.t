# Tests the reuse of KV prefixes and pictures within a tenant, by the timings of
# answers, the log and the metrics, and the number of cached pictures.

use strict;
use warnings;

use lib 't/lib';
use MIME::Base64 qw(encode_base64);
use Test::More;
use VLM;

my @parts = qw(receive_ms wait_ms prepare_ms image_decode_ms image_resize_ms encode_ms prefill_ms
               first_step_ms);

my %url = map {
    ($_ => 'data:image/png;base64,' . encode_base64(VLM::slurp("t/fidelity/pictures/$_.png"), ''))
} qw(40x30 118x62 61x117);

sub server {
    my ($name, $engine, $workers) = @_;

    return VLM->new(name => $name, workers => $workers || 1, listen => 'reuseport',
                    http => 'log_format vlm "c=$vlm_cached_tokens p=$vlm_prompt_tokens";',
                    server => 'access_log logs/vlm.log vlm; location = /metrics { vlm_status live; }',
                    engine => "thinking off; max_tokens 8; sampling temperature=0; $engine")->start->ready;
}

sub ask {
    my ($s, $picture, %headers) = @_;

    my $r = $s->begin('POST', '/v1/chat/completions', {
        max_tokens => 3, timings => JSON::PP::true, messages => [{ role => 'user', content => [
            { type => 'image_url', image_url => { url => $url{$picture} } },
            { type => 'text', text => 'What is on the table?' }] }] }, \%headers)->end;

    is($r->{code}, 200, "about $picture") or diag($r->{body});

    return $r->{json};
}

sub encoded { $_[0]{timings}{image_n} - $_[0]{timings}{image_cache_n} }
sub metric { $_[0]->get('/metrics')->{body} =~ /^\Q$_[1]\E (\d+)$/m ? $1 : undef }


# ---- once ------------------------------------------------------------------------------

{
    my $s = server('cache-once', 'slots 1;');
    my $first = ask($s, '118x62');
    my $again = ask($s, '118x62');
    my $t = $first->{timings};

    is($t->{cache_n}, 0, 'the first request finds no cached rows');
    is($t->{image_n}, 1, 'the request has one picture');
    is(encoded($first), 1, 'the picture was encoded');
    is($t->{prompt_n}, $first->{usage}{prompt_tokens}, 'all its tokens are read');
    is($t->{predicted_n}, $first->{usage}{completion_tokens}, 'the answer has as many tokens as usage says');
    cmp_ok($t->{image_decode_ms}, '>', 0, 'a decoded picture took its time');
    ok(defined $t->{$_} && $t->{$_} >= 0, "$_ has a value") for @parts;
    cmp_ok($t->{image_decode_ms} + $t->{image_resize_ms}, '<=', $t->{prepare_ms} + 2, 'decode and resize are parts of prepare');
    cmp_ok($t->{first_step_ms}, '<=', $t->{prefill_ms}, 'the first step is a part of prefill');
    is($t->{prompt_ms}, $t->{encode_ms} + $t->{prefill_ms}, 'the time of the prompt is the sum of its parts');

    $t = $again->{timings};
    cmp_ok($t->{cache_n}, '>', 10, 'the second request finds cached rows');
    is($t->{cache_n}, $again->{usage}{prompt_tokens_details}{cached_tokens}, 'usage has their number');
    is($t->{prompt_n} + $t->{cache_n}, $again->{usage}{prompt_tokens}, 'only the other tokens are read');
    is($t->{image_decode_ms}, undef, 'the picture is not decoded again');
    is($again->{choices}[0]{message}{content}, $first->{choices}[0]{message}{content}, 'the answer is the same');

    is(metric($s, 'vlm_prompt_tokens_cached_total'), $t->{cache_n}, 'the metrics count the cached tokens');
    is(metric($s, 'vlm_prompt_images_total'), 2, 'two pictures of prompts are counted');
    is(metric($s, 'vlm_receive_seconds_count'), 2, 'the times are counted');
    is(metric($s, 'vlm_image_decode_seconds_count'), 1, 'one decode is counted');
    is(metric($s, 'vlm_first_step_seconds_count'), 2, 'the first steps are counted');

    my $read = $first->{usage}{prompt_tokens};
    ok(VLM::wait_for(sub { (metric($s, 'vlm_kv_tokens{part="used"}') || 0) >= $read }), 'the rows of the prompt are cached');
    is(metric($s, 'vlm_kv_tokens{part="size"}'), 4096, 'the size is that of a context');
    like($s->get('/metrics')->{body}, qr/^vlm_info\{engine="live",device="[^"]+",model="model",weights="int8",version="[\d.]+"\} 1$/m,
         'the metrics say what it is');
    is($s->get('/metrics?format=json')->{json}{vlm_info}{model}, 'model', 'the JSON form has the model, too');

    my $picture = $s->upload('t/fidelity/pictures/40x30.png');
    my $r = $s->chat('s', 'hi', image => $picture, timings => JSON::PP::true)->{json};
    ok(defined $r->{timings}{$_}, "RoboBrain's answer has $_") for @parts;

    ok($s->stop, 'the server stops in time');
    like(VLM::slurp($s->dir . '/logs/vlm.log'), qr/^c=0 p=\d+\n.*^c=$t->{cache_n} p=\d+\n/ms, 'the log has the cached tokens');
    $s->check_log;
}


# ---- tenants ---------------------------------------------------------------------------

for my $workers (1, 3) {
    my $s = server("cache-salt-$workers", 'slots 4; cache_salt $http_x_tenant;', $workers);

    ask($s, '118x62', 'X-Tenant' => 'one');
    my $again = ask($s, '118x62', 'X-Tenant' => 'one');
    cmp_ok($again->{timings}{cache_n}, '>', 10, "$workers: a tenant finds its own");

    # A client cannot set the salt of another.
    for my $forged ('0 0000000000000000 ' . '0' x 40, '0 0000000000000000 fe05bcdcdc4928012781a5f1a2a77cbb5398e106') {
        my $other = ask($s, '118x62', 'X-Tenant' => "two$forged", 'X-Vlm-Line' => $forged);

        is($other->{timings}{cache_n}, 0, "$workers: another finds nothing");
        is(encoded($other), 1, 'another tenant\'s picture is encoded');
        cmp_ok($other->{timings}{image_decode_ms}, '>', 0, 'another tenant\'s picture is decoded');
    }

    my $none = ask($s, '118x62');
    is($none->{timings}{cache_n}, 0, "$workers: a request without a salt reuses no rows of others");
    cmp_ok(ask($s, '118x62')->{timings}{cache_n}, '>', 10, 'it reuses its own rows');
    cmp_ok(ask($s, '118x62', 'X-Tenant' => 'one')->{timings}{cache_n}, '>', 10, 'the first tenant still reuses its rows');

    ok($s->stop, 'the server stops in time');
    my $log = VLM::slurp($s->dir . '/logs/vlm.log');
    is((() = $log =~ /^c=\d+ p=\d+$/mg), 7, 'the log has the tokens of each');
    $s->check_log;
}


# ---- features --------------------------------------------------------------------------

{
    my $s = server('cache-features', 'slots 1; features 1;');

    my @encoded = map { encoded(ask($s, $_)) } qw(118x62 118x62 61x117 40x30 118x62);

    is("@encoded", '1 0 1 1 1', 'one picture is kept, the others are encoded again');
    ok($s->stop, 'the server stops in time');
    my ($few) = $s->log =~ /vision (\d+)m/;

    $s = server('cache-more-features', 'slots 1; features 200;');
    @encoded = map { encoded(ask($s, $_)) } qw(118x62 118x62 61x117 40x30 118x62);

    is("@encoded", '1 0 1 1 0', 'a cache of two hundred keeps each picture');
    my ($many) = $s->log =~ /vision (\d+)m/;
    cmp_ok($many, '>', $few, 'the plan grows with the number of features');
    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();
