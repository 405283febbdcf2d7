# Tests each command of README.md, CONTRIBUTING.md and the pages of docs/, bench/, demo/ and t/, in blocks
# and in sentences.  A command is run by the test that Commands::run_by() finds, or by the test of its page,
# or by t/install with the blocks of Commands::in_a_root() and the commands of Commands::of_containers(), or
# here: make prints what it would do, a program reads its options, vlm has a small model.  %NOT_RUN has the rest.

use strict;
use warnings;

use lib 't/lib';
use Commands;
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Targets;
use Test::More;
use Text::ParseWords qw(shellwords);
use VLM;

my @PAGES = ('README.md', 'CONTRIBUTING.md', glob 'docs/*.md docs/dev/*.md bench/README.md demo/README.md t/README.md');

# These tests run the blocks of a page from its own text.
my %WHOLE = (
    'docs/operations.md' => 't/live/71-manual.t',
    'docs/security.md'   => 't/live/71-manual.t',
    'docs/migrate.md'    => 't/live/71-manual.t',
    'docs/scale.md'      => 't/live/75-scale.t',
);

# No test runs these as they stand, and why.
my %NOT_RUN = (
    'apt install nginx redis-server' => 't/live/75-scale.t has apt simulate it: the packages are here already',
    'echo 3 > /proc/sys/vm/drop_caches' => 'it needs root, and empties the cache of the whole machine',
    (map { ("engine/build/run/$_ --table" => 'a test of the suite, which so prints the figures of the page') }
        qw(fidelity_test outlier_test quant_test)),
    'llama-gguf-split --merge' => 'a program of llama.cpp, of which CI has neither sources nor a package',
    'mount -o remount,rw' => 'it needs root and a disk of the reader, which became read-only',
    'npm run dev' => 'the front end of the script that a reader replaces is not in this tree',
    'ollama list' => "a program of Ollama, which Debian does not have; the sentence is about what it prints",
    'ollama pull' => "a program of Ollama, which Debian does not have; the sentence says how to do without it",
    '~/hf/bin/hf auth login' => "it asks for an account of the hub; t/clients/test_commands.py runs it with --help",
);

# Commands of sentences run here as %s, with what makes them whole and what they should print.
my %TRIED = (
    'chown -R' => 'mkdir -p own/er && %s $(id -un) own',
    'chown -R www-data' => 'mkdir -p own/er && %s own',
    'free -m' => '%s | grep -q "^Mem: *[1-9]"',
    'kill -9' => 'sleep 600 & %s $!; wait $!; [ $? = 137 ]',
    'openssl rand -hex 32' => '%s | grep -Exq "[0-9a-f]{64}"',
    'ulimit -n' => "bash -c '%s'",
    'ulimit -u' => "bash -c '%s'",
    'ulimit -v' => "bash -c '%s'",
    'vmstat 1' => '%s 2 | grep -q "swpd.*free"',            # twice, and not for ever
);

my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || 'build/ngx_http_vlm_module.so';
my $built = -x dirname($module) . '/random-checkpoint' ? dirname($module) : 'build';
my $vlm = dirname($module) . '/vlm';
my $top = tempdir(CLEANUP => 1);
my $dir = '.';                          # in which a page's reader is
my $n;

my %ours = map { $_ => 1 } VLM::slurp('conf/debian/control') =~ /^Package: (\S+)/mg;
my %in_a_root = map { $_ => 1 } map({ Commands::of_block($_) } Commands::in_a_root()), Commands::of_containers();
my %in_blocks = map { $_ => 1 } map { split / && / } map { Commands::of_blocks($_) } @PAGES;
my %in_pages = (%in_blocks, map { $_ => 1 } map { Commands::of_sentences($_) } @PAGES);
my @whole = (keys %in_blocks, Commands::of_tests());


# Runs a command in the directory of the page's reader; returns its output if it fails, or undef.
sub fails {
    my ($command) = @_;

    return system("cd $dir && $command >$top/said 2>&1") ? "$command: " . VLM::slurp("$top/said") : undef;
}


# ---- programs of the tree ----------------------------------------------------------

# Its own parser refuses an option that it does not know; t/tools/options.py ends it before its work.  The work of
# demo/README.md needs torch, which takes 5 GB, and was done by hand on 2026-11-27: train.py for two
# steps of each of its forms (--steps 2; phases after the first with --compile 0) but that of Qwen3-VL without torchrun,
# adapt.py for three minutes, its join, check.py, eval.py --torch for two scenes, eval_texts.py for sixteen messages; but
# not bloom.py, which takes twelve minutes.
sub wrong_python {
    my ($program, $words) = @_;

    return "there is no $program" unless -e "$dir/$program";

    my $root = $dir eq '.' ? '.' : '..';
    my $failed = fails("python3 $root/t/tools/options.py $program $words") or return undef;

    return $failed unless $? >> 8 == 3;                 # a program without options

    return (map { "there is no $_" } grep { !-e "$dir/$_" } split ' ', $words)[0];
}


