# Every number has a bound, and passing it is an answer, not an accident.

use Test::Nginx::Socket;

require './t/lib/vlm.pl';

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

plan tests => repeat_each() * 52;

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
[qr/^\{.*"error":".*\b\d{3,4}\b.*\b12[78]\b.*"/, qr/"turn_number":2,"usage"/]



=== TEST 2: a history that no longer fits loses its oldest turns
--- http_config eval: $::Small
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("40x30.png")]]
--- request eval
[map { main::chat(image => 'cup.png', message => 'What colour is the cup on the left of the table?') } 1 .. 6]
--- error_code eval
[(200) x 6]
--- response_body_like eval
[(map { my $n = 2 * $_; qr/"turn_number":$n,"usage"/ } 1 .. 5), qr/"history_dropped":[1-9].*"turn_number":12,"usage"/]
--- no_error_log
[error]



=== TEST 3: an answer has at most max_tokens
--- http_config eval: $::Small
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("40x30.png")]]
--- request eval
main::chat(image => 'cup.png')
--- response_body_like: "answer":"[^"]{0,200}"



=== TEST 4: a body of 64m is what a location takes unless it says so
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



=== TEST 5: more than 64m that are announced are refused before they are sent
--- config
        location ~ ^/(api|uploads|result)/ {
            client_max_body_size 64m;
            vlm_pass demo;
        }
--- raw_request eval
"POST /api/upload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=xxxx\r\nContent-Length: 67108865\r\n\r\n"
--- error_code: 413
--- response_body_like: ^\{"error":".+"\}\n$



=== TEST 6: an id of a session has at most 128 bytes
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("40x30.png")]]
--- request eval
[main::chat(session_id => 'i' x 128, image => 'cup.png'), main::chat(session_id => 'i' x 129, image => 'cup.png'),
 "GET /api/history/" . 'i' x 128, "GET /api/history/" . 'i' x 129]
--- error_code_like eval
[qr/200/, qr/400/, qr/200/, qr/400|404/]
--- response_body_like eval
[qr/"turn_number":2,"usage"/, qr/"error":".+"/, qr/^\[\{/, qr/"error":".+"/]



=== TEST 7: a file's name has at most 255 bytes, the end of which is kept
--- request eval
"POST /api/upload\n" . main::multipart(['file', 'n' x 400 . '.png', main::picture('40x30.png')])
--- more_headers
Content-Type: multipart/form-data; boundary=xxxx
--- error_code_like: ^(?:200|400)$
--- response_body_like: n\.png"|"error":"



=== TEST 8: parts of a form are counted
--- request eval
"POST /api/upload\n" . main::multipart((['a', undef, 'x']) x 100, ['file', 'a.png', 'x'])
--- more_headers
Content-Type: multipart/form-data; boundary=xxxx
--- error_code: 400
--- response_body_like: ^\{"error":".+"\}\n$



=== TEST 9: a picture with more pixels than may be decoded
--- user_files eval
[["../logs/vlm/uploads/bomb.png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xea\x60\0\0\xea\x60\x08\x02\0\0\0" . "\0" x 400],
 ["../logs/vlm/uploads/bomb.bmp", "BM" . pack('VvvV', 1000, 0, 0, 54) . pack('VVVvvVVVVVV', 40, 60000, 60000, 1, 24, 0, 0, 0, 0, 0, 0) . "\0" x 400],
 ["../logs/vlm/uploads/bomb.gif", "GIF89a\xff\xff\xff\xff\x80\0\0" . "\0" x 6 . "," . "\0" x 100]]
--- request eval
[map { main::chat(image => "bomb.$_") } qw(png bmp gif)]
--- error_code_like eval
[(qr/^(?:200|400)$/) x 3]
--- response_body_like eval
[(qr/"error":".+"/) x 3]



=== TEST 10: a picture that is a line
--- user_files eval
[["../logs/vlm/uploads/line.bmp", "BM" . pack('VvvV', 54 + 3 * 4000, 0, 0, 54) . pack('VVVvvVVVVVV', 40, 4000, 1, 1, 24, 0, 0, 0, 0, 0, 0) . "\0" x 12000]]
--- request eval
main::chat(image => 'line.bmp')
--- error_code_like: ^(?:200|400)$
--- response_body_like: "error":".*200
