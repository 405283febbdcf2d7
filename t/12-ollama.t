# Tests Ollama's API: the requests of its clients, and the answers that they read.

use JSON::PP ();
use Test::Nginx::Socket;

require './t/lib/Script.pm';

$ENV{TEST_NGINX_SCRIPT} = Script::model('ollama', ponder => ['Who', ' knows'], '' => ['Hello']);

require './t/lib/vlm.pl';

our $Http;
our $Thinking = $Http;
$Thinking =~ s/TEST_NGINX_MODEL/TEST_NGINX_SCRIPT/;
$Thinking =~ s/thinking off/thinking on/;

add_block_preprocessor(\&defaults);
log_level('info');
no_shuffle();

plan tests => repeat_each() * 397;

run_tests();


# Makes a POST PATH with these fields.
sub ask {
    my ($path, %fields) = @_;

    return "POST /api/$path\n" . JSON::PP->new->utf8->canonical->encode(\%fields);
}

sub chat_with {
    my ($text, %more) = @_;

    return ask('chat', model => 'demo', messages => [{ role => 'user', content => $text }], stream => JSON::PP::false, %more);
}

sub generate {
    my ($text, %more) = @_;

    return ask('generate', model => 'demo', prompt => $text, stream => JSON::PP::false, %more);
}

sub image {
    my ($name) = @_;

    return main::base64(main::picture($name));
}

# Joins the lines of a stream as a client does: returns the text and the fields of
# the last line, or the fault of a line.
sub joined {
    my ($body) = @_;

    my @lines = map { JSON::PP->new->utf8->decode($_) } split /\n/, $body;
    my $last = pop @lines;
    my $text = '';

    for my $line (@lines) {
        return "a line too many: $body" if $line->{done} || $line->{done_reason};
        $text .= $line->{message} ? $line->{message}{content} : $line->{response};
    }

    return "no end: $body" unless $last->{done};
    return "a text at the end: $body" if length($last->{message} ? $last->{message}{content} : $last->{response});
    return "$text|$last->{done_reason}|$last->{eval_count}\n";
}

# Returns the same for a whole answer.
sub whole {
    my ($body) = @_;

    my $all = JSON::PP->new->utf8->decode($body);

    return ($all->{message} ? $all->{message}{content} : $all->{response}) . "|$all->{done_reason}|$all->{eval_count}\n";
}


__DATA__

