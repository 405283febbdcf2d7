# Tests POST /api/chat: its members, its answers, and the order of its checks.

use Test::Nginx::Socket;

require './t/lib/vlm.pl';

add_block_preprocessor(\&defaults);
log_level('info');
no_shuffle();

plan tests => repeat_each() * 230;

run_tests();

__DATA__

=== TEST 1: an answer has its six members
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
main::chat(image => 'cup.png', message => 'How many cups are there?')
--- response_headers
Content-Type: application/json
--- response_body_like eval
qr/^\{"answer":"[^"]*","context_used":false,"image_resized":\[308,196\],"output_image":null,"task":"general","thinking":"","turn_number":2\}\n$/
--- no_error_log
[error]



=== TEST 2: the same question has the same answer
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[map { main::chat(session_id => $_, image => 'cup.png', message => 'What is this?') } 'a', 'b']
--- response_body_filters eval
sub { my $text = main::canonical(shift); our $first; $first = $text unless defined $first; $text eq $first ? "same\n" : "$first$text" }
--- response_body eval
["same\n", "same\n"]
--- error_code eval
[200, 200]



=== TEST 3: an empty body is refused
--- request eval
[map { "POST /api/chat\n$_" } '{}', '[]', 'null', '""', '0', 'false', '0.0']
--- error_code eval
[(400) x 7]
--- response_body eval
[("{\"error\":\"No JSON data provided\"}\n") x 7]



=== TEST 4: a body that is not an object is refused
--- request eval
[map { "POST /api/chat\n$_" } '[1]', '"text"', '17', 'true']
--- error_code eval
[(400) x 4]
--- response_body_like eval
[(qr/^\{"error":"[^"]+"\}\n$/) x 4]



=== TEST 5: a body that is not JSON is refused
--- request eval
[map { "POST /api/chat\n$_" } '{', '{"session_id":"s"', "{'a':1}", '{"a":1,}', '{"a":01}', '{"a":1}x', "\xff\xfe", '{"a":"' . "\xc3(" . '"}']
--- error_code eval
[(400) x 8]
--- response_body_like eval
[(qr/^\{"error":".+"\}\n$/) x 8]



=== TEST 6: a chat without a session is refused
--- request eval
[map { "POST /api/chat\n$_" } '{"message":"hi"}', '{"message":"hi","session_id":""}', '{"message":"hi","session_id":null,"sessionId":""}']
--- error_code eval
[(400) x 3]
--- response_body eval
[("{\"error\":\"Missing session ID\"}\n") x 3]



=== TEST 7: a chat without a message is refused
--- request eval
[map { "POST /api/chat\n$_" } '{"session_id":"s"}', '{"session_id":"s","message":null}', '{"session_id":"s","message":""}']
--- error_code eval
[(400) x 3]
--- response_body eval
[("{\"error\":\"Message is required\"}\n") x 3]



=== TEST 8: members of the wrong type are refused
--- request eval
[map { "POST /api/chat\n$_" } '{"session_id":[7],"message":"hi"}', '{"session_id":"s","message":["hi"]}', '{"session_id":"s","message":"hi","image":["a.png"]}', '{"session_id":"s","message":"hi","task":4}']
--- error_code eval
[(400) x 4]
--- response_body_like eval
[(qr/^\{"error":".+"\}\n$/) x 4]



=== TEST 8.1: a session's id may be a number
--- request eval
[(map { "POST /api/chat\n{\"$_,\"text_only\":true,\"message\":\"hi\"}" } 'session_id":17', 'sessionId":17.0', 'session_id":"17"', 'session_id":12345678901234567890123', 'session_id":0'),
 map { "GET /api/history/$_" } '17', '12345678901234567890123', '1.5']
--- error_code eval
[(200) x 4, 400, 200, 200, 404]
--- response_body_like eval
[(map { qr/"turn_number":$_\}/ } 2, 4, 6, 2), qr/Missing session ID/, (qr/"content":"hi"/) x 2, qr/not found/]



=== TEST 9: a session without a picture has an error that the page shows
--- request eval
[main::chat(), main::chat(task => 'grounding'), "GET /api/history/s"]
--- error_code eval
[200, 200, 200]
--- response_body_like eval
[qr/^\{"answer":"No image set\. Use set_image\(\) or provide image_path\.","error":"No image set\. Use set_image\(\) or provide image_path\.","task":"general"\}\n$/,
 qr/"error":"No image set\. .*"task":"grounding"\}/, qr/^\[\]\n$/]



=== TEST 10: a question of words alone needs no picture, and uses none of the session
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[main::chat(text_only => JSON::PP::true()), main::chat(text_only => JSON::PP::true(), task => 'auto'),
 main::chat(image => 'cup.png'), main::chat(text_only => JSON::PP::true()), "GET /api/history/s",
 main::chat(text_only => JSON::PP::true(), image => 'cup.png'), main::chat(text_only => JSON::PP::true(), task => 'grounding')]
--- error_code eval
[(200) x 5, 400, 400]
--- response_body_like eval
[qr/^\{"answer":.*"output_image":null,"task":"general".*"turn_number":2/, qr/"task":"general".*"turn_number":4/,
 qr/"turn_number":6/, qr/"turn_number":8/,
 qr/"image_path":null.*"image_path":null.*"image_path":null.*"image_path":null.*"image_path":"[^"]+cup\.png".*"image_path":null/,
 (qr/^\{"error":"With \\"text_only\\" there is no image, and the task is general"\}\n$/) x 2]



=== TEST 11: a picture that was never uploaded is refused
--- request eval
[map { main::chat(image => $_) } 'nothing.png', '/etc/passwd', '../../nginx.conf', 'http://example.com/a.png']
--- error_code eval
[(400) x 4]
--- response_body eval
["{\"error\":\"Image not found: nothing.png\"}\n", "{\"error\":\"Image not found: /etc/passwd\"}\n",
 "{\"error\":\"Image not found: ../../nginx.conf\"}\n", "{\"error\":\"Image not found: http://example.com/a.png\"}\n"]



=== TEST 12: a picture is found by file name, by path and by URL
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[main::chat(image => 'cup.png'), main::chat(image => '/uploads/cup.png'),
 main::chat(image => main::server_root() . '/logs/vlm/uploads/cup.png')]
--- error_code eval
[(200) x 3]
--- response_body_like eval
[qr/"turn_number":2\}/, qr/"turn_number":4\}/, qr/"turn_number":6\}/]



