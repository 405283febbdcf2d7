# build/vlm: what a person sees who looks at a checkpoint before deploying it.

use strict;
use warnings;

use File::Basename qw(dirname);
use JSON::PP qw(decode_json);
use Test::More;

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

($rc, $out) = vlm('plan', $DIR, '--memory', '1m');
is($rc, 1, 'a plan beyond the memory fails');
like($out, qr/\d+m needed \(weights \d+m, vision \d+m, kv \d+m, workspace \d+m, device \d+m\), memory is 1m/,
     'and says how much is needed for what');

# Every size comes from the files: the family's four, as holes on the disk, int8 and one slot.
my %LEAST = ('3b' => 3_091_400_192, '7b' => 7_615_000_000, '32b' => 32_760_000_000,
             '72b' => 72_700_000_000);
my $RANDOM = dirname($VLM) . '/random-checkpoint';

# As the hub counts them.
my %PARAMETERS = ('3b' => 3_754_622_976, '7b' => 8_292_166_656, '32b' => 33_452_718_336,
                  '72b' => 73_410_777_344);

for my $shape (sort keys %LEAST) {
    my $dir = "build/fidelity/shape-$shape";
    system($RANDOM, "bench/shapes/$shape.json", $dir, qw(--values none --shards 3)) == 0
        or die "$RANDOM failed\n";
    $plan = decode_json((vlm('plan', $dir, '--json'))[1]);
    cmp_ok(abs($plan->{weights} / $LEAST{$shape} - 1), '<', 0.002, "the weights of the $shape");
    cmp_ok($plan->{vision}, '>', 660_000_000, "the tower of the $shape");
    is($plan->{model}{parameters}, $PARAMETERS{$shape}, "the parameters of the $shape");
}

($rc, $out) = vlm('plan', 'build/no-such-directory');
is($rc, 1, 'a directory that is not there fails');
like($out, qr{build/no-such-directory/config\.json: No such file}, 'and says which file is missing');

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
is($answer->{completion_tokens}, 8, 'and has that many tokens');
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
is(scalar @{$rows[0]{top}}, 3, 'as many as asked for');
cmp_ok($rows[0]{top}[0][1], '>=', $rows[0]{top}[1][1], 'the largest first');

($rc, $out) = vlm('logits', $DIR, '--prompt', 'a', '--top', '0', '--json');
@rows = map { decode_json($_) } split /\n/, $out;
is(scalar @{$rows[0]{top}}, 600, '--top 0 gives the whole vocabulary');
cmp_ok(scalar @rows, '>', 15, 'without --raw the template is around the prompt');

($rc, $out) = vlm('chat', $DIR, '--prompt', 'x', '--device', 'cuda');
is($rc, 1, 'device cuda fails where there is no GPU');
like($out, qr/cuda:0: /, 'and says why');

($rc, $out) = vlm('chat', $DIR, '--image', 'README.md', '--prompt', 'x');
is($rc, 1, 'a picture that is none fails');

($rc, $out) = vlm('sing', $DIR);
is($rc, 2, 'an unknown command shows the usage');
like($out, qr/^usage: vlm plan DIR/, 'which begins with plan');

done_testing();
