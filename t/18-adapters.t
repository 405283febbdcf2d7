# Tests adapters: how a request names one, what lists them, and their loading and unloading.

use Cwd ();
use Test::Nginx::Socket;

require './t/lib/vlm.pl';

our ($Http, $Config);
our $Root = Cwd::getcwd();
our $Dir = "$Root/build/adapters-http/adapters";
our $Model = "$Root/build/fidelity/tiny-a";
our (%Answer, %Tags);

system("rm -rf $Dir && mkdir -p $Dir && cp -r t/fidelity/lora/lora-a-list $Dir/tower"
       . " && cp -r t/fidelity/lora/lora-a-attention $Dir/text") == 0 or die "no adapters in $Dir";

our $Fixed = $Http =~ s/\$TEST_NGINX_MODEL;/$Model;\n        weights f32;\n        lora $Dir rank=4;/r;
# A slash behind the directory is no name.
our $Open = $Fixed =~ s{lora $Dir rank=4;}{lora $Dir/ rank=4 max=2 load=on;}r;
our $Paths = $Config =~ s/\(api\|/(lora-adapters|adapter|api|/r =~ s/result\)\//result)/r;

add_block_preprocessor(sub {
    my ($block) = @_;

    $block->set_value('http_config', $main::Fixed) unless defined $block->http_config;
    $block->set_value('config', $main::Paths);

    defaults($block);
});
log_level('info');
no_shuffle();

# Remembers the text of each answer by the next name, and says which of the earlier ones it
# equals; a name that is undef leaves the answer as it is.
sub same_as {
    my @names = @_;

    return sub {
        my $name = shift @names;

        return $_[0] unless defined $name;

        my $answer = JSON::PP->new->utf8->decode($_[0]);
        my $text = $answer->{choices} ? $answer->{choices}[0]{message}{content}
                                      : $answer->{message}{content} // $answer->{answer};
        my @same = grep { $main::Answer{$_} eq $text } sort keys %main::Answer;

        $main::Answer{$name} //= $text;
        return "like " . (@same ? "@same" : 'none') . "\n";
    };
}

sub ask {
    my ($fields) = @_;

    return qq(POST /v1/chat/completions\n{ "messages": [ { "role": "user", "content": "Where is the cup?" } ], "max_tokens": 12$fields });
}

plan tests => repeat_each() * 118;

run_tests();

__DATA__

=== TEST 1: a request names an adapter as its model, and each adapter has an answer of its own
--- request eval
[main::ask(''), main::ask(', "model": "tower"'), main::ask(', "model": "text"'), main::ask(', "model": "demo"'), main::ask(', "model": "tower:latest"')]
--- response_body_filters eval
main::same_as('base', 'tower', 'text', 'other', 'again')
--- error_code eval
[200, 200, 200, 200, 200]
--- response_body eval
["like none\n", "like none\n", "like none\n", "like base\n", "like tower\n"]
=== TEST 2: an unknown name is never answered by the base
--- request eval
main::ask(', "model": "towel"')
--- error_code: 404
--- response_body_like: "code":"model_not_found"
=== TEST 3: llama-server's field has ids and scales
--- request eval
[main::ask(', "lora": [ { "id": 1, "scale": 1 } ]'), main::ask(', "lora": [ { "id": 1, "scale": 0 } ]'), main::ask(', "lora": []'), main::ask(', "lora": [ { "id": 1, "scale": 3.5 } ]')]
--- response_body_filters eval
main::same_as('id', 'zero', 'empty', 'more')
--- error_code eval
[200, 200, 200, 200]
--- response_body eval
["like again tower\n", "like base other\n", "like base other zero\n", "like none\n"]
=== TEST 4: mistakes in that field have a sentence each
--- request eval
[main::ask(', "lora": [ { "id": 2 } ]'), main::ask(', "lora": [ { "id": 0, "scale": 5 } ]'), main::ask(', "lora": [ { "id": 0 }, { "id": 1 } ]'), main::ask(', "lora": [ { "id": 0 } ], "model": "tower"')]
--- error_code eval
[400, 400, 400, 400]
--- response_body_like eval
["GET /lora-adapters does not list", "a scale from 0 to 4", "at most one entry", "lora and model name an adapter both"]
=== TEST 5: RoboBrain's and Ollama's chats name one, too
--- request eval
["POST /api/chat\n{ \"model\": \"tower\", \"messages\": [ { \"role\": \"user\", \"content\": \"Where is the cup?\" } ], \"stream\": false, \"options\": { \"num_predict\": 12 } }",
 "POST /api/chat\n{ \"session_id\": \"a\", \"message\": \"Where is the cup?\", \"text_only\": true, \"adapter\": \"tower\" }",
 "POST /api/chat\n{ \"session_id\": \"b\", \"message\": \"Where is the cup?\", \"text_only\": true }",
 "POST /api/chat\n{ \"session_id\": \"c\", \"message\": \"Where is the cup?\", \"text_only\": true, \"adapter\": \"towel\" }"]
--- error_code eval
[200, 200, 200, 404]
--- response_body_filters eval
main::same_as('ollama', 'robobrain tower', 'robobrain', undef)
--- response_body eval
["like again id tower\n", "like none\n", "like none\n", "{\"error\":\"there is no adapter \\\"towel\\\"\"}\n"]
=== TEST 6: lists of models have the adapters with their parent
--- request eval
["GET /v1/models", "GET /v1/models/tower", "GET /v1/models/towel", "GET /lora-adapters", "GET /adapter/list"]
--- error_code eval
[200, 200, 404, 200, 200]
--- response_body_like eval
["\"id\":\"demo\".*\"id\":\"text\",.*\"parent\":\"demo\",\"root\":\"adapters/text\".*\"id\":\"tower\"",
 "\"id\":\"tower\".*\"parent\":\"demo\"", "not found",
 qr{^\[\{"id":0,"path":"adapters/text","scale":0(\.0)?\},\{"id":1,"path":"adapters/tower","scale":0(\.0)?\}\]$},
 qr{^\{"adapters":\[\{"name":"text","path":"adapters/text"\},\{"name":"tower","path":"adapters/tower"\}\]\}$}]
=== TEST 7: health names the adapters and has their memory, metrics count requests
--- request eval
["GET /api/health", main::ask(', "model": "text"'), "GET /api/health"]
--- error_code eval
[200, 200, 200]
--- response_body_like eval
["\"adapters\":\\[\"text\",\"tower\"\\].*\"lora\":[1-9]", "\"model\":\"text\"", "healthy"]
=== TEST 8: without load=on adapters stay as they are
--- request eval
["POST /v1/load_lora_adapter\n{ \"lora_name\": \"x\", \"lora_path\": \"text\" }", "POST /v1/unload_lora_adapter\n{ \"lora_name\": \"text\" }"]
--- error_code eval
[403, 403]
--- response_body_like eval
["lora has no load=on", "lora has no load=on"]
=== TEST 9: with load=on they are unloaded and loaded, under other names, too
--- http_config eval: $main::Open
--- request eval
[main::ask(''), "POST /v1/load_lora_adapter\n{ \"lora_name\": \"x\", \"lora_path\": \"text\" }",
 "POST /v1/unload_lora_adapter\n{ \"lora_name\": \"text\" }",
 "POST /v1/unload_lora_adapter\n{ \"lora_name\": \"text\" }",
 main::ask(', "model": "text"'),
 "POST /v1/load_lora_adapter\n{ \"lora_name\": \"x\", \"lora_path\": \"adapters/tower\" }",
 "POST /v1/load_lora_adapter\n{ \"lora_name\": \"x\", \"lora_path\": \"$main::Dir/tower\" }",
 main::ask(', "model": "x"'),
 "GET /adapter/list"]
--- error_code eval
[200, 409, 200, 404, 404, 200, 400, 200, 200]
--- response_body_filters eval
main::same_as((undef) x 7, 'x', undef)
--- response_body_like eval
["choices", "all 2 places of adapters are in use", "^Success: LoRA adapter 'text' removed successfully.\n\$", "there is no adapter", "model_not_found",
 "^Success: LoRA adapter 'x' added successfully.\n\$", "is loaded already", "like again id ollama tower", "tower.*x|x.*tower"]
=== TEST 10: paths lead nowhere else
--- http_config eval: $main::Open
--- request eval
[main::ask(''), "POST /v1/unload_lora_adapter\n{ \"lora_name\": \"text\" }",
 map { "POST /v1/load_lora_adapter\n{ \"lora_name\": \"x\", \"lora_path\": \"$_\" }" } "..", "../adapters/text", "/etc", "nothing", ""]
--- error_code eval
[200, 200, 404, 400, 400, 404, 400]
--- response_body_like eval
["choices", "removed", "there is no adapter", "not a directory in", "not a directory in", "there is no adapter", "lora_path is not a text"]
=== TEST 11: a body without its fields is refused
--- http_config eval: $main::Open
--- request eval
["POST /v1/load_lora_adapter\n[]", "POST /v1/load_lora_adapter\n{ \"lora_path\": \"text\" }", "POST /v1/load_lora_adapter\n{ \"lora_name\": \"a/b\", \"lora_path\": \"text\" }", "POST /v1/unload_lora_adapter\n{ \"lora_name\": 3 }"]
--- error_code eval
[400, 400, 400, 400]
--- response_body_like eval
["not a JSON object", "lora_name is not a text", "letters, digits", "lora_name is not a text"]
=== TEST 12: with load_inplace an adapter takes the name of another, which needs a free place
--- http_config eval: $main::Open
--- request eval
[main::ask(''), "POST /v1/load_lora_adapter\n{ \"lora_name\": \"text\", \"lora_path\": \"tower\", \"load_inplace\": true }",
 "POST /v1/unload_lora_adapter\n{ \"lora_name\": \"tower\" }",
 "POST /v1/load_lora_adapter\n{ \"lora_name\": \"text\", \"lora_path\": \"tower\", \"load_inplace\": false }",
 "POST /v1/load_lora_adapter\n{ \"lora_name\": \"text\", \"lora_path\": \"tower\", \"load_inplace\": 1 }",
 "POST /v1/load_lora_adapter\n{ \"lora_name\": \"text\", \"lora_path\": \"tower\", \"load_inplace\": true }",
 main::ask(', "model": "text"'),
 "GET /adapter/list"]
--- error_code eval
[200, 409, 200, 400, 400, 200, 200, 200]
--- response_body_filters eval
main::same_as((undef) x 6, 'replaced', undef)
--- response_body_like eval
["choices", "all 2 places of adapters are in use", "removed", "is loaded already", "load_inplace is neither true nor false",
 "^Success: LoRA adapter 'text' added successfully.\n\$", "like again id ollama tower x", qr{^\{"adapters":\[\{"name":"text","path":"adapters/tower"\}\]\}$}]
=== TEST 13: Ollama's lists have the adapters, too
--- request eval
["GET /api/tags", "POST /api/show\n{ \"model\": \"tower:latest\" }", "POST /api/show\n{ \"model\": \"towel\" }"]
--- error_code eval
[200, 200, 404]
--- response_body_like eval
["\"parent_model\":\"\".*\"name\":\"demo:latest\".*\"parent_model\":\"demo\".*\"name\":\"text:latest\".*\"parent_model\":\"demo\".*\"name\":\"tower:latest\"",
 "\"parent_model\":\"demo\"", "not found"]
