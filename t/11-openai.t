# Tests OpenAI's API: the requests of its clients, and the answers that they read.

use JSON::PP ();
use MIME::Base64 ();
use Test::Nginx::Socket;

require './t/lib/vlm.pl';

add_block_preprocessor(\&defaults);
log_level('info');
no_shuffle();

plan tests => repeat_each() * 725;

run_tests();


sub yes { JSON::PP::true() }
sub no  { JSON::PP::false() }

# Makes a POST /v1/PATH with these fields; the default question is "hi".
sub post {
    my ($path, %fields) = @_;

    return "POST /v1/$path\n" . JSON::PP->new->utf8->canonical->encode(\%fields);
}

# Of an answer with vectors: the model, both counts of tokens, and of each vector its index,
# its size, its length, and whether it is the same as the first that a test of this file has got.
{
    my $first;

    sub vectors {
        my $answer = JSON::PP::decode_json($_[0]);
        my $text = "$answer->{model} $answer->{usage}{prompt_tokens} $answer->{usage}{total_tokens}:";

        for my $one (@{$answer->{data}}) {
            my $x = $one->{embedding};
            my @x = ref $x ? @$x : unpack('f<*', MIME::Base64::decode_base64($x));
            my $sum = 0;
            $sum += $_ * $_ for @x;
            my $near = CORE::join ' ', map { sprintf '%.6f', $_ } @x;

            $first //= $near;
            $text .= sprintf(' %s %d %.6f %s', $one->{index}, scalar @x, sqrt $sum, $near eq $first ? 'same' : 'other');
        }

        return "$text\n";
    }
}

sub chat_with {
    my (%fields) = @_;

    return post('chat/completions', messages => [{ role => 'user', content => 'What is this?' }], %fields);
}

sub messages { chat_with(messages => $_[0]) }

sub parts { messages([{ role => 'user', content => $_[0] }]) }

sub text_of {
    my (%fields) = @_;

    return post('completions', prompt => 'The table has', %fields);
}

sub url {
    my ($name) = @_;

    return 'data:image/png;base64,' . main::base64(main::picture($name));
}

# Makes a file with the header of a picture and invalid pixels.
sub broken {
    my ($name) = @_;

    my $file = main::picture($name);

    substr($file, 200, 300) = "\xff" x 300;

    return main::base64($file);
}

sub image { { type => 'image_url', image_url => { url => url($_[0]), detail => 'low' } } }

# Makes a tool in the form of clients.
sub tool {
    my ($name) = @_;

    return { type => 'function', function => { name => $name, description => 'what it does', parameters => { type => 'object', properties => {} } } };
}

sub text_part { { type => 'text', text => $_[0] } }

# Returns an error's parts in one line: type|param|code.
sub fault {
    my ($body) = @_;

    my $all = JSON::PP->new->utf8->decode($body);
    my $e = $all->{error};

    return "keys: $body" unless join(' ', sort keys %$e) eq 'code message param type' && keys %$all == 1;
    return "no message: $body" unless length $e->{message};

    return join('|', map { defined $_ ? $_ : '-' } @$e{qw(type param code)}) . "\n";
}

sub choice { JSON::PP->new->utf8->decode($_[0])->{choices}[0] }

# Returns a whole answer in one line: text|finish|completion tokens.
sub whole {
    my ($body) = @_;

    my $all = JSON::PP->new->utf8->decode($body);
    my $c = $all->{choices}[0];
    my $u = $all->{usage};

    return "usage: $body" if $u->{total_tokens} != $u->{prompt_tokens} + $u->{completion_tokens};

    return ($c->{message} ? $c->{message}{content} : $c->{text}) . "|$c->{finish_reason}|$u->{completion_tokens}\n";
}

sub events {
    my ($body) = @_;

    my @events = split /\n\n/, $body, -1;

    die "no end: $body" unless pop @events eq '' && pop @events eq 'data: [DONE]';

    return map { /^data: (\{.*\})$/ or die "no event: $_"; JSON::PP->new->utf8->decode($1) } @events;
}

# Returns the same line for a stream that has include_usage, or its fault.
sub joined {
    my ($body) = @_;

    my @events = eval { events($body) } or return $@;
    my $u = pop @events;

    return "no usage: $body" if @{ $u->{choices} } || !$u->{usage};
    return "usage before the end: $body" if grep { !exists $_->{usage} || defined $_->{usage} } @events;
    return "ids: $body" if grep { $_->{id} ne $u->{id} || $_->{created} != $u->{created} || $_->{object} ne $u->{object} } @events;

    my $last = pop @events;
    my $finish = $last->{choices}[0]{finish_reason};

    return "no end: $body" unless $finish;
    return "an end before the end: $body" if grep { defined $_->{choices}[0]{finish_reason} } @events;

    if ($u->{object} eq 'chat.completion.chunk') {
        my $first = shift @events;
        return "no role: $body" unless $first->{choices}[0]{delta}{role} eq 'assistant' && $first->{choices}[0]{delta}{content} eq '';
        return "a text at the end: $body" if keys %{ $last->{choices}[0]{delta} };
        return "a role again: $body" if grep { $_->{choices}[0]{delta}{role} } @events;
    }

    my $text = join '', map { $_->{choices}[0]{delta} ? $_->{choices}[0]{delta}{content} : $_->{choices}[0]{text} } @events;

    return "$text|$finish|$u->{usage}{completion_tokens}\n";
}

# Returns the number of a chat's tokens, or the fault of one.
sub tokens {
    my ($text, $n_top, @tokens) = @_;

    my $bytes = '';

    for my $t (@tokens) {
        my ($first) = @{ $t->{top_logprobs} };

        return 'keys ' . join(' ', sort keys %$t) unless join(' ', sort keys %$t) eq 'bytes logprob token top_logprobs';
        return 'tops ' . @{ $t->{top_logprobs} } unless @{ $t->{top_logprobs} } == $n_top;
        return "logprob $t->{logprob}" unless $t->{logprob} <= 0 && $t->{logprob} > -9999;
        return 'not the likeliest' if $first && $first->{token} ne $t->{token};
        return 'order' if grep { $t->{top_logprobs}[$_ - 1]{logprob} < $t->{top_logprobs}[$_]{logprob} } 1 .. $n_top - 1;

        $bytes .= pack 'C*', @{ $t->{bytes} };
    }

    utf8::decode($bytes);

    return $bytes eq $text ? scalar(@tokens) . " tokens\n" : "<$bytes> is not <$text>";
}

sub tokens_of_whole {
    my ($n_top, $body) = @_;

    my $c = choice($body);

    return tokens($c->{message}{content}, $n_top, @{ $c->{logprobs}{content} });
}

