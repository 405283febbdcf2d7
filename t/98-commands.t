# Tests that each command of README.md, CONTRIBUTING.md, bench/README.md and the pages of docs/ is run by
# a test, or that it runs here, with a small model.  The pages in %ELSEWHERE are run whole by the test
# beside them, and each curl by t/clients.

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

# Commands that another test runs: its file has them, word for word.
my %KNOWN = (
    'python3 -m venv ~/hf && ~/hf/bin/pip install huggingface_hub' => 't/clients/test_commands.py',
    '~/hf/bin/hf download BAAI/RoboBrain2.0-3B --local-dir /models/RoboBrain2.0-3B' => 't/clients/test_commands.py',
    'make run MODEL=/models/RoboBrain2.0-3B' => 't/clients/test_commands.py',
    'make run MODEL=demo/model-3' => 't/clients/test_commands.py',
    'make run MODEL=demo/model-bloom' => 't/clients/test_commands.py',
    'MODEL=demo/model-3 make demo-eval' => 't/clients/test_commands.py',
    'MODEL=demo/model WEIGHTS=f32 t/demo-eval --set plain --scenes 300' => 't/clients/test_commands.py',
    './configure --with-compat --with-threads --add-dynamic-module=/path/to/nginx-vlm' => 't/another-nginx',
    'make test-nginx NGINX=../nginx' => 't/another-nginx',
    'nginx -t' => 't/install/scenario',
    'build/bench-model build/bench/3-2b --what decode,prefill --label 3-2b' => 't/96-bench.t',
    'build/bench-adapters build/bench/four --threads 1 --rounds 4' => 't/96-bench.t',
    'build/random-checkpoint build/four.json build/bench/four --seed 1 --type bf16 --gain trivial --tokenizer build/qwen-tokenizer/json'
        => 't/96-bench.t',
    q{python3 -c 'import json; c = json.load(open("bench/shapes/3b.json")); c["num_hidden_layers"] = 4; json.dump(c, open("build/four.json", "w"))'}
        => 't/96-bench.t',
    'bench/resident.py /tmp/3b' => 't/96-bench.t',
    'make bench PARTS=core' => 't/96-bench.t',
    'make bench BENCH_MODEL=/models/Qwen2.5-VL-3B' => 't/96-bench.t',
    'v/bin/python t/tools/random_gguf.py bench/shapes/3b.json GGUF' => 't/96-bench.t',
    'bench/compare --model build/bench/3b --gguf GGUF --llama-bench FILE --llama-server FILE --ik-bench FILE --openvino ov/bin/python --openvino-model IR --also avx512'
        => 't/96-bench.t',
    'ov/bin/python bench/openvino_model.py build/bench/3b IR' => 't/96-bench.t',
    'ov/bin/python bench/openvino_bench.py IR --ops amx' => 't/96-bench.t',
    't/tools/same-bits ../before/build/vlm build/vlm f32 bf16' => 't/96-bench.t',
);

# Targets of make that .ci/run does not come to, and a test that makes each.
my %MAKES = (
    run => 't/clients/test_commands.py', 'demo-eval' => 't/clients/test_commands.py', 'test-nginx' => 't/another-nginx',
    bench => 't/96-bench.t', help => 't/96-make.t', deps => 't/96-make.t', install => 't/96-make.t', deb => 't/install/debian.pl',
);

# Targets that no test makes whole: what each needs, in the words of its page, and where its parts are tested.
my %LARGE = (
    fidelity => ['docs/dev/fidelity.md', 'a venv of 5 GB', 'engine/run/fidelity_cases.h', 't/fidelity/expected'],
    cuda => ['docs/gpu.md', '`make cuda` needs nvcc of CUDA 13.0', 'cuda/test/compile', 'cuda-compile'],
);

