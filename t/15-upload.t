# Tests POST /api/upload, and the reading of uploads.

use Test::Nginx::Socket;

require './t/lib/vlm.pl';

add_block_preprocessor(\&defaults);
log_level('info');
no_shuffle();

our $Type = 'Content-Type: multipart/form-data; boundary=xxxx';

plan tests => repeat_each() * 90;

run_tests();

__DATA__

=== TEST 1: an upload has a path, a name and a URL
--- request eval
"POST /api/upload\n" . main::multipart(['file', 'My cup.png', main::picture('118x62.png')])
--- more_headers eval: $::Type
--- response_headers
Content-Type: application/json
--- response_body_like eval
qr/^\{"filename":"([0-9a-f-]{36}_My_cup\.png)","path":"\/[^"]+\/uploads\/\1","url":"\/uploads\/\1"\}\n$/
--- no_error_log
[error]



=== TEST 2: names are made safe as werkzeug does
--- request eval
[map { "POST /api/upload\n" . main::multipart(['file', $_, main::picture('40x30.png')]) }
 'My cool movie.mov', '../../../etc/passwd', "i contain cool \xc3\xbcml\xc3\xa4uts.txt", "\xe5\x9b\xbe\xe7\x89\x87.png", "\xe5\x9b\xbe"]
--- more_headers eval: $::Type
--- error_code eval
[(200) x 5]
--- response_body_like eval
[map { qr/^\{"filename":"[0-9a-f-]{36}_\Q$_\E",/ } 'My_cool_movie.mov', 'etc_passwd', 'i_contain_cool_umlauts.txt', 'png', '']



=== TEST 3: a form without the part is refused
--- request eval
["POST /api/upload\n" . main::multipart(['picture', 'a.png', 'x']), "POST /api/upload\n" . main::multipart()]
--- more_headers eval: $::Type
--- error_code eval
[400, 400]
--- response_body eval
[("{\"error\":\"No file part\"}\n") x 2]



=== TEST 4: a part without a file name is refused
--- request eval
"POST /api/upload\n" . main::multipart(['file', '', ''])
--- more_headers eval: $::Type
--- error_code: 400
--- response_body
{"error":"No selected file"}



=== TEST 5: a body that is no form is refused
--- request eval
["POST /api/upload\nhello", "POST /api/upload"]
--- error_code eval
[400, 400]
--- response_body_like eval
[(qr/^\{"error":".+"\}\n$/) x 2]



=== TEST 6: the file may come after other parts
--- request eval
"POST /api/upload\n" . main::multipart(['a', undef, '1'], ['b', 'b.txt', '2'], ['file', 'c.png', main::picture('40x30.png')], ['d', undef, '3'])
--- more_headers eval: $::Type
--- response_body_like: _c\.png



=== TEST 7: a body that ends before its last boundary is refused
--- request eval
"POST /api/upload\n--xxxx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n" . main::picture('40x30.png')
--- more_headers eval: $::Type
--- error_code: 400
--- response_body_like: ^\{"error":".+"\}\n$



=== TEST 8: a wrong boundary and a missing one are refused
--- request eval
[("POST /api/upload\n" . main::multipart(['file', 'a.png', 'x'])) x 3]
--- more_headers eval
['Content-Type: multipart/form-data; boundary=other', 'Content-Type: multipart/form-data', 'Content-Type: multipart/form-data; boundary=' . 'x' x 71]
--- error_code eval
[(400) x 3]
--- response_body_like eval
[(qr/^\{"error":".+"\}\n$/) x 3]



=== TEST 9: an upload is read back unchanged
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
["GET /uploads/cup.png", "HEAD /uploads/cup.png"]
--- error_code eval
[200, 200]
--- response_headers eval
[("Content-Type: image/png\nContent-Length: " . length main::picture("118x62.png")) x 2]
--- response_body_filters eval
sub { length $_[0] }
--- response_body eval
[length main::picture("118x62.png"), 0]



=== TEST 10: no other file is read back
--- user_files eval
[["../logs/vlm/secret.txt", "secret"], ["../logs/vlm/uploads/sub/a.png", "a"]]
--- request eval
["GET /uploads/none.png", "GET /uploads/..%2fsecret.txt", "GET /uploads/%2e%2e/secret.txt",
 "GET /uploads/sub/a.png", "GET /uploads/", "GET /result/none.png", "GET /result/..%2f..%2fnginx.pid",
 "GET /uploads/a%00b", "GET /uploads/."]
--- error_code_like eval
[(qr/^40[0-4]$/) x 9]
--- response_body_unlike eval
[(qr/secret/) x 9]



=== TEST 11: a large picture goes through a temporary file of nginx's unchanged
--- request eval
"POST /api/upload\n" . main::multipart(['file', 'big.bin', 'v' x 3_000_000])
--- more_headers eval: $::Type
--- response_body_like: _big\.bin



=== TEST 12: quotes and escapes in a file name are accepted
--- request eval
["POST /api/upload\n--xxxx\r\ncontent-disposition: form-data; filename=\"a\\\"b.png\"; name=\"file\"\r\n\r\nx\r\n--xxxx--\r\n",
 "POST /api/upload\n--xxxx\r\nContent-Disposition: form-data; name=file; filename=plain.png\r\n\r\nx\r\n--xxxx--\r\n"]
--- more_headers eval: $::Type
--- error_code eval
[200, 200]
--- response_body_like eval
[qr/_ab\.png/, qr/_plain\.png/]



=== TEST 13: a range beyond the file is refused with a message
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- more_headers
Range: bytes=99999999-
--- request
GET /uploads/cup.png
--- error_code: 416
--- response_body
{"error":"The range is beyond the end of the file"}



=== TEST 14: an empty upload is refused by its name
--- user_files eval
[["../logs/vlm/uploads/none.png", ""]]
--- request eval
main::chat(image => 'none.png')
--- error_code: 400
--- response_body
{"error":"The image is empty: none.png has 0 bytes"}



=== TEST 15: the same file of another tenant is another upload
--- http_config eval
(my $text = $::Http) =~ s/store logs/cache_salt \$http_x_tenant; store logs/; $text
--- more_headers eval
[map { "$::Type\nX-Tenant: $_" } 'one', 'two', 'one', 'two']
--- request eval
[("POST /api/upload\n" . main::multipart(['file', 'cup.png', main::picture('118x62.png')])) x 4]
--- response_body_filters eval
sub { my ($name) = $_[0] =~ /"filename":"([^"]+)"/; our (@names, %seen); push @names, $name unless $seen{$name}++; "$name" eq $names[0] ? "first\n" : "second\n" }
--- response_body eval
["first\n", "second\n", "first\n", "second\n"]
--- error_code eval
[(200) x 4]



=== TEST 16: a file whose name is no picture's is saved, not shown
--- user_files eval
[map { ["../logs/vlm/uploads/$_", 'x'] } 'page.html', 'drawing.svg', 'none', 'cup.JPG']
--- request eval
[map { "GET /uploads/$_" } 'page.html', 'drawing.svg', 'none', 'cup.JPG']
--- error_code eval
[(200) x 4]
--- response_headers eval
[("Content-Disposition: attachment\nX-Content-Type-Options: nosniff") x 3, "!Content-Disposition\nX-Content-Type-Options: nosniff"]
