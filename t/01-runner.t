# Tests the runner itself with an nginx without the module: each check that the
# other files use is here once, with a known answer.

use Test::Nginx::Socket;
no_shuffle();

plan tests => repeat_each() * 27;

run_tests();

__DATA__

=== TEST 1: status, headers, body and log are checked
--- config
    location /a { return 200 "hello $request_body\n"; add_header X-A b; }
--- request
GET /a
--- response_headers
X-A: b
!X-B
--- response_body
hello 
--- no_error_log
[error]



=== TEST 2: several requests have a connection each
--- config
    location /a { return 404 "no"; }
    location /b { return 200 "yes"; }
--- request eval
["GET /a", "POST /b\nfoo"]
--- error_code eval
[404, 200]
--- response_body eval
["no", "yes"]



=== TEST 3: several requests share a connection
--- config
    location /a { return 404 "no"; }
    location /b { return 200 "yes"; }
--- pipelined_requests eval
["GET /a", "GET /b"]
--- error_code eval
[404, 200]
--- response_body eval
["no", "yes"]



=== TEST 4: a refused configuration is recognised
--- config
    nonsense on;
--- must_die
--- error_log
unknown directive "nonsense"



=== TEST 5: a file and a chunked answer are read
--- config
    location = /x.html { ssi on; default_type text/html; }
--- user_files
>>> x.html
<!--#echo var="request_method" --> hi
>>> y/z.txt
other
--- request
GET /x.html
--- more_headers
Host: other
--- response_body_like: ^GET hi
--- response_headers
Transfer-Encoding: chunked



=== TEST 6: raw bytes are sent, with a delay between
--- config
    location /b { return 200 "yes"; }
--- raw_request eval
["GET /b HTTP/1.0\r\n", "\r\n"]
--- raw_request_middle_delay: 0.1
--- response_body chomp
yes



=== TEST 7: packets have a delay, also in a body
--- config
    location /b { proxy_pass http://127.0.0.1:$server_port/c; proxy_http_version 1.0; }
    location /c { return 200 "$request_method $content_length"; }
--- request eval
[["POST /b\nab", { value => "cd", delay_before => 0.05 }, "ef"]]
--- response_body: POST 6
--- access_log
"POST /c HTTP/1.0" 200



=== TEST 8: filters apply, and a status may be a pattern
--- config
    location /a { return 403 "Hello"; }
--- request
GET /a
--- error_code_like: ^40\d$
--- response_body_filters
uc
length
--- response_body chomp
5
--- raw_response_headers_like: ^HTTP/1.1 403 Forbidden\r\n



=== TEST 9: a client aborts
--- config
    location /a { proxy_pass http://127.0.0.1:$server_port/b; proxy_connect_timeout 1; }
    location /b { limit_rate 1; return 200 "0123456789"; }
--- request
GET /a
--- timeout: 0.2
--- abort
--- ignore_response
--- no_error_log
[alert]
