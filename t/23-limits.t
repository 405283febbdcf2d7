# Tests that every number has a limit, and that a request beyond it is refused.

use Test::Nginx::Socket;

use Compress::Zlib qw(compress crc32);

require './t/lib/vlm.pl';
require './t/lib/VLM.pm';

$ENV{TEST_NGINX_SLOW_MODEL} = VLM::slow_model();

add_block_preprocessor(\&defaults);
log_level('info');
no_shuffle();

our $Small = <<'_EOC_';
    vlm_engine demo {
        model $TEST_NGINX_MODEL;
        thinking off;
        sampling temperature=0;
        context 128;
        max_tokens 16;
        slots 1;
        store logs/vlm;
    }
_EOC_

# The answers are endless, and a log has their lengths.
sub endless {
    my ($max_tokens) = @_;

    return <<"_EOC_";
    log_format vlm '\$status c=\$vlm_completion_tokens f=\$vlm_finish_reason.';
    access_log logs/access.log vlm;

    vlm_engine demo {
        model \$TEST_NGINX_SLOW_MODEL;
        thinking off;
        sampling temperature=0 repetition_penalty=1;
        context 512;
        max_tokens $max_tokens;
        slots 1;
        store logs/vlm;
    }
_EOC_
}

# Makes a PNG with a valid header and pixels for one row.
sub png {
    my ($width, $height) = @_;

    return "\x89PNG\r\n\x1a\n" . join '', map {
        pack('N', length($_) - 4) . $_ . pack('N', crc32($_))
    } 'IHDR' . pack('NNC5', $width, $height, 8, 2, 0, 0, 0),
      'IDAT' . compress("\0" x ($width * 3 + 1)), 'IEND';
}

# Makes a BMP of the size in its header; data is its pixels.
sub bmp {
    my ($width, $height, $data) = @_;

    return 'BM' . pack('VvvV', 54 + length $data, 0, 0, 54)
           . pack('VVVvvVVVVVV', 40, $width, $height, 1, 24, 0, 0, 0, 0, 0, 0)
           . $data;
}

# Makes a baseline JPEG of one grey component with an empty scan.
sub jpeg {
    my ($width, $height) = @_;

    return "\xff\xd8\xff\xc0" . pack('nCnnC', 11, 8, $height, $width, 1)
           . "\1\x11\0\xff\xda\0\x08\1\1\0\0\x3f\0\0\xff\xd9";
}

plan tests => repeat_each() * 64;

run_tests();

__DATA__

=== TEST 1: a prompt beyond the context is refused with both numbers
--- http_config eval: $::Small
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("40x30.png")]]
--- request eval
[main::chat(image => 'cup.png', message => 'cup ' x 400), main::chat(image => 'cup.png')]
--- error_code eval
[400, 200]
--- response_body_like eval
[qr/^\{.*"error":".*\b128 tokens\. The prompt has (?:at least )?\d{3,4}\b.*"/, qr/"turn_number":2\}/]



=== TEST 2: a history that no longer fits loses its oldest turns
--- http_config eval: $::Small
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("40x30.png")]]
--- request eval
[map { main::chat(image => 'cup.png', message => 'What colour is the cup on the left of the table?') } 1 .. 6]
--- error_code eval
[(200) x 6]
--- response_body_like eval
[(map { my $n = 2 * $_; qr/"turn_number":$n\}/ } 1 .. 5), qr/"history_dropped":[1-9].*"turn_number":12\}/]
--- no_error_log
[error]



=== TEST 3: an answer has max_tokens tokens if it does not end before
--- http_config eval: main::endless(37)
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("40x30.png")]]
--- request eval
main::chat(image => 'cup.png')
--- response_body_like: "turn_number":2
--- access_log
200 c=37 f=length.



=== TEST 4: an answer has one token if max_tokens is 1
--- http_config eval: main::endless(1)
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("40x30.png")]]
--- request eval
main::chat(image => 'cup.png')
--- response_body_like: "turn_number":2
--- access_log
200 c=1 f=length.



=== TEST 5: a location takes a body of 64m by default
--- http_config eval
$::Http . "client_max_body_size 1m;\n"
--- config
        location ~ ^/(api|uploads|result)/ {
            client_max_body_size 2k;
            vlm_pass demo;
        }
