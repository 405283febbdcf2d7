# Tests conf/grafana, conf/prometheus and conf/opentelemetry against a running server: each metric
# is printed, with the label and the value that an expression asks for; each link leads to a
# heading; requests that ask the model, and no others, have spans, with their values.  t/clients parses the
# expressions.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP qw(decode_json);
use Test::More;
use VLM;

my $otel = VLM::slurp('conf/opentelemetry/otel.conf');
my @maps = $otel =~ /^(map .*?^\}\n)/msg;
my $module = $otel =~ s/^map .*?^\}\n//msgr;                       # the directives of nginx-otel
my %attribute = $module =~ /^otel_span_attr +(\S+) +(\S+);$/mg;
my %span = (%attribute, name => $module =~ /^otel_span_name +"(.*)";$/m, recorded => $module =~ /^otel_trace +(\S+);$/m);
my $format = join ' ', 'span $arg_n', map { "$_=<$span{$_}>" } sort keys %span;

my $s = VLM->new(name => 'monitoring', workers => 2, engine => 'thinking off; sampling temperature=0;',
                 http => join('', @maps, "log_format otel '$format';"), server => <<'_EOC_');
        access_log logs/otel.log otel;
        location = /metrics { vlm_status live; }
        location ~ ^/(generate-lite|ask|summarize|compare|upload|process-pdf|rl|cleanup-memory|adapter)(/|$) { vlm_pass live; }
_EOC_

$s->start->ready;

my %labels;                             # metric => label => value

for my $line (split /\n/, $s->get('/metrics')->{body}) {
    my ($name, $pairs) = $line =~ /^(\w+)(?:\{(.*)\})? \S+$/ or next;

    $labels{$name} ||= {};
    $labels{$name}{$1}{$2} = 1 while ($pairs // '') =~ /(\w+)="([^"]*)"/g;
}

cmp_ok(scalar keys %labels, '>', 60, 'the server prints metrics');
is(join(' ', sort keys %{ $labels{vlm_info} }), 'device engine model version weights', 'vlm_info has the engine');

# Prometheus' own
my %target = (job => 1, instance => 1);


# Returns what an expression, or the text beside it, asks for and the server does not have.
sub lacking {
    my ($expr, $text, $engines) = @_;

    my @lacks;
    my %has = (%target, $engines ? (engine => 1) : ());

    while ($expr =~ /\b(vlm_\w+|up\b)(?:\{([^}]*)\})?/g) {
        my ($metric, $matchers) = ($1, $2 // '');
        my $labels = $metric eq 'up' ? {} : $labels{$metric};

        push @lacks, $metric unless $labels;
        $has{$_} = 1 for keys %{ $labels || {} };

        for ($matchers =~ /(\w+ *[!=]~? *"[^"]*")/g) {
            my ($label, $values) = /^(\w+).*?"(.*)"$/;

            next if $target{$label};
            push @lacks, "$metric\{$label}" unless $labels->{$label};
            push @lacks, map { "$metric\{$label=$_}" } grep { !/^\$/ && !$labels->{$label}{$_} } split /\|/, $values;
        }
    }

    for my $list ($expr =~ /\b(?:by|on|ignoring|group_left) *\(([^)]*)\)/g) {
        push @lacks, map { "by $_" } grep { !$has{$_} } split /, */, $list;
    }

    push @lacks, map { "{{$_}}" } grep { !$has{$_} } $text =~ /\{\{ *(?:\$labels\.)?(\w+) *\}\}/g;

    return @lacks;
}

is(join(' ', lacking('sum by (stage) (vlm_none{a="b"}) / vlm_state{state=~"ready|lost"}', '{{pool}}', 0)),
   'vlm_none vlm_none{a} vlm_none{a=b} vlm_state{state=lost} by stage {{pool}}', 'what is lacking is found');


# ---- the dashboard -----------------------------------------------------------------

my $board = decode_json(VLM::slurp('conf/grafana/dashboard.json'));
my %variable = map { $_->{name} => $_ } @{ $board->{templating}{list} };
my ($targets, %id, @overlap, %cell) = (0);

