package Commands;

# Finds the commands of a page of the documentation: those of its blocks, and those between backticks in
# its sentences.  It also finds the test that runs a command, by that test's code.

use strict;
use warnings;

use VLM;

# A program of this tree, or another one that a reader types and that a machine of tests may lack.
my $PROGRAM = qr{(?:(?:t|bench|demo|conf|build|engine/build)/[\w./*-]+|bench-\w+|[\w./~]+/bin/[\w-]+|make|vlm|prove|python3?
                 |curl|nginx|apt(?:-get)?|git|docker|podman|systemctl|kubectl|promtool|llama-[\w-]+|torchrun|pip|sudo|export
                 |free|hf|npm|nvidia-smi|ollama|openssl|ulimit|vmstat)}x;
my $SETTING = qr/[A-Z_]+=\S*/;

# Names of programs that begin messages of the server, and a directive, between backticks.
my %NO_COMMAND = map { $_ => 1 } qw(more split timeout);

# The tests that run commands word for word, and the functions in them to which these are given.
my @TESTS = (glob('t/96-*.t t/install/* t/targets/*.t'), 't/another-nginx', 't/clients/test_commands.py', 't/live/76-scale-load.t');
my $RUNS = qr/(?:\b(?:figures|in_root|loads|prints|runs|shell|system)\(|`)/;

my %code;


# Returns the commands of one block, without their comments.
sub of_block {
    my ($block) = @_;

    $block =~ s/ *\\\n\s*/ /g;
    $block =~ s/'[^']*'/$& =~ s{\n}{ }gr/ge;            # a body over several lines

    return map { s/\s+# .*//r =~ s/^\$ //r } grep { /^[^#\s]/ } split /\n/, $block;
}


# Returns the commands of a page's blocks.
sub of_blocks {
    my ($page) = @_;
    my @fences = VLM::slurp($page) =~ /^```(\w*)\n(.*?)^```$/msg;
    my @found;

    while (my ($language, $block) = splice @fences, 0, 2) {
        push @found, of_block($block) if $language =~ /^(?:sh)?$/;
    }

    return @found;
}


# Returns the blocks of docs/install.md that t/install runs, each whole, in a root of Debian; their packages
# were made in another root.
sub in_a_root {
    my $text = VLM::slurp('docs/install.md');
    my @sections = map { $text =~ /^## \Q$_\E\n(.*?)(?=^## |\z)/ms } 'Packages', 'systemd';

    return map { s/^make .*\n//mgr } map { /^```sh\n(.*?)^```$/msg } @sections;
}


# Returns the commands that t/install/containers.t runs, of docs/install.md's container and of docs/scale.md's registry.
sub of_containers {
    my ($section) = VLM::slurp('docs/install.md') =~ /^## A container\n(.*?)^## /ms;

    return (map({ of_block($_) } $section =~ /^```sh\n(.*?)^```$/msg), grep { /^podman / } of_blocks('docs/scale.md'));
}


# Whether a text is a command: make, or words whose first one is a program.  Those of requests are in capitals.
sub is_command {
    my ($text) = @_;

    return 1 if $text =~ /^(?:$SETTING )*(?:$PROGRAM |make$)/;

    my ($name) = $text =~ /^(?:$SETTING )*([a-z][\w.-]*) / or return 0;

    return !$NO_COMMAND{$name} && scalar grep { -f "$_/$name" && -x _ } split(/:/, $ENV{PATH}), '/usr/sbin', '/sbin';
}


# Returns the commands of a page's sentences.  The name of a program alone is none, but for make.
sub of_sentences {
    my ($page) = @_;
    my $text = VLM::slurp($page) =~ s/^```.*?^```$//msgr;
    my @quoted = map { s/\s+/ /gr } $text =~ /(?<!`)`([^`]+)`/g;

    return grep { is_command($_) } @quoted;
}


# Returns the commands of a page that stand in blocks without a fence, where of_blocks() does not look.
sub without_a_fence {
    my ($page) = @_;

    return VLM::slurp($page) =~ s/^```.*?^```$//msgr =~ /^ {4}((?:$SETTING )*$PROGRAM(?: .*)?)$/mg;
}


# Returns the lines of a page's blocks that have commands which no test reads: of shells by another name than sh, of
# Python without a client, for which t/clients/test_docs.py looks, and without a language on a page whose test looks for sh.
sub unread {
    my ($page, $only_sh) = @_;
    my @fences = VLM::slurp($page) =~ /^```(\w*)\n(.*?)^```$/msg;
    my @found;

    while (my ($language, $block) = splice @fences, 0, 2) {
        my $client = $page =~ m{^README|^docs/[^/]+$} && !$only_sh && $block =~ /^(?:import|from) (?:openai|ollama|langchain)/m;

        push @found, "a block of $language" unless $language =~ /^(?:json|nginx|sh|yaml|)$/ || ($language eq 'python' && $client);
        push @found, grep { is_command($_) } of_block($block) if $language eq '' && $only_sh;
    }

    return @found;
}


# Returns a test's code without its comments, in which a command would run nothing.
sub code {
    my ($test) = @_;

    return $code{$test} //= VLM::slurp($test) =~ s/""".*?"""//gsr =~ s/^\s*#.*|\s# .*//gmr;
}


# Returns the test that gives this command, whole, to a function that runs it.
sub run_by {
    my ($command) = @_;

    return (grep { code($_) =~ /$RUNS(?:here |\$\w+, )?(?:['"]|q\{)?\Q$command\E(?:['"}`]| 2>)/ } @TESTS)[0];
}


# Returns the commands that tests give to such a function, as far as they stand in its first quoted words.
sub of_tests {
    return map { code($_) =~ /$RUNS(?:here |\$\w+, )?['"]([^'"]+)['"]/g } @TESTS;
}


# Whether a command is a part of one of these, which may have more words before an option and at the end.
# Capitals are any word; a program of a virtual environment may stand without its directory.
sub is_part {
    my ($command, @whole) = @_;
    my $words = join ' ', map { (/^-/ ? '(?:\S+ )*' : '') . (quotemeta =~ s/[A-Z]{2,}/\\S+/gr) } split ' ', $command;

    return scalar grep { m{^(?:\S+/bin/)?$words(?: |$)} } @whole;
}


# Returns the test that has make make a target.
sub made_by {
    my ($target) = @_;

    return (grep { code($_) =~ /$RUNS.*\bmake (?:-s )?\Q$target\E(?![\w-])/ } @TESTS)[0];
}

1;
