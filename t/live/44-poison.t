# Tests that a request that was in flight at two crashes of the worker is not run a
# third time, and that one that was answered in between is.

use strict;
use warnings;

use lib 't/lib';
use Test::More;
use VLM;

my $s = VLM->new(VLM::slow(name => 'poison', workers => 2,
                           engine => 'slots 2; queue 8 timeout=1h;',
                           server => 'location = /metrics { vlm_status live; }'));

$s->start->ready;

# Another worker takes over and loads the model.
sub dies {
    my $pid = $s->designated;

    kill 'KILL', $pid;

    my $next = VLM::wait_for(sub {
        my $new = $s->designated;
        return $new && $new != $pid;
    });

    $s->ready;

    return $next;
}

sub ask {
    my ($text, $tokens) = @_;

    return $s->begin('POST', '/v1/completions', { max_tokens => $tokens, prompt => $text });
}

# Two equal questions in flight at one crash count one crash.
my @twins = map { ask('twin', 3500) } 1, 2;

ok($s->busy(2, 0), 'two of the same run');
ok(dies(), 'their worker crashes');
$_->leave for @twins;

my $twin = ask('twin', 3500);
ok($s->busy(1, 0), 'the request is run a second time');
$twin->leave;
ok($s->busy(0, 0), 'its client leaves');

my @asked = (['poison', 3500], ['innocent', 30]);

for my $round (1, 2) {
    my @r = map { ask(@$_) } @asked;

    ok($s->busy(2, 0), "round $round: two run");
    ok(dies(), 'their worker crashes, another loads the model');

    my @answers = $s->end_all(@r);
    is(scalar(grep { $_->{code} =~ /^(?:0|503)$/ } @answers), 2, 'both requests have a 503 or are cut');

    is(ask(@{ $asked[1] })->end->{code}, 200, 'the other request is answered');
}

my $r = ask(@{ $asked[0] })->end;

is($r->{code}, 400, 'the other one is not run a third time');
like($r->{json}{error}{message}, qr/died twice while it worked on this request/, 'the refusal has the reason');
is($r->{json}{error}{code}, 'request_not_repeated', 'the refusal has a code');
ok(VLM::wait_for(sub { $s->get('/metrics')->{body} =~ /^vlm_requests_rejected_total\{reason="poison"\} 1$/m }),
   'the refusal is counted');

$r = ask('another', 1)->end;
is($r->{code}, 200, 'new requests are answered');
is(ask(@{ $asked[1] })->end->{code}, 200, 'the other request is answered, too');

ok($s->stop, 'the server stops in time');
$s->check_log(undef, qr/exited on signal 9/);

done_testing();