my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || 'build/ngx_http_vlm_module.so';
my $built = -x dirname($module) . '/random-checkpoint' ? dirname($module) : 'build';
my $vlm = dirname($module) . '/vlm';
my $makefile = join '', map { VLM::slurp($_) } qw(Makefile engine/Makefile conf/run.sh), glob 't/demo-eval bench/run.py';
my %target = map { $_ => 1 } VLM::slurp('Makefile') =~ /^([\w-]+)(?=[^:=\n]*:(?!=))/mg;
my ($parts) = `bench/run.py --help` =~ /\n +PART (.*?)\n\n/s;
my $top = tempdir(CLEANUP => 1);
my %ours = map { $_ => 1 } VLM::slurp('conf/debian/control') =~ /^Package: (\S+)/mg;
my (%known, $n);

$target{$_} = 1 for map { split } VLM::slurp('Makefile') =~ /^\.PHONY: ((?:.*\\\n)*.*)/mg;

my %ci = targets_of_ci();


# Returns the commands of a page's blocks, without their comments.
sub commands {
    my @found;

    my @fences = VLM::slurp($_[0]) =~ /^```(\w*)\n(.*?)^```$/msg;

    while (my ($language, $block) = splice @fences, 0, 2) {
        next unless $language =~ /^(?:sh)?$/;

        $block =~ s/ *\\\n\s*/ /g;
        $block =~ s/'[^']*'/$& =~ s{\n}{ }gr/ge;        # a body over several lines
        push @found, map { s/\s+# .*//r =~ s/^\$ //r } grep { /^[^#\s]/ } split /\n/, $block;
    }

    return @found;
}


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
        push @found, grep { $rule{$_} } ($rule{$name} || '') =~ /[\w-]+/g unless $reached{$name}++;
    }

    return %reached;
}


# Returns what is wrong with a target of make, or undef.
sub wrong_target {
    my ($name) = @_;

    return "$name is no target" unless $target{$name};
    return undef if $ci{$name};

    if (my $large = $LARGE{$name}) {
        my ($page, $needs, $test, $part) = @$large;

        return "$page does not say: $needs" if index(VLM::slurp($page), $needs) < 0;
        return index(VLM::slurp($test), $part) < 0 ? "$test has no $part" : undef;
    }

    my $test = $MAKES{$name} or return "no test makes $name";

    return VLM::slurp($test) =~ /\bmake (?:-s )?\Q$name\E\b/ ? undef : "$test does not make $name";
}


# Tries a command; returns what is wrong with it, or undef.
sub wrong {
    my ($command) = @_;

    if (exists $KNOWN{$command}) {
        $known{$command} = 1;
        return index(VLM::slurp($KNOWN{$command}), $command) < 0 ? "$KNOWN{$command} does not run it" : undef;
    }

    return undef if $command =~ /^export TEST_NGINX_LOAD_MODULES=/;
    return (grep { defined } map { wrong($_) } split / && /, $command)[0] if $command =~ / && /;

    if ($command =~ /^((?:[A-Z_]+=\S+ )*)make((?: .*)?)$/) {
        my @wrong;

        for my $word (split ' ', "$1 $2" =~ s/"[^"]*"/x/gr) {
            my ($variable) = $word =~ /^([A-Z_]+)=/;

            push @wrong, $variable ? $makefile =~ /\b$variable\b/ ? () : "$variable is no variable" : wrong_target($word) // ();
        }

        push @wrong, map { $parts =~ /\b$_\b/ ? () : "$_ is no part" } map { split } $command =~ /PARTS="?([\w ]+)/;

        return $wrong[0];
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
        my ($file) = grep { -e } $program, "engine/$source.c", "lib/$source.c" or return "there is no $program";

        return (map { "$program has no $_" } grep { index(VLM::slurp($file), $_) < 0 } grep { /^--/ } @words)[0];
    }

    return 'no test knows it';
}


for my $page ('README.md', 'CONTRIBUTING.md', glob 'docs/*.md docs/dev/*.md bench/README.md t/README.md demo/README.md') {
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
