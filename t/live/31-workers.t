# Tests several workers: any of them accepts a request, the one with the model
# answers it, and a crash of another worker affects no other request.

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use Time::HiRes qw(sleep);
use VLM;

my $ENGINE = 'thinking off; slots 4; queue 64 timeout=1h; max_tokens 32;'
             . 'sampling temperature=0;';

# The questions about the first sample picture, and the right answers.
my $PICTURE = 'demo/pictures/table-01.png';
my @ASKED = (["How many objects are on the table?", '4'],
             ["Tell me the color of the first bowl from the left.", 'orange'],
             ["Do you see a red one?", 'yes'],
             ["Is there a red bowl?", 'no']);

# Five requests run at once in five sessions, then ten in one session.
sub parallel {
    my ($s, $picture, $name) = @_;

    my @five = map {
        $s->begin_chat("$name-five$_", $ASKED[0][0], image => $picture)
    } 1 .. 5;

    my @answers = $s->end_all(@five);

    is(join(' ', map { $_->{code} } @answers), '200 200 200 200 200',
       "$name: five sessions at once");
    is(scalar(grep { ($_->{json}{turn_number} || 0) == 2 } @answers), 5,
       "$name: each is a first turn");

    is(join(' ', map { $_->{json}{answer} // '' } @answers), join(' ', ($ASKED[0][1]) x 5),
       "$name: five right answers");

    my @questions = map { $ASKED[$_ % @ASKED] } 0 .. 9;
    my @ten = map {
        my $r = $s->begin_chat("$name-ten", $_->[0], image => $picture);
        sleep 0.05;             # the requests have an order of arrival
        $r;
    } @questions;

    @answers = $s->end_all(@ten);

    is(scalar(grep { $_->{code} eq '200' } @answers), 10,
       "$name: ten at once in one session");
    is(join(' ', map { $_->{json}{answer} // '' } @answers),
       join(' ', map { $_->[1] } @questions), "$name: ten right answers");
    is(join(' ', sort { $a <=> $b } map { $_->{json}{turn_number} // 0 } @answers),
       join(' ', map { 2 * $_ } 1 .. 10), "$name: each is a turn of its own");

    # Several workers accept in any order, and the order of acceptance counts.
    my @said;

    for my $i (1 .. 10) {
        $said[($answers[$i - 1]{json}{turn_number} // 0) / 2] = $questions[$i - 1][0];
    }

    shift @said;

    is(join(' ', @said), join(' ', map { $_->[0] } @questions),
       "$name: in the order of their sending") if $s->{workers} == 1;

    my $history = $s->get("/api/history/$name-ten")->{json} || [];

    is(join(' ', map { $_->{content} } grep { $_->{role} eq 'user' } @$history),
       join(' ', @said), "$name: stored in the order of their turns");

    return (@answers);
}


# The connections to the hop's socket, without the socket itself.
sub hops {
    my ($s) = @_;

    return scalar grep { / 03 +\d+ \Q$s->{store_dir}\E/ } split /^/, VLM::slurp('/proc/net/unix');
}


my $one = VLM->new(name => 'workers-1', workers => 1, engine => $ENGINE);

$one->start->ready;
parallel($one, $one->upload($PICTURE), 'one');
ok($one->stop, 'the server stops in time');
$one->check_log;


my $four = VLM->new(name => 'workers-4', workers => 4, listen => 'reuseport',
                    engine => $ENGINE);
my %seen;

$four->start->ready;

my $picture = $four->upload($PICTURE);

for my $i (1 .. 20) {
    my @answers = $i <= 2 ? parallel($four, $picture, "round-$i")
        : $four->end_all(map { $four->begin_chat("more$i-$_", 'hi', image => $picture) } 1 .. 8);

    $seen{$_->{worker}} = 1 for grep { $_->{code} eq '200' } @answers;
    last if $i >= 2 && keys %seen == 4;
}

is(scalar keys %seen, 4, 'all four workers have answered')
    or diag(join ' ', keys %seen);

is_deeply([sort { $a <=> $b } keys %seen], [$four->workers],
          'all four workers have answered');


# ---- directives of http{} do not apply to the hop --------------------------

my $strict = VLM->new(name => 'workers-http', workers => 3, listen => 'reuseport',
                      engine => $ENGINE, server => 'add_header X-Once yes always;',
                      http => <<'_EOC_');
    allow 127.0.0.1;
    deny all;
    gzip on;
    gzip_types application/json;
    gzip_min_length 1;
    client_body_buffer_size 1k;
    error_page 404 /nowhere.html;
    proxy_buffering on;
    proxy_set_header X-Other 1;
    proxy_read_timeout 1ms;
_EOC_

$strict->start->ready;
$picture = $strict->upload($PICTURE);

my @answers = $strict->end_all(map { $strict->begin_chat("s$_", 'How many cups are there?', image => $picture) } 1 .. 12);

my %by = map { $_->{worker} // 0 => 1 } @answers;

cmp_ok(scalar keys %by, '>', 1, 'several workers accepted');
is(scalar(grep { $_->{code} eq '200' } @answers), 12, 'all were let in')
    or diag(join ' ', map { $_->{code} } @answers);
is(scalar(grep { 1 == (() = $_->{raw} =~ /^X-Once:/mg) } @answers), 12,
   'a header of the user\'s is there once');
unlike(join('', map { $_->{raw} } @answers), qr/^X-Vlm/mi, 'the answers have no internal headers');

my $zipped = $strict->begin('POST', '/api/chat',
    VLM::chat_body('z', 'How many cups are there?', image => $picture),
    { 'Accept-Encoding' => 'gzip' })->end;

is($zipped->{headers}{'content-encoding'}, 'gzip', 'an answer may be zipped');
is(substr($zipped->{body}, 0, 2), "\x1f\x8b", 'the answer is compressed once');

# nginx 1.29.7 and newer keeps connections to upstreams for 60 seconds, unless it is told not to.
ok(VLM::wait_for(sub { !hops($strict) }), 'the hop keeps no connection to a worker that may lose the model');

is($strict->stop, 1, 'the server stops in time');
$strict->check_log;
$picture = $four->upload($PICTURE);


# ---- a crash of a worker without the model ---------------------------------

my $designated = $four->designated;

ok($designated, 'one worker holds the model');

# Connections are opened first, so that the worker of each is known.
my %at;

for (1 .. 400) {
    my $c = $four->connection;

    push @{ $at{$c->{worker}} }, $c;
    last if 4 == grep { @{ $at{$_} || [] } >= 3 } $four->workers;
}

is(scalar(grep { @$_ >= 3 } values %at), 4, 'three connections to each worker');

my ($victim) = grep { $_ != $designated } $four->workers;
my (@doomed, @others);

for my $pid (sort keys %at) {
    for my $i (0 .. 2) {
        push @{ $pid == $victim ? \@doomed : \@others },
             $four->chat_on($at{$pid}[$i], "w$pid-$i", 'How many cups are there?',
                            image => $picture);
    }
}

kill 'KILL', $victim;

my @lost = grep { $_->{code} ne '200' } $four->end_all(@others);

is(scalar @lost, 0, 'requests at other workers are answered')
    or diag(join "\n", map { "$_->{code} $_->{body}" } @lost);

@lost = grep { $_->{code} ne '200' && $_->{code} ne '0' } $four->end_all(@doomed);
is(scalar @lost, 0, 'the others are cut off, or were answered before');

is($four->designated, $designated, 'the worker with the model is the same');
ok(VLM::wait_for(sub { 4 == (() = $four->workers) }), 'a new worker has started');

my @after = $four->end_all(map { $four->begin_chat("after$_", 'hi', image => $picture) } 1 .. 8);

is(scalar(grep { $_->{code} eq '200' } @after), 8, 'all requests are answered');

ok($four->stop, 'the server stops in time');
$four->check_log(undef, qr/exited on signal 9/);

done_testing();