--- request eval
["POST /api/chat\n" . 'x' x 3000, "POST /api/upload\n" . 'x' x 3000]
--- error_code eval
[413, 413]
--- response_headers eval
[("Content-Type: application/json") x 2]
--- response_body_like eval
[(qr/^\{"error":".+"\}\n$/) x 2]



=== TEST 6: a body of more than 64m is refused before it is sent
--- config
        location ~ ^/(api|uploads|result)/ {
            client_max_body_size 64m;
            vlm_pass demo;
        }
--- raw_request eval
"POST /api/upload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=xxxx\r\nContent-Length: 67108865\r\n\r\n"
--- error_code: 413
--- response_body_like: ^\{"error":".+"\}\n$



=== TEST 7: an id of a session has at most 128 bytes
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("40x30.png")]]
--- request eval
[main::chat(session_id => 'i' x 128, image => 'cup.png'), main::chat(session_id => 'i' x 129, image => 'cup.png'),
 "GET /api/history/" . 'i' x 128, "GET /api/history/" . 'i' x 129]
--- error_code eval
[200, 400, 200, 404]
--- response_body_like eval
[qr/"turn_number":2\}/, qr/"error":"Session id of 129 bytes, 1 to 128 are possible"/, qr/^\[\{/,
 qr/"error":"Session not found"/]



=== TEST 8: a stored file name keeps its last 180 bytes
--- request eval
"POST /api/upload\n" . main::multipart(['file', 'n' x 400 . '.png', main::picture('40x30.png')])
--- more_headers
Content-Type: multipart/form-data; boundary=xxxx
--- response_body_like: "filename":"[0-9a-f-]{36}_n{176}\.png"



=== TEST 9: the number of parts of a form is limited
--- request eval
"POST /api/upload\n" . main::multipart((['a', undef, 'x']) x 100, ['file', 'a.png', 'x'])
--- more_headers
Content-Type: multipart/form-data; boundary=xxxx
--- error_code: 400
--- response_body_like: ^\{"error":"The body has more than 64 parts"\}\n$



=== TEST 10: a picture with too many pixels is refused
--- user_files eval
[["../logs/vlm/uploads/side.png", main::png(60000, 60000)],
 ["../logs/vlm/uploads/area.png", main::png(20000, 20000)],
 ["../logs/vlm/uploads/side.bmp", main::bmp(60000, 60000, "\0" x 400)],
 ["../logs/vlm/uploads/side.gif", "GIF89a\xff\xff\xff\xff\x80\0\0" . "\0" x 6 . ",\0\0\0\0\1\0\1\0\0\2\2\x44\1\0;"],
 ["../logs/vlm/uploads/side.jpg", main::jpeg(40000, 10)],
 ["../logs/vlm/uploads/area.jpg", main::jpeg(32768, 1221)]]
--- request eval
[map { main::chat(image => $_) } qw(side.png area.png side.bmp side.gif side.jpg area.jpg)]
--- error_code eval
[(400) x 6]
--- response_body_like eval
[qr/"error":"PNG of 60000x60000 pixels, a side may have at most 32768"/,
 qr/"error":"PNG of 20000x20000 pixels are 400000000, at most 40000000 are /,
 qr/"error":"BMP of 60000x60000 pixels, a side may have at most 32768"/,
 qr/"error":"GIF of 65535x65535 pixels, a side may have at most 32768"/,
 qr/"error":"JPEG of 40000x10 pixels, a side may have at most 32768"/,
 qr/"error":"JPEG of 32768x1221 pixels are 40009728, at most 40000000 are /]



=== TEST 11: a picture of one row is refused
--- user_files eval
[["../logs/vlm/uploads/line.bmp", main::bmp(4000, 1, "\0" x 12000)],
 ["../logs/vlm/uploads/band.bmp", main::bmp(4000, 20, "\0" x 240000)]]
--- request eval
[map { main::chat(image => "$_.bmp") } qw(line band)]
--- error_code eval
[400, 200]
--- response_body_like eval
[qr/"error":"picture of 4000x1 pixels, one side may be at most 200 times the other"/, qr/"turn_number":2\}/]