for my $panel (@{ $board->{panels} }) {
    my $at = $panel->{gridPos};

    $id{$panel->{id}}++;
    is($panel->{datasource}{uid}, '${source}', "$panel->{title}: the source is chosen");

    for my $x ($at->{x} .. $at->{x} + $at->{w} - 1) {
        push @overlap, "$x,$_" for grep { $cell{"$x,$_"}++ || $x > 23 } $at->{y} .. $at->{y} + $at->{h} - 1;
    }

    for my $target (@{ $panel->{targets} }) {
        $targets++;
        is(join(' ', lacking($target->{expr}, $target->{legendFormat}, $target->{expr} =~ /vlm_info/)), '', $target->{expr});
        is(join(' ', grep { !$variable{$_} } $target->{expr} =~ /\$(\w+)/g), '', 'its variables are defined');
        like($target->{expr}, qr/group_left \(engine\) vlm_info\{/, 'it is by the engine');
    }
}

cmp_ok($targets, '>', 20, 'the dashboard has expressions');
is(join(' ', grep { $id{$_} > 1 } keys %id), '', 'panels have numbers of their own');
is("@overlap", '', 'no panel is over another');
is(join(' ', map { lacking($_->{query}, '', 1) } grep { $_->{type} eq 'query' } values %variable), '', 'queries of variables');


# ---- the alerts ---------------------------------------------------------------------

my $rules = decode_json(`python3 -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' <conf/prometheus/alerts.yml`);
my @rules = map { @{ $_->{rules} } } @{ $rules->{groups} };

# The anchor of a heading, as GitHub makes it.
sub anchors {
    return map { my $a = lc; $a =~ s/[^\w\- ]//g; $a =~ tr/ /-/; $a =~ s/^-+//r => 1 } VLM::slurp($_[0]) =~ /^#+ +(.*)$/mg;
}

cmp_ok(scalar @rules, '>=', 9, 'there are rules');

for my $rule (@rules) {
    my $name = $rule->{alert};
    my ($page, $anchor) = split /#/, $rule->{annotations}{runbook_url};
    my %has = -f $page ? anchors($page) : ();
    my $text = join ' ', values %{ $rule->{annotations} };

    is(join(' ', lacking($rule->{expr}, $text, $rule->{expr} =~ /vlm_info/)), '', "$name: $rule->{expr}");
    ok($has{$anchor}, "$name: $rule->{annotations}{runbook_url} is a heading");
    like($rule->{labels}{severity}, qr/^(?:page|ticket)$/, "$name: it says how urgent it is");
    ok(length $rule->{annotations}{$_}, "$name: it has a $_") for qw(summary description);
    like($rule->{for} // '1m', qr/^\d+m$/, "$name: its time is one");
}


# ---- OpenTelemetry --------------------------------------------------------------------

# Directives that nginx-otel has since 0.1, with the forms of their values.  Neither Debian nor PyPI has that module
# or a parser that knows it, so that nginx -t cannot read the file here: nginx reads its maps, and computes its values
# as those of a log's format.  t/otel/run, by hand, reads the whole file with the module, and receives the spans.
my $ANY = qr/"[^"]+"|[^\s;"]+/;
my %http = (otel_exporter => qr/\{/, otel_service_name => qr/$ANY;/, otel_trace => qr/(?:on|off|\$\w+);/, otel_span_name => qr/$ANY;/,
            otel_trace_context => qr/(?:ignore|extract|inject|propagate);/, otel_span_attr => qr/$ANY\s+$ANY;/);
my %exporter = (endpoint => qr{(?:https?://)?[\w.-]+:\d+;}, interval => qr/\d+(?:ms|s)?;/, batch_size => qr/\d+;/,
                batch_count => qr/\d+;/, '}' => qr//);

# Returns the lines that are not of the module.
sub odd_lines {
    my ($text) = @_;
    my ($known, @odd) = (\%http);

    for my $line (grep { /\S/ } map { s/\s*#.*//r } split /\n/, $text) {
        my ($name, $values) = $line =~ /^\s*(\S+)\s*(.*?)\s*$/;

        push @odd, $line unless $known->{$name} && $values =~ /^$known->{$name}$/;
        $known = $name eq 'otel_exporter' ? \%exporter : $name eq '}' ? \%http : $known;
    }

    return join("\n", @odd, $known == \%http ? () : 'a block has no end');
}

is(odd_lines($module), '', 'directives are those of the module');
is(odd_lines($module =~ s/extract;/follow;/r =~ s/endpoint/endpoints/r =~ s/^(otel_trace +\S+);/$1/mr) =~ s/ +/ /gr,
   " endpoints 127.0.0.1:4317;\notel_trace \$span_recorded\notel_trace_context follow;", 'others are found');
like(odd_lines($module =~ s/^\}//mr), qr/a block has no end$/, 'and a block without its end');

my %ours = map { $_ => 1 } VLM::slurp('http/status/vars.c') =~ /ngx_string\("(vlm_\w+)"\)/g;
my %used = map { $_ => 1 } $otel =~ /\$(vlm_\w+)/g;

is(join(' ', grep { !$ours{$_} } sort keys %used), '', 'variables of the module');
is(join(' ', sort keys %used), join(' ', sort grep { $_ ne 'vlm_line' } keys %ours), 'all of them');

# Returns the values of the span that a request has.
my $n = 0;

sub span_of {
    my ($method, $path, @more) = @_;

    $s->begin($method, $path . '?n=' . ++$n, @more)->end;

    my ($line) = VLM::wait_for(sub { VLM::slurp($s->dir . '/logs/otel.log') =~ /^span $n (.*)/m && $1 });

    return { ($line || '') =~ /(\S+)=<(.*?)>/g };
}

sub traced { { traceparent => "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-$_[0]" } }

my $picture = $s->upload('demo/pictures/table-01.png');
my $question = VLM::chat_body('talk', 'How many objects are on the table?', image => $picture);
my $v;

$v = span_of('POST', '/api/chat', $question) for 1 .. 2;
is(join(' ', grep { ($v->{$_} // '-') =~ /^-?$/ } sort keys %attribute), 'gen_ai.response.time_to_first_chunk',
   'each attribute has a value, but those of a stream');
is("$v->{recorded} $v->{name}", 'on chat live', 'the span of a question');
is($v->{'gen_ai.request.stream'}, 'false', 'which is no stream');
is($v->{'gen_ai.request.model'}, 'live', 'the engine');
is($v->{'gen_ai.conversation.id'}, 'talk', 'the session');
is($v->{'gen_ai.response.finish_reasons'}, 'stop', 'the reason of the end');
like($v->{$_} // '', qr/^[1-9]\d*$/, $_) for map { "gen_ai.usage.$_" } qw(input_tokens output_tokens cache_read.input_tokens);
like($v->{$_} // '', qr/^\d+\.\d{3}$/, $_) for qw(vlm.queue_seconds vlm.time_to_first_token);

for my $stream ([ '/v1/chat/completions', { messages => [{ role => 'user', content => 'hi' }], stream => JSON::PP::true } ],
                [ '/api/generate', { model => 'live', prompt => 'hi' } ]) {
    $v = span_of('POST', @$stream);
    is($v->{'gen_ai.request.stream'}, 'true', "$stream->[0] is a stream");
    like($v->{'gen_ai.response.time_to_first_chunk'}, qr/^\d+\.\d{3}$/, 'with its first chunk');
    is($v->{'gen_ai.response.time_to_first_chunk'}, $v->{'vlm.time_to_first_token'}, 'which has the first token');
}

is(span_of('POST', '/api/chat', $question, traced("0$_"))->{recorded}, $_ % 2 ? 'on' : 'off', "flags $_ of the client's trace") for 0 .. 3;

# Requests of a dialect ask the model, but for those that load an adapter.
my ($routes) = VLM::slurp('http/api/route.c') =~ /^static const ngx_http_vlm_route_t +ngx_http_vlm_routes\[\] = \{(.*?)^\};/ms;
my %asks = map { $_ => 1 } grep { !/lora_adapter/ } $routes =~ /DIALECT\("([^"]+)"/g, $routes =~ /ngx_string\("([^"]+)"\)[^}]*\.dialect/g;
my @posts = $routes =~ /\w+\("([^"*]+)"(?:, POST|\), NGX_HTTP_POST)/g;

cmp_ok(scalar keys %asks, '>', 15, 'routes that ask the model');
is(join(' ', sort grep { $asks{$_} } @posts), join(' ', sort keys %asks), 'are among those of POST');

for my $path (@posts) {
    $v = span_of('POST', $path, {});
    is($v->{recorded}, $asks{$path} ? 'on' : 'off', "$path has " . ($asks{$path} ? 'a span' : 'none'));
    like($v->{'gen_ai.operation.name'}, $asks{$path} ? qr/^(?:chat|text_completion|embeddings)$/ : qr/^-?$/, 'and its operation');
}

is(span_of(@$_)->{recorded}, 'off', "@$_ has none") for ['GET', '/api/health'], ['GET', '/metrics'], ['OPTIONS', '/v1/chat/completions'];

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
