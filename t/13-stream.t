# Tests POST /api/chat as events: their order and form, the conditions for a stream,
# and errors before and after the first event.  The model's answers are scripted by
# t/lib/Script.pm, token by token.

use Test::Nginx::Socket;

BEGIN { require './t/lib/Script.pm' }

$ENV{TEST_NGINX_MODEL} = Script::model('stream',
    emoji    => ["\xf0\x9f", "\x98\x80 \xc3", "\xa9t\xc3\xa9"],
    markup   => ['<b', '>a <an', 'swer', '> ', '</', 'think> b', '</b', ">\t", " \n"],
    quoted   => ["\"a\"\n", "\\\t\x01"],
    mute     => [],
    thought  => [' <th', 'ink>  Two', ' mugs', ",\n th", 'en <', "\n</", 'think', ">\n<ans", 'wer> ', 'Tw', 'o </ans', 'wer>', "\n\n"],
    ponder   => ['I only', ' ponder <', '/thin'],
    repeated => ['one</think>', 'two', '</think>', 'three'],
    bounding => ['[10, 20,', ' 60, 50]'],
    Choose   => ['grounding'],
    ''       => ['I see', ' a', ' mug.']);

$Script::MLP = 8192;
$ENV{TEST_NGINX_SLOW} = Script::model('stream-slow', '' => ['On', ' and', ' on', undef]);

require './t/lib/vlm.pl';

our $Thinking = $::Http;
$Thinking =~ s/thinking off;/thinking on;/;

our $Short = $::Http;
$Short =~ s/TEST_NGINX_MODEL/TEST_NGINX_SLOW/;
$Short =~ s/max_tokens 48;/max_tokens 15000; context 16k; timeout 5s; threads 1; weights f32;/;

our $Small = $::Http;
$Small =~ s/(thinking off;)/$1\n        context 256;/;

our $Log = $::Http . <<'_EOC_';
    log_format vlm 't=$vlm_ttft p=$vlm_prompt_tokens c=$vlm_completion_tokens f=$vlm_finish_reason s=$vlm_session.';
    access_log logs/access.log vlm;
_EOC_

my $JSON = JSON::PP->new->utf8->canonical;

sub yes { JSON::PP::true() }
sub no  { JSON::PP::false() }

sub stream { chat(image => 'cup.png', stream => yes(), @_) }
sub thinks { stream(enable_thinking => yes(), @_) }

sub post {
    my ($path, %fields) = @_;

    return "POST $path\n" . $JSON->encode({ session_id => 's', stream => yes(), %fields });
}