=== TEST 13: the picture remains the session's own
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[main::chat(image => 'cup.png'), main::chat(), main::chat(image => JSON::PP::null()), main::chat(session_id => 'other')]
--- error_code eval
[(200) x 4]
--- response_body_like eval
[qr/"turn_number":2\}/, qr/"turn_number":4\}/, qr/"turn_number":6\}/, qr/"error":"No image set/]



=== TEST 14: the five tasks are accepted
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[map { main::chat(session_id => $_, image => 'cup.png', message => 'the cup', task => $_) } qw(general grounding affordance trajectory pointing)]
--- error_code eval
[(200) x 5]
--- response_body_like eval
[map { my $image = $_ eq 'general' ? 'null' : qr{"/result/[0-9a-f-]{36}_[^"/]*with_${_}_annotated\.jpg"}; qr/^\{"answer":"[^"]*","context_used":false,"image_resized":\[308,196\],(?:"marks":\[\{"label":null,"type":"(?:box|point|path)","xy":.*\}\],)?"output_image":$image,"task":"$_","thinking":"","turn_number":2\}\n$/ } qw(general grounding affordance trajectory pointing)]



=== TEST 15: an unknown task is refused
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[main::chat(image => 'cup.png', task => 'dance'), "GET /api/history/s"]
--- error_code eval
[200, 200]
--- response_body_like eval
[qr/"answer":"Inference error: Invalid task type: dance\. Supported tasks are 'general', 'pointing', 'affordance', 'trajectory', 'grounding'\.".*"error":"Inference error: Invalid task type: dance\./,
 qr/^\[\]\n$/]



