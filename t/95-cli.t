# Tests build/vlm, the command for checkpoints before their deployment.

use strict;
use warnings;

use lib 't/lib';
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use JSON::PP qw(decode_json);
use Test::More;
use VLM;

my $DIR = 'build/fidelity/tiny-a';
my $PICTURE = 't/fidelity/pictures/40x30.png';
my $VLM = dirname($ENV{TEST_NGINX_LOAD_MODULES} || 'build/ngx_http_vlm_module.so') . '/vlm';


sub vlm {
    my @args = map { "'$_'" } @_;
    my $out = `$VLM @args 2>&1`;

    return ($? >> 8, $out);
}


my ($rc, $out) = vlm('plan', $DIR);
is($rc, 0, 'plan ends well');
like($out, qr/^weights .* MiB$/m, 'plan prints what the weights take');
like($out, qr/^total /m, 'plan prints the total');

($rc, $out) = vlm('plan', $DIR, '--json', '--slots', '2', '--context', '1k');
my $plan = decode_json($out);
is($plan->{total}, $plan->{weights} + $plan->{vision} + $plan->{kv} + $plan->{workspace}
   + $plan->{device}, 'the total is the sum of the parts');

# Any directory without adapters will do.
for my $device (qw(cpu cuda)) {
    $plan = decode_json((vlm('plan', $DIR, '--json', '--lora', $DIR, '--device', $device))[1]);
    cmp_ok($plan->{lora}, '>', 0, "a plan for $device has places of adapters");
    is($plan->{total}, $plan->{weights} + $plan->{vision} + $plan->{lora} + $plan->{kv}
       + $plan->{workspace} + $plan->{device}, 'which are in its total');
}

($rc, $out) = vlm('plan', $DIR, '--memory', '1m');
is($rc, 1, 'a plan beyond the memory fails');
like($out, qr/\d+m needed \(weights \d+m, vision \d+m, kv \d+m, workspace \d+m, device \d+m\), memory is 1m/,
     'the message has the memory for each purpose');

# All sizes come from the files: the families' models, as sparse files, with int8 and one slot.
my %LEAST = ('3b' => 3_091_400_192, '7b' => 7_615_000_000, '32b' => 32_760_000_000,
             '72b' => 72_700_000_000, '3-2b' => 1_723_500_000, '3-4b' => 4_027_500_000,
             '3-8b' => 8_197_600_000, '3-32b' => 32_781_700_000);
my %VISION = ('3-2b' => 407_000_000, '3-4b' => 415_000_000, '3-8b' => 576_000_000,
              '3-32b' => 595_000_000);
my $RANDOM = dirname($VLM) . '/random-checkpoint';

# Numbers of parameters, computed from each shape's config.json: no published file was counted.
my %PARAMETERS = ('3b' => 3_754_622_976, '7b' => 8_292_166_656, '32b' => 33_452_718_336,
                  '72b' => 73_410_777_344, '3-2b' => 2_127_532_032, '3-4b' => 4_437_815_808,
                  '3-8b' => 8_767_123_696, '3-32b' => 33_357_390_064);

# Bytes of a token's keys and values, in bf16.
my %ROW = ('3b' => 37_440, '3-2b' => 116_480, '3-4b' => 149_760, '3-8b' => 149_760);

