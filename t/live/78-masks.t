# Tests grammars that can be read in very many ways, on the published vocabulary: they hold up no other
# request, and end with a sentence.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use VLM;

my $JSON = JSON::PP->new->utf8->canonical;
my $AMBIGUOUS = '. a [aeiou] | . a [bcdfg] | . a [^h-m] | . a [n-z ] | . a? | .';
my $LATE = 'root ::= "A text that is fixed: " a' . "\na ::= $AMBIGUOUS";


# A tiny model with the vocabulary that Qwen's models share; its answers are random and have no end.
sub model {
    my $dir = "$VLM::LIVE/masks-model";
    my $shape = $JSON->decode(VLM::slurp('bench/shapes/3b.json'));
    my $tiny = $JSON->decode(VLM::slurp('bench/shapes/tiny-f.json'));
    my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || '';
    my $program = $module =~ s{[^/]+$}{random-checkpoint}r;

    $program = 'build/random-checkpoint' unless -x $program;

    $shape->{$_} = $tiny->{$_} for qw(hidden_size intermediate_size num_attention_heads
                                      num_key_value_heads num_hidden_layers vision_config);
    VLM::spew("$dir.json", $JSON->encode($shape));
    system($program, "$dir.json", $dir, qw(--seed 1 --type bf16),
           '--tokenizer', 'build/qwen-tokenizer/json') == 0 or die "random-checkpoint failed\n";
    VLM::spew("$dir/generation_config.json", $JSON->encode({ eos_token_id => [151_935] }));

    return $dir;
}


my $s = VLM->new(name => 'masks', model => model(),
                 engine => 'thinking off; slots 6; threads 1; context 4k; max_tokens 2000; timeout 1h;'
                           . 'device cpu;')->start->ready;

sub asked {
    my (%more) = @_;

    return $s->begin('POST', '/v1/chat/completions',
                     { model => 'live', messages => [{ role => 'user', content => 'Where?' }], %more });
}


my $r = asked(grammar => "root ::= a\na ::= $AMBIGUOUS")->end;

is($r->{code}, 400, 'a grammar whose masks take too much work is a 400');
like($r->{json}{error}{message}, qr/in too many ways/, 'a sentence says why');

my @late = map { asked(grammar => $LATE, stream => JSON::PP::true, max_tokens => 2000) } 1 .. 4;

for my $i (1 .. 3) {
    $r = asked(max_tokens => 20)->end;
    is($r->{json}{usage}{completion_tokens}, 20, "plain answer $i is made beside them");
}

$_->leave for splice @late, 2;
ok(VLM::wait_for(sub { ($s->health->{queue}{running} // 9) <= 2 }), 'those that left do not keep their slots');

$_->end for @late;

for my $r (@late) {
    my ($last) = $r->{raw} =~ /^data: (\{"error".*\})\s*$/m;
    my $error = $JSON->decode($last || '{}');

    is($error->{choices}[0]{finish_reason}, 'error', 'a stream ends with an error');
    like($error->{error}{message}, qr/in too many ways/, 'and the sentence');
}

$r = asked(grammar => $LATE)->end;
is($r->{code}, 400, 'without a stream it is a 400');
like($r->{json}{error}{message}, qr/in too many ways/, 'with the sentence');

$r = asked(grammar => 'root ::= . root [a-z] | . root [^a] | . root? | .', max_tokens => 20)->end;
is($r->{code}, 200, 'a grammar that is ambiguous within bounds is followed');

$r = asked(grammar => 'root ::= "(" root ")" | [a-z]{1,9}', max_tokens => 20)->end;
like($r->{json}{choices}[0]{message}{content}, qr/^(\((?1)\)|[a-z]{1,9})$/, 'a plain grammar works as before');
is($s->health->{status}, 'healthy', 'the engine is healthy');

$s->stop;
$s->check_log;
done_testing();
