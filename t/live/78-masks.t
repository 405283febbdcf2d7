# Tests grammars that can be read in very many ways, on the published vocabulary: they hold up no other
# request, and end with a sentence.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use Time::HiRes qw(sleep);
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

# ---- those who ask again ---------------------------------------------------------

my $LETTERS = join '', grep { index('\\[](){}|*+?^$.-/"', $_) < 0 } map { chr } 0x21 .. 0x7e;
my $n = 0;

# A schema that takes long to compile, and another one each time; with five of them it is refused.
sub slow_schema {
    my ($properties, $times) = @_;

    $n++;

    return { type => 'object', properties => { map {
        ("p${n}_$_" => { type => 'string', pattern => '^(' . substr("$LETTERS$LETTERS", $_, length $LETTERS) . "){$times}\$" }) }
        1 .. $properties } };
}

# Sends requests like these again and again beside an answer; returns how many ended until it did.
sub beside {
    my ($answer, $most, $again, $count) = @_;
    my $ended = 0;
    my @again = map { $again->() } 1 .. $count;

    until ($answer->done || $ended > $most) {
        $s->drain($answer, @again);
        sleep 0.005;

        for (@again) {
            next unless $_->done;
            $ended++;
            $_ = $again->();
        }
    }

    $_->leave for @again;

    return $ended;
}

my $plain = asked(max_tokens => 3);
my $refused = sub { asked(max_tokens => 3, guided_json => slow_schema(5, 207)) };

cmp_ok(beside($plain, 40, $refused, 8), '<=', 40, 'a plain answer is there before 40 slow schemas have been refused');
is($plain->end->{code}, 200, 'it is whole');
is($refused->()->end->{code}, 400, 'such a schema is refused');

my $JSON_GRAMMAR = <<'_EOC_';
root ::= object
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
array ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
_EOC_
my $light = asked(grammar => $JSON_GRAMMAR, max_tokens => 40);
my $ended = beside($light, 30, sub { asked(grammar => "root ::= a\na ::= $AMBIGUOUS") }, 4);

cmp_ok($ended, '<=', 30, 'a lighter grammar is followed to its end before 30 heavy ones have been refused');
is($light->end->{code}, 200, 'and is answered');

$s->stop;
$s->check_log;

# ---- memory -----------------------------------------------------------------------

# Those that wait keep no compiled grammars.
$s = VLM->new(name => 'masks-memory', model => "$VLM::LIVE/masks-model",
              engine => 'thinking off; slots 1; threads 1; context 4k; max_tokens 3000; timeout 1h; queue 64 timeout=1h;'
                        . 'device cpu; http_memory 64m;')->start->ready;

sub resident { VLM::slurp('/proc/' . $s->designated . '/status') =~ /^VmRSS:\s+(\d+)/m ? $1 / 1024 : 0 }

asked(max_tokens => 3, guided_json => slow_schema(2, 200))->end;

my $before = resident();
my $long = asked(max_tokens => 3000, min_tokens => 3000);

ok($s->busy(1, 0), 'one runs');

my @wait = map { asked(max_tokens => 3, guided_json => slow_schema(2, 200)) } 1 .. 40;

ok($s->busy(1, 40), 'forty wait');
cmp_ok(resident() - $before, '<', 200, 'forty requests that wait with large grammars take less than 200 MiB') unless $ENV{VLM_REPORTS};

$_->leave for @wait, $long;
$s->stop;
$s->check_log;
done_testing();
