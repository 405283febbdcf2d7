# Tests the questions that the server itself asks the model: the task of a message,
# the title of a conversation, the steps of a request, and the steps one after the
# other.  The model's answers are scripted by t/lib/Script.pm.

use Test::Nginx::Socket;

require './t/lib/Script.pm';

sub step {
    my ($n, $task, $prompt, %more) = @_;

    my $previous = $more{previous} ? 'true' : 'false';

    return qq({"step": $n, "task": "$task", "prompt": "$prompt", )
           . qq("description": "Do $prompt", "use_previous": $previous});
}

# The first word of the list that a prompt has selects the answer.  Words in lower
# case that belong to no task are for messages.
my @answers = (
    threefold => ["Sure:\n[" . step(1, 'grounding', 'the mug'),
                  ', ' . step(2, 'affordance', 'hold it', previous => 1),
                  ', ' . step(3, 'trajectory', 'go there') . "]\nDone."],
    twelve    => ['[' . join(', ', map { step($_, 'general', "number $_") } 1 .. 12) . ']'],
    odd       => ['[1, {"step": "one", "task": 7, "prompt": ["x"]}, ',
                  '{"step": 5, "task": "dance", "prompt": "a dance", "use_previous": 0}, null]'],
    prose     => ['I would look for it first.'],
    broken    => ['[{"step": 1, oops}]'],
    excessive => ['[' . step(1, 'grounding', 'x' x 1500), ', ' . step(2, 'pointing', 'it', previous => 1) . ']'],
    lengthy   => [' "' . 'A title that goes on and on, ', 'past the fifty characters of one" '],
    silent    => [],
    Choose    => ['  Traj', "ectory\n"],
    Name      => ["\"'A Red", " Mug'\""],
    bounding  => ['It is at [10, 20, ', '60.5, 50].'],
    possible  => ['[12, 22, ', '30, 40]'],
    satisfying => ['[(15, 25), ', '(40, 30)]'],
    key       => ['[[5, 6], ', '[70, 40]]'],
    tuples    => ['never'],
    ''        => ['I see', ' a mug.'],
);

$ENV{TEST_NGINX_MODEL} = Script::model('tasks', @answers);
$ENV{TEST_NGINX_VAGUE} = Script::model('vague', Choose => ['Grounding it is'], Name => ['""'],
                                       '' => ['yes']);

require './t/lib/vlm.pl';

our $Vague = $::Http;
$Vague =~ s/TEST_NGINX_MODEL/TEST_NGINX_VAGUE/;

our $Small = $::Http;
$Small =~ s/(thinking off;)/$1\n        context 1500;/;

our $Log = $::Http . <<'_EOC_';
    log_format vlm 'p=$vlm_prompt_tokens c=$vlm_completion_tokens f=$vlm_finish_reason.';
    access_log logs/access.log vlm;
_EOC_

my $JSON = JSON::PP->new->utf8->canonical;

sub post {
    my ($path, %fields) = @_;

    return "POST $path\n" . $JSON->encode(\%fields);
}

sub pipeline { post('/api/pipeline', session_id => 's', image => 'cup.png', message => 'hi', @_) }

add_block_preprocessor(\&defaults);
log_level('info');
no_shuffle();

plan tests => repeat_each() * 138;

run_tests();

__DATA__

=== TEST 1: auto follows the model, whatever the words of the message
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
main::chat(image => 'cup.png', message => 'Where is the red cup?', task => 'auto')
--- response_body_like eval
qr/^\{"answer":"\[\[5, 6\], \[70, 40\]\]","context_used":false,"marks":\[\{"label":null,"type":"path","xy":\[5\.27,6\.64,73\.75,44\.29\]\}\],"output_image":"[^"]+","task":"trajectory","task_source":"auto","thinking":"","turn_number":2\}/



=== TEST 2: auto follows the words if the model names no task
--- http_config eval
$::Vague
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[map { main::chat(image => 'cup.png', message => $_, task => 'auto') } 'How do I grasp the cup?', 'What colour is it?']
--- response_body_like eval
[map { qr/"answer":"yes".*"task":"$_","task_source":"auto"/ } qw(affordance general)]



=== TEST 3: the model is not asked for the task of a question without a picture
--- http_config eval
$::Log
--- request eval
main::chat(message => 'Where is the cup?', task => 'auto')
--- response_body_like: ^\{"answer":"No image set\..*","error":"No image set\..*","task":"grounding","task_source":"auto"\}$
--- access_log
p=- c=- f=-.