=== TEST 16: auto chooses the task and reports it
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[map { main::chat(session_id => $_->[0], image => 'cup.png', message => $_->[0], task => 'auto') }
 ['Where is the red cup?'], ['How do I grasp the cup?'], ['Plan a path to the cup'], ['Point at the cup'], ['What colour is it?']]
--- error_code eval
[(200) x 5]
--- response_body_like eval
[(qr/"task":"(?:grounding|affordance|trajectory|pointing|general)","task_source":"auto","thinking":""/) x 5]



=== TEST 17: a file that is no picture is refused
--- user_files eval
[["../logs/vlm/uploads/cup.png", "this is text"]]
--- request eval
[main::chat(image => 'cup.png'), "GET /api/history/s"]
--- error_code eval
[400, 404]
--- response_body_like eval
[qr/"error":"not a supported picture \(.+\): first bytes 74 68 69 73 /, qr/Session not found/]



=== TEST 18: the wrong method and an unknown path are refused
--- request eval
["GET /api/chat", "DELETE /api/tasks", "GET /api/nothing", "PUT /api/upload\nx"]
--- error_code eval
[405, 405, 404, 405]
--- response_body_like eval
[(qr/^\{"error":".+"\}\n$/) x 4]
--- response_headers_like eval
["Allow: .*POST.*", "Allow: .*GET.*", "Content-Type: application/json", "Allow: .*POST.*"]



=== TEST 19: health reports that the model is loaded
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("40x30.png")]]
--- request eval
[main::chat(image => 'cup.png'), "GET /api/health"]
--- error_code eval
[200, 200]
--- response_body_like eval
[qr/"turn_number":2/, qr/"device":"(?:cpu|cuda)[^"]*".*"model":"[^"]+","model_loaded":true,"parameters":[1-9]\d*,.*"state":"ready","status":"healthy","thinking":(?:true|false),"version"/]



=== TEST 20: HTTP/1.0 and a chunked body are accepted
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- raw_request eval
my $body = '{"session_id":"s","message":"hi","image":"cup.png"}';
"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
. sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", 10, substr($body, 0, 10), length($body) - 10, substr($body, 10))
--- response_body_like: "turn_number":2\}



=== TEST 21: two requests share a connection
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- pipelined_requests eval
[main::chat(image => 'cup.png'), main::chat()]
--- error_code eval
[200, 200]
--- response_body_like eval
[qr/"turn_number":2\}/, qr/"turn_number":4\}/]



=== TEST 22: a picture may be inside the request
--- request eval
[map { main::chat(session_id => $_->[0], image => $_->[1]) }
 ['a', 'data:image/png;base64,' . main::base64(main::picture('40x30.png'))],
 ['b', 'data:image/jpeg;base64,' . main::base64(main::picture('40x30.png'))],
 ['c', 'data:image/png;base64,****'], ['d', 'data:image/png;base64,'], ['e', 'data:,x']]
--- error_code eval
[200, 200, 400, 400, 400]
--- response_body_like eval
[(qr/"turn_number":2\}/) x 2, (qr/"error":".+"/) x 3]



=== TEST 23: the figures of a request are variables for the log
--- http_config eval
$::Http . <<'_EOC_'
    log_format vlm '[$uri] q=$vlm_queue_time t=$vlm_ttft p=$vlm_prompt_tokens c=$vlm_completion_tokens f=$vlm_finish_reason s=$vlm_session.';
    access_log logs/access.log vlm;
_EOC_
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("40x30.png")]]
--- request eval
main::chat(image => 'cup.png', session_id => 'mine')
--- response_body_like: "turn_number":2
--- access_log eval
[qr/^\[\/api\/chat\] q=\d+\.\d{3} t=\d+\.\d{3} p=\d+ c=\d+ f=(?:stop|length) s=mine\.$/]



=== TEST 24: a request without the engine has none of these figures
--- http_config eval
$::Http . <<'_EOC_'
    log_format vlm '[$uri] q=$vlm_queue_time t=$vlm_ttft p=$vlm_prompt_tokens c=$vlm_completion_tokens f=$vlm_finish_reason s=$vlm_session.';
    access_log logs/access.log vlm;
