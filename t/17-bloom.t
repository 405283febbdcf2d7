# Tests a model without a vision encoder and without a chat template.

use Cwd ();
use Test::Nginx::Socket;

require './t/lib/vlm.pl';

our $Http;
our $Dir = Cwd::getcwd() . '/build/fidelity/tiny-p';
our $Bloom = $Http =~ s/\$TEST_NGINX_MODEL/$Dir/r;

add_block_preprocessor(sub {
    my ($block) = @_;

    $block->set_value('http_config', $main::Bloom) unless defined $block->http_config;

    defaults($block);
});
log_level('info');
no_shuffle();

plan tests => repeat_each() * 33;

run_tests();

__DATA__

=== TEST 1: a text goes on
--- request
POST /v1/completions
{ "prompt": "A quick brown fox", "max_tokens": 4 }
--- error_code: 200
--- response_body_like: "completion_tokens":4,
=== TEST 2: messages are refused with the reason
--- request
POST /v1/chat/completions
{ "messages": [ { "role": "user", "content": "hi" } ] }
--- error_code: 400
--- response_body_like: BLOOM has no chat template
=== TEST 3: messages of RoboBrain's interface are refused, too
--- request
POST /api/chat
{ "session_id": "s", "message": "hi", "text_only": true }
--- error_code: 400
--- response_body_like: BLOOM has no chat template
=== TEST 4: messages of Ollama's interface are refused, too
--- request
POST /api/chat
{ "messages": [ { "role": "user", "content": "hi" } ], "stream": false }
--- error_code: 400
--- response_body_like: BLOOM has no chat template
=== TEST 5: a prompt of Ollama's is continued, with "raw" and without
--- request
POST /api/generate
{ "prompt": "A quick brown fox", "stream": false, "options": { "num_predict": 4 } }
--- error_code: 200
--- response_body_like: "eval_count":4,.*"prompt_eval_count":15
=== TEST 6: the same prompt
--- request
POST /api/generate
{ "prompt": "A quick brown fox", "raw": true, "stream": false, "options": { "num_predict": 4 } }
--- error_code: 200
--- response_body_like: "eval_count":4,.*"prompt_eval_count":15
=== TEST 7: a picture is refused with the reason
--- request eval
"POST /api/generate\n"
. '{ "prompt": "hi", "stream": false, "images": [ "' . main::base64(main::picture('40x30.png')) . '" ] }'
--- error_code: 400
--- response_body_like: BLOOM has no vision encoder: this model takes text alone
=== TEST 8: Ollama's description has neither vision nor a template of messages
--- request
POST /api/show
{ "model": "demo" }
--- error_code: 200
--- response_body_like: "capabilities":\["completion"\].*"template":"\{\{ .Prompt \}\}"
=== TEST 9: an n-gram of more than 64 tokens is refused
--- request
POST /v1/completions
{ "prompt": "A quick brown fox", "max_tokens": 4, "no_repeat_ngram_size": 65 }
--- error_code: 400
--- response_body_like: no_repeat_ngram_size
=== TEST 10: with n-grams of one token no token of the answer stands twice, as some do without
--- request eval
[map { "POST /v1/completions\n{ \"prompt\": \"A quick brown fox\", \"max_tokens\": 12, \"temperature\": 0, \"logprobs\": 0$_ }" }
 '', ', "no_repeat_ngram_size": 1']
--- error_code eval
[200, 200]
--- response_body_filters eval
sub { my $t = JSON::PP->new->utf8->decode($_[0])->{choices}[0]{logprobs}{tokens}; my %seen; $seen{$_}++ for @$t; @$t . ' tokens, ' . (grep({ $_ > 1 } values %seen) ? 'some' : 'none') . " twice\n" }
--- response_body eval
["12 tokens, some twice\n", "12 tokens, none twice\n"]
=== TEST 11: an answer cannot have more tokens than it may have
--- request
POST /v1/completions
{ "prompt": "A quick brown fox", "max_tokens": 4, "min_tokens": 5 }
--- error_code: 400
--- response_body_like: min_tokens is 5, more than max_tokens, 4
=== TEST 12: RoboBrain's interface refuses messages without "text_only", too
--- request
POST /api/chat
{ "session_id": "s", "message": "hi" }
--- error_code: 400
--- response_body_like: BLOOM has no chat template
=== TEST 13: an upload is refused with the reason
--- request eval
"POST /api/upload\n" . main::multipart(['file', 'cup.png', main::picture('40x30.png')])
--- more_headers: Content-Type: multipart/form-data; boundary=xxxx
--- error_code: 400
--- response_body_like: ^\{"error":"BLOOM has no vision encoder: this model takes text alone"\}$
=== TEST 14: health says that the model sees no pictures
--- request
GET /api/health
--- error_code: 200
--- response_body_like: "chat":false.*"vision":false
=== TEST 15: no notice is about settings of pictures
--- request
GET /api/health
--- error_code: 200
--- error_log eval
qr{vlm_engine "demo": \d+m planned}
--- no_error_log
preprocessor_config.json
