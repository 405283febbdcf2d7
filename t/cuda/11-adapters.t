# Tests adapters on the emulated GPU, through nginx: requests of the demo of adapters, with its
# adapter and without one at the same time, which share steps.

use strict;
use warnings;

use lib 't/lib';
use Emulated;
use JSON::PP ();
use Test::More;

my $ROOT = Cwd::getcwd();
my @TASKS = @{ JSON::PP->new->utf8->decode(VLM::slurp('demo/translations.json')) }[0 .. 2];

my $s = Emulated::server(name => 'adapters', model => "$ROOT/demo/model-bloom",
                         engine => "lora $ROOT/demo/adapters rank=8;",
                         server => 'location = /generate-lite { vlm_pass live; }');

sub ask {
    my ($adapter, $task) = @_;

    return $s->begin('POST', '/generate-lite', { prompt => $task->{prompt}, adapter_path => $adapter,
                                                 max_new_tokens => 25 });
}

# The words of a translation, without marks of ASCII.
sub words { return join ' ', $_[0] =~ /[^\x00-\x7f]+/g }

sub right {
    my ($answer, $task) = @_;

    return index($answer->{json}{generated_text} // '', words($task->{text})) >= 0;
}

$s->start->ready;
like($s->health->{device}, qr/^cuda:0, emulator 0/, 'the GPU is the emulator');
cmp_ok($s->health->{plan}{lora}, '>', 0, 'places of adapters are in the plan');

# Three requests with the adapter, and between them two without: there are two slots.
my @answers = $s->end_all(map { ($_ > 0 ? ask('none', $TASKS[$_ - 1]) : (),
                                 ask('gurukul_lite', $TASKS[$_])) } 0 .. 2);

is(scalar(grep { $_->{code} == 200 } @answers), 5, 'all are answered');
is(scalar(grep { right($answers[2 * $_], $TASKS[$_]) } 0 .. 2), 3, 'with the adapter all are right');
is(scalar(grep { right($answers[2 * $_ + 1], $TASKS[$_]) } 0, 1), 0, 'without it none is');

for my $one (['gurukul_lite', $answers[0]], ['none', $answers[1]]) {
    my $alone = ask($one->[0], $TASKS[0])->end;

    is($alone->{json}{generated_text}, $one->[1]{json}{generated_text},
       "alone the answer of $one->[0] is the same");
}

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
