# Tests the second demo model, of Qwen3-VL's shape, with the questions of
# demo/pictures/expected.json.  It writes coordinates as shares of the picture's sides;
# the marks of an answer are in pixels.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use VLM;

# The pictures were chosen for the first demo: the second one may miss some.
my $RIGHT = 0.9;

my $s = VLM->new(name => 'second-demo', workers => 2, model => 'demo/model-3',
                 engine => 'thinking off; stall 2m; sampling temperature=0 repetition_penalty=1;');

$s->start->ready;

is($s->get('/api/health')->{json}{coordinates}, 1000, 'the model writes shares of 1000');

my $expected = JSON::PP->new->utf8->decode(VLM::slurp('demo/pictures/expected.json'));
my (%asked, %right, @wrong);

for my $name (sort keys %$expected) {
    my $picture = $s->upload("demo/pictures/$name");
    my $n = 0;

    for my $q (@{ $expected->{$name}{questions} }) {
        my $task = $q->{task};
        my $r = $s->chat("$name-" . ++$n, $q->{question}, image => $picture, task => $task);
        my $ok = $r->{code} == 200 && is_right($q, $r->{json});

        $asked{$task}++;
        $right{$task} += $ok;
        push @wrong, "$name: $q->{question}: $r->{json}{answer}" if !$ok;
    }
}

is(join(' ', sort keys %asked), 'affordance general grounding pointing trajectory', 'each task is asked');

for my $task (sort keys %asked) {
    cmp_ok($right{$task}, '>=', $RIGHT * $asked{$task}, "$task: $asked{$task} questions, most answers are right")
        or diag(join "\n", @wrong);
}

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();


sub is_right {
    my ($q, $answer) = @_;
    my @shapes = map { places($_) } @{ $answer->{marks} || [] };

    return $answer->{answer} eq $q->{answer} if defined $q->{answer};

    # The second release answers about an affordance with a point.
    return @shapes == 1 && inside($shapes[0], $q->{box}) if $q->{task} eq 'affordance';
    return @shapes == 1 && overlap($shapes[0], $q->{box}) >= $q->{iou} if $q->{box};

    my @boxes = @{ $q->{boxes} };

    if ($q->{task} eq 'trajectory') {
        return @shapes > 1 && inside($shapes[0], $boxes[0]) && inside($shapes[-1], $boxes[-1]);
    }

    return @shapes == @boxes && !grep { my $box = $_; !grep { inside($_, $box) } @shapes } @boxes;
}


# The corners of a box, or each point of a path.
sub places {
    my ($mark) = @_;
    my @xy = @{ $mark->{xy} };

    return [@xy] if $mark->{type} ne 'path';
    return map { [@xy[2 * $_, 2 * $_ + 1]] } 0 .. $#xy / 2;
}


# Within four pixels of a box, as demo/eval.py has it.
sub inside {
    my ($p, $box) = @_;

    return $p->[0] >= $box->[0] - 4 && $p->[0] <= $box->[2] + 4
           && $p->[1] >= $box->[1] - 4 && $p->[1] <= $box->[3] + 4;
}


# The intersection of two boxes over their union.
sub overlap {
    my ($p, $q) = @_;
    my @least = map { $p->[$_] > $q->[$_] ? $p->[$_] : $q->[$_] } 0, 1;
    my @most = map { $p->[$_] < $q->[$_] ? $p->[$_] : $q->[$_] } 2, 3;
    my ($wide, $high) = map { $most[$_] - $least[$_] } 0, 1;

    return 0 if $wide <= 0 || $high <= 0;

    my @areas = map { ($_->[2] - $_->[0]) * ($_->[3] - $_->[1]) } $p, $q;

    return $wide * $high / ($areas[0] + $areas[1] - $wide * $high);
}