_EOC_
--- request
GET /api/tasks
--- response_body_like: tasks
--- access_log
[/api/tasks] q=- t=- p=- c=- f=- s=-.



=== TEST 25: the answer about an enlarged picture has the size that the model saw
--- user_files eval
[["../logs/vlm/uploads/small.png", main::picture("40x30.png")]]
--- request eval
main::chat(image => 'small.png')
--- response_body_like: "image_resized":\[\d+,\d+\]



=== TEST 26: an answer follows the fields of its sampling, and its format
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[(map { main::chat(session_id => "s$_->[1]", image => 'cup.png', temperature => 1.5, seed => $_->[0], max_tokens => 6) } [1, 1], [2, 2], [1, 3]), main::chat(session_id => 'f', image => 'cup.png', temperature => 1.5, max_tokens => 40, format => { type => 'array', items => { type => 'integer', minimum => 10, maximum => 99 }, minItems => 2, maxItems => 2 }),
 main::chat(session_id => 'g', image => 'cup.png', stop => ['a', 'e', 'i', 'o', 'u', ' ']), main::chat(session_id => 'h', image => 'cup.png', format => 'json', temperature => 1.5, max_tokens => 20)]
--- response_body_filters eval
sub { my ($answer) = shift =~ /^\{"answer":"((?:[^"\\]|\\.)*)"/; our @answers; push @answers, $answer; @answers == 3 ? ($answers[0] eq $answers[2] && $answers[0] ne $answers[1] ? "seeds\n" : "@answers\n") : @answers < 3 ? "\n" : "$answer\n" }
--- response_body_like eval
[qr/^$/, qr/^$/, qr/^seeds$/, qr/^\[\s*(?:\\[nrt])*\s*[1-9]\d\D+[1-9]\d\D*\]$/, qr/^[^aeiou ]*$/, qr/^\{.*\}$/]



=== TEST 27: fields of the sampling that are wrong are refused by their names
--- request eval
[map { main::chat(%$_) } { temperature => 3 }, { temperature => 'hot' }, { top_p => -1 }, { max_tokens => 0 }, { seed => 1.5 }, { stop => 7 }, { format => 'xml' }, { format => { not => {} } }]
--- error_code eval
[(400) x 8]
--- response_body_like eval
[(qr/"error":"temperature is not a number from 0 to 2"/) x 2, qr/top_p is not/, qr/max_tokens is not a whole number/, qr/seed is not/, qr/stop is neither/, qr/invalid format/, qr/#\/not is a keyword that is not supported/]



=== TEST 28: times and three counts are sent to a client that asks for them, and null for what was not measured
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[main::chat(image => 'cup.png', timings => JSON::PP::true()), main::chat(session_id => 'text', text_only => JSON::PP::true(), timings => JSON::PP::true()),
 main::chat(timings => JSON::PP::false()), main::chat(timings => JSON::PP::null()), main::chat(timings => 1)]
--- error_code eval
[(200) x 4, 400]
--- response_body_like eval
my $counts = qr/"turn_number":2,"usage":\{"completion_tokens":\d+,"prompt_tokens":\d+,"total_tokens":\d+\}\}$/;
[qr/"timings":\{"cache_n":0,"encode_ms":[\d.]+,"first_ms":[\d.]+,"first_step_ms":\d+,"image_cache_n":0,"image_decode_ms":[\d.]+,"image_n":1,"image_resize_ms":[\d.]+,"predicted_ms":\d+,[^{}]*\},$counts/,
 qr/"timings":\{"cache_n":0,"encode_ms":null,"first_ms":[\d.]+,"first_step_ms":\d+,"image_cache_n":0,"image_decode_ms":null,"image_n":0,"image_resize_ms":null,"predicted_ms":\d+,[^{}]*\},$counts/,
 qr/"thinking":"","turn_number":4\}$/, qr/"thinking":"","turn_number":6\}$/, qr/"error":"timings is not a boolean"/]
