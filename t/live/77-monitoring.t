# Tests conf/grafana, conf/prometheus and conf/opentelemetry against a running server: each metric
# is printed, with the label and the value that an expression asks for; each link leads to a
# heading; each attribute of a span has a value.  t/clients parses the expressions.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP qw(decode_json);
use Test::More;
use VLM;

my $otel = VLM::slurp('conf/opentelemetry/otel.conf');
my %attribute = $otel =~ /^otel_span_attr +(\S+) +(\S+);$/mg;
my $format = join ' ', map { "$_=<$attribute{$_}>" } sort keys %attribute;

my $s = VLM->new(name => 'monitoring', workers => 2, engine => 'thinking off; sampling temperature=0;',
                 http => "log_format otel '$format';",
                 server => 'access_log logs/otel.log otel; location = /metrics { vlm_status live; }');

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

# Directives that nginx-otel has since 0.1, with the forms of their values.  Debian does not have that module, so
# nginx -t cannot read the file; nginx compiles its values, as those of a log's format, in the server above.
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

is(odd_lines($otel), '', 'directives are those of the module');
is(odd_lines($otel =~ s/propagate;/follow;/r =~ s/endpoint/endpoints/r =~ s/^(otel_trace +on);/$1/mr) =~ s/ +/ /gr,
   " endpoints 127.0.0.1:4317;\notel_trace on\notel_trace_context follow;", 'others are found');
like(odd_lines($otel =~ s/^\}//mr), qr/a block has no end$/, 'and a block without its end');

my %ours = map { $_ => 1 } VLM::slurp('http/status/vars.c') =~ /ngx_string\("(vlm_\w+)"\)/g;
my @used = $otel =~ /^otel_span_attr .*\$(vlm_\w+);/mg;

is(join(' ', grep { !$ours{$_} } @used), '', 'variables of the module');
is(join(' ', sort @used), join(' ', sort grep { $_ ne 'vlm_line' } keys %ours), 'all of them');

my $picture = $s->upload('demo/pictures/table-01.png');
is($s->chat('span', 'How many objects are on the table?', image => $picture)->{code}, 200, 'a question is answered') for 1 .. 2;

my $line = VLM::wait_for(sub {
    my @lines = grep { /<span>/ } split /\n/, VLM::slurp($s->dir . '/logs/otel.log');
    return @lines == 2 && $lines[1];
}) || '';

my %value = $line =~ /(\S+)=<(.*?)>/g;

is(join(' ', grep { ($value{$_} // '-') eq '-' || $value{$_} eq '' } sort keys %attribute), '', 'each attribute has a value') or diag($line);
is($value{'gen_ai.conversation.id'}, 'span', 'the session');
is($value{'gen_ai.response.finish_reasons'}, 'stop', 'the reason of the end');
like($value{$_} // '', qr/^[1-9]\d*$/, $_) for qw(gen_ai.usage.input_tokens gen_ai.usage.output_tokens vlm.cached_tokens);
like($value{$_} // '', qr/^\d+\.\d{3}$/, $_) for qw(vlm.queue_seconds vlm.time_to_first_token);

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
