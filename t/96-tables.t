# Runs the commands of docs/dev/fidelity.md that print its tables, and compares what they print with the
# page.  t/98-commands.t finds those that stand whole in a call of prints().

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use VLM;

my $PAGE = VLM::slurp('docs/dev/fidelity.md');
my $NUMBER = qr/\d[\d.]*(?:e[-+]?\d+)?/;


# Returns what a command prints.
sub prints {
    my ($command) = @_;
    my $said = `$command`;

    is($?, 0, $command);

    return $said;
}


# Returns the rows of a text that end with at least five numbers: the names before them, and the numbers.
sub rows {
    my %rows;

    while ($_[0] =~ /^\| (\D.*?) \| ((?:$NUMBER \| ){4,}$NUMBER) \|$/mg) {
        $rows{$1} = [split / \| /, $2];
    }

    return %rows;
}


# Libraries of mathematics differ in a last digit.
sub near {
    my ($one, $other) = @_;

    return abs($one - $other) <= 0.02 * abs $other;
}


sub same_rows {
    my ($said, $count) = @_;
    my %printed = rows($said);
    my %page = rows($PAGE);

    is(scalar keys %printed, $count, "prints $count rows");

    for my $name (sort keys %printed) {
        my ($printed, $page) = ($printed{$name}, $page{$name} || []);

        ok(@$printed == @$page && !grep({ !near($printed->[$_], $page->[$_]) } 0 .. $#$page), "the page has the row $name")
            or diag("printed @$printed, page @$page");
    }
}


same_rows(prints('engine/build/run/fidelity_test --table'), 15);
same_rows(prints('engine/build/run/outlier_test --table'), 2);

# The least and the largest KL of each row of the page.
my %kl = prints('engine/build/run/quant_test --table') =~ /^(\S+) +int8 KL ($NUMBER),/mg;
my @ranges = $PAGE =~ /^\| .* \| equal to the bit \| .*?\b(0\.\d+(?: to 0\.\d+)?) \|$/mg;
my @FORMS = ([qw(int8-rows w8a16 bnb)], [qw(int8-groups int4-groups int4-zeros)], [qw(fp8-blocks fp8-rows fp8-tensor)],
             [qw(awq gptq gptq-v2 gptq-8)]);

is(scalar keys %kl, scalar map({ @$_ } @FORMS), 'prints each form of quantised checkpoints');
is(scalar @ranges, scalar @FORMS, 'the page has rows of these');

for my $i (0 .. $#FORMS) {
    my @sorted = sort { $a <=> $b } map { $kl{$_} // 9 } @{ $FORMS[$i] };
    my ($least, $most) = split / to /, $ranges[$i];

    # The page has three decimals; libraries of mathematics may move a figure that lies between two of them.
    ok(abs($sorted[0] - $least) <= 0.0006 && abs($sorted[-1] - ($most // $least)) <= 0.0006, "the page has the KL of @{ $FORMS[$i] }")
        or diag("printed @sorted, page $ranges[$i]");
}

done_testing();
