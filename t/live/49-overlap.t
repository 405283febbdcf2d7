# Tests a new worker while the old one owns the model.  The new worker waits, or with
# "reload overlap" loads a second model while the old one answers; a third worker
# does not load a model.

use strict;
use warnings;

use lib 't/lib';
use JSON::PP ();
use Test::More;
use VLM;

sub server {
    my ($how) = @_;

    return VLM->new(VLM::slow(name => "overlap-$how", workers => 2,
                              engine => "slots 2; queue 16 timeout=1h; reload $how;"))->start->ready;
}

sub ask {
    my ($s, $tokens) = @_;

    return $s->begin('POST', '/v1/completions', { max_tokens => $tokens, prompt => 'hi' });
}

# Returns the processes that hold a lock of the model.
sub owners {
    my ($s) = @_;

    my %inode = map { ((stat $_)[1] => 1) } glob $s->dir . '/store/live.lock*';
    my %pid;

    open my $in, '<', '/proc/locks' or die "/proc/locks: $!";

    while (<$in>) {
        $pid{$1} = 1 if /FLOCK\s+ADVISORY\s+WRITE\s+(-?\d+)\s+\w+:\w+:(\d+)\s/ && $inode{$2};
    }

    return sort { $a <=> $b } keys %pid;
}

sub pid { $_[0]->health->{heartbeat}{pid} || 0 }

# Returns the new worker, once it is in the zone.
sub reload {
    my ($s) = @_;

    my $old = pid($s);
    my @workers = $s->workers;

    $s->signal('HUP');

    my $new = VLM::wait_for(sub { my $pid = pid($s); $pid && $pid != $old ? $pid : 0 });

    # The old workers accept, too, until they have the signal to exit.
    VLM::wait_for(sub { !grep { VLM::slurp("/proc/$_/cmdline") =~ /worker process(?! is shutting down)/ } @workers });

    return $new;
}

sub owned_by {
    my ($s, @pids) = @_;

    my $those = join ' ', sort { $a <=> $b } @pids;

    return VLM::wait_for(sub { join(' ', owners($s)) eq $those });
}


# ---- wait -----------------------------------------------------------------------------

{
    my $s = server('wait');
    my ($old) = owners($s);
    my $long = ask($s, 3000);
    ok($s->busy(1, 0), 'one runs');

    my $new = reload($s);
    ok($new, 'the reload starts a new worker');
    my $waits = ask($s, 1);

    ok($s->log_has(qr/waits for \S+, which process $old has locked/), 'the log says that the new worker waits');
    is_deeply([owners($s)], [$old], 'the old worker still owns the model');
    is($s->health->{state}, 'loading', 'the new worker waits for the old one');
    ok(!$waits->done, 'its requests wait');

    $long->leave;
    is($waits->end->{code}, 200, 'the waiting request is answered when the last answer has ended');
    ok(owned_by($s, $new), 'the new worker loads the model');
    unlike($s->log, qr/while a reload lasts/, 'the memory of one model was planned');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- overlap --------------------------------------------------------------------------

{
    my $s = server('overlap');
    my ($old) = owners($s);
    my $long = ask($s, 3000);
    my $other = ask($s, 30);
    ok($s->busy(2, 0), 'two run');

    my $new = reload($s);
    ok($new, 'the reload starts a new worker');
    $s->ready;
    ok(owned_by($s, $old, $new), 'the new worker has the model, too');
    is(ask($s, 1)->end->{code}, 200, 'the new worker answers');
    $s->drain($long);
    ok(!$long->done, 'an answer of the old worker still runs');

    my $second = ask($s, 3000);
    ok($s->busy(1), 'the new one runs another');

    # A reload during a reload.
    $s->signal('HUP');
    ok($s->log_has(qr/waits for \S+, which process \d+ has locked: an older worker of this server/),
       'a third worker waits');
    is(scalar(() = owners($s)), 2, 'the third worker loads no model');
    is($s->health->{model_loaded}, JSON::PP::true, 'health has the second model');
    is(ask($s, 1)->end->{code}, 200, 'the second worker answers them');

    is($other->end->{code}, 200, 'an answer that the first one had begun is whole');
    $long->leave;
    my $third = VLM::wait_for(sub { my $pid = pid($s); $pid && $pid != $new ? $pid : 0 });
    ok($third, 'when the first has gone, the third loads');
    ok(owned_by($s, $new, $third), 'two workers have the model again');

    $second->leave;
    ok(owned_by($s, $third), 'the third worker has the model in the end');

    my ($plan) = $s->log =~ /: (\d+)m planned/;
    my ($twice) = $s->log =~ /: (\d+)m while a reload lasts: two workers have the model/;
    cmp_ok(abs($twice - 2 * $plan), '<=', 1, 'nginx -t has printed the memory of two models');

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();
