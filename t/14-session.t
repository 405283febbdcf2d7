# Tests sessions, which are made, read, reset and deleted, their turns, and the list
# of tasks.

use Test::Nginx::Socket;

require './t/lib/vlm.pl';

add_block_preprocessor(\&defaults);
log_level('info');
no_shuffle();

plan tests => repeat_each() * 139;

run_tests();

__DATA__

=== TEST 1: a session has an id under both names
--- request
POST /api/session
--- response_headers
Content-Type: application/json
--- response_body_like eval
qr/^\{"sessionId":"([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})","session_id":"\1"\}\n$/



=== TEST 2: a body of the request is ignored
--- request
POST /api/session
this is not JSON
--- response_body_like: ^\{"sessionId":



=== TEST 3: an unknown session is not found
--- request eval
["DELETE /api/session/nobody", "POST /api/session/nobody/reset", "GET /api/history/nobody"]
--- error_code eval
[404, 404, 404]
--- response_body eval
["{\"error\":\"Session not found\"}\n", "{\"error\":\"Session not found\"}\n", "{\"error\":\"Session not found\"}\n"]



=== TEST 4: a chat makes the session that it names
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[main::chat(session_id => 'fresh', image => 'cup.png', message => 'How many cups are there?'),
 "GET /api/history/fresh"]
--- error_code eval
[200, 200]
--- response_body_like eval
[qr/"turn_number":2\}/,
 qr/^\[\{"content":"How many cups are there\?","image_path":"[^"]+cup\.png","metadata":\{\},"role":"user","task":"general","timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}"\},\{"content":"[^"]*","image_path":"[^"]+\/uploads\/cup\.png","metadata":\{"output_image":null,"task":"general","thinking":""\},"role":"assistant","task":null,"timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}"\}\]/]



=== TEST 5: the second turn sees the first, and a reset forgets both and the picture
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[main::chat(image => 'cup.png'), main::chat(), "POST /api/session/s/reset",
 "GET /api/history/s", main::chat()]
--- error_code eval
[200, 200, 200, 200, 200]
--- response_body_like eval
[qr/"context_used":false.*"turn_number":2\}/, qr/"context_used":true.*"turn_number":4\}/,
 qr/^\{"status":"reset"\}\n$/, qr/^\[\]\n$/, qr/"error":"No image set\./]



=== TEST 6: a deleted session is not found, and a chat makes it again
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[main::chat(image => 'cup.png'), "DELETE /api/session/s", "GET /api/history/s",
 "DELETE /api/session/s", main::chat(image => 'cup.png')]
--- error_code eval
[200, 200, 404, 404, 200]
--- response_body_like eval
[qr/"turn_number":2\}/, qr/^\{"status":"deleted"\}\n$/, qr/"Session not found"/,
 qr/"Session not found"/, qr/"turn_number":2\}/]



=== TEST 7: a session keeps its newest twenty entries
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[main::chat(image => 'cup.png', message => 'first'), (map { main::chat(message => "turn $_") } 2 .. 10),
 main::chat(message => 'last'), "GET /api/history/s"]