=== TEST 1: an answer is one object
--- request eval
main::chat_with('hello', options => { num_predict => 5 })
--- response_headers
Content-Type: application/json
--- response_body_like eval
qr/^\{"created_at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","done":true,"done_reason":"length","eval_count":5,"eval_duration":[1-9]\d{6,},"load_duration":[1-9]\d{5,},"message":\{"content":"[^"]+","role":"assistant"\},"model":"demo","prompt_eval_count":22,"prompt_eval_duration":[1-9]\d{5,},"total_duration":[1-9]\d{6,}\}\n$/
--- no_error_log
[error]



=== TEST 2: an answer is a stream of lines by default
--- request eval
main::ask('chat', model => 'demo', messages => [{ role => 'user', content => 'hello' }], options => { num_predict => 3 })
--- response_headers
Content-Type: application/x-ndjson
Transfer-Encoding: chunked
--- response_body_like eval
qr/^(?:\{"model":"demo","created_at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","message":\{"role":"assistant","content":"[^"]+"\},"done":false\}\n)+\{"model":"demo","created_at":"[^"]+","message":\{"role":"assistant","content":""\},"done":true,"done_reason":"length","total_duration":\d+,"load_duration":\d+,"prompt_eval_count":22,"prompt_eval_duration":\d+,"eval_count":3,"eval_duration":\d+\}\n$/



=== TEST 3: a stream has the text of the whole answer
--- request eval
[main::chat_with('What is it?'), main::ask('chat', model => 'demo', messages => [{ role => 'user', content => 'What is it?' }]),
 main::generate('What is it?'), main::ask('generate', model => 'demo', prompt => 'What is it?')]
--- response_body_filters eval
sub { my $text = shift; $text = $text =~ /"done":false/ ? main::joined($text) : main::whole($text); our $first; $first = $text unless defined $first; $text eq $first ? "same\n" : "$first$text" }
--- response_body eval
[("same\n") x 4]
--- error_code eval
[(200) x 4]



=== TEST 4: generate answers as one object and as lines
--- request eval
[main::generate('hello', options => { num_predict => 2 }), main::ask('generate', model => 'demo', prompt => 'hello', options => { num_predict => 2 })]
--- response_body_like eval
[qr/^\{"created_at":"[^"]+","done":true,"done_reason":"length","eval_count":2,"eval_duration":\d+,"load_duration":\d+,"model":"demo","prompt_eval_count":22,"prompt_eval_duration":\d+,"response":"[^"]+","total_duration":\d+\}\n$/,
 qr/^(?:\{"model":"demo","created_at":"[^"]+","response":"[^"]+","done":false\}\n)+\{"model":"demo","created_at":"[^"]+","response":"","done":true,"done_reason":"length",/]
--- error_code eval
[200, 200]



=== TEST 5: pictures are tokens of the prompt, in any message, as base64 or data URL
--- request eval
[main::chat_with('What is it?', messages => [{ role => 'user', content => 'What is it?', images => [main::image('118x62.png')] }]),
 main::chat_with('', messages => [{ role => 'user', content => 'What is it?', images => ['data:image/png;base64,' . main::image('118x62.png')] }]),
 main::chat_with('', messages => [{ role => 'user', content => 'What is it?', images => [main::image('118x62.png'), main::image('40x30.png')] }]),
 main::chat_with('', messages => [{ role => 'user', content => 'a', images => [main::image('118x62.png')] }, { role => 'assistant', content => 'b' }, { role => 'user', content => 'c', images => [main::image('40x30.png')] }]),
 main::generate('What is it?', images => [main::image('118x62.png')]), main::generate('What is it?')]
--- response_body_filters eval
sub { my $n = JSON::PP->new->utf8->decode(shift)->{prompt_eval_count}; our @counts; push @counts, $n; ($counts[0] == $counts[-1] ? 'same' : $counts[0] < $counts[-1] ? 'more' : 'less') . "\n" }
--- response_body eval
["same\n", "same\n", "more\n", "more\n", "same\n", "less\n"]
--- error_code eval
[(200) x 6]



=== TEST 6: an invalid picture is refused
--- request eval
[map { main::chat_with('', messages => [{ role => 'user', content => 'hi', images => $_ }]) } ['****'], [main::base64('this is text')], [''], ['http://127.0.0.1/a.png'], [7], 'text', {}]
--- error_code eval
[(400) x 7]
--- response_body_like eval
[(qr/^\{"error":".+"\}\n$/) x 7]



=== TEST 7: a system message and a conversation are accepted
--- request eval
[main::chat_with('', messages => [{ role => 'system', content => 'Be short.' }, { role => 'user', content => 'hi' }, { role => 'assistant', content => 'yes', thinking => 'hm' }, { role => 'user', content => 'go on' }]),
 main::generate('hi', system => 'Be short.')]
--- error_code eval
[200, 200]
--- response_body_like eval
[(qr/"done":true/) x 2]



=== TEST 8: an invalid message is refused
--- request eval
[map { main::chat_with('', messages => $_) } 'hi', { role => 'user', content => 'hi' }, ['hi'], [{ content => 'hi' }], [{ role => 'robot', content => 'hi' }], [{ role => 'user', content => ['hi'] }], [{ role => 7, content => 'hi' }]]
--- error_code eval
[(400) x 7]
--- response_body_like eval
[(qr/^\{"error":"messages is not an array"\}\n$/) x 2, qr/messages\[0\] is not an object/, (qr/messages\[0\]\.role is not/) x 2, qr/messages\[0\]\.content is not a string/, qr/messages\[0\]\.role/]



=== TEST 9: the model has several names
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 2; alias robobrain:3b llava moondream:latest;/; $text
--- request eval
[map { main::chat_with('hi', model => $_) } 'demo', 'demo:latest', 'Demo', 'model', 'robobrain:3b', 'llava', 'LLAVA:latest', 'moondream', 'Moondream:latest', '', undef, 'other', 'demo:7b', 7, 'x' x 3000]
--- error_code eval
[(200) x 11, 404, 404, 400, 404]
--- response_body_like eval
[(map { qr/"model":"$_"/ } 'demo', 'demo:latest', 'Demo', 'model', 'robobrain:3b', 'llava', 'LLAVA:latest', 'moondream', 'Moondream:latest', 'demo', 'demo'),
 qr/^\{"error":"model \\"other\\" not found/, qr/not found/, qr/model is not a string/, qr/^\{"error":".{1,400}"\}\n$/]



=== TEST 10: a very long name is not repeated in every line
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 2; alias *;/; $text
--- request eval
[main::chat_with('hi', model => 'x' x 256), main::chat_with('hi', model => 'x' x 257)]
--- error_code eval
[200, 400]
--- response_body_like eval
[qr/"model":"x{256}"/, qr/model has 257 bytes, it may have 256/]



=== TEST 11: valid options are accepted
--- request eval
[map { main::chat_with('hi', options => $_) }
 {}, undef, { temperature => 0, top_p => 0, top_k => -1, seed => 0, num_predict => -1, repeat_penalty => 1.1, frequency_penalty => 0.5, presence_penalty => -0.5, stop => ['zz', ''], num_ctx => 1000000 },
 { temperature => 1.5, top_p => 0.9, top_k => 40, seed => -1, num_predict => -2, stop => 'zz', mirostat => 1, min_p => 'x', num_gpu => [] },
 { num_predict => 0, seed => 9223372036854775807, top_k => 20.0, temperature => undef }]
--- error_code eval
[(200) x 5]
--- response_body_like eval
[(qr/"done":true/) x 5]



=== TEST 12: invalid options are refused
--- request eval
[map { main::chat_with('hi', options => $_) }
 'x', [], { temperature => 'hot' }, { temperature => -1 }, { temperature => 101 }, { top_p => 1.5 }, { top_k => 2.5 }, { top_k => '40' }, { seed => 'x' }, { seed => 1e300 }, { seed => 9223372036854775808 }, { num_predict => -3 }, { num_predict => [] },
 { repeat_penalty => 0 }, { frequency_penalty => 3 }, { presence_penalty => JSON::PP::true }, { stop => 7 }, { stop => [7] }, { stop => [('x') x 17] }, { stop => 'x' x 1025 }, { num_ctx => 'many' }]
--- error_code eval
[(400) x 21]
--- response_body_like eval
[(qr/options is not an object/) x 2, (qr/temperature is not a number from 0 to 100/) x 3, qr/top_p/, (qr/top_k is not a whole number from -1 to/) x 2, (qr/seed is not a whole number from -9223372036854775808 to 9223372036854775807/) x 3, (qr/num_predict/) x 2,
 qr/repeat_penalty/, qr/frequency_penalty/, qr/presence_penalty/, (qr/stop is neither a string nor an array of strings/) x 2, qr/stop has more than 16 strings/, qr/1025 bytes, it may have 1024/, qr/num_ctx/]



=== TEST 13: a seed repeats an answer, 0 as any other
--- request eval
[map { main::generate('hello', options => { temperature => 5, seed => $_ }) } 0, 0, 7, 7]
--- response_body_filters eval
sub { our @all; push @all, main::whole(shift); @all % 2 ? "first\n" : $all[-1] eq $all[-2] ? "same\n" : "other\n" }
--- response_body eval
["first\n", "same\n", "first\n", "same\n"]
--- error_code eval
[(200) x 4]



=== TEST 14: a stop string ends the answer before it
--- request eval
[main::generate('hello'), main::generate('hello', options => { stop => ['o'] })]
--- response_body_filters eval
\&main::whole
--- response_body_like eval
[qr/^.*o.*\|(?:stop|length)\|/s, qr/^[^o|]+\|stop\|/]
--- error_code eval
[200, 200]



=== TEST 15: format json is an object
--- request eval
[(map { main::generate('hello', format => 'json', options => { temperature => 1.5, num_predict => $_ }) } 2, 3, 10, 48),
 main::ask('generate', model => 'demo', prompt => 'hello', format => 'json', options => { temperature => 1.5 })]
--- response_body_filters eval
sub { my $text = shift; $text = $text =~ /"done":false/ ? main::joined($text) : main::whole($text); $text =~ s/\|stop\|\d+\n$//; ref JSON::PP->new->utf8->decode($text) eq 'HASH' ? "an object\n" : $text }
--- response_body eval
[("an object\n") x 5]
--- error_code eval
[(200) x 5]



=== TEST 16: unsupported formats are refused
--- request eval
[map { main::generate('hello', %$_) } { format => { type => 'object', not => {} } }, { format => 'xml' }, { format => 7 }, { format => 'json', options => { num_predict => 1 } }, { format => '' }, { format => undef }]
--- error_code eval
[(400) x 4, 200, 200]
--- response_body_like eval
[qr!#/not is a keyword that is not supported!, (qr/invalid format/) x 2, qr/the shortest answer takes 2 tokens, there is room for 1/, (qr/"done":true/) x 2]



=== TEST 17: log-probabilities are in whole answers and in streams
--- request eval
[main::generate('hello', logprobs => JSON::PP::true, top_logprobs => 2, options => { num_predict => 2 }),
 main::ask('chat', model => 'demo', messages => [{ role => 'user', content => 'hello' }], logprobs => JSON::PP::true, options => { num_predict => 2 }),
 main::generate('hello', top_logprobs => 2), main::generate('hello', top_logprobs => 21), main::generate('hello', logprobs => 1)]
--- error_code eval
[200, 200, 200, 400, 400]
--- response_body_like eval
[qr/"logprobs":\[(?:\{"bytes":\[[\d,]+\],"logprob":-\d[^"]*,"token":"[^"]+","top_logprobs":\[(?:\{"bytes":\[[\d,]+\],"logprob":-\d[^"]*,"token":"[^"]+"\},?){2}\]\},?){2}\]/,
 qr/^(?:\{"model":"demo",[^\n]*"logprobs":\[(?:\{"token":"[^"]+","logprob":-\d[^"]*,"bytes":\[[\d,]+\]\},?)+\],"done":false\}\n){1,2}\{[^\n]*"done":true/,
 qr/^(?!.*logprobs).*"done":true/, qr/top_logprobs is not a whole number from 0 to 20/, qr/logprobs is not a boolean/]



=== TEST 18: a model without thinking, tools and insertion refuses them
--- http_config eval
(my $text = $::Http) =~ s/max_tokens (\d+);/max_tokens $1; tools refuse;/; $text
--- request eval
[main::chat_with('hi', think => JSON::PP::false), main::chat_with('hi', think => JSON::PP::true), main::chat_with('hi', think => 'high'), main::chat_with('hi', think => 7),
 main::chat_with('hi', tools => [{ type => 'function' }]), main::chat_with('hi', tools => []), main::generate('hi', suffix => 'x'), main::generate('hi', suffix => '')]
--- error_code eval
[200, 400, 400, 400, 400, 200, 400, 200]
--- response_body_like eval
[qr/"done":true/, (qr/\\"demo\\" does not support thinking/) x 2, qr/think is neither/, qr/demo does not support tools/, qr/"done":true/, qr/demo does not support insert/, qr/"done":true/]



=== TEST 19: a model that thinks does so by default
--- http_config eval
$main::Thinking
--- request eval
[main::chat_with('ponder'), main::chat_with('ponder', think => undef), main::chat_with('ponder', think => JSON::PP::true), main::chat_with('hi', think => JSON::PP::false), main::generate('ponder'), main::generate('hi', think => JSON::PP::false),
 main::ask('chat', model => 'demo', messages => [{ role => 'user', content => 'ponder' }]), main::generate('hi', format => 'json'), main::ask('show', model => 'demo')]
--- error_code eval
[(200) x 9]
--- response_body_like eval
[(qr/"message":\{"content":"","role":"assistant","thinking":"[^"]+"\}/) x 3, qr/"message":\{"content":"[^"]+","role":"assistant"\}/, qr/"response":"","thinking":"[^"]+"/, qr/^(?!.*thinking).*"response":"[^"]+"/,
 qr/^\{[^\n]*"message":\{"role":"assistant","content":"","thinking":"[^"]+"\},"done":false\}\n/, qr/^(?!.*thinking).*"response":"\{/, qr/"capabilities":\["completion","vision","tools","thinking"\]/]



=== TEST 20: raw sends the prompt without a template
--- request eval
[main::generate('hello', raw => JSON::PP::true), main::generate('hello', raw => JSON::PP::true, system => 'x'), main::generate('hello', raw => JSON::PP::true, context => [1]), main::generate('hello', template => 'x'), main::generate('hello', raw => 1),
 main::generate('hello', raw => JSON::PP::true, images => [main::image('40x30.png')])]
--- error_code eval
[200, (400) x 4, 200]
--- response_body_like eval
[qr/"prompt_eval_count":[1-5],/, (qr/raw mode does not support template, system, or context/) x 2, qr/does not support template/, qr/raw is not a boolean/, qr/"prompt_eval_count":\d\d?,/]



=== TEST 21: context is accepted, ignored and not returned
--- request eval
[main::generate('hello', context => [1, 2, 3]), main::generate('hello', context => []), main::generate('hello', context => 'x')]
--- error_code eval
[200, 200, 400]
--- response_body_like eval
[(qr/^(?!.*"context").*"prompt_eval_count":22,/) x 2, qr/context is not an array/]



=== TEST 22: a request without a prompt answers load, and with keep_alive 0 unload
--- request eval
[main::ask('chat', model => 'demo', messages => []), main::ask('chat', model => 'demo'), main::ask('generate', model => 'demo'), main::ask('generate', model => 'demo', prompt => '', keep_alive => '5m'),
 main::ask('chat', model => 'demo', messages => [], keep_alive => 0), main::ask('generate', model => 'demo', keep_alive => 0), main::ask('generate', model => 'demo', keep_alive => '0s'), main::ask('generate', model => 'demo', keep_alive => -1), main::generate('hi', keep_alive => 0)]
--- error_code eval
[(200) x 9]
--- response_headers eval
[("Content-Type: application/json") x 9]
--- response_body_like eval
[(qr/^\{"created_at":"[^"]+","done":true,"done_reason":"load","message":\{"content":"","role":"assistant"\},"model":"demo"\}\n$/) x 2, (qr/^\{"created_at":"[^"]+","done":true,"done_reason":"load","model":"demo","response":""\}\n$/) x 2,
 qr/"done_reason":"unload","message":/, (qr/"done_reason":"unload","model":"demo","response":""/) x 2, qr/"done_reason":"load"/, qr/"eval_count"/]



=== TEST 23: fields of the wrong type are refused
--- request eval
[main::chat_with('hi', stream => 'no'), main::chat_with('hi', keep_alive => JSON::PP::true), main::chat_with('hi', truncate => 1), main::generate(['hi']), main::generate('hi', system => 7), "POST /api/generate\n[1]", "POST /api/generate\n{", "POST /api/generate\n"]
--- error_code eval
[(400) x 8]
--- response_body_like eval
[qr/stream is not a boolean/, qr/keep_alive is neither/, qr/truncate is not a boolean/, qr/prompt is not a string/, qr/system is not a string/, qr/not a JSON object/, qr/Not JSON/, qr/missing request body/]



=== TEST 24: a history that no longer fits loses its oldest messages, but neither the system's nor the last
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 4; context 256;/; $text
--- request eval
my @history = map { { role => $_ % 2 ? 'assistant' : 'user', content => "turn number $_" } } 0 .. 60;
[main::chat_with('', messages => [{ role => 'system', content => 'Be short.' }, @history]),
 main::chat_with('', messages => [{ role => 'system', content => 'Be short.' }, @history], truncate => JSON::PP::false),
 main::chat_with('word ' x 500), main::chat_with('', messages => [{ role => 'system', content => 'word ' x 500 }, @history])]
--- error_code eval
[200, 400, 400, 400]
--- response_body_like eval
[qr/"prompt_eval_count":(?:1[5-9]|2[0-5])\d,/, (qr/^\{"error":"[^"]*\d+ tokens[^"]*"\}\n$/) x 3]



=== TEST 25: /api/tags, /api/ps and /api/version answer
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/alias llava;/; $text
--- request eval
[main::chat_with('hi'), "GET /api/tags", "GET /api/ps", "GET /api/version", "POST /api/tags\n{}"]
--- error_code eval
[200, 200, 200, 200, 405]
--- response_body_like eval
[qr/done/, qr/^\{"models":\[\{"details":\{"families":\["qwen25vl"\],"family":"qwen25vl","format":"safetensors","parameter_size":"6\.91M","parent_model":"","quantization_level":"INT8"\},"digest":"[0-9a-f]{64}","model":"demo:latest","modified_at":"[^"]+Z","name":"demo:latest","size":\d+\},\{.*"name":"llava:latest".*\}\]\}\n$/,
 qr/^\{"models":\[\{"context_length":4096,"details":\{[^{}]*\},"digest":"[0-9a-f]{64}","expires_at":"2\d\d\d-[^"]+Z","model":"demo:latest","name":"demo:latest","size":\d+,"size_vram":0\}\]\}\n$/,
 qr/^\{"version":"\d+\.\d+\.\d+"\}\n$/, qr/Method not allowed/]



=== TEST 26: /api/show answers
--- request eval
[main::ask('show', model => 'demo'), main::ask('show', name => 'demo:latest', verbose => JSON::PP::true), main::ask('show', model => 'other'), main::ask('show'), "POST /api/show\n{", "POST /api/show\n[]", main::ask('show', model => 'demo', more => 'x' x 70000)]
--- error_code eval
[200, 200, 404, 400, 400, 400, 413]
--- response_body_like eval
[(qr/"capabilities":\["completion","vision","tools"\],"details":\{.*"model_info":\{"general\.architecture":"qwen25vl","general\.basename":"model","general\.parameter_count":\d{7},.*"qwen25vl\.context_length":4096,.*"parameters":"num_ctx +4096\\nnum_predict +48","template":"/) x 2,
 qr/^\{"error":"model \\"other\\" not found/, qr/model is required/, qr/Not JSON/, qr/model is required/, qr/it may have 65536/]



=== TEST 27: operations on several models are refused
--- request eval
[(map { main::ask($_, model => 'demo') } qw(push create copy blobs/sha256:abc)), "DELETE /api/delete\n{\"model\":\"demo\"}"]
--- error_code eval
[(403) x 5]
--- response_body_like eval
[(qr/^\{"error":"The model of this server is named in its configuration/) x 3, (qr/is named in its configuration/) x 2]



=== TEST 28: RoboBrain's requests are answered in RoboBrain's form
--- request eval
[main::chat(), "POST /api/chat\n{\"message\":\"hi\",\"model\":\"demo\"}", "POST /api/chat\n{\"session_id\":\"s\",\"model\":\"demo\"}", "POST /api/chat\n{\"message\":\"hi\"}"]
--- error_code eval
[200, 400, 400, 400]
--- response_body_like eval
[qr/No image set/, qr/Missing session ID/, qr/Message is required/, qr/Missing session ID/]



=== TEST 29: a pull of the served model succeeds at once, and of another fails
--- request eval
[main::ask('pull', model => 'demo'), main::ask('pull', name => 'demo:latest', stream => JSON::PP::false), main::ask('pull', model => 'llava'), main::ask('pull')]
--- error_code eval
[200, 200, 403, 400]
--- response_headers eval
["Content-Type: application/x-ndjson", ("Content-Type: application/json") x 3]
--- response_body_like eval
[qr/^\{"status":"pulling manifest"\}\n\{"status":"success"\}\n$/, qr/^\{"status":"success"\}\n$/, qr/is named in its configuration: it cannot be pulled/, qr/model is required/]



=== TEST 29.1: tools are offered, and calls and results stand in messages
--- request eval
our @grasp = (tools => [{ type => 'function', function => { name => 'grasp', parameters => { type => 'object', properties => { x => { type => 'integer', minimum => 0, maximum => 9 } }, required => ['x'] } } }], options => { num_predict => 40 });
[map { main::chat_with('hi', stream => $_, messages => [{ role => 'user', content => 'Go' }, { role => 'assistant', content => '', tool_calls => [{ function => { name => 'grasp', arguments => { x => 1 } } }] }, { role => 'tool', tool_name => 'grasp', content => 'done' }], @grasp) } JSON::PP::true, JSON::PP::false]
--- response_body_like eval
[qr/"done":true/, qr/"done":true/]



=== TEST 29.2: an answer to a visual task has marks in pixels of the picture
--- request eval
[map { main::chat_with('hi', task => 'pointing', messages => [{ role => 'user', content => 'the red cup', images => [main::image('118x62.png')] }], %$_) } {}, { stream => JSON::PP::true }]
--- response_body_like eval
[qr/"marks":\[\{"label":null,"type":"point","xy":\[[\d.]+,[\d.]+\]\}/, qr/"message":\{"role":"assistant","content":"","marks":\[\{"type":"point","xy":\[[\d.]+,[\d.]+\],"label":null\}[^\n]*"done":true/]



=== TEST 30: with tools ignore the answer has no call, and /api/show no tools
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 2; tools ignore;/; $text
--- request eval
[main::chat_with('hi', tools => [{ type => 'function', function => { name => 'f' } }]), main::ask('show', model => 'demo')]
--- response_body_like eval
[qr/"done":true/, qr/"capabilities":\["completion","vision"\]/]



=== TEST 60: /api/embed and /api/embeddings answer with vectors
--- request eval
[main::ask('embed', model => 'demo', input => 'a red cup', truncate => JSON::PP::true, keep_alive => '5m', options => { num_ctx => 4096 }), main::ask('embed', model => 'demo', input => ['a red cup', 'two blocks']), main::ask('embeddings', model => 'demo', prompt => 'a red cup'), main::ask('embed', model => 'demo'), main::ask('embed', model => 'demo', input => []), main::ask('embeddings', model => 'demo', prompt => '')]
--- response_body_like eval
my $n = qr/-?[\d.]+(?:e-?\d+)?/;
my $v = qr/\[$n(?:,$n){255}\]/;
[qr/^\{"embeddings":\[$v\],"load_duration":\d+,"model":"demo","prompt_eval_count":3,"total_duration":\d+\}\n$/, qr/^\{"embeddings":\[$v,$v\],.*"prompt_eval_count":7,/, qr/^\{"embedding":$v\}\n$/, (qr/^\{"embeddings":\[\],"model":"demo"\}\n$/) x 2, qr/^\{"embedding":\[\]\}\n$/]



=== TEST 61: embeddings that cannot be made are refused
--- request eval
[(map { main::ask('embed', model => 'demo', %$_) } { input => 7 }, { input => ['a', 7] }, { input => 'a', dimensions => 3 }, { input => 'a', options => 7 }, { input => 'word ' x 5000 }), main::ask('embeddings', model => 'demo', prompt => ['a']), main::ask('embed', model => 'other', input => 'a'), "POST /api/embed"]
--- error_code eval
[(400) x 6, 404, 400]
--- response_body_like eval
[qr/input 0 is not a string/, qr/input 1 is not a string/, qr/dimensions can only be 256/, qr/options is not an object/, qr/tokens/, qr/prompt is not a string/, qr/not found/, qr/missing request body/]



=== TEST 62: the last object has the timings of a request that asks for them
--- request eval
[main::chat_with('hi', timings => JSON::PP::true()), main::generate('hi', timings => JSON::PP::true(), stream => JSON::PP::true()), main::generate('hi', timings => JSON::PP::true(), prompt => '')]
--- response_body_like eval
[qr/"timings":\{"cache_n":\d+,[^{}]*\}/, qr/\A(?:[^\n]*"done":false[^\n]*\n)+[^\n]*"done":true[^\n]*"timings":\{"cache_n":\d+,[^{}]*\}/, qr/^(?!.*timings)/]
