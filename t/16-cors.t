# Which pages of other origins may ask and read: vlm_cors on everything that a
# location with vlm_pass answers, errors of nginx's own and preflights included.

use Test::Nginx::Socket;

require './t/lib/vlm.pl';

our $Http;
our $LIST = $Http . 'vlm_cors https://robots.example http://localhost:3000;';

# A page elsewhere that asks in this way.
sub page {
    my ($origin, $site, $mode, %more) = @_;

    my %headers = ('Content-Type' => 'application/json',
                   'Sec-Fetch-Site' => $site, 'Sec-Fetch-Mode' => $mode,
                   ($origin ? (Origin => $origin) : ()), %more);

    return join "\n", map { "$_: $headers{$_}" } sort keys %headers;
}

add_block_preprocessor(\&defaults);
log_level('info');
no_shuffle();

plan tests => repeat_each() * 123;

run_tests();

__DATA__

=== TEST 1: as it comes, no page of another origin may read
--- request eval
["GET /api/tasks", "GET /api/history/nobody", "POST /api/chat\n{}", "OPTIONS /api/chat"]
--- more_headers
Origin: https://robots.example
Content-Type: application/json
Access-Control-Request-Method: POST
--- error_code eval
[200, 404, 400, 200]
--- response_headers eval
[("!Access-Control-Allow-Origin\n!Access-Control-Allow-Methods\n!Vary") x 4]



=== TEST 2: nor ask, where the browser says that it is one
--- request eval
["GET /api/tasks", "POST /api/chat\n{}", "OPTIONS /api/chat", "GET /api/nothing"]
--- more_headers eval
main::page('https://robots.example', 'cross-site', 'cors')
--- error_code eval
[403, 403, 403, 403]
--- response_headers eval
[("!Access-Control-Allow-Origin") x 4]
--- response_body_like eval
['^\{"error":".*vlm_cors.*"\}\n$', '^\{"error":".*vlm_cors.*"\}\n$', '^\{"error":".*vlm_cors.*"\}\n$', '^\{"error":".*vlm_cors.*"\}\n$']



=== TEST 3: a page of another port is another origin, and the log says which
--- request
GET /api/tasks
--- more_headers eval
main::page('http://localhost:3000', 'same-site', 'cors')
--- error_code: 403
--- error_log
vlm_cors refuses a request of a page of another origin, "http://localhost:3000"



=== TEST 4: pages of this origin ask, also through a proxy that changes Host
--- request eval
["GET /api/tasks", "POST /api/chat\n{}"]
--- more_headers eval
main::page('http://localhost:3000', 'same-origin', 'cors')
--- error_code eval
[200, 400]



=== TEST 5: a picture of ours in a page elsewhere
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request
GET /uploads/cup.png
--- more_headers eval
main::page('', 'cross-site', 'no-cors')
--- error_code: 403



=== TEST 6: a link to a picture that a person follows
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request
GET /uploads/cup.png
--- more_headers eval
main::page('', 'cross-site', 'navigate')
--- response_headers
Content-Type: image/png



=== TEST 7: a form that a page elsewhere sends
--- request
POST /api/session
--- more_headers eval
main::page('', 'cross-site', 'navigate')
--- error_code: 403



=== TEST 8: origins that are listed read, and see when to come again
--- http_config eval: $main::LIST
--- request eval
["GET /api/tasks", "GET /api/history/nobody", "POST /api/chat\n{}", "GET /api/nothing", "GET /api/chat"]
--- more_headers eval
main::page('https://robots.example', 'cross-site', 'cors')
--- error_code eval
[200, 404, 400, 404, 405]
--- response_headers eval
[("Access-Control-Allow-Origin: https://robots.example\nAccess-Control-Expose-Headers: Retry-After\nVary: Origin\n!Access-Control-Allow-Credentials") x 5]



=== TEST 9: the second of the list, without what only some browsers send
--- http_config eval: $main::LIST
--- request
GET /api/tasks
--- more_headers
Origin: http://localhost:3000
--- response_headers
Access-Control-Allow-Origin: http://localhost:3000



=== TEST 10: others do not
--- http_config eval: $main::LIST
--- request
GET /api/tasks
--- more_headers
Origin: https://robots.example.net
--- response_headers
!Access-Control-Allow-Origin
Vary: Origin



