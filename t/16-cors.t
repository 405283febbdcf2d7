# Tests vlm_cors, which selects the origins whose pages may ask and read, on every
# answer of a location with vlm_pass, including errors of nginx's own and preflights.

use Test::Nginx::Socket;

require './t/lib/vlm.pl';

our $Http;
our $LIST = $Http . 'vlm_cors https://robots.example http://localhost:3000;';

# Pairs [Host, Origin] of a server's own pages: a port of the scheme is left out or not, a proxy in
# front ends TLS, and the case of letters differs.
our @OWN = (['192.168.1.5:5001', 'http://192.168.1.5:5001'], ['robots.example', 'http://robots.example'],
            ['robots.example', 'https://robots.example'], ['robots.example:443', 'https://robots.example'],
            ['robots.example:80', 'http://robots.example'], ['robots.example', 'http://robots.example:80'],
            ['robots.example:5001', 'https://robots.example:5001'], ['Robots.Example', 'HTTP://robots.example'],
            ['[fd00::5]:5001', 'http://[fd00::5]:5001'], ['[fd00::A]', 'http://[fd00::a]'],
            ['[fd00::5]', 'https://[fd00::5]'], ['robots.example:', 'http://robots.example']);

# The same of pages of another origin.
our @OTHER = (['192.168.1.5:5001', 'http://evil.example'], ['192.168.1.5:5001', 'http://192.168.1.5:3000'],
              ['192.168.1.5:5001', 'http://192.168.1.5'], ['192.168.1.5:5001', 'http://192.168.1.5:50011'],
              ['192.168.1.5:5001', 'null'], ['192.168.1.5:5001', '192.168.1.5:5001'],
              ['192.168.1.5', 'https://192.168.1.5:80'], ['192.168.1.5:443', 'http://192.168.1.5'],
              ['192.168.1.5', 'http://192.168.1.5.evil.example'], ['192.168.1.5', 'http://evil.example/192.168.1.5'],
              ['192.168.1.5:5001', 'file://192.168.1.5:5001'], ['192.168.1.5', 'http://'], ['192.168.1.5', ''],
              ['[fd00::5]:5001', 'http://[fd00::5]:5002'], ['[fd00::5]', 'http://[fd00::6]'],
              ['[fd00::5]', 'http://[fd00::]:5'], ['localhost', 'http://127.0.0.1']);

# The same of pages whose own name leads to the server.
our @REBOUND = (map { ["$_:5001", "http://$_:5001"] } qw(evil.example EVIL.example evil.example. 127.0.0.1.evil.example localhost.evil.example
                                                         notlocalhost 5001 1.2.3 _));
push @REBOUND, ['evil.example', 'http://evil.example'], ['evil.example', 'https://evil.example'];

# Returns the headers of these pairs, as a browser sends them to an address that it does not trust.
sub plain {
    return [map { "Host: $_->[0]\nOrigin: $_->[1]\nContent-Type: text/plain" } @_];
}

# Returns the headers of a request by a page of another origin.
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

plan tests => repeat_each() * 219;

run_tests();

__DATA__

=== TEST 1: by default pages of other origins may neither ask nor read
--- request eval
["GET /api/tasks", "GET /api/history/nobody", "POST /api/chat\n{}", "OPTIONS /api/chat"]
--- more_headers
Origin: https://robots.example
Content-Type: application/json
Access-Control-Request-Method: POST
--- error_code eval
[403, 403, 403, 403]
--- response_headers eval
[("!Access-Control-Allow-Origin\n!Access-Control-Allow-Methods\n!Vary") x 4]



=== TEST 2: pages of other origins may not ask, if the browser marks them
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



=== TEST 3: a page of another port is another origin, and the log names it
--- request
GET /api/tasks
--- more_headers eval
main::page('http://localhost:3000', 'same-site', 'cors')
--- error_code: 403
--- error_log
vlm_cors refuses a request of a page of another origin, "http://localhost:3000"



=== TEST 4: pages of the same origin may ask, also through a proxy that changes Host
--- request eval
["GET /api/tasks", "POST /api/chat\n{}"]
--- more_headers eval
main::page('http://localhost:3000', 'same-origin', 'cors')
--- error_code eval
[200, 400]



=== TEST 5: a picture of the server in a page of another origin is refused
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request
GET /uploads/cup.png
--- more_headers eval
main::page('', 'cross-site', 'no-cors')
--- error_code: 403



