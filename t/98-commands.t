# Tests that each command of README.md, CONTRIBUTING.md and the pages of docs/ is run by a test, or is
# one whose parts are checked here: targets and variables of make, options of vlm, files and packages.
# The pages in %ELSEWHERE are run whole by the test beside them, and each curl by t/clients.

use strict;
use warnings;

use lib 't/lib';
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;
use VLM;

my %ELSEWHERE = (
    'docs/install.md'    => 't/97-deploy.t',
    'docs/operations.md' => 't/live/71-manual.t',
    'docs/security.md'   => 't/live/71-manual.t',
    'docs/migrate.md'    => 't/live/71-manual.t',
    'docs/scale.md'      => 't/live/75-scale.t',
);

# Commands that a test knows by other words, or that need the world outside of this machine.
my %KNOWN = (
    'python3 -m venv ~/hf && ~/hf/bin/pip install huggingface_hub' => 'the hub\'s program, from PyPI',
    '~/hf/bin/hf download BAAI/RoboBrain2.0-3B --local-dir /models/RoboBrain2.0-3B' => 'a download of 7.5 GB',
    './configure --with-compat --with-threads --add-dynamic-module=/path/to/nginx-vlm' => 'an nginx from its source',
    'nginx -t' => 't/91-directives.t',
    'git worktree add ../before 0b2f26a && make -C ../before/engine build/vlm' => 'a comparison with an older build',
);

my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || 'build/ngx_http_vlm_module.so';
my $built = -x dirname($module) . '/random-checkpoint' ? dirname($module) : 'build';
my $vlm = dirname($module) . '/vlm';
my $makefile = join '', map { VLM::slurp($_) } qw(Makefile engine/Makefile conf/run.sh), glob 't/demo-eval bench/run.py';
my %target = map { $_ => 1 } VLM::slurp('Makefile') =~ /^([\w-]+)(?=[^:=\n]*:(?!=))/mg;
my $top = tempdir(CLEANUP => 1);
my %ours = map { $_ => 1 } VLM::slurp('conf/debian/control') =~ /^Package: (\S+)/mg;
my (%known, $n);

$target{$_} = 1 for map { split } VLM::slurp('Makefile') =~ /^\.PHONY: ((?:.*\\\n)*.*)/mg;


# Returns the commands of a page's blocks, without their comments.
sub commands {
    my @found;

    my @fences = VLM::slurp($_[0]) =~ /^```(\w*)\n(.*?)^```$/msg;

    while (my ($language, $block) = splice @fences, 0, 2) {
        next unless $language =~ /^(?:sh)?$/;

        $block =~ s/\\\n\s*/ /g;
        $block =~ s/'[^']*'/$& =~ s{\n}{ }gr/ge;        # a body over several lines
        push @found, map { s/\s+# .*//r =~ s/^\$ //r } grep { /^[^#\s]/ } split /\n/, $block;
    }

    return @found;
}


# Tries a command; returns what is wrong with it, or undef.
sub wrong {
    my ($command) = @_;

    if (exists $KNOWN{$command}) {
        $known{$command} = 1;
        return undef;
    }

    return undef if $command =~ /^export TEST_NGINX_LOAD_MODULES=/;
    return (grep { defined } map { wrong($_) } split / && /, $command)[0] if $command =~ / && /;

    if ($command =~ /^((?:[A-Z_]+=\S+ )*)make((?: .*)?)$/) {
        for my $word (split ' ', "$1 $2" =~ s/"[^"]*"/x/gr) {
            my ($variable) = $word =~ /^([A-Z_]+)=/;

            return "$word is no target" if !$variable && !$target{$word};
            return "$variable is no variable" if $variable && $makefile !~ /\b$variable\b/;
        }

        return undef;
    }

    if ($command =~ /^(?:build\/)?vlm (plan|doctor) (.*)/) {
        my ($name, $run) = ($1, $2);

        $run =~ s{^/models/\S+}{demo/model};
        $run =~ s{ [48]k}{ 2k};                         # what the demo was made for

        $run .= " --module $module --user " . getpwuid $> if $name eq 'doctor';
        $run .= " --nginx $ENV{TEST_NGINX_BINARY}" if $name eq 'doctor' && $ENV{TEST_NGINX_BINARY};

        return system("$vlm $name $run >$top/said 2>&1") ? VLM::slurp("$top/said") : undef;
    }

    # Its options, with a small shape and the tokenizer of the tree.
    if ($command =~ m{^build/random-checkpoint bench/shapes/[\w-]+\.json \S+ (.*)}) {
        my $options = $1 =~ s{build/qwen-tokenizer/json}{t/fidelity/tokenizer}r;

        return system("$built/random-checkpoint bench/shapes/tiny-f.json $top/made $options >$top/said 2>&1")
               ? VLM::slurp("$top/said") : undef;
    }

    return VLM::slurp('t/95-cli.t') =~ /vlm\('bench'/ ? undef : 'no test runs it'
        if $command =~ m{^vlm bench /models/\S+$};

    if ($command =~ /^(?:sudo )?apt(?:-get)? install (.*)/) {
        my @missing = grep { m{^\./build/deb/([\w-]+)_\*\.deb$} ? !$ours{$1} : `apt-cache pkgnames $_` !~ /^\Q$_\E$/m } split ' ', $1;

        return @missing ? "there is no package @missing" : undef;
    }

    # A program of the tree, or one that make builds of a source of this name.
    my ($program, @words) = split ' ', $command =~ s/^(?:[A-Z_]+=\S+ )+//r =~ s/^prove -It\/lib //r;

    if ($program =~ m{^(?:t|bench|conf|build|engine/build)/}) {
        (my $source = $program) =~ s{^engine/build/(?:lib/)?}{};

        return -e $program || -e "engine/$source.c" || -e "lib/$source.c" || $makefile =~ m{\b\Q@{[$program =~ s{^build/}{}r]}\E\b}
               ? undef : "there is no $program";
    }

    return 'no test knows it';
}


for my $page ('README.md', 'CONTRIBUTING.md', glob 'docs/*.md docs/dev/*.md t/README.md demo/README.md') {
    if (my $test = $ELSEWHERE{$page}) {
        like(VLM::slurp($test), qr/\Q$page\E/, "$page: $test runs its commands");
        next;
    }

    for my $command (commands($page)) {
        next if $command =~ /^vlm_engine "|^(?:ok|warn|stop): |^\{/;        # what a program says
        next if $page =~ m{^README|^docs/[^/]+$} && $command =~ /^S=|\bcurl /;      # t/clients/test_docs.py

        $n++;
        is(wrong($command), undef, "$page: " . substr $command, 0, 120);
    }
}

cmp_ok($n, '>', 40, 'the pages have commands');
is(join("\n", grep { !$known{$_} } sort keys %KNOWN), '', 'the pages have the commands that this test knows');

done_testing();