# Returns the events in order, with pieces of one kind joined, and whether the pieces
# are equal to the answer.
sub told {
    my ($body) = map { unplaced($_) } @_;

    return canonical($body) unless $body =~ /^event: /;

    my (@lines, %pieces);

    while ($body =~ s/^event: (\w+)\ndata: ([^\n]+)\n\n//) {
        my ($name, $json) = ($1, $JSON->decode($2));

        if ($name eq 'token') {
            my ($key, @rest) = keys %$json;

            $pieces{$key} .= $json->{$key};
            push @lines, @rest ? 'two at once' : $key
                unless @lines && $lines[-1] eq $key;

        } else {
            push @lines, $name;
            push @lines, $JSON->encode($json) if $name eq 'error';
            push @lines, map { "$_ is $json->{$_}" } grep { length $json->{$_} }
                         'thinking', 'answer' if $name eq 'answer';
            push @lines, map { ($pieces{$_->[0]} // '') eq $json->{$_->[1]} ? () : "$_->[0] differs" }
                         ['text', 'answer'], ['thinking', 'thinking'] if $name eq 'answer';
        }
    }

    push @lines, "rest: $body" if length $body;

    my $text = join '|', @lines;

    utf8::encode($text) if utf8::is_utf8($text);

    return "$text\n";
}

# Returns the pieces that match a pattern, except allowed ones.
sub pieces {
    my ($body, $wrong, $right) = @_;

    my @pieces = $body =~ /^data: \{"(?:text|thinking)":"([^"]*)"\}/mg;

    s/$right//g for $right ? @pieces : ();

    return CORE::join('', @pieces ? "good\n" : "none\n", map { "$_\n" } grep { /$wrong/ } @pieces);
}

add_block_preprocessor(sub {
    my ($block) = @_;

    $block->set_value('user_files', [['../logs/vlm/uploads/cup.png', main::picture('118x62.png')],
                                     ['../logs/vlm/uploads/text.png', 'text']])
        unless defined $block->user_files;
    $block->set_value('response_body_filters', \&told)
        unless defined $block->response_body_filters;
    defaults($block);
});

log_level('info');
no_shuffle();

plan tests => repeat_each() * 111;

run_tests();

__DATA__

=== TEST 1: a stream has words, then the answer as it is without events
--- http_config eval: $::Http . "vlm_cors *;"
--- request eval
main::stream()
--- response_headers
Content-Type: text/event-stream; charset=utf-8
Cache-Control: no-cache
X-Accel-Buffering: no
Access-Control-Allow-Origin: *
Transfer-Encoding: chunked
--- response_body_filters eval
sub { main::unplaced(@_) }
--- response_body_like eval
qr/\A(?:event: token\ndata: \{"text":"(?:I see| a| mug\.)+"\}\n\n)+event: answer\ndata: \{"answer":"I see a mug\.","context_used":false,"output_image":null,"task":"general","thinking":"","turn_number":2\}\n\n\z/
--- no_error_log
[error]



=== TEST 2: a client that accepts events, or asks for them, receives them
--- request eval
[map { main::chat(image => 'cup.png', @$_) } ([]) x 5, [stream => main::no()], [stream => JSON::PP::null()], [stream => 1], [stream => 0], [stream => '']]
--- more_headers eval
['Accept: text/event-stream', 'Accept: text/html, Text/Event-Stream;q=0.9', 'Accept: application/json, text/plain, */*', 'Accept: */*', 'Accept: text/event',
 ('Accept: text/event-stream') x 2, ('Accept: application/json') x 3]
--- response_headers_like eval
[map { "Content-Type: $_" } ('text/event-stream; charset=utf-8') x 2, ('application/json') x 3, 'application/json', 'text/event-stream; charset=utf-8', 'text/event-stream; charset=utf-8', ('application/json') x 2]



=== TEST 3: the pieces form the answer wherever a token ends
--- request eval
[map { main::stream(session_id => $_, message => $_) } 'an emoji', 'a markup', 'a quoted one', 'an ordinary one']
--- response_body eval
["text|answer|answer is \xf0\x9f\x98\x80 \xc3\xa9t\xc3\xa9\n", "text|answer|answer is <b>a <answer> </think> b</b>\t \n\n",
 "text|answer|answer is \"a\"\n\\\t\x01\n", "text|answer|answer is I see a mug.\n"]



=== TEST 4: each piece has complete characters
--- request eval
main::stream(message => 'an emoji')
--- response_body_filters eval
sub { main::pieces(shift, qr/[^ t]/, qr/\\u[0-9a-f]{4}/) }
--- response_body
good



=== TEST 5: an empty answer is an answer
--- request eval
main::stream(message => 'a mute one')
--- response_body
answer



=== TEST 6: a stream has the picture, and not the task's prompt
--- request eval
main::stream(task => 'auto')
--- response_body_filters eval
sub { main::unplaced(@_) }
--- response_body_like eval
qr/\A(?:event: token\ndata: \{"text":"[^"]+"\}\n\n)+event: answer\ndata: \{"answer":"\[10, 20, 60, 50\]",[^\n]*"output_image":"\\?\/result[^\n]*"task":"grounding","task_source":"auto"[^\n]*\n\n\z/



=== TEST 7: thinking has its own events without its marks, wherever a token ends
--- http_config eval
$::Thinking
--- request eval
[map { main::thinks(session_id => $_, message => $_) } 'a thought', 'to ponder', 'a repeated one']
--- response_body eval
["thinking|text|answer|thinking is Two mugs,\n then <|answer is Two\n", "thinking|answer|thinking is I only ponder </thin\n", "thinking|text|answer|thinking is one|answer is two\n"]



=== TEST 8: no piece has a part of a mark
--- http_config eval
$::Thinking
--- request eval
main::thinks(message => 'a thought')
--- response_body_filters eval
sub { main::pieces(shift, qr{</?[ta]|>}) }
--- response_body
good



=== TEST 9: without thinking a client receives the answer alone
--- http_config eval
$::Thinking
--- request eval
[main::stream(), main::stream(message => 'a thought')]
--- response_body_like eval
[qr/\Atext\|answer\|answer is I see a mug\.\n\z/, qr/\Atext\|answer\|answer is /]



=== TEST 10: an error before the first word has its status, and is no event
--- request eval
[map { main::stream(@$_) } [image => 'dog.png'], [image => 'text.png'], [message => ''], [session_id => ''], [image => 7]]
--- error_code eval
[(400) x 5]
--- response_headers_like eval
[("Content-Type: application/json") x 5]
--- response_body_like eval
[qr/^\{"error":"Image not found: dog\.png"\}$/, qr/^\{"error":"not a supported picture/, qr/^\{"error":"Message is required"\}$/, qr/^\{"error":"Missing session ID"\}$/, qr/^\{"error":"The image is not a string"\}$/]



=== TEST 11: a refusal by the engine has its status, too
--- request eval
[main::stream(image => JSON::PP::null()), main::stream(task => 'dance')]
--- response_headers_like eval
[("Content-Type: application/json") x 2]
--- response_body_like eval
[qr/^\{"answer":"No image set\./, qr/^\{"answer":"Inference error: Invalid task type: dance\./]



=== TEST 12: a prompt that does not fit has its status, too
--- http_config eval
$::Small
--- request eval
main::stream(message => 'x' x 300)
--- error_code: 400
--- response_body_like: ^\{"error":".*\b\d+ tokens.*"\}$



=== TEST 13: an error after the first word is the last event
--- http_config eval
$::Short
--- request eval
[main::stream(message => 'an endless one'), "GET /api/history/s"]
--- error_code eval
[200, 200]
--- response_body eval
["text|error|{\"error\":\"The answer took longer than 5 seconds\",\"status\":504}\n", "[]\n"]
--- no_error_log
[error]



=== TEST 14: a stream to a client of HTTP/1.0 ends with the connection
--- raw_request eval
my $body = '{"session_id":"s","message":"hi","image":"cup.png","stream":true}';
"POST /api/chat HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body"
--- raw_response_headers_unlike: Transfer-Encoding
--- response_body
text|answer|answer is I see a mug.



=== TEST 15: the connection is used for another request
--- pipelined_requests eval
[main::stream(), main::stream(), "GET /api/history/s"]
--- response_body_like eval
[(qr/^text\|answer\|answer is I see a mug\.$/) x 2, qr/"content":"I see a mug\."/]



=== TEST 16: the figures of a stream are variables for the log
--- http_config eval
$::Log
--- request eval
main::stream(session_id => 'mine')
--- response_body_like: ^text
--- access_log eval
[qr/^t=\d+\.\d{3} p=\d+ c=3 f=stop s=mine\.$/]



=== TEST 17: the figures of a failed stream are, too
--- http_config eval
$::Short . <<'_EOC_'
    log_format vlm 't=$vlm_ttft f=$vlm_finish_reason s=$vlm_session.';
    access_log logs/access.log vlm;
_EOC_
--- request eval
main::stream(message => 'an endless one')
--- response_body_like: ^text\|error
--- access_log eval
[qr/^t=\d+\.\d{3} f=(?:cancelled|error) s=s\.$/]



=== TEST 18: requests for titles, plans and pipelines have no stream
--- request eval
[main::stream(), main::post('/api/generate-title', message => 'x'), main::post('/api/decompose', query => 'x'), main::post('/api/pipeline', message => 'x', image => 'cup.png')]
--- more_headers: Accept: text/event-stream
--- response_headers_like eval
['Content-Type: text/event-stream.*', ('Content-Type: application/json') x 3]



=== TEST 19: an answer that takes too long names no field
--- http_config eval
$::Short
--- request
POST /v1/chat/completions
{"messages":[{"role":"user","content":"an endless one"}]}
--- error_code: 504
--- response_body
{"error":{"code":"timeout","message":"The answer took longer than 5 seconds","param":null,"type":"server_error"}}
--- no_error_log
[error]



=== TEST 20: limit_rate slows no stream
--- config
        location /api/ {
            limit_rate 1;
            vlm_pass demo;
        }
--- request eval
main::stream()
--- response_body
text|answer|answer is I see a mug.