=== TEST 6: a link to a picture opens
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request
GET /uploads/cup.png
--- more_headers eval
main::page('', 'cross-site', 'navigate')
--- response_headers
Content-Type: image/png



=== TEST 7: a form of another origin is refused
--- request
POST /api/session
--- more_headers eval
main::page('', 'cross-site', 'navigate')
--- error_code: 403



=== TEST 8: listed origins may read, and see Retry-After
--- http_config eval: $main::LIST
--- request eval
["GET /api/tasks", "GET /api/history/nobody", "POST /api/chat\n{}", "GET /api/nothing", "GET /api/chat"]
--- more_headers eval
main::page('https://robots.example', 'cross-site', 'cors')
--- error_code eval
[200, 404, 400, 404, 405]
--- response_headers eval
[("Access-Control-Allow-Origin: https://robots.example\nAccess-Control-Expose-Headers: Retry-After\nVary: Origin\n!Access-Control-Allow-Credentials") x 5]



=== TEST 9: the second origin of the list may read, without headers that only some browsers send
--- http_config eval: $main::LIST
--- request
GET /api/tasks
--- more_headers
Origin: http://localhost:3000
--- response_headers
Access-Control-Allow-Origin: http://localhost:3000



=== TEST 10: other origins may neither ask nor read, without headers that only some browsers send
--- http_config eval: $main::LIST
--- request
GET /api/tasks
--- more_headers
Origin: https://robots.example.net
--- error_code: 403
--- response_headers
!Access-Control-Allow-Origin
Vary: Origin



=== TEST 11: other origins may not ask
--- http_config eval: $main::LIST
--- request
GET /api/tasks
--- more_headers eval
main::page('https://robots.example.net', 'cross-site', 'cors')
--- error_code: 403
--- response_headers
!Access-Control-Allow-Origin



=== TEST 12: a preflight is answered
--- http_config eval: $main::LIST
--- request eval
["OPTIONS /api/chat", "OPTIONS /api/session/abc", "OPTIONS /api/upload", "OPTIONS /api/session/abc/reset"]
--- more_headers eval
main::page('https://robots.example', 'cross-site', 'cors', 'Access-Control-Request-Method' => 'DELETE', 'Access-Control-Request-Headers' => 'content-type,x-b')
--- response_headers eval
[("Access-Control-Allow-Origin: https://robots.example\nAccess-Control-Allow-Methods: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\nAccess-Control-Allow-Headers: content-type,x-b") x 4]
--- error_code eval
[200, 200, 200, 200]



=== TEST 13: OPTIONS of other programs is answered
--- http_config eval: $main::LIST
--- request
OPTIONS /api/chat
--- response_headers
Allow: OPTIONS, POST
!Access-Control-Allow-Methods
Vary: Origin



=== TEST 14: errors of nginx's own have the headers
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



=== TEST 15: pictures in a listed page come without an Origin
--- http_config eval: $main::LIST
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request
GET /uploads/cup.png
--- more_headers eval
main::page('', 'cross-site', 'no-cors', Referer => 'https://robots.example/')
--- response_headers
Content-Type: image/png



=== TEST 16: pictures in an origin whose name begins alike are refused
--- http_config eval: $main::LIST
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request
GET /uploads/cup.png
--- more_headers eval
main::page('', 'cross-site', 'no-cors', Referer => 'https://robots.example.net/')
--- error_code: 403



=== TEST 17: * allows every page
--- http_config eval: $main::Http . 'vlm_cors *;'
--- request eval
["GET /api/tasks", "GET /api/nothing"]
--- more_headers eval
main::page('https://robots.example', 'cross-site', 'cors')
--- error_code eval
[200, 404]
--- response_headers eval
[("Access-Control-Allow-Origin: *\nAccess-Control-Expose-Headers: Retry-After\n!Vary") x 2]



=== TEST 18: off leaves the headers to a proxy in front
--- http_config eval: $main::Http . 'vlm_cors off;'
--- request
GET /api/tasks
--- more_headers eval
main::page('https://robots.example', 'cross-site', 'cors')
--- error_code: 200
--- response_headers
!Access-Control-Allow-Origin
!Vary



=== TEST 19: a location's vlm_cors replaces that of http
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



=== TEST 20: refusals of nginx's own limits have Retry-After
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



=== TEST 21: a path is not part of an origin
--- http_config eval: $main::Http . 'vlm_cors https://robots.example/;'
--- must_die
--- error_log
vlm_cors "https://robots.example/" is not off, same, * or an origin such as https://robots.example:8443