--- error_code eval
[(200) x 12]
--- response_body_like eval
[(map { my $n = 2 * $_; qr/"turn_number":$n\}/ } 1 .. 10), qr/"turn_number":20\}/,
 qr/^\[\{"content":"turn 2",(?:(?!"first").)*"content":"last"/]



=== TEST 8: sessionId is another name of session_id, which wins
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
["POST /api/chat\n{\"sessionId\":\"camel\",\"message\":\"hi\",\"image\":\"cup.png\"}",
 "POST /api/chat\n{\"sessionId\":\"camel\",\"session_id\":\"snake\",\"message\":\"hi\",\"image\":\"cup.png\"}",
 "POST /api/chat\n{\"sessionId\":\"camel\",\"session_id\":\"\",\"message\":\"hi\"}",
 "GET /api/history/snake"]
--- error_code eval
[200, 200, 200, 200]
--- response_body_like eval
[qr/"turn_number":2\}/, qr/"turn_number":2\}/, qr/"turn_number":4\}/, qr/^\[\{"content":"hi"/]



=== TEST 9: an id in a path may be escaped
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[main::chat(session_id => "a b\x{e4}", image => 'cup.png'), "GET /api/history/a%20b%C3%A4", "DELETE /api/session/a%20b%C3%A4"]
--- error_code eval
[200, 200, 200]
--- response_body_like eval
[qr/"turn_number":2\}/, qr/^\[\{/, qr/"deleted"/]



=== TEST 10: the tasks are listed in their order
--- request
GET /api/tasks
--- response_body
{"tasks":[{"description":"Automatically detect task type using AI","id":"auto","name":"Auto Mode"},{"description":"General conversation and Q&A about the image","id":"general","name":"General Chat"},{"description":"Locate objects in the image with bounding boxes","id":"grounding","name":"Grounding"},{"description":"Predict actionable areas for robot manipulation","id":"affordance","name":"Affordance"},{"description":"Plan robot arm movement paths","id":"trajectory","name":"Trajectory"},{"description":"Identify specific points on objects","id":"pointing","name":"Pointing"}]}



=== TEST 11: health has the number of sessions
--- request eval
["POST /api/session", "POST /api/session", "GET /api/health"]
--- error_code eval
[200, 200, 200]
--- response_body_like eval
[qr/session_id/, qr/session_id/, qr/"active_sessions":2\b.*"status":"healthy"/]



=== TEST 12: a request with the same key has one turn, and another request with that key is refused
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- more_headers
Idempotency-Key: 8e03978e-40d5
Content-Type: application/json
--- request eval
[(main::chat(image => 'cup.png', task => 'auto', message => 'the cup', timings => JSON::PP::true())) x 2, main::chat(message => 'another'), main::chat(session_id => 'other', image => 'cup.png'), "GET /api/history/s"]
--- response_body_filters eval
sub { my $all = JSON::PP->new->utf8->decode(shift); return scalar @$all . " entries\n" if ref $all eq 'ARRAY'; my $times = delete $all->{timings}; my $usage = delete $all->{usage}; my $text = JSON::PP->new->canonical->encode($all); our @told; push @told, $text; @told == 2 ? ($told[0] eq $text && !defined $times && $usage->{total_tokens} == 0 ? "the same\n" : "$told[0] $text") : @told == 1 || @told == 4 ? "$all->{turn_number}\n" : "$all->{error}\n" }
--- response_body eval
["2\n", "the same\n", "This session has had another request with this Idempotency-Key\n", "2\n", "2 entries\n"]
--- response_headers eval
["!Idempotent-Replayed", "Idempotent-Replayed: true", ("!Idempotent-Replayed") x 3]
--- error_code eval
[200, 200, 422, 200, 200]



=== TEST 13: a key has bounds, and a reset removes it
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- more_headers eval
[map { "Idempotency-Key: $_\nContent-Type: application/json" } 'x' x 255, 'x' x 256, "caf\xc3\xa9", 'x', ('x' x 255)]
--- request eval
[(main::chat(image => 'cup.png')) x 3, "POST /api/session/s/reset", main::chat(image => 'cup.png')]
--- response_headers eval
[("!Idempotent-Replayed") x 5]
--- response_body_like eval
[qr/"turn_number":2/, (qr/The Idempotency-Key is not 1 to 255 printable characters of ASCII/) x 2, qr/reset/, qr/"turn_number":2/]
--- error_code eval
[200, 400, 400, 200, 200]



=== TEST 90: a session belongs to the tenant that has made it
--- http_config eval
(my $text = $::Http) =~ s/store logs/cache_salt \$http_x_tenant; store logs/; $text
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- more_headers eval
[map { "Content-Type: application/json\nX-Tenant: $_" } 'one', ('two', '') x 4, 'two', 'one', 'one', 'one', 'two']
--- request eval
[main::chat(session_id => 'shared', image => 'cup.png'),
 map({ ($_) x 2 } "GET /api/history/shared", "POST /api/session/shared/reset", "DELETE /api/session/shared", "GET /api/history/0123456789abcdef%2Fshared"),
 main::chat(session_id => 'shared'), main::chat(session_id => 'shared'), "GET /api/history/shared", "DELETE /api/session/shared", "DELETE /api/session/shared"]
--- error_code eval
[200, (404) x 8, 200, 200, 200, 200, 200]
--- response_body_like eval
[qr/"turn_number":2\}/, (qr/ot found/) x 8, qr/No image set/, qr/"turn_number":4\}/, qr/^\[(?:\{.*"role":.*\},?){4}\]$/, (qr/"status":"deleted"/) x 2]
