# Tests that docs/troubleshooting.md has every sentence of the error log, of nginx -t, and of the
# bodies of 4xx and 5xx answers that stands in the sources, each with a cause and a remedy.

use strict;
use warnings;

use lib 't/lib';
use Sentences;
use Test::More;
use VLM;

my $page = VLM::slurp('docs/troubleshooting.md');
my @patterns;

# A row has sentences, a cause and a remedy.
for my $row ($page =~ /^\| (`.*) \|$/mg) {
    my ($sentences, @cells) = split / (?<!\\)\| /, $row;

    is(scalar(grep { /[a-z]{3,}/ } @cells), 2, "a cause and a remedy: $sentences");

    for my $one (split /<br>/, $sentences) {
        my ($text) = $one =~ /^(?:`` (.*) ``|`([^`]+)`)$/ ? $1 // $2 : '';

        ok(($text =~ s/\.\.\.//gr) =~ /[a-z]{3}/i, "a sentence, or a part of one: $one");
        push @patterns, [$text, join '.*', map { quotemeta } split /\.\.\./, $text, -1];
    }
}

my %sentence;

for (Sentences::all()) {
    (my $text = $_->[0]) =~ s/^vlm_engine "\.\.\.": //;

    $text =~ s/^\s+|\s+$//g;
    $sentence{$text} ||= $_->[1] if $text =~ /[a-z]/;
}

cmp_ok(scalar keys %sentence, '>', 900, 'the sources have sentences');
cmp_ok(scalar @patterns, '>', 300, 'the page has sentences');

is(join(' ', Sentences::unknown()), '', 'every function that writes a sentence is known to Sentences.pm');

# A text that stands so in the sources is that sentence alone; others stand for a group, of which
# they have the beginning or twelve letters.
my @groups = grep { !$sentence{$_->[0]} } @patterns;
my (%found, @missing);

is(join("\n", grep { /^\.\.\./ && (s/[^a-z]//gir =~ tr/a-zA-Z//) < 12 } map { $_->[0] } @groups), '',
   'no group is wider than its sentences');

my %have = map { $_->[0] => 1 } @patterns;

for my $text (sort keys %sentence) {
    my @have = $have{$text} ? [$text] : grep { $text =~ /^$_->[1]$/ } @groups;

    push @{$found{$_->[0]}}, $text for @have;
    push @missing, "$sentence{$text}: $text" unless @have;
}

is(join("\n", @missing), '', 'the page has every sentence of the sources');
is(join("\n", grep { !$found{$_} } map { $_->[0] } @patterns), '', 'the sources have every sentence of the page');
is(join("\n", grep { @{$found{$_}} > 60 } sort keys %found), '', 'no group has more than sixty');

my %twice;
is(join("\n", grep { $twice{$_}++ } map { $_->[0] } @patterns), '', 'no sentence stands twice on the page');

# The reading of the sources finds the three ways in which a sentence is written.
for ('The queue is full: ... requests are waiting', '...: no tensor ...', 'model loaded, ...m, ...',
     'unknown vlm_engine "..."', 'timeout "..." is not a time from 1ms to 1d')
{
    ok($sentence{$_}, "found in the sources: $_");
}

done_testing();