=== TEST 4: the model is not asked for the task of a question with an invalid picture
--- http_config eval
$::Log
--- user_files eval
[["../logs/vlm/uploads/cup.png", "text"]]
--- request eval
main::chat(image => 'cup.png', message => 'Where is the cup?', task => 'auto')
--- error_code: 400
--- response_body_like: ^\{"error":".+"\}$
--- access_log
p=- c=- f=-.



=== TEST 5: the tokens for the task are counted, and only the answer is stored
--- http_config eval
$::Log
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[main::chat(image => 'cup.png', message => 'Go', task => 'auto', timings => JSON::PP::true()), "GET /api/history/s"]
--- response_body_like eval
[qr/"completion_tokens":4,/, qr/^\[\{"content":"Go","image_path":"[^"]+","metadata":\{\},"role":"user","task":"trajectory","timestamp":"[^"]+"\},\{"content":"\[\[5, 6\], \[70, 40\]\]","image_path":"[^"]+","metadata":\{"output_image":"[^"]*_with_trajectory_annotated\.jpg","task":"trajectory","thinking":""\},"role":"assistant","task":null,"timestamp":"[^"]+"\}\]$/]



=== TEST 6: a stream has the words of the answer, not those of the task
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
main::chat(image => 'cup.png', message => 'Go', task => 'auto', stream => JSON::PP::true())
--- response_body_filters eval
\&main::unplaced
--- response_body_like eval
qr/\A(?:event: token\ndata: \{"text":"[\[\]\\\d, ]+"\}\n\n)+event: answer\ndata: \{"answer":"\[\[5, 6\], \[70, 40\]\]",[^\n]*"task":"trajectory","task_source":"auto"[^\n]*\}\n\n\z/



=== TEST 7: a title is the model's, without space and quotes around it
--- request eval
[main::post('/api/decompose', query => 'x'), map { main::post('/api/generate-title', message => $_) } 'Find the mug', 'Something lengthy']
--- response_body_like eval
[qr/"success":true/, map { qr/^\Q$_\E$/ } "{\"title\":\"A Red Mug\"}", "{\"title\":\"A title that goes on and on, past the fifty charac\"}"]



=== TEST 8: a title is the first words if the model has none
--- http_config eval
$::Vague
--- request eval
[main::post('/api/decompose', query => 'x'), map { main::post('/api/generate-title', message => $_) } 'Find the apple in this image', 'hi',
 'Supercalifragilisticexpialidocious antidisestablishmentarianism ok', "\x{e9}t\x{e9} \x{1f600} \n x y", '   ']
--- response_body_like eval
[qr/"fallback":true/, map { qr/^\{"title":"\Q$_\E"\}$/ } 'Find the apple', 'hi', 'Supercalifragilisticexpiali...', "\xc3\xa9t\xc3\xa9 \xf0\x9f\x98\x80 x", '']



=== TEST 9: a title needs a message
--- request eval
[map { "POST /api/generate-title\n$_" } '{}', '{"message":""}', '{"message":null}', '{"title":"x"}', '[]', '7', '{"message":7}', '{"message"', '']
--- error_code eval
[(400) x 9]
--- response_body_like eval
[(qr/^\{"error":"Message is required"\}$/) x 6, qr/^\{"error":"The message is not a string"\}$/, qr/^\{"error":"Not JSON at byte \d+ of \d+"\}$/, qr/^\{"error":"Message is required"\}$/]



=== TEST 10: a message of a megabyte has a title
--- request eval
main::post('/api/generate-title', message => 'a silent ' . 'x' x 1_000_000)
--- response_body
{"title":"a silent xxxxxxxxxxxxxxxxxx..."}



=== TEST 11: a query is split into steps
--- request eval
main::post('/api/decompose', query => 'a threefold task')
--- response_body eval
'{"pipeline":['
. '{"description":"Do the mug","prompt":"the mug","step":1,"task":"grounding","use_previous":false},'
. '{"description":"Do hold it","prompt":"hold it","step":2,"task":"affordance","use_previous":true},'
. '{"description":"Do go there","prompt":"go there","step":3,"task":"trajectory","use_previous":false}],"success":true}' . "\n"



=== TEST 12: a query without a plan is one general step
--- request eval
[map { main::post('/api/decompose', query => $_) } 'a prose task', 'a broken task']
--- response_body eval
[map { my ($query, $said) = @$_; my $why = "Could not parse JSON from response: $said";
 qq({"error":"$why","fallback":true,"message":"Could not decompose query: $why","pipeline":[)
 . qq({"description":"Execute the query as a general task (decomposition failed)","prompt":"$query","step":1,"task":"general","use_previous":false}],"success":true}\n) }
 ['a prose task', 'I would look for it first.'], ['a broken task', '[{\"step\": 1, oops}]']]



=== TEST 13: a query is a text
--- request eval
[map { "POST /api/decompose\n$_" } '{}', '{"query":""}', '{"query":null}', '{"message":"x"}', '[]', '', '{"query":["x"]}', '{']
--- error_code eval
[(400) x 8]
--- response_body_like eval
[(qr/^\{"error":"Query is required"\}$/) x 6, qr/^\{"error":"The query is not a string"\}$/, qr/^\{"error":"Not JSON/]



=== TEST 14: a query that no prompt has room for is one general step
--- http_config eval
$::Small
--- request eval
main::post('/api/decompose', query => 'word ' x 400)
--- response_body_like: ^\{"error":"[^"]*\b\d+ tokens[^"]*","fallback":true,"message":"Could not decompose query: [^"]+","pipeline":\[\{"description":"Execute the query as a general task \(decomposition failed\)","prompt":"(?:word ){400}","step":1,"task":"general","use_previous":false\}\],"success":true\}$



=== TEST 15: a plan has at most ten steps
--- request eval
main::post('/api/decompose', query => 'all twelve')
--- response_body_like: ^\{"pipeline":\[(?:\{[^{}]*\},){9}\{"description":"Do number 10","prompt":"number 10","step":10,[^{}]*\}\],"success":true\}$



=== TEST 16: invalid members of a plan have defaults
--- request eval
main::post('/api/decompose', query => 'an odd task')
--- response_body eval
'{"pipeline":['
. '{"description":"","prompt":"an odd task","step":1,"task":"general","use_previous":false},'
. '{"description":"","prompt":"a dance","step":5,"task":"general","use_previous":false}],"success":true}' . "\n"



=== TEST 17: a pipeline runs one step after the other
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
main::pipeline(message => 'a threefold task')
--- response_body_filters eval
sub { my $text = main::canonical(shift); $text =~ s{/result/[0-9a-f-]{36}_}{/result/}g; $text }
--- response_body eval
'{"final_answer":"Step 1 (grounding): It is at [10, 20, 60.5, 50].\n\nStep 2 (affordance): [12, 22, 30, 40]\n\nStep 3 (trajectory): [[5, 6], [70, 40]]",'
. '"final_image":"/result/cup_with_trajectory_annotated.jpg","pipeline":['
. '{"description":"Do the mug","prompt":"the mug","step":1,"task":"grounding","use_previous":false},'
. '{"description":"Do hold it","prompt":"hold it","step":2,"task":"affordance","use_previous":true},'
. '{"description":"Do go there","prompt":"go there","step":3,"task":"trajectory","use_previous":false}],"steps":['
. '{"answer":"It is at [10, 20, 60.5, 50].","coordinates":[[10,20,60.5,50]],"description":"Do the mug","output_image":"/result/cup_with_grounding_annotated.jpg","prompt":"the mug","step":1,"success":true,"task":"grounding"},'
. '{"answer":"[12, 22, 30, 40]","coordinates":[[12,22,30,40]],"description":"Do hold it","output_image":"/result/cup_with_affordance_annotated.jpg","prompt":"hold it\nPrevious result: It is at [10, 20, 60.5, 50].","step":2,"success":true,"task":"affordance"},'
. '{"answer":"[[5, 6], [70, 40]]","coordinates":[[5,6],[70,40]],"description":"Do go there","output_image":"/result/cup_with_trajectory_annotated.jpg","prompt":"go there","step":3,"success":true,"task":"trajectory"}],"success":true}' . "\n"



=== TEST 18: the coordinates of a pipeline are decimal numbers
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
main::pipeline(message => 'a threefold task')
--- response_body_filters eval
sub { $_[0] }
--- response_body_like: "coordinates":\[\[10\.0,20\.0,60\.5,50\.0\]\].*"coordinates":\[\[5\.0,6\.0\],\[70\.0,40\.0\]\]



=== TEST 19: the steps of a pipeline are turns of the session
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[main::chat(image => 'cup.png'), main::pipeline(image => JSON::PP::null(), message => 'a threefold task'), "GET /api/history/s"]
--- response_body_filters eval
sub { my $text = main::canonical(shift); $text =~ s/"(?:timestamp|image_path)":"[^"]*"/"-":"-"/g; $text =~ s{"result/[0-9a-f-]{36}_}{"}g; $text }
--- response_body_like eval
[qr/"turn_number":2\}/, qr/"success":true\}$/, qr/^\[\{"content":"hi",.*\},\{"content":"I see a mug\.",.*\},\{"content":"the mug","-":"-","metadata":\{\},"role":"user","task":"grounding","-":"-"\},\{"content":"It is at \[10, 20, 60\.5, 50\]\.","-":"-","metadata":\{"output_image":"cup_with_grounding_annotated\.jpg","task":"grounding","thinking":""\},"role":"assistant","task":null,"-":"-"\},\{"content":"hold it\\nPrevious result: It is at \[10, 20, 60\.5, 50\]\.",.*\},\{"content":"\[12, 22, 30, 40\]",.*\},\{"content":"go there",.*\},\{"content":"\[\[5, 6\], \[70, 40\]\]",.*\}\]$/]



=== TEST 20: without a plan the request itself is the step
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
[map { main::pipeline(message => $_) } 'a silent task', 'a broken task']
--- response_body eval
[qq({"final_answer":"Step 1 (general): ","final_image":null,"pipeline":[{"description":"Process as general query","prompt":"a silent task","step":1,"task":"general","use_previous":false}],"steps":[{"answer":"","coordinates":null,"description":"Process as general query","output_image":null,"prompt":"a silent task","step":1,"success":true,"task":"general"}],"success":true}\n),
 qq({"final_answer":"Step 1 (general): [{\\"step\\": 1, oops}]","final_image":null,"pipeline":[{"description":"Fallback to general query","prompt":"a broken task","step":1,"task":"general","use_previous":false}],"steps":[{"answer":"[{\\"step\\": 1, oops}]","coordinates":null,"description":"Fallback to general query","output_image":null,"prompt":"a broken task","step":1,"success":true,"task":"general"}],"success":true}\n)]



=== TEST 21: a pipeline reports missing members in order
--- request eval
[(map { "POST /api/pipeline\n$_" } '', '{}', 'null', '[1]', '{"message":"x"}', '{"session_id":"s"}', '{"session_id":"s","message":""}', '{"session_id":"s","message":7}', '{"session_id":[7],"message":"x"}'),
 main::pipeline(image => 'dog.png'), main::pipeline(image => JSON::PP::null()), main::pipeline(image => '')]
--- error_code eval
[(400) x 12]
--- response_body_like eval
[(qr/^\{"error":"No JSON data provided"\}$/) x 3, qr/^\{"error":"The request is not a JSON object"\}$/, (qr/^\{"error":"Missing session ID or message"\}$/) x 3,
 qr/^\{"error":"The message is not a string"\}$/, qr/^\{"error":"The session ID is neither a string nor a number"\}$/, qr/^\{"error":"Image not found: dog\.png"\}$/, (qr/^\{"error":"No image provided for pipeline execution"\}$/) x 2]



=== TEST 22: an invalid picture is refused before the model is asked
--- http_config eval
$::Log
--- user_files eval
[["../logs/vlm/uploads/cup.png", "text"]]
--- request eval
main::pipeline(message => 'a threefold task')
--- error_code: 400
--- response_body_like: ^\{"error":".+"\}$
--- access_log
p=- c=- f=-.



=== TEST 23: a step that no prompt has room for has an error, and the next is run
--- http_config eval
$::Small
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("40x30.png")]]
--- request eval
[main::pipeline(message => 'an excessive task'), "GET /api/history/s"]
--- response_body_like eval
[qr/^\{"final_answer":"Step 1 \(grounding\): Inference error: [^"]*\\n\\nStep 2 \(pointing\): \[\(15, 25\), \(40, 30\)\]",.*"steps":\[\{"answer":"Inference error: [^"]*\b1500 tokens\b[^"]*","coordinates":null,"description":"[^"]*","output_image":null,"prompt":"x{1500}","step":1,"success":true,"task":"grounding"\},\{"answer":"\[\(15, 25\), \(40, 30\)\]","coordinates":\[\[15,25\],\[40,30\]\],.*"prompt":"it","step":2,"success":true,"task":"pointing"\}\],"success":true\}$/,
 qr/^\[\{"content":"it",[^{]*\{\}[^{]*\{"content":"\[\(15, 25\), \(40, 30\)\]",/]



=== TEST 24: all prompts and answers of a pipeline are counted
--- http_config eval
$::Log
--- user_files eval
[["../logs/vlm/uploads/cup.png", main::picture("118x62.png")]]
--- request eval
main::pipeline(message => 'a threefold task')
--- response_body_like: "success":true
--- access_log eval
[qr/^p=\d{4} c=9 f=stop\.$/]



=== TEST 25: the wrong methods are refused
--- request eval
["GET /api/pipeline", "GET /api/decompose", "DELETE /api/generate-title"]
--- error_code eval
[405, 405, 405]
--- response_headers eval
[("Allow: OPTIONS, POST") x 3]