# Perl's parser names each option that it does not know; it should be this one alone.
sub wrong_perl {
    my ($program, $words) = @_;
    my $said = `$program $words --none 2>&1`;

    return $said =~ /^Unknown option: none\nusage: / ? undef : $said;
}


# Words choose the tests whose names have one of them.
sub wrong_words {
    my ($tests, $words) = @_;
    my $code = join '', map { Commands::code($_) } glob $tests;
    my @names = map { s/_/ /gr } $code =~ /^\@test\n(?:async )?def (\w+)/mg;
    my @unknown;

    for my $word (grep { $_ ne 'WORDS...' } shellwords($words)) {
        push @unknown, $word unless $word =~ /^-/ ? $code =~ /'$word' in args\b/ : grep { index($_, $word) >= 0 } @names;
    }

    return @unknown ? "$tests has no option, and no test with a name, like @unknown" : undef;
}


sub wrong_program {
    my ($program, $words) = @_;

    return wrong_words('t/clients/test_*.py', $words) if $program eq 't/clients/run';
    return wrong_words('t/page/*.py', $words) if $program eq 't/page/run';

    # t/suite runs the tests of each source without options.
    if ($program =~ m{^engine/build/(.*_test)$} && !$words) {
        return -e "engine/$1.c" || -e "$1.c" ? undef : "$program has no source";
    }

    return "$program is no program" unless -f $program && -x _;

    my ($first) = VLM::slurp($program) =~ /^(.*)/;

    return $first =~ /python/ ? wrong_python($program, $words)
         : $first =~ /perl/ && $words ? wrong_perl($program, $words)
         : $words ? "no test gives $program the words $words" : undef;
}


