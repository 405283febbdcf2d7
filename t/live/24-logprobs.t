# Tests a client that asks for many log-probabilities and reads nothing until the
# answer has ended: the event loop must not write these megabytes at once.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use VLM;

my $JSON = JSON::PP->new->utf8->canonical;
my $MOST = 64;                          # tokens that the loop writes at once
my $TOKENS = 300;                       # more than fit between server and client

my $s = VLM->new(name => 'logprobs', workers => 1, listen => 'sndbuf=16k',
                 engine => "thinking off; slots 2; queue 8 timeout=1h; timeout 1h; max_tokens $TOKENS;
                            sampling temperature=0 repetition_penalty=1;");

$s->start->ready;

# The demo model's end-of-text tokens are never sampled.
my $ends = $JSON->decode(VLM::slurp('demo/model/generation_config.json'))->{eos_token_id};
my %endless = (logit_bias => { map { $_ => -100 } @$ends }, max_tokens => $TOKENS);
my $true = JSON::PP::true();

my %ask = (
    'a chat' => ['/v1/chat/completions', {
        messages => [{ role => 'user', content => 'What is this?' }],
        logprobs => $true, top_logprobs => 20, %endless }],

    'a completion' => ['/v1/completions', {
        prompt => 'The table has', logprobs => 20, %endless }],

    "Ollama's" => ['/api/generate', {
        model => 'live', prompt => 'What is this?', logprobs => $true, top_logprobs => 20,
        options => { temperature => 100, top_k => 0, seed => 7, num_predict => $TOKENS } }],
);

# Returns the tokens of an object of any API in one form.
sub tokens {
    my ($all) = @_;

    my $lp = $all->{choices} ? ($all->{choices}[0] || {})->{logprobs} : $all->{logprobs};

    return () unless $lp;
    return @$lp if ref $lp eq 'ARRAY';
    return @{ $lp->{content} } if $lp->{content};

    return map { { at => $lp->{text_offset}[$_], token => $lp->{tokens}[$_], logprob => $lp->{token_logprobs}[$_],
                   top => $lp->{top_logprobs}[$_] } } 0 .. $#{ $lp->{tokens} };
}

sub text {
    my ($all) = @_;

    my $c = ($all->{choices} || [])->[0] || $all;

    return $c->{response} // $c->{text} // ($c->{message} || $c->{delta} || {})->{content} // '';
}

sub events {
    return map { s/^data: //r } grep { /\S/ && !/\[DONE\]|^:/ } split /\n+/, $_[0];
}

for my $name (sort keys %ask) {
    my ($path, $fields) = @{ $ask{$name} };

    my $r = $s->post($path, { %$fields, stream => JSON::PP::false() });
    is($r->{code}, 200, "$name: as a whole");

    my @whole = tokens($r->{json});
    cmp_ok(scalar @whole, '>', $TOKENS / 2, 'it is long: ' . @whole . ' tokens, ' . length($r->{body}) . ' bytes');

    my $stream = $s->narrow;
    $stream->send(VLM::request_text('POST', $path, { %$fields, stream => $true }));

    ok($stream->more, 'the stream begins');
    ok($s->busy(0), 'the answer ends while the client does not read');

    my $body = $stream->end->{body};
    my @events = map { $JSON->decode($_) } events($body);
    my @counts = map { my @t = tokens($_); scalar @t } @events;
    my @tokens = map { tokens($_) } @events;

    is($JSON->encode(\@tokens), $JSON->encode(\@whole), 'the stream has all tokens of the answer');
    is(join('', map { text($_) } @events), text($r->{json}), 'the pieces have all its text');

    my ($last) = grep { $counts[$_] } reverse 0 .. $#counts;
    ok(!grep({ $_ > $MOST } @counts[0 .. $last - 1]), "before the end no event has more than $MOST");
    cmp_ok($counts[$last], '>', $MOST, 'the last event has the rest');
    like($body, $path =~ /api/ ? qr/"done":true/ : qr/\[DONE\]\n\n$/, 'the stream is complete');

    # A client that leaves at that point leaves no memory behind.
    my $goes = $s->begin('POST', $path, { %$fields, stream => $true });
    $goes->more;
    $s->busy(0);
    $goes->leave;

    is($s->post($path, { %$fields, max_tokens => 2 })->{code}, 200, 'the server answers after a client has left');
}

$s->check_log;

done_testing();
