# Tests the demo model with the questions and answers of demo/pictures/expected.json
# about each of the sample pictures.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use VLM;

# The emulated GPU of make test-cuda takes seconds for a picture, more on a busy machine.
my $s = VLM->new(name => 'demo', workers => 2,
                 engine => 'thinking off; stall 2m; sampling temperature=0 repetition_penalty=1;');

$s->start->ready;

my $expected = JSON::PP->new->utf8->decode(VLM::slurp('demo/pictures/expected.json'));

cmp_ok(scalar keys %$expected, '>=', 3, 'there are sample pictures');

for my $name (sort keys %$expected) {
    my $picture = $s->upload("demo/pictures/$name");
    my $n = 0;

    for my $q (grep { $_->{task} eq 'general' } @{ $expected->{$name}{questions} }) {
        my $r = $s->chat("$name-" . ++$n, $q->{question}, image => $picture);

        is($r->{json}{answer}, $q->{answer}, "$name: $q->{question}");
    }
}

ok($s->stop, 'the server stops in time');
$s->check_log;

done_testing();