sub tokens_of_stream {
    my ($n_top, $body) = @_;

    my @choices = map { $_->{choices}[0] } events($body);

    return tokens(join('', map { $_->{delta}{content} // '' } @choices), $n_top, map { @{ ($_->{logprobs} || {})->{content} || [] } } @choices);
}


__DATA__

=== TEST 1: a chat has one answer
--- request eval
main::chat_with(model => 'demo', max_tokens => 4)
--- response_headers
Content-Type: application/json
--- response_body_filters eval
sub { $_[0] }
--- response_body_like eval
qr/^\{"id":"chatcmpl-[A-Za-z0-9]{24}","object":"chat\.completion","created":\d{10},"model":"demo","choices":\[\{"index":0,"message":\{"role":"assistant","content":"[^"]+","refusal":null\},"logprobs":null,"finish_reason":"length"\}\],"usage":\{"prompt_tokens":23,"completion_tokens":4,"total_tokens":27,"prompt_tokens_details":\{"cached_tokens":0\}\},"system_fingerprint":"vlm-[0-9a-f]{8}"\}\n$/
--- no_error_log
[error]



=== TEST 2: a stream has the role, the text and the end
--- request eval
main::chat_with(max_tokens => 2, stream => main::yes())
--- response_headers
Content-Type: text/event-stream; charset=utf-8
Cache-Control: no-cache
X-Accel-Buffering: no
Transfer-Encoding: chunked
--- response_body_filters eval
\&main::unplaced
--- response_body_like eval
my $head = qr/data: \{"id":"chatcmpl-\w{24}","object":"chat\.completion\.chunk","created":\d{10},"model":"demo","choices":\[\{"index":0,/;
my $tail = qr/"system_fingerprint":"vlm-[0-9a-f]{8}"\}\n\n/;
qr/^$head"delta":\{"role":"assistant","content":""\},"logprobs":null,"finish_reason":null\}\],$tail(?:$head"delta":\{"content":"[^"]+"\},"logprobs":null,"finish_reason":null\}\],$tail)+$head"delta":\{\},"logprobs":null,"finish_reason":"length"\}\],${tail}data: \[DONE\]\n\n$/
--- no_error_log
[error]



=== TEST 3: a stream has the text and the usage of the whole answer
--- request eval
[main::chat_with(), main::chat_with(stream => main::yes(), stream_options => { include_usage => main::yes() }),
 main::text_of(max_tokens => 20), main::text_of(max_tokens => 20, stream => main::yes(), stream_options => { include_usage => main::yes() })]
--- response_body_filters eval
sub { my $text = main::unplaced(shift); our $turn; $turn++; $text = $text =~ /^data/ ? main::joined($text) : main::whole($text); our $said; $said = $text if $turn % 2; $text eq $said ? "same\n" : "$said$text" }
--- response_body eval
[("same\n") x 4]
--- error_code eval
[(200) x 4]



=== TEST 4: a chat that ends by itself has the finish reason stop
--- request eval
[main::parts([main::image('118x62.png'), main::text_part('How many cups are there?')]), main::chat_with(max_tokens => 1)]
--- response_body_like eval
[qr/"finish_reason":"stop"/, qr/"finish_reason":"length"/]
--- error_code eval
[200, 200]



=== TEST 5: pictures are tokens of the prompt, in any turn, also several
--- request eval
[main::parts([main::image('118x62.png'), main::text_part('What is it?')]),
 main::parts([{ type => 'image_url', image_url => main::url('118x62.png') }, main::text_part('What is it?')]),
 main::parts([main::text_part('What is it?'), main::image('118x62.png')]),
 main::parts([main::image('118x62.png'), main::image('40x30.png'), main::text_part('What is it?')]),
 main::messages([{ role => 'user', content => [main::image('118x62.png'), main::text_part('a')] }, { role => 'assistant', content => 'b' }, { role => 'user', content => [main::image('40x30.png')] }]),
 main::parts([main::text_part('What is it?')])]
--- response_body_filters eval
sub { my $n = JSON::PP->new->utf8->decode(shift)->{usage}{prompt_tokens}; our @counts; push @counts, $n; ($counts[0] == $counts[-1] ? 'same' : $counts[0] < $counts[-1] ? 'more' : 'less') . "\n" }
--- response_body eval
["same\n", "same\n", "same\n", "more\n", "more\n", "less\n"]
--- error_code eval
[(200) x 6]



=== TEST 6: a text is equal to one part, and to several parts
--- request eval
[main::messages([{ role => 'user', content => 'What is this?' }]), main::parts([main::text_part('What is this?')]), main::parts([main::text_part('What is '), main::text_part('this?')]),
 main::messages([{ role => 'system', content => 'You are a helpful assistant.' }, { role => 'user', content => 'What is this?', name => 'bob' }]),
 main::messages([{ role => 'developer', content => [main::text_part('You are a helpful assistant.')] }, { role => 'user', content => 'What is this?' }])]
--- response_body_filters eval
sub { my $text = shift; $text =~ s/"(?:id|created)":[^,]*,//g; $text =~ s/"cached_tokens":\d+//g; our $plain; $plain = $text unless defined $plain; $text eq $plain ? "same\n" : "$plain$text" }
--- response_body eval
[("same\n") x 5]
--- error_code eval
[(200) x 5]



=== TEST 7: a conversation may have an answer without a text
--- request eval
[main::messages([{ role => 'system', content => 'Be short.' }, { role => 'user', content => 'hi' }, { role => 'assistant', content => undef }, { role => 'user', content => 'go on' }]),
 main::messages([{ role => 'user', content => 'hi' }, { role => 'assistant', content => [main::text_part('no'), { type => 'refusal', refusal => 'I will not' }], refusal => undef }, { role => 'user', content => '' }]),
 main::messages([{ role => 'system', content => 'Be short.' }]), main::messages([{ role => 'user', content => [] }])]
--- error_code eval
[(200) x 4]
--- response_body_like eval
[(qr/"finish_reason"/) x 4]



=== TEST 8: invalid messages are refused
--- request eval
[main::post('chat/completions'), map { main::messages($_) } undef, 'hi', {}, [], ['hi'], [{ content => 'hi' }], [{ role => 7, content => 'hi' }], [{ role => 'bot', content => 'hi' }],
 [{ role => 'tool', tool_call_id => 'x' }], [{ role => 'user' }], [{ role => 'user', content => undef }], [{ role => 'user', content => 7 }], [{ role => 'user', content => { type => 'text', text => 'hi' } }],
 [{ role => 'user', content => 'a' }, { role => 'user', content => [main::text_part('b'), 'c'] }],
 [{ role => 'user', content => [{ type => 'text' }] }], [{ role => 'user', content => [{ type => 'text', text => ['a'] }] }],
 [{ role => 'user', content => [{ type => 'input_audio', input_audio => {} }] }], [{ role => 'user', content => [{ type => 'image_url' }] }], [{ role => 'user', content => [{ type => 'image_url', image_url => { detail => 'low' } }] }]]
--- error_code eval
[(400) x 20]
--- response_body_filters eval
\&main::fault
--- response_body eval
my $t = 'invalid_request_error';
["$t|messages|missing_required_parameter\n", "$t|messages|missing_required_parameter\n", "$t|messages|-\n", "$t|messages|-\n", "$t|messages|empty_array\n", "$t|messages.0|-\n", "$t|messages.0.role|-\n", "$t|messages.0.role|-\n", "$t|messages.0.role|-\n",
 "$t|messages.0.content|-\n", "$t|messages.0.content|-\n", "$t|messages.0.content|-\n", "$t|messages.0.content|-\n", "$t|messages.0.content|-\n",
 "$t|messages.1.content.1|-\n", "$t|messages.0.content.0|-\n", "$t|messages.0.content.0|-\n", "$t|messages.0.content.0|unsupported_value\n", "$t|messages.0.content.0|-\n", "$t|messages.0.content.0|-\n"]



=== TEST 9: addresses of pictures are not fetched
--- request eval
[map { main::parts([{ type => 'image_url', image_url => { url => $_ } }]) } 'http://127.0.0.1/a.png', 'https://example.com/a.png', 'file:///etc/passwd', '/uploads/a.png', 'a.png', 'HTTP://A', '', 'dat', main::base64(main::picture('118x62.png'))]
--- error_code eval
[(400) x 9]
--- response_body_filters eval
\&main::fault
--- response_body eval
[("invalid_request_error|messages.0.content.0|image_url_not_supported\n") x 9]



=== TEST 10: invalid pictures are refused
--- request eval
[map { main::parts([main::text_part('a'), { type => 'image_url', image_url => { url => $_ } }]) } 'data:image/png,abc', 'data:image/png;base64,***', 'data:image/png;base64,', 'data:image/png;base64,' . main::base64('this is text'), 'data:image/png;base64,' . main::broken('118x62.png')]
--- error_code eval
[(400) x 5]
--- response_body_filters eval
\&main::fault
--- response_body eval
my $t = 'invalid_request_error';
["$t|messages.0.content.1|-\n", "$t|messages.0.content.1|-\n", "$t|messages.0.content.1|unsupported_image_format\n", "$t|messages.0.content.1|unsupported_image_format\n", "$t|messages|unsupported_image_format\n"]



=== TEST 11: a picture whose header has too many pixels is refused
--- request eval
my $bmp = 'BM' . pack('V4 V V V v v V6', 100, 0, 54, 0, 40, 60000, 60000, 1, 24, 0, 0, 0, 0, 0, 0); substr($bmp, 6, 8) = pack('V2', 0, 54); substr($bmp, 14) = pack('V V V v v V6', 40, 60000, 60000, 1, 24, (0) x 6);
main::parts([{ type => 'image_url', image_url => { url => 'data:image/bmp;base64,' . main::base64($bmp) } }])
--- error_code: 400
--- response_body_filters eval
\&main::fault
--- response_body
invalid_request_error|messages.0.content.0|image_too_large



=== TEST 12: too many pictures, messages, parts and too much text are refused
--- request eval
[main::parts([(main::image('40x30.png')) x 65]), main::messages([({ role => 'user', content => 'a' }) x 4097]), main::parts([(main::text_part('a')) x 8193]), main::messages([{ role => 'user', content => 'a' x 4194305 }])]
--- error_code eval
[(400) x 4]
--- response_body_filters eval
\&main::fault
--- response_body eval
my $t = 'invalid_request_error';
["$t|messages.0.content.64|too_many_images\n", "$t|messages.4096.role|-\n", "$t|messages.0.content.8192|-\n", "$t|messages.0.content|context_length_exceeded\n"]



=== TEST 13: a prompt beyond the context is refused with both numbers
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 8; context 64;/; $text
--- request eval
[main::messages([{ role => 'user', content => 'word ' x 100 }]), main::text_of(prompt => 'word ' x 100), main::parts([(main::image('118x62.png')) x 20])]
--- error_code eval
[(400) x 3]
--- response_body_like eval
[qr/^\{"error":\{"code":"context_length_exceeded","message":"This model's maximum context length is 64 tokens\. The prompt has (?:at least )?\d{3}, and an answer needs one\.","param":"messages","type":"invalid_request_error"\}\}\n$/,
 qr/"code":"context_length_exceeded","message":"This model's maximum context length is 64 tokens\. The prompt has .*\d{3}.*"param":"prompt"/, qr/"code":"context_length_exceeded","message":"This model's maximum context length is 64 tokens\. The (?:first images alone have|prompt has at least) \d+/]



=== TEST 14: max_tokens is the smaller of two names, and at most the engine's; -1 is no limit
--- request eval
[main::chat_with(max_tokens => 3), main::chat_with(max_completion_tokens => 3), main::chat_with(max_tokens => 9, max_completion_tokens => 3), main::chat_with(max_tokens => 3, max_completion_tokens => 9), main::text_of(max_tokens => 3), main::text_of(), main::text_of(max_tokens => 1000000, logit_bias => { 40 => 100 }),
 main::text_of(max_tokens => -1, logit_bias => { 40 => 100 }), main::chat_with(max_completion_tokens => -1, logit_bias => { 40 => 100 }), main::chat_with(max_tokens => -1, max_completion_tokens => 3)]
--- response_body_filters eval
sub { JSON::PP->new->utf8->decode(shift)->{usage}{completion_tokens} . "\n" }
--- response_body eval
["3\n", "3\n", "3\n", "3\n", "3\n", "16\n", "48\n", "48\n", "48\n", "3\n"]
--- error_code eval
[(200) x 10]



=== TEST 15: valid numbers and other fields are accepted
--- request eval
[map { main::chat_with(max_tokens => 2, %$_) } { temperature => 0 }, { temperature => 2 }, { temperature => 0.5, top_p => 0, top_k => -1, seed => 0 }, { top_p => 1, top_k => 40, seed => -1 }, { seed => 9007199254740993 }, { seed => 9223372036854775807 }, { seed => -9223372036854775807 - 1 }, { n => 1 }, { n => 1.0, frequency_penalty => -2, presence_penalty => 2 },
 { repetition_penalty => 1.3 }, { stop => undef }, { stop => '' }, { stop => [] }, { stop => ['a', 'b', 'c', 'd'] }, { logit_bias => {} }, { logit_bias => { 5 => -100, 6 => 100 } }, { tools => [], functions => [], tool_choice => 'auto' }, { tools => undef },
 { response_format => { type => 'text' } }, { response_format => undef }, { stream => main::no() }, { logprobs => main::no(), top_logprobs => 0 }, { user => 'u', metadata => {}, store => main::no(), nonsense => [[7]], service_tier => 'auto', parallel_tool_calls => main::yes() }]
--- error_code eval
[(200) x 23]
--- response_body_like eval
[(qr/"object":"chat.completion"/) x 23]



=== TEST 16: invalid fields are refused, and the error names them
--- request eval
[map { main::chat_with(%$_) } { temperature => 'hot' }, { temperature => -0.1 }, { temperature => 2.1 }, { temperature => main::yes() }, { top_p => 1.1 }, { top_p => [] }, { top_k => 2.5 }, { top_k => -2 }, { seed => 'x' }, { seed => 1.5 }, { seed => 1e300 }, { seed => 9223372036854775808 },
 { max_tokens => 0 }, { max_tokens => -2 }, { max_tokens => '5' }, { max_completion_tokens => 1.5 }, { frequency_penalty => 2.1 }, { presence_penalty => '1' }, { repetition_penalty => 0 }, { stream => 'yes' }, { stream => 1 }, { stop => 7 }, { stop => [7] }, { stop => {} }, { stop => [map { "x$_" } 1 .. 17] }, { stop => 'x' x 1025 },
 { logit_bias => [] }, { logit_bias => { x => 1 } }, { logit_bias => { 99999999 => 1 } }, { logit_bias => { 5 => 101 } }, { logit_bias => { 5 => '1' } }, { logit_bias => { map { $_ => 1 } 1 .. 1025 } }, { logprobs => 5 }, { logprobs => main::yes(), top_logprobs => 21 }, { top_logprobs => 2 },
 { stream_options => { include_usage => main::yes() } }, { stream => main::yes(), stream_options => 7 }, { stream => main::yes(), stream_options => { include_usage => 'yes' } }, { response_format => 'json' }, { response_format => {} }, { response_format => { type => 'xml' } }, { model => 7 }]
--- error_code eval
[(400) x 42]
--- response_body_filters eval
\&main::fault
--- response_body eval
[map { "invalid_request_error|$_|-\n" } ('temperature') x 4, ('top_p') x 2, ('top_k') x 2, ('seed') x 4, ('max_tokens') x 3, 'max_completion_tokens', 'frequency_penalty', 'presence_penalty', 'repetition_penalty', ('stream') x 2, ('stop') x 5,
 'logit_bias', 'logit_bias.x', 'logit_bias.99999999', ('logit_bias.5') x 2, 'logit_bias', 'logprobs', ('top_logprobs') x 2, ('stream_options') x 2, 'stream_options.include_usage', 'response_format', ('response_format.type') x 2, 'model']



=== TEST 17: unsupported features are refused, not ignored
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 48; tools refuse;/; $text
--- request eval
[map { main::chat_with(%$_) } { n => 2 }, { n => 0 }, { tools => [{ type => 'function', function => { name => 'f' } }] }, { functions => [{ name => 'f' }] },
 { structured_outputs => { structural_tag => '{}' } }]
--- error_code eval
[(400) x 5]
--- response_body_filters eval
\&main::fault
--- response_body eval
[map { "invalid_request_error|$_\n" } 'n|unsupported_value', 'n|unsupported_value', 'tools|unsupported_parameter', 'functions|unsupported_parameter',
 'structured_outputs.structural_tag|unsupported_parameter']



=== TEST 18: an answer follows its schema, by each of the fields that have one
--- request eval
our $schema = { type => 'object', properties => { n => { type => 'integer' } }, required => ['n'] };
[(map { main::chat_with(%$_, temperature => 1.5, max_tokens => 48) } { response_format => { type => 'json_schema', json_schema => { name => 'x', schema => $schema } } },
 { response_format => { type => 'json_schema', schema => $schema } }, { response_format => { type => 'json_object', schema => $schema } }, { guided_json => $schema }, { guided_json => JSON::PP->new->encode($schema) },
 { structured_outputs => { json => $schema } }, { json_schema => $schema }), main::text_of(guided_json => $schema, max_tokens => 48)]
--- error_code eval
[(200) x 8]
--- response_body_filters eval
sub { my $c = main::choice(shift); my $v = eval { JSON::PP->new->decode($c->{message}{content} // $c->{text}) } // {}; $c->{finish_reason} eq 'stop' && join(',', keys %$v) eq 'n' && $v->{n} =~ /^-?\d+(?:\.?\d*e.*)?$/ ? "n\n" : JSON::PP->new->encode($c) }
--- response_body eval
[("n\n") x 8]



=== TEST 18.1: a schema that is not obeyed is refused with the place
--- request eval
[(map { main::chat_with(response_format => { type => 'json_schema', json_schema => { name => 'x', schema => $_ } }) } { properties => { a => { contains => {} } } }, { type => 'thing' }, { '$ref' => '#' }, 7),
 main::chat_with(response_format => { type => 'json_schema' }), main::chat_with(response_format => { type => 'json_schema', json_schema => { name => 'x' } }), main::chat_with(guided_json => '{'),
 main::chat_with(guided_json => {}, guided_choice => ['a']), main::chat_with(structured_outputs => 7), main::chat_with(guided_choice => [7])]
--- error_code eval
[(400) x 10]
--- response_body_filters eval
\&main::fault
--- response_body eval
["invalid_request_error|response_format.json_schema.schema|invalid_json_schema\n", "invalid_request_error|response_format.json_schema.schema|invalid_json_schema\n", "invalid_request_error|response_format.json_schema.schema|invalid_json_schema\n",
 "invalid_request_error|response_format.json_schema.schema|invalid_json_schema\n", ("invalid_request_error|response_format.json_schema.schema|-\n") x 2, "invalid_request_error|guided_json|-\n", "invalid_request_error|guided_choice|-\n", "invalid_request_error|structured_outputs|-\n", "invalid_request_error|guided_choice|invalid_json_schema\n"]



=== TEST 18.2: the sentence names the keyword
--- request eval
main::chat_with(response_format => { type => 'json_schema', json_schema => { name => 'x', schema => { properties => { a => { contains => {} } } } } })
--- error_code: 400
--- response_body_like: "message":"the schema's #/properties/a/contains is a keyword that is not supported"



=== TEST 18.25: an expression is matched by the whole answer
--- request eval
[(map { main::chat_with(%$_, temperature => 1.5, max_tokens => 8) } { guided_regex => 'c[ab]{2}t' }, { structured_outputs => { regex => 'c[ab]{2}t' } }), main::text_of(guided_regex => 'c[ab]{2}t', max_tokens => 8)]
--- error_code eval
[(200) x 3]
--- response_body_filters eval
sub { my $c = main::choice(shift); ($c->{message}{content} // $c->{text}) =~ /^c[ab]{2}t$/ && $c->{finish_reason} eq 'stop' ? "one\n" : JSON::PP->new->encode($c) }
--- response_body eval
[("one\n") x 3]



=== TEST 18.26: a pattern that is not supported is refused with its byte
--- request eval
main::chat_with(guided_regex => 'a(?!b)')
--- error_code: 400
--- response_body_like: "the expression looks ahead or behind, or sets a flag, which is not supported, at byte 2","param":"guided_regex"



=== TEST 18.27: an answer follows a grammar, by each of the fields that have one
--- request eval
our $gbnf = "# nested lists\nroot ::= list\nlist ::= \"[\" (item (\", \" item)*)? \"]\"\nitem ::= list | [0-9]{1,2}\n";
[(map { main::chat_with(%$_, temperature => 1.5, max_tokens => 24) } { grammar => $gbnf }, { guided_grammar => $gbnf }, { structured_outputs => { grammar => $gbnf } }), main::text_of(grammar => $gbnf, max_tokens => 24, temperature => 1.5)]
--- error_code eval
[(200) x 4]
--- response_body_filters eval
sub { my $c = main::choice(shift); my $re; $re = qr/\[(?:(?:(??{$re})|\d{1,2})(?:, (?:(??{$re})|\d{1,2}))*)?\]/; ($c->{message}{content} // $c->{text}) =~ /^$re$/ && $c->{finish_reason} eq 'stop' ? "one\n" : JSON::PP->new->encode($c) }
--- response_body eval
[("one\n") x 4]



=== TEST 18.28: what is wrong with a grammar is named with line and column
--- request eval
[main::chat_with(grammar => "root ::= item\nitem ::= (\"a\""), main::chat_with(grammar => ['root']), main::chat_with(guided_json => {}, grammar => 'root ::= "a"')]
--- error_code eval
[(400) x 3]
--- response_body_like eval
[qr/"code":"invalid_grammar","message":"the grammar has a bracket that is not closed, at line 2, column 10","param":"grammar"/, qr/"code":"invalid_grammar","message":"the grammar is not a string","param":"grammar"/, qr/"grammar is a second form of the answer"/]



=== TEST 18.3: a choice is one of its texts
--- request eval
[(map { main::chat_with(%$_, temperature => 1.5, max_tokens => 5) } { guided_choice => ['yes', 'no'] }, { structured_outputs => { choice => ['yes', 'no'] } }), main::text_of(guided_choice => ['yes', 'no'], max_tokens => 5)]
--- error_code eval
[(200) x 3]
--- response_body_filters eval
sub { my $c = main::choice(shift); ($c->{message}{content} // $c->{text}) =~ /^(?:yes|no)$/ && $c->{finish_reason} eq 'stop' ? "one\n" : JSON::PP->new->encode($c) }
--- response_body eval
[("one\n") x 3]



=== TEST 19: json_object is a complete object with any number of tokens
--- request eval
[map { main::chat_with(response_format => { type => 'json_object' }, temperature => 1.5, seed => $_, max_tokens => 1 + $_) } 1 .. 12]
--- error_code eval
[(200) x 12]
--- response_body_filters eval
sub { my $c = main::choice(shift); ref(eval { JSON::PP->new->decode($c->{message}{content}) }) eq 'HASH' && $c->{finish_reason} eq 'stop' ? "object\n" : JSON::PP->new->encode($c) }
--- response_body eval
[("object\n") x 12]



=== TEST 20: an object of one token is impossible
--- request eval
main::chat_with(response_format => { type => 'json_object' }, max_tokens => 1)
--- error_code: 400
--- response_body_filters eval
\&main::fault
--- response_body
invalid_request_error|-|-



=== TEST 21: a stop string ends the text before it
--- request eval
[main::chat_with(), main::chat_with(stop => ' pic'), main::chat_with(stop => ['zzz', ' pic']), main::chat_with(stop => ' pic', stream => main::yes(), stream_options => { include_usage => main::yes() }), main::text_of(stop => 'a')]
--- response_body_filters eval
sub { my $text = main::unplaced(shift); $text = $text =~ /^data/ ? main::joined($text) : main::whole($text); our $uncut; if (!defined $uncut) { $uncut = $text; return $uncut =~ /. pic/ ? "said\n" : $uncut } my ($cut) = $uncut =~ /^(.*?) pic/; $text =~ /^\|stop\|/ ? "none\n" : $text =~ /^\Q$cut\E\|stop\|/ ? "cut\n" : "$cut, not $text" }
--- response_body eval
["said\n", "cut\n", "cut\n", "cut\n", "none\n"]
--- error_code eval
[(200) x 5]



=== TEST 22: log-probabilities have every token and its likely alternatives
--- request eval
[main::chat_with(logprobs => main::yes(), max_tokens => 5), main::chat_with(logprobs => main::yes(), top_logprobs => 3, max_tokens => 5), main::chat_with(logprobs => main::yes(), top_logprobs => 20, max_tokens => 5),
 main::chat_with(logprobs => main::yes(), top_logprobs => 2, max_tokens => 5, stream => main::yes())]
--- error_code eval
[(200) x 4]
--- response_body_filters eval
sub { my $text = main::unplaced(shift); our $asked; my $top = (0, 3, 20, 2)[$asked++]; $text =~ /^data/ ? main::tokens_of_stream($top, $text) : main::tokens_of_whole($top, $text) }
--- response_body eval
[("5 tokens\n") x 4]



=== TEST 23: log-probabilities of a completion are four arrays
--- request eval
[main::text_of(max_tokens => 3, logprobs => 2), main::text_of(max_tokens => 3, logprobs => 0), main::text_of(max_tokens => 3)]
--- error_code eval
[(200) x 3]
--- response_body_like eval
my $lp = qr/-?\d[\d.e-]*/;
[qr/"logprobs":\{"text_offset":\[0,\d,\d\],"token_logprobs":\[$lp,$lp,$lp\],"tokens":\["[^"]+","[^"]+","[^"]+"\],"top_logprobs":\[(?:\{"[^"]+":$lp,"[^"]+":$lp\},?){3}\]\}/,
 qr/"logprobs":\{"text_offset":\[[^]]*\],"token_logprobs":\[[^]]*\],"tokens":\[[^]]*\],"top_logprobs":null\}/, qr/"logprobs":null/]



=== TEST 24: a completion has its own form
--- request eval
[main::text_of(max_tokens => 2, prompt => ['The table has']), main::text_of(max_tokens => 2, stream => main::yes())]
--- response_body_filters eval
sub { $_[0] }
--- response_body_like eval
my $id = qr/"id":"cmpl-[A-Za-z0-9]{24}","object":"text_completion","created":\d{10},"model":"demo"/;
[qr/^\{$id,"choices":\[\{"index":0,"text":"[^"]+","logprobs":null,"finish_reason":"length"\}\],"usage":\{"prompt_tokens":\d+,"completion_tokens":2,"total_tokens":\d+,"prompt_tokens_details":\{"cached_tokens":\d+\}\},"system_fingerprint":"vlm-[0-9a-f]{8}"\}\n$/,
 qr/^(?:data: \{$id,"choices":\[\{"index":0,"text":"[^"]+","logprobs":null,"finish_reason":null\}\],"system_fingerprint":"[^"]+"\}\n\n)+data: \{$id,"choices":\[\{"index":0,"text":"","logprobs":null,"finish_reason":"length"\}\],"system_fingerprint":"[^"]+"\}\n\ndata: \[DONE\]\n\n$/]
--- error_code eval
[200, 200]



=== TEST 25: a completion has no template around its prompt
--- request eval
[main::text_of(prompt => 'a', max_tokens => 1), main::messages([{ role => 'user', content => 'a' }])]
--- response_body_like eval
[qr/"prompt_tokens":1,/, qr/"prompt_tokens":(?!1,)/]
--- error_code eval
[200, 200]



=== TEST 26: invalid prompts and unsupported features of completions are refused
--- request eval
[main::post('completions'), map { main::text_of(%$_) } { prompt => ['a', 'b'] }, { prompt => [1, 2] }, { prompt => [[1]] }, { prompt => 7 }, { prompt => '' }, { echo => main::yes() }, { suffix => 'x' }, { best_of => 2 }, { n => 3 }, { logprobs => 21 }, { logprobs => main::yes() }]
--- error_code eval
[(400) x 12]
--- response_body_filters eval
\&main::fault
--- response_body eval
[map { "invalid_request_error|$_\n" } 'prompt|missing_required_parameter', ('prompt|-') x 5, 'echo|unsupported_parameter', 'suffix|unsupported_parameter', 'best_of|unsupported_value', 'n|unsupported_value', 'logprobs|-', 'logprobs|-']



=== TEST 27: the defaults of those features are accepted
--- request eval
main::text_of(max_tokens => 1, echo => main::no(), suffix => undef, best_of => 1, n => 1, user => 'u')
--- error_code: 200



=== TEST 28: the same seed has the same answer, and 0 is a seed
--- request eval
[map { main::chat_with(temperature => 2, max_tokens => 24, seed => $_) } 0, 0, 7, 7]
--- response_body_filters eval
sub { my $text = main::whole(shift); our @seeded; push @seeded, $text; @seeded % 2 ? "said\n" : $seeded[-1] eq $seeded[-2] ? "same\n" : "$seeded[-2]$seeded[-1]" }
--- response_body eval
["said\n", "same\n", "said\n", "same\n"]
--- error_code eval
[(200) x 4]



=== TEST 29: without a seed endless answers differ, and of neighbouring large seeds, too
--- request eval
[map { main::chat_with(temperature => 2, max_tokens => 40, logit_bias => { 746 => -100, 748 => -100 }, @$_) } [], [], [seed => 9223372036854775806], [seed => 9223372036854775807]]
--- response_body_filters eval
sub { my $text = main::whole(shift); our @unseeded; push @unseeded, $text; @unseeded % 2 ? "said\n" : $unseeded[-2] ne $text ? "another\n" : "the same: $text" }
--- response_body eval
[("said\n", "another\n") x 2]
--- error_code eval
[(200) x 4]



=== TEST 30: a bias of 100 forces a token, and one of -100 forbids it
--- request eval
[main::chat_with(max_tokens => 1), main::chat_with(max_tokens => 6, logit_bias => { 40 => 100 }), main::chat_with(max_tokens => 6, logit_bias => { '040' => -100, 40 => 100 }), main::chat_with(max_tokens => 6, logit_bias => { 40 => -100 })]
--- response_body_filters eval
sub { my $text = (split /\|/, main::whole(shift))[0]; our $biased; $biased++ ? $text =~ /^I{6}$/ ? "one\n" : $text =~ /I/ ? $text : "none\n" : "$text\n" }
--- response_body eval
["I\n", "one\n", "one\n", "none\n"]
--- error_code eval
[(200) x 4]



=== TEST 31: the model has several names
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 2; alias gpt-4o Qwen\/Qwen2.5-VL;/; $text
--- request eval
[map { main::chat_with(model => $_) } 'demo', 'demo:latest', 'DEMO', 'model', 'gpt-4o', 'Qwen/Qwen2.5-VL:latest', '', undef, 'gpt-4', 'demo:7b', 'x' x 3000]
--- error_code eval
[(200) x 8, (404) x 3]
--- response_body_like eval
[(map { qr/"model":"$_"/ } 'demo', 'demo:latest', 'DEMO', 'model', 'gpt-4o', 'Qwen\/Qwen2\.5-VL:latest', 'demo', 'demo'),
 qr/^\{"error":\{"code":"model_not_found","message":"model \\"gpt-4\\" not found, the model here is \\"demo\\"","param":"model","type":"invalid_request_error"\}\}\n$/, qr/"code":"model_not_found"/, qr/"message":"model \\"x{128}\\" not found, /]



=== TEST 32: any name is accepted, up to a length
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 2; alias *;/; $text
--- request eval
[main::chat_with(model => 'anything'), main::chat_with(model => 'x' x 257), "GET /v1/models", "GET /v1/models/anything"]
--- error_code eval
[200, 400, 200, 200]
--- response_body_like eval
[qr/"model":"anything"/, qr/model has 257 bytes, it may have 256/, qr/^\{"data":\[\{[^]{}]*"id":"demo"[^]{}]*\}\],"object":"list"\}\n$/, qr/"id":"anything"/]



=== TEST 33: the list of models has the model
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 2; alias gpt-4o Qwen\/Qwen2.5-VL;/; $text
--- request eval
["GET /v1/models", "GET /v1/models/demo", "GET /v1/models/gpt-4o", "GET /v1/models/Qwen%2FQwen2.5-VL", "GET /v1/models/other"]
--- response_body_filters eval
sub { $_[0] }
--- response_body_like eval
my $model = sub { qr/\{"id":"$_[0]","object":"model","created":\d{10},"owned_by":"vlm","max_model_len":4096\}/ };
my @models = map { $model->($_) } 'demo', 'gpt-4o', 'Qwen\/Qwen2\.5-VL';
[qr/^\{"object":"list","data":\[$models[0],$models[1],$models[2]\]\}\n$/, (map { qr/^$_\n$/ } @models), qr/^\{"error":\{"message":"model \\"other\\" not found, the model here is \\"demo\\"","type":"invalid_request_error","param":"model","code":"model_not_found"\}\}\n$/]
--- error_code eval
[200, 200, 200, 200, 404]



=== TEST 34: unknown paths and methods are refused
--- request eval
["GET /v1/", "POST /v1/audio/speech\n{}", "GET /v1/chat/completions", "POST /v1/models\n{}", "DELETE /v1/models/demo"]
--- error_code eval
[404, 404, 405, 405, 405]
--- response_body_filters eval
\&main::fault
--- response_body eval
["invalid_request_error|-|-\n", "invalid_request_error|-|-\n", ("invalid_request_error|-|method_not_supported\n") x 3]



=== TEST 35: invalid bodies are refused
--- request eval
["POST /v1/chat/completions", map { "POST /v1/chat/completions\n$_" } '{', '[1]', '"x"', 'null', "\xff\xfe", '{"messages":[{"role":"user","content":"\ud800"}]}']
--- error_code eval
[(400) x 7]
--- response_body_filters eval
\&main::fault
--- response_body eval
[("invalid_request_error|-|-\n") x 7]



=== TEST 36: nginx's own error pages are in OpenAI's form
--- config
        location /v1/ {
            client_max_body_size 100;
            vlm_pass demo;
        }
        location /v1/models {
            deny all;
            vlm_pass demo;
        }
--- request eval
[main::chat_with(user => 'x' x 200), "GET /v1/models"]
--- error_code eval
[413, 403]
--- response_body_filters eval
\&main::fault
--- response_body eval
["invalid_request_error|-|content_too_large\n", "invalid_request_error|-|permission_denied\n"]



=== TEST 37: errors of other paths keep their form
--- request eval
["GET /api/none", "POST /api/chat\n{}"]
--- error_code eval
[404, 400]
--- response_body eval
["{\"error\":\"Not found\"}\n", "{\"error\":\"No JSON data provided\"}\n"]



=== TEST 38: control tokens in a text are text
--- request eval
[main::messages([{ role => 'user', content => '<|im_end|>' }]), main::messages([{ role => 'user', content => '' }])]
--- response_body_filters eval
sub { my $n = JSON::PP->new->utf8->decode(shift)->{usage}{prompt_tokens}; our $spelled; if (!$spelled) { $spelled = $n; return "some\n" } $spelled > $n + 2 ? "less\n" : "$spelled, $n" }
--- response_body eval
["some\n", "less\n"]
--- error_code eval
[200, 200]



=== TEST 39: a browser may ask
--- http_config eval: $::Http . "vlm_cors http://page.example;"
--- more_headers
Origin: http://page.example
Content-Type: application/json
--- request eval
[main::chat_with(max_tokens => 1), main::chat_with(n => 2), "GET /v1/models"]
--- response_headers eval
[("Access-Control-Allow-Origin: http://page.example") x 3]
--- error_code eval
[200, 400, 200]



=== TEST 40: constraints without an effect are accepted
--- request eval
[main::chat_with(max_tokens => 2, guided_json => undef, grammar => '', structured_outputs => {}, response_format => { type => 'json_object', schema => undef }), main::text_of(max_tokens => 1, guided_choice => [])]
--- error_code eval
[200, 200]
--- response_body_like eval
[(qr/"choices"/) x 2]



=== TEST 41: the refusal of an unknown path lists the known ones
--- request eval
["POST /v1/files\n{}", "GET /v1"]
--- error_code eval
[404, 404]
--- response_body_like eval
[qr!"message":"Not found: there are /v1/chat/completions, /v1/completions, /v1/responses, /v1/embeddings, /v1/models, /v1/models/NAME, /v1/load_lora_adapter, /v1/unload_lora_adapter"!, qr/404/]



=== TEST 42: the refusal of a compressed body names its encoding
--- more_headers
Content-Encoding: gzip
Content-Type: application/json
--- request eval
[main::chat_with(), "POST /api/chat\n{}", "POST /api/upload\nx"]
--- error_code eval
[415, 415, 415]
--- response_headers eval
[("Accept-Encoding: identity") x 3]
--- response_body_like eval
[qr/"code":"unsupported_content_encoding","message":"A body with Content-Encoding gzip is not supported: send it uncompressed","param":null/, (qr/^\{"error":"A body with Content-Encoding gzip is not supported/) x 2]



=== TEST 43: a compressed body without Content-Encoding is recognised
--- request eval
["POST /v1/chat/completions\n\x1f\x8b\x08\x00\x00", "POST /api/chat\n\x1f\x8b\x08\x00\x00"]
--- error_code eval
[400, 400]
--- response_body_like eval
[(qr/The body is compressed with gzip: send it uncompressed/) x 2]



=== TEST 44: with tools refuse they are refused with a remedy, unless tool_choice is none
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 48; tools refuse;/; $text
--- request eval
[main::chat_with(max_tokens => 1, tools => [main::tool('f')]), map { main::chat_with(max_tokens => 1, tools => [main::tool('f')], tool_choice => $_) } 'auto', 'none', 'required']
--- error_code eval
[400, 400, 200, 400]
--- response_body_like eval
[(qr/"code":"unsupported_parameter","message":"demo does not support tools: leave tools out, or have \\"tools ignore\\" in vlm_engine","param":"tools"/) x 2, qr/"finish_reason":"length"/, qr/"param":"tool_choice"/]



=== TEST 45: with tools ignore the answer has no call, and a required call is refused
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 2; tools ignore;/; $text
--- request eval
[main::chat_with(tools => [map { main::tool("f$_") } 1 .. 36]), map { main::chat_with(tools => [main::tool('f')], tool_choice => $_) } 'auto', 'none', 'required', { type => 'function', function => { name => 'f' } }]
--- error_code eval
[200, 200, 200, 400, 400]
--- response_body_like eval
[(qr/"finish_reason":"length"/) x 3, (qr/"message":"demo does not support tools: tool_choice can be \\"none\\" or \\"auto\\"","param":"tool_choice"/) x 2]



=== TEST 45.1: a call that is demanded has a tool's name and its arguments
--- request eval
@main::tools = ({ type => 'function', function => { name => 'grasp', strict => main::yes(), parameters => { type => 'object', properties => { x => { type => 'integer', minimum => 0, maximum => 9 } }, required => ['x'] } } }, main::tool('stop'));
$main::named = { type => 'function', function => { name => 'grasp' } };
[(map { main::chat_with(temperature => 1.5, max_tokens => 48, tools => \@main::tools, parallel_tool_calls => main::no(), tool_choice => $_) } 'required', $main::named), main::chat_with(temperature => 1.5, max_tokens => 48, tools => \@main::tools, parallel_tool_calls => main::no(), tool_choice => $main::named, stream => main::yes())]
--- response_body_like eval
[qr/"finish_reason":"tool_calls".*"message":\{"content":null,"refusal":null,"role":"assistant","tool_calls":\[\{"function":\{"arguments":"\{(?:\\"x\\": \d)?\}","name":"(?:grasp|stop)"\},"id":"call_\w{24}","type":"function"\}\]\}/,
 qr/"function":\{"arguments":"\{\\"x\\": \d\}","name":"grasp"\}/, qr/"delta":\{"tool_calls":\[\{"index":0,"id":"call_\w{24}","type":"function","function":\{"name":"grasp","arguments":"\{\\"x\\": \d\}"\}\}\]\},.*"delta":\{\},"logprobs":null,"finish_reason":"tool_calls"/s]



=== TEST 45.2: an answer that begins a call goes on as one, and calls follow each other
--- request eval
[main::chat_with(max_tokens => 48, tools => \@main::tools, logit_bias => { 760 => 100 }), main::chat_with(max_tokens => 48, tools => \@main::tools), main::chat_with(max_tokens => 600, tools => \@main::tools, tool_choice => 'required', logit_bias => { 198 => 100 })]
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 600;/; $text
--- response_body_like eval
[qr/"finish_reason":"tool_calls".*"content":null,.*"tool_calls":\[\{/, qr/"content":".*","refusal":null/, qr/"finish_reason":"tool_calls".*"id":"call_\w{22}00".*"id":"call_\w{22}01"/]



=== TEST 45.3: calls and results of tools stand in messages
--- request eval
[map { main::chat_with(max_tokens => 2, messages => [{ role => 'user', content => 'Look' }, { role => 'assistant', content => $_, tool_calls => [{ id => 'call_1', type => 'function', function => { name => 'grasp', arguments => '{"x": 1}' } }] },
 { role => 'tool', tool_call_id => 'call_1', content => [main::text_part('done'), main::image('118x62.png')] }]) } undef, '', 'I grasp it.']
--- response_body_like eval
[(qr/"prompt_tokens":\d{3}/) x 3]



=== TEST 45.4: tools that are wrong are refused with their place
--- request eval
[map { main::chat_with(%$_) } { tools => {a => 1} }, { tools => [7] }, { tools => [{ type => 'web_search' }] }, { tools => \@main::tools, tool_choice => 'any' }, { tools => \@main::tools, tool_choice => { type => 'function', function => { name => 'g' } } },
 { tools => \@main::tools, response_format => { type => 'json_object' } }, { tools => [{ type => 'function', function => { name => 'f', strict => main::yes(), parameters => { properties => { a => { not => {} } } } } }] },
 { messages => [{ role => 'assistant', tool_calls => [{}] }] }, { messages => [{ role => 'assistant', tool_calls => 7 }] }]
--- error_code eval
[(400) x 9]
--- response_body_filters eval
\&main::fault
--- response_body eval
[map { "invalid_request_error|$_\n" } 'tools|-', 'tools.0|-', 'tools.0|-', 'tool_choice|-', 'tool_choice|-', 'response_format.type|unsupported_parameter', 'tools|invalid_function_parameters', ('messages.0.tool_calls|-') x 2]



=== TEST 45.4.1: a call that is demanded without tools is refused
--- request eval
[map { main::chat_with(max_tokens => 1, %$_) } { tool_choice => 'required' }, { tool_choice => $main::named, tools => [] }, { tool_choice => 7 }, { function_call => { name => 'grasp' } }, { tool_choice => 'auto' }, { tool_choice => 'none', tools => [] }, { tool_choice => undef, function_call => 'auto' }]
--- error_code eval
[(400) x 4, (200) x 3]
--- response_body_like eval
[(qr/"message":"tool_choice demands a call, but the request has no tools","param":"tool_choice"/) x 3, qr/function_call demands a call, but the request has no functions/, (qr/"finish_reason":"length"/) x 3]



=== TEST 45.4.2: whole numbers in arguments keep the digits that were generated
--- http_config eval
(my $text = $::Http) =~ s/max_tokens 48;/max_tokens 80;/; $text
--- request eval
my $n = '895364772075444712345678';
my $call = { name => 'count', strict => main::yes(), parameters => { type => 'object', properties => { n => { type => 'integer', const => 'N' } }, required => ['n'] } };
[map { s/"N"/$n/r } map({ main::chat_with(max_tokens => 80, tools => [{ type => 'function', function => $call }], tool_choice => 'required', parallel_tool_calls => main::no(), stream => $_) } main::no(), main::yes()),
 map({ main::post('responses', input => 'hi', max_output_tokens => 80, tools => [{ type => 'function', %$call }], tool_choice => 'required', parallel_tool_calls => main::no(), stream => $_) } main::no(), main::yes())]
--- response_body_like eval
[(qr/"arguments":"\{\\"n\\": 895364772075444712345678\}"/) x 2, (qr/^(?=.*"const": ?"?895364772075444712345678\b).*"arguments":"\{\\"n\\": 895364772075444712345678\}"/s) x 2]



=== TEST 45.5: an answer to a visual task has marks in pixels of the picture, whole and streamed
--- request eval
[(map { main::chat_with(task => 'grounding', stream => $_, messages => [{ role => 'user', content => [main::image('118x62.png'), main::text_part('the red cup')] }]) } main::no(), main::yes()), main::chat_with(task => 'grounding', max_tokens => 2), main::chat_with(task => 'none')]
--- error_code eval
[200, 200, 200, 400]
--- response_body_like eval
[qr/"marks":\[\{"label":null,"type":"box","xy":\[(?:[\d.]+,){3}[\d.]+\]\}/, qr/"delta":\{"marks":\[\{"type":"box","xy":\[(?:[\d.]+,){3}[\d.]+\],"label":null\}/, qr/^(?!.*"marks")/, qr/task is neither general, grounding/]



=== TEST 48: embeddings are vectors of length one, equal for equal texts
--- request eval
[main::post('embeddings', input => 'a red cup'), main::post('embeddings', input => ['a red cup', 'two blocks', 'a red cup'], encoding_format => 'float', dimensions => 256, user => 'u'), main::post('embeddings', input => ['a red cup'], encoding_format => 'base64')]
--- response_body_filters eval
\&main::vectors
--- response_body eval
["demo 3 3: 0 256 1.000000 same\n", "demo 10 10: 0 256 1.000000 same 1 256 1.000000 other 2 256 1.000000 same\n", "demo 3 3: 0 256 1.000000 same\n"]



=== TEST 49: an embedding of messages has pictures and the chat template
--- request eval
[main::post('embeddings', messages => [{ role => 'user', content => [main::image('118x62.png'), main::text_part('a red cup')] }]), main::post('embeddings', messages => [{ role => 'user', content => 'a red cup' }])]
--- response_body_filters eval
\&main::vectors
--- response_body_like eval
[qr/^demo 101 101: 0 256 1\.000000 other$/, qr/^demo \d\d+ \d\d+: 0 256 1\.000000 other$/]



=== TEST 50: embeddings that cannot be made are refused
--- request eval
[map { main::post('embeddings', %$_) } {}, { input => [] }, { input => '' }, { input => ['a', ''] }, { input => [1, 2] }, { input => [[1, 2]] }, { input => { a => 1 } }, { input => [('a') x 257] }, { input => 'a', messages => [] },
 { messages => [] }, { input => 'a', dimensions => 128 }, { input => 'a', encoding_format => 'int8' }, { input => 'a', model => 'other' }, { input => 'word ' x 5000 }, { input => ['a', 'word ' x 5000] }]
--- error_code eval
[(400) x 12, 404, 400, 400]
--- response_body_filters eval
\&main::fault
--- response_body eval
[map { "invalid_request_error|$_\n" } 'input|missing_required_parameter', 'input|empty_array', ('input|-') x 7, 'messages|empty_array', 'dimensions|unsupported_value', 'encoding_format|-', 'model|model_not_found', ('input|context_length_exceeded') x 2]



=== TEST 51: as many texts as there may be have as many vectors
--- request eval
main::post('embeddings', input => [('a') x 256])
--- response_body_filters eval
\&main::vectors
--- response_body_like eval
qr/^demo 256 256: (?:\d+ 256 1\.000000 \w+ ?){256}$/



=== TEST 52: timings are in the answer, or in its last event, of a request that asks for them
--- request eval
[main::chat_with(max_tokens => 4, timings => main::yes()), main::text_of(max_tokens => 4, timings_per_token => main::yes()), main::post('responses', input => 'hi', max_output_tokens => 4, timings => main::yes()),
 main::chat_with(max_tokens => 4, timings => main::yes(), stream => main::yes()), main::chat_with(max_tokens => 4, timings => main::yes(), stream => main::yes(), stream_options => { include_usage => main::yes() }),
 main::chat_with(max_tokens => 4, stream => main::yes()), main::chat_with(timings => 'yes')]
--- response_body_filters eval
sub { CORE::join('', map { sprintf "%s%s", /"finish_reason":"/ ? 'end ' : '', /"timings":\{"cache_n":\d+,[^{}]*"predicted_n":4,[^{}]*\}/ ? 'times ' : '' } split /\n\n/, shift) . "\n" }
--- response_body eval
["end times \n", "end times \n", "times \n", "end times \n", "end times \n", "end \n", "\n"]
--- error_code eval
[(200) x 6, 400]



=== TEST 53: the answer is this server's where another location's error_page leads to it
--- config
        location /v1/ {
            error_page 502 @here;
            error_page 503 = @here;
            if ($request_method = GET) {
                return 503;
            }
            return 502;
        }
        location @here {
            vlm_pass demo;
        }
--- request eval
[main::chat_with(max_tokens => 1), main::chat_with(max_tokens => 1, stream => main::yes()), "POST /v1/none", "GET /v1/models"]
--- error_code eval
[502, 502, 502, 200]
--- response_body_like eval
[qr/"object":"chat\.completion"/, qr/"object":"chat\.completion\.chunk".*data: \[DONE\]\n\n\z/s, qr/"Not found: there are /, qr/"object":"list"/]
--- no_error_log
[error]
