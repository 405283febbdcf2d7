package Targets;

# Says what is wrong with the words of a make command: targets that no test makes, variables without
# effect.  make -n prints the commands that make would run.

use strict;
use warnings;

use Commands;
use Text::ParseWords qw(shellwords);
use VLM;

# No test makes these targets of the pages, and why.  Here make prints their commands, and the program of the
# last one takes its options.
my %BY_HAND = (
    'fidelity' => 'transformers and torch take 5 GB; the figures of a run are in t/fidelity/expected',
    'fidelity-documents' => 'it takes the packages of fidelity, and a model of 90 MB',
    'test-arm64' => 'it takes six minutes of both cores under qemu',
    'test-install' => 'it takes a quarter of an hour, and the network for three roots of Debian and two images',
);

my (%seen, %lines);

my %target = map { $_ => 1 } VLM::slurp('Makefile') =~ /^([\w-]+)(?=[^:=\n]*:(?!=))/mg;

$target{$_} = 1 for map { split } VLM::slurp('Makefile') =~ /^\.PHONY: ((?:.*\\\n)*.*)/mg;

my %ci = targets_of_ci();

# Make without a target makes these.
my ($all) = VLM::slurp('Makefile') =~ /^all: (.*)/m;


# Returns the targets that .ci/run makes: those that it names, what they depend on, and what their
# commands make in turn.
sub targets_of_ci {
    my $text = VLM::slurp('Makefile') =~ s/\\\n\s*/ /gr;
    my %rule;

    while ($text =~ /^([\w -]+):(?!=)(.*)\n((?:\t.*\n)*)/mg) {
        my ($names, $needs, $commands) = ($1, $2, $3);
        my $makes = join ' ', $commands =~ /^\t\W*(?:\$\((?:MAKE|SANITIZED)\).*)/mg;

        $rule{$_} .= " $needs $makes" for split ' ', $names;
    }

    my %reached;
    my @found = VLM::slurp('.ci/run') =~ /^(?:.*; *)?make ([\w-]+)/mg;

    while (defined(my $name = shift @found)) {
        push @found, grep { $rule{$_} } ($rule{$name} || '') =~ m{(?<![\w/.-])[\w-]+(?![\w/.-])}g unless $reached{$name}++;
    }

    return %reached;
}


# Returns the lines that a reader's make would run, which has no variables of the make that runs this test.
# make -n runs lines that have make in them, which would stop here if nginx is not built yet.
sub lines_of_make {
    my $words = join ' ', map { "'$_'" } @_;

    $lines{$words} //= [`env -i PATH="\$PATH" make -n MAKE=: $words 2>/dev/null` =~ /^.*\S.*$/mg];

    return @{ $lines{$words} };
}


# A function says what is wrong with a command that make prints.
sub wrong_target {
    my ($name, $wrong) = @_;

    return "$name is no target" unless $target{$name};
    return undef if $ci{$name} || Commands::made_by($name);
    return "no test makes $name" unless $BY_HAND{$name};

    $seen{$name} = 1;
    my @lines = lines_of_make($name) or return "make -n $name prints nothing";

    return $lines[-1] =~ m{^(?:[A-Z_]+=\S+ )*(?:python3 )?(?:t|bench)/(?!suite|deps)} ? $wrong->($lines[-1]) : undef;
}


# A variable without effect is not in what make prints.
sub wrong_variable {
    my ($setting, @targets) = @_;
    my ($name, $value) = split /=/, $setting, 2;
    my %without = map { $_ => 1 } lines_of_make(@targets);
    my @changed = grep { !$without{$_} } lines_of_make(@targets, $setting);

    return "make -n @targets does not print $setting" unless grep { index($_, $value) >= 0 } @changed;
    return $name eq 'PARTS' ? wrong_parts($value, @targets) : undef;
}


# The programs refuse a part that they do not know, before they measure.
sub wrong_parts {
    my ($parts, $target) = @_;
    my $program = $target eq 'gpu' ? "bench/gpu.py --parts '$parts none'" : "bench/run.py $parts none";
    my $said = `$program 2>&1`;

    return $said =~ /\bno part none[:;]/ ? undef : $said;
}


# Returns what is wrong with the words behind make, or undef.
sub wrong {
    my ($text, $wrong) = @_;
    my @words = shellwords($text);
    my @targets = grep { !/=/ } @words;

    @targets = split ' ', $all unless @targets;

    return (grep { defined } map({ wrong_target($_, $wrong) } @targets), map { wrong_variable($_, @targets) } grep { /=/ } @words)[0];
}


# Returns the targets that no test makes and no page names.
sub unseen {
    return grep { !$seen{$_} } sort keys %BY_HAND;
}

1;