for my $shape (sort keys %LEAST) {
    my $dir = "build/fidelity/shape-$shape";
    system($RANDOM, "bench/shapes/$shape.json", $dir, qw(--values none --shards 3)) == 0
        or die "$RANDOM failed\n";
    $plan = decode_json((vlm('plan', $dir, '--json', qw(--slots 1 --context 1k)))[1]);
    cmp_ok(abs($plan->{weights} / $LEAST{$shape} - 1), '<', 0.002, "the weights of the $shape");
    cmp_ok($plan->{vision}, '>', $VISION{$shape} // 660_000_000, "the vision encoder of the $shape");
    is($plan->{kv}, 1024 * $ROW{$shape}, "keys and values of the $shape") if $ROW{$shape};
    is($plan->{model}{parameters}, $PARAMETERS{$shape}, "the parameters of the $shape");
}

# config.json alone gives the plan that the whole checkpoint gives.
my $AHEAD = tempdir(CLEANUP => 1);
copy("$DIR/config.json", $AHEAD) or die "config.json: $!\n";
my ($ahead, $there) = map { decode_json((vlm('plan', $_, '--json'))[1]) } $AHEAD, $DIR;
is_deeply([delete @$ahead{'assumed', 'model'}], [JSON::PP::true, { %{$there->{model}}, parameters => 0 }],
          'a plan from config.json alone says that it assumes the weights');
ok(!delete $there->{assumed}, 'a plan of weights that are there assumes nothing');
delete $there->{model};
is_deeply($ahead, $there, 'a plan from config.json alone has the same numbers');

($rc, $out) = vlm('plan', $AHEAD);
is($rc, 0, 'a plan from config.json alone ends well');
like($out, qr/^The weights are not there yet: the plan assumes the tensors of Qwen2.5-VL /m,
     'the plan has a sentence about this');

VLM::spew("$AHEAD/pytorch_model.bin", 'part');
($rc, $out) = vlm('plan', $AHEAD);
is($rc, 1, 'a plan fails if the weights are there as pytorch_model.bin alone');
like($out, qr{"pytorch_model\.bin" is PyTorch's own form, which is not supported: take the model's \.safetensors files, or save},
     'the message has both remedies');
unlink "$AHEAD/pytorch_model.bin";

VLM::spew("$AHEAD/model.safetensors.index.json",
          '{"weight_map":{"a":"one.safetensors","b":"two.safetensors"}}');
VLM::spew("$AHEAD/one.safetensors", 'part');
($rc, $out) = vlm('plan', $AHEAD);
is($rc, 0, 'a plan can be made while some shards are missing');

VLM::spew("$AHEAD/two.safetensors", 'part');
($rc, $out) = vlm('plan', $AHEAD);
is($rc, 1, 'a plan fails if every shard is there and one is cut');
like($out, qr{one\.safetensors: 4 bytes are no safetensors file: it was not downloaded to its end},
     'the message names the shard and the remedy');

my @GGUF = map { "t/fixtures/gguf/$_" } 'bf16.gguf', 'mmproj-bf16.gguf';
my @same = ('--prompt', 'Where is it?', '--image', $PICTURE, '--top', '3', '--weights', 'bf16');
is((vlm('logits', $GGUF[0], '--mmproj', $GGUF[1], @same))[1], (vlm('logits', $DIR, @same))[1],
   'GGUF files have the logits of the checkpoint that they were made from');
is((vlm('tokenize', $GGUF[0], 'a cup', '--mmproj', $GGUF[1]))[1], (vlm('tokenize', $DIR, 'a cup'))[1],
   'and its tokens');

($rc, $out) = vlm('plan', 'build/no-such-directory');
is($rc, 1, 'a directory that is not there fails');
like($out, qr{build/no-such-directory/config\.json: No such file}, 'the message names the missing file');

($rc, $out) = vlm('tokenize', $DIR, 'Where is the cup?', '--json');
my $ids = decode_json($out);
cmp_ok(scalar @$ids, '>', 2, 'a text becomes ids');

($rc, my $plain) = vlm('tokenize', $DIR, 'Where is the cup?');
is($plain, "@$ids\n", 'the same ids without --json, between blanks');

($rc, $out) = vlm('tokenize', $DIR, '<|im_end|>', '--json');
cmp_ok(scalar @{decode_json($out)}, '>', 1, 'a control token that is spelt out is plain text');

my @answer = ('chat', $DIR, '--image', $PICTURE, '--prompt', 'What is this?', '--max-tokens', '8',
              '--temperature', '0');
($rc, $out) = vlm(@answer, '--json');
my $answer = decode_json($out);
is($answer->{finish}, 'length', 'an answer ends at max-tokens');
is($answer->{completion_tokens}, 8, 'the answer has that many tokens');
cmp_ok($answer->{prompt_tokens}, '>', 20, 'a picture\'s tokens are prompt tokens');


($rc, $out) = vlm('chat', 'demo/model', '--prompt', 'List the colours.', '--max-tokens', '30',
                  '--json-mode', '--temperature', '1.5', '--seed', '3');
is(ref decode_json($out), 'HASH', '--json-mode gives an object');

my @seed = (@answer[0 .. $#answer - 1], '1', '--json', '--seed', '7');
is(decode_json((vlm(@seed))[1])->{answer}, decode_json((vlm(@seed))[1])->{answer},
   'a seed gives the same text again');

($rc, $out) = vlm('logits', $DIR, '--prompt', 'a b', '--raw', '--top', '3', '--json', '--weights',
                  'f32');
my @rows = map { decode_json($_) } split /\n/, $out;
my (undef, $raw) = vlm('tokenize', $DIR, 'a b', '--json');
is_deeply([map { $_->{id} } @rows], decode_json($raw), 'raw logits are of the text alone');
is(scalar @{$rows[0]{top}}, 3, 'each row has as many logits as asked for');
cmp_ok($rows[0]{top}[0][1], '>=', $rows[0]{top}[1][1], 'the largest logit comes first');

($rc, $out) = vlm('logits', $DIR, '--prompt', 'a', '--top', '0', '--json');
@rows = map { decode_json($_) } split /\n/, $out;
is(scalar @{$rows[0]{top}}, 600, '--top 0 gives the whole vocabulary');
cmp_ok(scalar @rows, '>', 15, 'without --raw the template is around the prompt');

($rc, $out) = vlm('chat', $DIR, '--prompt', 'x', '--device', 'cuda');
is($rc, 1, 'device cuda fails where there is no GPU');
like($out, qr/cuda:0: /, 'the message has the reason');

($rc, $out) = vlm('chat', $DIR, '--image', 'README.md', '--prompt', 'x');
is($rc, 1, 'a picture that is none fails');


# ---- bench: a table for an issue ---------------------------------------------

# Returns the cells of the table by their row; the first two lines are Markdown's.
sub table {
    my ($rc, $out) = vlm('bench', @_);
    my ($head, $line, @rows) = split /\n/, $out;

    is($rc, 0, "vlm bench @_ ends well");
    is("$head$line", '| | ||---|---|', 'it prints a table of Markdown');

    return { map { /^\| ([^|]+) \| ([^|]+) \|$/ or diag($_); ($1 => $2) } @rows };
}

my $table = table('demo/model', '--ops', 'plain', '--threads', '1', '--slots', '2');
my $version = `$VLM --version`;
chomp $version;
my ($prompt) = grep { /^prompt of \d+ tokens$/ } keys %$table;      # fewer on a slow machine
is_deeply([sort keys %$table], [sort 'version', 'machine', 'device', 'model', 'settings', 'load', 'decode',
          $prompt, 'first token, picture of 448x448'], 'with its rows');
is($table->{version}, $version, 'the version is that of the program');
is($table->{device}, 'cpu, plain, 1 thread', 'the device is that of the options');
is($table->{model}, 'model: Qwen2.5-VL, 6914240 parameters', 'the model is named');
like($table->{settings}, qr/^weights int8, kv int16, context 4096, slots 2, \d+m planned$/, 'the settings are those of vlm plan');
like($table->{machine}, qr/, \d+ processors, \d+m, Linux \S+ \S+, load [\d.]+$/, 'the machine is described');
like($table->{load}, qr/^[\d.]+ s, from the checkpoint(?:; memory was still .*)?$/, 'the source of the weights is said');
like($table->{$_}, qr{^[\d.]+ tokens/s \([1-5] rounds?\)$}, "$_ is a rate; a small model has no share of the memory's")
    for 'decode', $prompt;
like($table->{'first token, picture of 448x448'}, qr/^(?:[\d.]+ m?s \([1-5] rounds?\)|not measured: it takes about \d+ s)$/,
     'the first token is a time, measured or estimated');

my $BENCH = tempdir(CLEANUP => 1);
vlm('chat', 'demo/model', '--cache', $BENCH, '--prompt', 'x', '--max-tokens', '1');
$table = table('demo/model', '--cache', $BENCH, '--context', '256');
like($table->{load}, qr/^[\d.]+ s, from the quantised cache(?:; memory was still .*)?$/, 'a quantised cache that is there is used');
like($table->{'prompt of 128 tokens'}, qr/tokens/, 'a prompt fits the context');

$table = table('demo/model', '--context', '64');
like($table->{'prompt of 32 tokens'}, qr/tokens/, 'of any size');
like($table->{'first token, picture of 448x448'}, qr/^not measured: .*\b64\b/, 'where a picture does not fit, the table says so');

like(table('demo/model-bloom')->{'first token, text of 32 tokens'}, qr/^[\d.]+ m?s/, 'a model without pictures reads a text');
is((vlm('bench', 'demo/model', '--memory', '1m'))[0], 1, 'settings that do not fit fail');


# Returns the standard output of a command.
sub printed {
    my @args = map { "'$_'" } @_;

    return scalar `$VLM @args 2>build/cli-stderr`;
}


for my $help ('--help', '-h', 'help') {
    $out = printed($help);
    is($?, 0, "$help ends well");
    like($out, qr/^usage: vlm COMMAND DIR/, "$help prints the usage");
}

my %OPTIONS = (
    plan     => [qw(--device --ops --weights --kv --context --slots --max-pixels --features --memory --threads --mmproj
                    --lora --lora-max --lora-rank --json)],
    bench    => [qw(--device --ops --weights --kv --context --slots --max-pixels --features --memory --threads --mmproj
                    --lora --lora-max --lora-rank --cache)],
    doctor   => [qw(--device --ops --weights --kv --context --slots --max-pixels --features --memory --threads --mmproj
                    --lora --lora-max --lora-rank --cache --user --nginx --module)],
    tokenize => [qw(--mmproj --json)],
    chat     => [qw(--prompt --image --task --raw --max-tokens --temperature --seed --json-mode --device --ops
                    --weights --kv --context --max-pixels --memory --threads --mmproj --lora --lora-max --lora-rank
                    --adapter --cache --json)],
    logits   => [qw(--prompt --image --task --raw --top --device --ops --weights --kv --context --max-pixels --memory
                    --threads --mmproj --lora --lora-max --lora-rank --adapter --cache --json)],
);
is_deeply([sort $out =~ /^  (\w+) /mg], [sort keys %OPTIONS], 'help names every command');

for my $command (sort keys %OPTIONS) {
    $out = printed($command, '--help');
    is($?, 0, "$command --help ends well");
    like($out, qr/^usage: vlm $command DIR.*^example: vlm $command /ms, "$command --help has an example");
    is_deeply([$out =~ /^  (--[\w-]+)/mg], $OPTIONS{$command}, "$command --help has its options");
    is(printed($command, '-h'), $out, "$command -h is the same");
    is(printed($command, $DIR, '--help'), $out, "$command DIR --help is the same");

    ($rc, $out) = vlm($command, $DIR, '--slot', '1');
    is($rc, 2, "$command refuses an option that it does not have");
    is($out, qq(vlm $command: no such option: "--slot"; see "vlm $command --help"\n), 'the message names it');
}

my $man = VLM::slurp('engine/cli/vlm.1') =~ s/\\-/-/gr;
like($man, qr/^\.BI $_ " DIR/m, "the man page has $_") for sort keys %OPTIONS;
like($man, qr/^\.BI? $_\b/m, "the man page has $_") for sort keys %{{ map { map { $_ => 1 } @$_ } values %OPTIONS }};

# Returns the words that bash completes to after these.
sub completed {
    my @words = @_;

    return split ' ', `bash -c '. engine/cli/vlm.bash; COMP_WORDS=(@words); COMP_CWORD=$#words; _vlm vlm "$words[-1]" "$words[-2]"; echo "\${COMPREPLY[*]}"'`;
}

is_deeply([sort(completed($VLM, '""'))], [sort(keys %OPTIONS, '--help', '--version')], 'bash completes each command');
is_deeply([completed($VLM, $_, 'd', '--')], [@{$OPTIONS{$_}}, '--help'], "bash completes the options of $_") for sort keys %OPTIONS;

like(printed('plan', '--help'), qr/^  --slots N .*default: 4$/m, "the default slots of plan are a server's");

for my $bad (['--memory', '6GB', 'a number such as 600, 600m or 6g'], ['--context', '-1', 'a number such as 600 or 8k'],
             ['--slots', '4g', 'a number such as 600 or 8k'], ['--weights', 'int3', 'int4, int8, bf16 or f32'],
             ['--kv', 'int4', 'auto or int8'])
{
    ($rc, $out) = vlm('plan', $DIR, @$bad[0, 1]);
    is($rc, 2, "$bad->[0] $bad->[1] is refused");
    like($out, qr/^vlm plan: \Q$bad->[0] "$bad->[1]": expected $bad->[2]\E;/, 'the message lists the valid values');
}

is((vlm('plan', $DIR, '--memory', '99999999999g'))[0], 2, 'a number above 64 bits is refused');
is((vlm('chat', $DIR, '--temperature', 'hot'))[0], 2, 'a temperature that is no number is refused');
like((vlm('plan', $DIR, '--slots'))[1], qr/^vlm plan: a value is missing after: "--slots"/, 'a missing value is named');
like((vlm('plan'))[1], qr/^vlm plan: missing: "DIR"/, 'a missing directory is named');
like((vlm('tokenize', $DIR))[1], qr/^vlm tokenize: missing: "TEXT"/, 'a missing text is named');
like((vlm('plan', $DIR, 'x'))[1], qr/^vlm plan: not expected: "x"/, 'a word too many is named');

for my $words (['sing', $DIR], []) {
    is(printed(@$words), '', 'without a known command nothing goes to standard output');
    is($? >> 8, 2, 'the exit status is 2');
    like(VLM::slurp('build/cli-stderr'), qr/^usage: vlm plan\|doctor\|bench\|tokenize\|chat\|logits DIR .*\n\z/m,
         'standard error has a short usage');
}

like((vlm('sing', $DIR))[1], qr/^vlm: no such command: "sing"$/m, 'the message names a wrong command');


# Returns the sizes of nginx -t and vlm plan for the same settings, in MiB.
sub nginx_plan {
    my ($settings) = @_;

    my $s = VLM->new(name => 'plan', engine => $settings);
    my $said = $s->check_conf;

    my ($total, $parts) = $said =~ /: (\d+)m planned \(([^)]*)\)/ or return $said;

    return { total => $total, $parts =~ /(\w+) (\d+)m/g };
}

sub cli_plan {
    return { (vlm('plan', 'demo/model', @_))[1] =~ /^(\w+) +\d+ +(\d+) MiB$/mg };
}

is(keys %{cli_plan()}, 6, 'vlm plan prints six sizes');
is_deeply(cli_plan(), nginx_plan(''), 'vlm plan prints the MiB of nginx -t for a default configuration');
is_deeply(cli_plan(qw(--slots 3 --context 3k --max-pixels 200704 --features 11 --weights bf16 --kv int8)),
          nginx_plan('slots 3; context 3k; max_pixels 200704; features 11; weights bf16; kv int8;'),
          'the MiB are those of nginx -t with settings, too');

done_testing();