=== TEST 11: nor do they ask
--- http_config eval: $main::LIST
--- request
GET /api/tasks
--- more_headers eval
main::page('https://robots.example.net', 'cross-site', 'cors')
--- error_code: 403
--- response_headers
!Access-Control-Allow-Origin



=== TEST 12: a preflight
--- http_config eval: $main::LIST
--- request eval
["OPTIONS /api/chat", "OPTIONS /api/session/abc", "OPTIONS /api/upload", "OPTIONS /api/session/abc/reset"]
--- more_headers eval
main::page('https://robots.example', 'cross-site', 'cors', 'Access-Control-Request-Method' => 'DELETE', 'Access-Control-Request-Headers' => 'content-type,x-b')
--- response_headers eval
[("Access-Control-Allow-Origin: https://robots.example\nAccess-Control-Allow-Methods: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\nAccess-Control-Allow-Headers: content-type,x-b") x 4]
--- error_code eval
[200, 200, 200, 200]



=== TEST 13: OPTIONS of other programs
--- http_config eval: $main::LIST
--- request
OPTIONS /api/chat
--- response_headers
Allow: OPTIONS, POST
!Access-Control-Allow-Methods
Vary: Origin



=== TEST 14: errors of nginx's own
--- http_config eval: $main::LIST
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



=== TEST 15: pictures in a page that is listed come without an Origin
--- http_config eval: $main::LIST
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request
GET /uploads/cup.png
--- more_headers eval
main::page('', 'cross-site', 'no-cors', Referer => 'https://robots.example/')
--- response_headers
Content-Type: image/png



=== TEST 16: and in others, whose names begin alike
--- http_config eval: $main::LIST
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request
GET /uploads/cup.png
--- more_headers eval
main::page('', 'cross-site', 'no-cors', Referer => 'https://robots.example.net/')
--- error_code: 403



=== TEST 17: * is any page
--- http_config eval: $main::Http . 'vlm_cors *;'
--- request eval
["GET /api/tasks", "GET /api/nothing"]
--- more_headers eval
main::page('https://robots.example', 'cross-site', 'cors')
--- error_code eval
[200, 404]
--- response_headers eval
[("Access-Control-Allow-Origin: *\nAccess-Control-Expose-Headers: Retry-After\n!Vary") x 2]



=== TEST 18: off leaves it to a proxy in front
--- http_config eval: $main::Http . 'vlm_cors off;'
--- request
GET /api/tasks
--- more_headers eval
main::page('https://robots.example', 'cross-site', 'cors')
--- error_code: 200
--- response_headers
!Access-Control-Allow-Origin
!Vary



=== TEST 19: a location's own counts more than that of http
--- http_config eval: $main::LIST
--- config
        location ~ ^/(api|v1|uploads|result)/ {
            vlm_pass demo;
            vlm_cors *;

            if ($arg_if) {
                set $a b;
            }
        }
--- request eval
["GET /api/tasks", "GET /api/tasks?if=1"]
--- response_headers eval
[("Access-Control-Allow-Origin: *") x 2]
--- error_code eval
[200, 200]



=== TEST 20: limits of nginx's own say when to come again
--- http_config eval: $main::Http . 'vlm_cors *; limit_req_zone $server_name zone=one:1m rate=1r/m;'
--- config
        location ~ ^/(api|v1|uploads|result)/ {
            limit_req zone=one;
            limit_req_status 429;
            vlm_pass demo;
        }
--- request eval
["GET /api/tasks", "GET /api/tasks"]
--- error_code eval
[200, 429]
--- response_headers eval
["!Retry-After", "Retry-After: 1\nAccess-Control-Expose-Headers: Retry-After"]
--- response_body_like eval
["tasks", '^\{"error":"Too many requests"\}\n$']



=== TEST 21: a path is part of no origin
--- http_config eval: $main::Http . 'vlm_cors https://robots.example/;'
--- must_die
--- error_log
vlm_cors "https://robots.example/" is none of off, same, *, and no origin such as https://robots.example:8443



=== TEST 22: nor is a host an origin
--- http_config eval: $main::Http . 'vlm_cors robots.example;'
--- must_die
--- error_log
vlm_cors "robots.example" is none of off, same, *, and no origin such as https://robots.example:8443



=== TEST 23: a word and an origin do not go together
--- http_config eval: $main::Http . 'vlm_cors same https://robots.example;'
--- must_die
--- error_log
vlm_cors "same" is none of off, same, *, and no origin such as https://robots.example:8443