# With a small model, or shape, in place of the page's.
sub wrong_vlm {
    my ($words) = @_;

    return fails("$vlm $words") if $words =~ /--help$/;
    return fails("$vlm $words --help") if $words =~ /^\w+$/;

    my ($name) = $words =~ /^(plan|doctor|bench) (?:DIR|\/models\/\S+)/ or return 'no test knows it';

    if ($name eq 'bench') {
        return Commands::code('t/95-cli.t') =~ /\bvlm\('bench'/ ? undef : 't/95-cli.t does not run it';
    }

    $words =~ s{ (?:DIR|/models/\S+)}{ demo/model};
    $words =~ s{ [48]k}{ 2k};                           # what the demo was made for
    $words .= " --module $module --user " . getpwuid $> if $name eq 'doctor';
    $words .= " --nginx $ENV{TEST_NGINX_BINARY}" if $name eq 'doctor' && $ENV{TEST_NGINX_BINARY};

    return fails("$vlm $words");
}


sub wrong_checkpoint {
    my ($options) = @_;

    $options =~ s{build/qwen-tokenizer/json}{t/fidelity/tokenizer};

    return fails("$built/random-checkpoint bench/shapes/tiny-f.json $top/made $options");
}


# ---- other programs ---------------------------------------------------------------

sub wrong_packages {
    my ($names) = @_;
    my @missing;

    for my $name (split ' ', $names =~ s/LANGUAGE/eng/r) {
        my ($package) = $name =~ m{^\./build/deb/([\w-]+)_\*\.deb$};

        push @missing, $name unless $package ? $ours{$package} : `apt-cache pkgnames $name` =~ /^\Q$name\E$/m;
    }

    return @missing ? "there is no package @missing" : undef;
}


sub wrong_nginx {
    my ($options) = @_;
    my $nginx = (grep { -x } '/usr/sbin/nginx', '/usr/local/sbin/nginx')[0];

    VLM::spew("$top/nginx.conf", "pid $top/nginx.pid;\nevents {}\n");

    return fails("$nginx -e stderr -p $top -c $top/nginx.conf $options");
}


# PyPI has the packages; 5 GB are not installed for a test.
sub wrong_requirements {
    my ($file) = @_;
    my @lines = -e "$dir/$file" ? grep { !/^#/ } split /\n/, VLM::slurp("$dir/$file") : ();

    return @lines && !grep({ !/^[\w-]+==[\d.]+$/ } @lines) ? undef : "$file is no list of packages";
}


sub wrong_test {
    my ($test) = @_;

    return -e $test ? undef : "there is no $test";
}


# The variables before a command should be ones that the program reads.
sub wrong_settings {
    my ($settings, $command) = @_;
    my ($program) = $command =~ m{(?:^| )(t/[\w/.-]+)} or return $settings ? "no test runs it with $settings" : undef;
    my $code = join '', map { Commands::code($_) } grep { -e } $program, $program eq 't/clients/run' ? glob 't/clients/*.py' : ();
    my @unread = grep { $code !~ /\bENV\{$_\}|\benviron\.get\('$_'|\$\{?$_\b/ } $settings =~ /(\w+)=/g;

    return @unread ? "$program does not read @unread" : undef;
}


# A variable that the tests read.
sub wrong_setting {
    my ($name) = @_;

    return Commands::code('t/lib/VLM.pm') =~ /\$ENV\{$name\}/ ? undef : "no test reads $name";
}


sub wrong_trial {
    my ($command) = @_;

    my $whole = sprintf $TRIED{$command}, $> ? $command =~ s/www-data/getpwuid $>/er : $command;

    return system("cd $top && ($whole) >said 2>&1") ? "$whole: " . VLM::slurp("$top/said") : undef;
}


# A state that a training of the page has written.
sub wrong_removal {
    my ($path) = @_;

    return grep({ / --state \Q$path\E / } keys %in_blocks) ? undef : "nothing makes $path";
}


# ---- all of them -----------------------------------------------------------------

my @KINDS = (
    [qr/^make(?: (.*))?$/ => sub { Targets::wrong($_[0] // '', \&wrong) }],
    [qr{^(?:build/)?vlm (.*)} => \&wrong_vlm],
    [qr{^build/random-checkpoint bench/shapes/[\w-]+\.json \S+ (.*)} => \&wrong_checkpoint],
    [qr{^(?:python3?|torchrun --standalone --nproc-per-node \d+) (\S+\.py)(?: (.*))?$} => \&wrong_python],
    [qr{^prove -It/lib (\S+\.t)$} => \&wrong_test],
    [qr{^((?:t|bench|conf|build|engine/build)/\S+)(?: (.*))?$} => \&wrong_program],
    [qr/^(?:sudo )?apt(?:-get)? install (.*)/ => \&wrong_packages],
    [qr/^nginx (-[tT].*)/ => \&wrong_nginx],
    [qr/^pip install -r (\S+)$/ => \&wrong_requirements],
    [qr/^rm -r (\S+)$/ => \&wrong_removal],
    [qr/^export (TEST_NGINX_LOAD_MODULES)=/ => \&wrong_setting],
);


# Tries a command; returns what is wrong with it, or undef.
sub wrong {
    my ($command) = @_;

    return undef if $NOT_RUN{$command} || $in_a_root{$command};
    return wrong_trial($command) if $TRIED{$command};
    return undef if $command ne 'make' && Commands::run_by($command);       # t/another-nginx has nginx's own make
    return (grep { defined } map { wrong($_) } split / && /, $command)[0] if $command =~ / && /;

    my ($settings, $rest) = $command =~ /^((?:[A-Z_]+=\S+ )*)(.*)$/;

    for (@KINDS) {
        my ($pattern, $check) = @$_;
        my ($one, $two) = $rest =~ $pattern or next;

        return wrong_settings($settings, $rest) // $check->($one, $two // '');
    }

    # A sentence may name a part of a command that is run whole.
    return undef if !$in_blocks{$command} && Commands::is_part($command, @whole);

    return 'no test knows it';
}


for my $page (@PAGES) {
    $dir = $page eq 'demo/README.md' ? 'demo' : '.';

    my @blocks = Commands::of_blocks($page);
    my @sentences = grep { !$in_blocks{$_} } Commands::of_sentences($page);

    if (my $test = $WHOLE{$page}) {
        like(Commands::code($test), qr/\b(?:commands|slurp)\('\Q$page\E'\)/, "$page: $test runs its blocks");
        @blocks = ();
    }

    is(join("\n", Commands::without_a_fence($page)), '', "$page: commands are in blocks with a fence");

    is(join("\n", Commands::unread($page, $WHOLE{$page})), '', "$page: and in those that tests read");

    @blocks = grep { !/^vlm_engine "|^(?:ok|warn|stop): |^\{/ } @blocks;     # what a program says
    @blocks = grep { !/^S=|\bcurl .*http|\bcurl .*\$S/ } @blocks if $page =~ m{^README|^docs/[^/]+$};    # t/clients/test_docs.py

    for my $command (@blocks, @sentences) {
        $n++;
        is(wrong($command), undef, "$page: " . substr $command, 0, 120);
    }
}

like(Commands::code('t/install/debian.pl'), qr/\bCommands::in_a_root\(\)/, 't/install runs blocks of docs/install.md');
like(Commands::code('t/install/containers.t'), qr/\bCommands::of_containers\(\)/, 'and those of containers');
cmp_ok($n, '>', 120, 'the pages have commands');
is(join("\n", Targets::unseen(), grep { !$in_pages{$_} } sort keys %NOT_RUN, keys %TRIED), '', 'the pages have what no test runs');

done_testing();
