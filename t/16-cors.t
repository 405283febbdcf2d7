# Answers to pages from elsewhere: CORS headers on everything below /api/, on
# errors as well, and preflight requests.

use Test::Nginx::Socket;

require './t/lib/vlm.pl';

add_block_preprocessor(\&defaults);
log_level('info');
no_shuffle();

plan tests => repeat_each() * 35;

run_tests();

__DATA__

=== TEST 1: an origin is echoed
--- request
GET /api/tasks
--- more_headers
Origin: https://robots.example
--- response_headers
Access-Control-Allow-Origin: https://robots.example
Vary: Origin
!Access-Control-Allow-Credentials



=== TEST 2: without one, everybody may read
--- request
GET /api/tasks
--- response_headers
Access-Control-Allow-Origin: *



=== TEST 3: errors, too
--- request eval
["GET /api/history/nobody", "POST /api/chat\n{}", "GET /api/nothing", "GET /api/chat"]
--- more_headers
Origin: https://robots.example
Content-Type: application/json
--- error_code eval
[404, 400, 404, 405]
--- response_headers eval
[("Access-Control-Allow-Origin: https://robots.example\nVary: Origin") x 4]



=== TEST 4: errors of nginx's own
--- config
        location ~ ^/(api|v1|uploads|result)/ {
            client_max_body_size 1k;
            vlm_pass demo;
        }
--- request eval
"POST /api/chat\n" . 'x' x 2000
--- more_headers
Origin: https://robots.example
--- error_code: 413
--- response_headers
Access-Control-Allow-Origin: https://robots.example
Content-Type: application/json
--- response_body_like: ^\{"error":".+"\}\n$



=== TEST 5: preflight
--- request
OPTIONS /api/chat
--- more_headers
Origin: https://robots.example
Access-Control-Request-Method: POST
Access-Control-Request-Headers: x-b, content-type
--- response_headers
Access-Control-Allow-Origin: https://robots.example
Access-Control-Allow-Methods: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT
Access-Control-Allow-Headers: content-type, x-b
--- response_body



=== TEST 6: preflight of a path that takes a parameter
--- request eval
["OPTIONS /api/session/abc", "OPTIONS /api/upload", "OPTIONS /api/session/abc/reset"]
--- more_headers
Origin: https://robots.example
Access-Control-Request-Method: DELETE
--- error_code eval
[200, 200, 200]
--- response_headers eval
[("Access-Control-Allow-Methods: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT") x 3]



=== TEST 7: pictures
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request
GET /uploads/cup.png
--- more_headers
Origin: https://robots.example
--- response_headers
Access-Control-Allow-Origin: https://robots.example