=== TEST 22: a host alone is not an origin
--- http_config eval: $main::Http . 'vlm_cors robots.example;'
--- must_die
--- error_log
vlm_cors "robots.example" is not off, same, * or an origin such as https://robots.example:8443



=== TEST 23: a keyword and an origin exclude each other
--- http_config eval: $main::Http . 'vlm_cors same https://robots.example;'
--- must_die
--- error_log
vlm_cors "same" is not off, same, * or an origin such as https://robots.example:8443



=== TEST 24: pages of the server's own address may ask over plain HTTP
--- config eval: $main::Config . 'server_name robots.example;'
--- request eval
[("POST /api/chat\n{}") x @main::OWN]
--- more_headers eval
main::plain(@main::OWN)
--- error_code eval
[(400) x @main::OWN]



=== TEST 25: a page of another origin may not ask over plain HTTP, where the browser names only its origin
--- request eval
[("POST /api/chat\n{}") x @main::OTHER]
--- more_headers eval
main::plain(@main::OTHER)
--- error_code eval
[(403) x @main::OTHER]
--- response_body_like eval
[('^\{"error":".*vlm_cors.*"\}\n$') x @main::OTHER]



=== TEST 26: the log names an origin that is not the server's address
--- request
POST /api/session
--- more_headers
Host: 192.168.1.5:5001
Origin: null
--- error_code: 403
--- error_log
vlm_cors refuses a request of a page of another origin, "null"



=== TEST 27: programs that send no Origin are not restricted
--- request
POST /api/chat
{}
--- more_headers
Host: 192.168.1.5:5001
--- error_code: 400



=== TEST 28: an origin is no pattern
--- http_config eval: $main::Http . 'vlm_cors https://robots.example http://localhost:*;'
--- must_die
--- error_log
vlm_cors "http://localhost:*" is not off, same, * or an origin such as https://robots.example:8443



=== TEST 29: an origin has no port that browsers leave out
--- http_config eval: $main::Http . 'vlm_cors https://robots.example:443;'
--- must_die
--- error_log
vlm_cors "https://robots.example:443" is not off, same, * or an origin such as https://robots.example:8443



=== TEST 30: a page whose own name leads here may not ask: its origin is Host, and no name of the server
--- request eval
[("POST /api/chat\n{}") x @main::REBOUND]
--- more_headers eval
main::plain(@main::REBOUND)
--- error_code eval
[(403) x @main::REBOUND]
--- response_body_like eval
[('^\{"error":"Pages at this name may not send requests here: server_name does not have it, nor has vlm_cors"\}\n$') x @main::REBOUND]



=== TEST 31: nor with a mark that browsers do not send there, and the log has its name
--- request
POST /api/chat
{}
--- more_headers
Host: evil.example
Origin: http://evil.example
Sec-Fetch-Site: same-origin
--- error_code: 403
--- error_log
vlm_cors refuses a request of a page of another origin, "http://evil.example"



=== TEST 32: over TLS a certificate has shown the name, as the browser's mark says
--- request
POST /api/chat
{}
--- more_headers
Host: robots.example
Origin: https://robots.example
Sec-Fetch-Site: same-origin
--- error_code: 400



=== TEST 33: the names are those of server_name, with their patterns
--- config eval: $main::Config . 'server_name _ box *.lan .robots.example www.front.* ~^r\d+\.example$;'
--- request eval
[("POST /api/chat\n{}") x 13]
--- more_headers eval
main::plain(map { ["$_:5001", "http://$_:5001"] } qw(localhost LOCALHOST a.localhost box box. a.lan robots.example a.robots.example
                                                      www.front.example r12.example lan evilrobots.example r12.example.evil))
--- error_code eval
[(400) x 10, (403) x 3]



=== TEST 34: and the hosts of vlm_cors, at any port
--- http_config eval: $main::LIST
--- request eval
[("POST /api/chat\n{}") x 4]
--- more_headers eval
main::plain(['robots.example:5001', 'http://robots.example:5001'], ['localhost:5001', 'http://localhost:5001'],
            ['evil.example', 'https://robots.example'], ['evil.example', 'http://evil.example'])
--- error_code eval
[400, 400, 400, 403]



=== TEST 35: without vlm_cors same or a list any page may ask
--- http_config eval: $main::Http . 'vlm_cors off;'
--- request
POST /api/chat
{}
--- more_headers
Host: evil.example
Origin: http://evil.example
--- error_code: 400
