# Tests the requests of Open WebUI 0.12.4, as t/fixtures/open-webui/ has recorded them from its own page: the lists
# of models, chats with its 36 tools, a picture and a file, titles, tags, questions that follow, and embeddings.
# Each answer has what Open WebUI reads of it.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use VLM;

my $JSON = JSON::PP->new->utf8;
my $DIR = 't/fixtures/open-webui';

my $tools = $JSON->decode(VLM::slurp("$DIR/tools.json"));

is(scalar @$tools, 36, 'the page sends 36 tools');

# The requests of a file, with the tools in their place.
sub recorded {
    my ($name) = @_;

    my $requests = $JSON->decode(VLM::slurp("$DIR/$name.json"));

    for my $body (map { $_->{body} || () } @$requests) {
        $body->{tools} = $tools if $body->{tools};
    }

    return @$requests;
}

sub server {
    my ($name, $engine) = @_;

    return VLM->new(name => "open-webui-$name",
                    engine => "alias demo; max_tokens 12; sampling temperature=0; $engine")->start->ready;
}

sub ask {
    my ($s, $request) = @_;

    return $s->begin($request->{method}, $request->{path}, $request->{body})->end;
}

# The fault of an answer for its reader, or ''.
my %wrong = (
    '/v1/models' => sub {
        return (grep { $_->{id} eq 'demo' } @{ $_[0]{json}{data} }) ? '' : 'no model demo';
    },
    '/v1/embeddings' => sub {
        my ($r, $body) = @_;

        return @{ $r->{json}{data} } != @{ $body->{input} } ? 'not a vector for each text'
             : (grep { @{ $_->{embedding} } != 256 } @{ $r->{json}{data} }) ? 'a vector of another size' : '';
    },
    '/v1/chat/completions' => sub {
        my ($r, $body) = @_;

        unless ($body->{stream}) {
            return length $r->{json}{choices}[0]{message}{content} ? '' : 'no content';
        }

        my @events = $r->{body} =~ /^data: (.*)$/mg;
        my $done = pop @events;
        my @chunks = map { $JSON->decode($_) } @events;
        my $text = join '', map { $_->{choices}[0]{delta}{content} // '' } @chunks;

        return $done ne '[DONE]' ? "the last event is $done"
             : $text eq '' ? 'no content'
             : !$chunks[-1]{choices}[0]{finish_reason} ? 'no finish_reason'
             : (grep { $_->{choices}[0]{delta}{tool_calls} } @chunks) ? 'a call' : '';
    },
    '/api/tags' => sub {
        return (grep { $_->{model} eq 'demo:latest' && $_->{name} } @{ $_[0]{json}{models} }) ? '' : 'no model demo';
    },
    '/api/ps' => sub {
        return (grep { $_->{expires_at} } @{ $_[0]{json}{models} }) ? '' : 'no expires_at';
    },
    '/api/version' => sub {
        return $_[0]{json}{version} =~ /^\d+\.\d+\.\d+$/ ? '' : 'no version';
    },
    '/api/chat' => sub {
        my ($r, $body) = @_;

        my @lines = map { $JSON->decode($_) } split /\n/, $r->{body};
        my $text = join '', map { $_->{message}{content} // '' } @lines;

        return @lines != 1 && !$body->{stream} ? 'more than one line'
             : $text eq '' ? 'no content'
             : !$lines[-1]{done} || !$lines[-1]{done_reason} ? 'no done'
             : !$lines[-1]{eval_count} || !$lines[-1]{prompt_eval_count} ? 'no counts'
             : (grep { $_->{message}{tool_calls} } @lines) ? 'a call' : '';
    },
);

my $s = server('ignore', 'tools ignore;');
my %seen;

for my $name ('openai', 'ollama') {
    my $n = 0;

    for my $request (recorded($name)) {
        my ($path, $body) = @$request{'path', 'body'};
        my $r = ask($s, $request);
        my $what = "$name " . ++$n . ", $request->{method} $path";

        $seen{$path}++;
        is($r->{code}, 200, "$what: 200") or diag($r->{body});
        is($wrong{$path}->($r, $body || {}), '', "$what: the answer has what is read of it");
    }
}

is_deeply([sort keys %seen], [sort keys %wrong], 'all of these paths were recorded');
ok($s->stop, 'the server stops');
$s->check_log;

# By default tools stand in the prompt, and those of Open WebUI exceed the default context: its page
# shows this sentence.
$s = server('call', '');

for my $name ('openai', 'ollama') {
    my ($request) = grep { $_->{body} && $_->{body}{tools} } recorded($name);
    my $r = ask($s, $request);

    is($r->{code}, 400, "$name: without tools ignore the tools do not fit the context");
    like($r->{body}, qr/This model's maximum context length is 4096 tokens\. The prompt has at least \d+, and an answer /,
         "$name: the sentence begins as clients know it");
    like($r->{body}, qr/ \d{5} bytes of it are tools: send fewer, or have a larger \\"context\\" or \\"tools ignore\\" in /,
         "$name: and ends with the remedy");
}

ok($s->stop, 'the server stops');
$s->check_log;

done_testing();
