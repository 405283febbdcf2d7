# Tests the ends of a server: "stop" at once, "quit" after all answers, old workers
# within their timeout, and an old binary after an upgrade.

use strict;
use warnings;

use lib 't/lib';
use Fcntl qw(:flock);
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

my $PICTURE = 'demo/pictures/table-01.png';
my ($QUESTION, $RIGHT) = ('How many objects are on the table?', '4');
my $FAST = 'thinking off; slots 2; queue 64 timeout=1h; max_tokens 32;'
           . ' sampling temperature=0;';

sub stops {
    my ($s, $when) = @_;

    ok($s->stop('TERM'), "stop $when: all processes end");

    # nginx's master kills a worker that has not ended within two seconds of TERM, which a
    # machine with ten runnable processes a core makes of a worker that frees its model.
    $s->check_log('nothing alarming in the log', qr/worker process \d+ exited on signal 9/);
}


# ---- stop --------------------------------------------------------------------

{
    my $s = VLM->new(name => 'stop-idle', workers => 3, engine => $FAST);
    $s->start->ready;
    stops($s, 'of an idle server');
}

{
    my $s = VLM->new(name => 'stop-loading', workers => 3, engine => $FAST);

    mkdir $s->dir . '/store';
    open my $lock, '>', $s->dir . '/store/live.lock' or die;
    flock $lock, LOCK_EX or die;

    $s->start;
    my $waits = $s->begin_chat('a', 'hi');
    ok($s->busy(0, 1), 'one waits for the model');
    stops($s, 'while the model loads');
}

{
    my $s = VLM->new(VLM::slow(name => 'stop-busy', workers => 3,
                               engine => 'slots 2; queue 64 timeout=1h;'));
    $s->start->ready;

    my $picture = $s->upload('t/fidelity/pictures/200x150.png');
    my @all = map { $s->begin_chat("s$_", 'count', image => $picture) } 1 .. 12;

    ok($s->busy(2, 10), 'two run and ten wait');
    stops($s, 'of a busy server');
}


# ---- quit --------------------------------------------------------------------

# Two requests whose clients leave after the signal have both slots until then.
for my $workers (1, 3) {
    my $s = VLM->new(VLM::slow(name => "quit-$workers", workers => $workers,
                               engine => 'slots 2; queue 64 timeout=1h;'));
    $s->start->ready;

    my $ask = sub {
        return $s->begin('POST', '/v1/completions', { prompt => 'count', max_tokens => $_[0] });
    };
    my $text = sub { $_[0]{json} && $_[0]{json}{choices}[0]{text} };

    my $right = $text->($ask->(3)->end);
    my @occupied = map { $ask->(3000) } 1, 2;
    ok($s->busy(2, 0), "quit, $workers workers: two run");

    my @all = map { $ask->(3) } 1 .. 12;
    ok($s->busy(2, 12), "quit, $workers workers: twelve wait");

    my @old = $s->workers;
    $s->signal('QUIT');
    ok(VLM::wait_for(sub { !grep { VLM::slurp("/proc/$_/cmdline") =~ /worker process(?! is shutting down)/ } @old }),
       'all workers have the signal');
    $_->leave for @occupied;

    my @answers = $s->end_all(@all);

    is(scalar(grep { $_->{code} eq '200' && $text->($_) eq $right } @answers), 12,
       'each is answered')
        or diag(join "\n", map { "$_->{code} $_->{body}" } @answers);
    ok(VLM::wait_for(sub { $s->ended }), 'all processes end');
    $s->check_log;
}


# ---- old workers -------------------------------------------------------------

# These answers are endless: worker_shutdown_timeout ends them.
{
    my $s = VLM->new(VLM::slow(name => 'shutdown', workers => 2,
                               main => 'worker_shutdown_timeout 2s;',
                               engine => 'slots 2; queue 8 timeout=1h;'));
    $s->start->ready;

    my $picture = $s->upload('t/fidelity/pictures/40x30.png');
    my $whole = $s->begin_chat('whole', 'count', image => $picture);
    my $stream = $s->begin_chat('stream', 'count', image => $picture,
                                stream => JSON::PP::true);
    my $waits = $s->begin_chat('waits', 'count', image => $picture);
    ok($s->busy(2, 1), 'two run that will not end soon, and one waits');

    my $start = time;
    ok($s->reload, 'worker_shutdown_timeout: the old workers go');
    cmp_ok(time - $start, '>', 1.5, 'they do not end before worker_shutdown_timeout');

    my @cut = $s->end_all($whole, $stream, $waits);
    is(scalar(grep { $_->{whole} && $_->{code} eq '200' } @cut), 0, 'the remaining requests are cut');

    $s->ready;
    ok($s->busy(0, 0), 'the new workers have no request of the old');
    stops($s, 'after worker_shutdown_timeout');
}

# Without worker_shutdown_timeout an answer ends at its own timeout.
{
    my $s = VLM->new(VLM::slow(name => 'timeout', workers => 2,
                               engine => 'slots 1; queue 8 timeout=5s; timeout 8s;'));
    $s->start->ready;

    my $picture = $s->upload('t/fidelity/pictures/40x30.png');
    my @two = map { $s->begin_chat("s$_", 'count', image => $picture) } 1, 2;
    ok($s->busy(1, 1), 'one runs that will not end soon, and one waits');

    ok($s->reload, 'without: the old workers go, too');
    is(join(' ', sort map { $_->{code} } $s->end_all(@two)), '503 504',
       'both requests have the reason');
    $s->ready;
    stops($s, 'after the timeout of the answer');
}


# ---- another binary ----------------------------------------------------------

# The new master is a child of the old one, and becomes a child of this test at its exit.
VLM::adopt();

# The new binary is started with the arguments of the old one, which has a path.
$ENV{TEST_NGINX_BINARY} ||= (grep { -x } '/usr/sbin/nginx', '/usr/local/sbin/nginx')[0];

# Is it a process that has not ended?  One that this test has not reaped has.
sub runs { VLM::slurp("/proc/$_[0]/stat") =~ /\) [^Z]/ }

# The new master dies while its worker waits for the model, which the old server keeps.
{
    my $s = VLM->new(name => 'upgrade-dies', workers => 2, daemon => 'on', engine => $FAST,
                     main => 'env LD_PRELOAD; env ASAN_OPTIONS; env UBSAN_OPTIONS;');
    $s->start->ready;

    my $old = $s->pid;
    my $model = $s->designated;

    $s->signal('USR2');

    my $new = VLM::wait_for(sub { $s->master($old) });
    ok($s->log_has(qr/waits for \S+, which process $model has locked/), 'the worker of a new master waits');

    $s->{pid} = $new;
    my @orphans = $s->workers;
    $s->{pid} = $old;

    kill 'KILL', $new;
    ok($s->log_has(qr/\[warn\] .*the master has ended while this worker waits for the model: it ends, too/),
       'the new master dies: its worker says that it ends');
    ok(VLM::wait_for(sub { 1 == grep { runs($_) } @orphans }), 'and ends');

    my @codes = map { $s->post('/v1/completions', { prompt => 'hi', max_tokens => 1 })->{code} } 1 .. 20;
    is(join(' ', grep { $_ ne '200' } @codes), '', 'the model of the old server answers every request');

    ok(VLM::wait_for(sub { $s->get('/api/health/ready'); !grep { runs($_) } @orphans }),
       'its other worker ends when it is asked, since none will have a model there');
    is($s->get('/api/health/ready')->{code}, 200, 'the server is ready');

    ok($s->stop('TERM'), 'the old master stops');
    $s->check_log(undef, qr/new binary process \d+ exited on signal 9/);
}

# A master dies during a reload: the worker that waits for the model of the older one has it then.
{
    my $s = VLM->new(VLM::slow(name => 'reload-dies', workers => 3, engine => 'slots 2; queue 8 timeout=1h;'));
    $s->start->ready;

    my @old = $s->workers;
    my $long = $s->begin('POST', '/v1/completions', { prompt => 'count', max_tokens => 300 });

    ok($s->busy(1, 0), 'one runs');
    $s->signal('HUP');
    ok($s->log_has(qr/waits for \S+, which process \d+ has locked: an older worker/), 'a new worker waits for the model');

    my @new = grep { my $w = $_; !grep { $w == $_ } @old } $s->workers;

    kill 'KILL', $s->pid;
    is($long->end->{code}, 200, 'the master dies: the older worker ends its answer');
    ok($s->log_has(qr/model loaded(?s:.*)model loaded/), 'the one that waits has the model');

    my @codes = map { $s->post('/v1/completions', { prompt => 'hi', max_tokens => 1 })->{code} } 1 .. 10;
    is(join(' ', grep { $_ ne '200' } @codes), '', 'every request is answered');

    kill 'QUIT', grep { runs($_) } @new;
    ok(VLM::wait_for(sub { !grep { runs($_) } @new }), 'they end when they are told');
}

# The new master dies after its workers have taken over.  The old one starts workers again by itself,
# and the model is in a worker that no master commands.
{
    my $s = VLM->new(name => 'upgrade-back', workers => 2, daemon => 'on', engine => $FAST,
                     main => 'env LD_PRELOAD; env ASAN_OPTIONS; env UBSAN_OPTIONS;');
    $s->start->ready;

    my $old = $s->pid;
    my $loaded = sub { [$s->log =~ /(\d+)#\d+: vlm_engine "live": model loaded/g] };

    $s->signal('USR2');

    my $new = VLM::wait_for(sub { $s->master($old) });

    $s->signal('WINCH');
    ok(VLM::wait_for(sub { 2 == @{ $loaded->() } }), 'the new worker takes over');

    my $model = $loaded->()[1];
    $s->{pid} = $new;
    my @orphans = $s->workers;
    $s->{pid} = $old;

    kill 'KILL', $new;
    ok($s->log_has(qr/\[warn\] $model#.*the master has ended and another worker waits for the model: this worker ends, too/),
       'the new master dies: the worker with the model says that it ends');
    ok(VLM::wait_for(sub { !runs($model) }), 'and ends');
    ok(VLM::wait_for(sub { 3 == @{ $loaded->() } }), 'a worker of the old master has the model');

    my @codes = map { $s->post('/v1/completions', { prompt => 'hi', max_tokens => 1 })->{code} } 1 .. 20;
    is(join(' ', grep { $_ ne '200' } @codes), '', 'every request is answered');

    kill 'KILL', grep { runs($_) } @orphans;
    ok($s->stop('TERM'), 'the old master stops');
}

my $s = VLM->new(name => 'upgrade', workers => 3, daemon => 'on', engine => $FAST,
                 main => 'env LD_PRELOAD; env ASAN_OPTIONS; env UBSAN_OPTIONS;');
$s->start->ready;

my $picture = $s->upload($PICTURE);
my ($old, @done, @open) = ($s->pid);

# Sends four requests at a time until a condition is true, or until some are answered.
sub round_of_requests {
    my ($until) = @_;

    my $end = time + $VLM::PATIENCE;
    my $enough = @done + 8;

    $until ||= sub { @done >= $enough };

    while (time < $end) {
        push @open, $s->begin_chat('u' . (@done + @open), $QUESTION, image => $picture)
            while @open < 4;

        sleep 0.02;
        $s->drain(@open);

        push @done, grep { $_->done } @open;
        @open = grep { !$_->done } @open;

        return 1 if $until->();
    }

    return 0;
}

round_of_requests();
my $model = $s->designated;
my @workers = $s->workers;
ok($model, 'one worker has the model');

$s->signal('USR2');
ok(round_of_requests(sub { $s->master($old) }), 'USR2 starts a new master');

my $new = $s->master($old);

# Requests to the new binary wait while it waits for the model.
ok(round_of_requests(sub { $s->log =~ /waits for \S+, which process $model has locked/ }), 'the new master\'s worker waits for the old one');
is($s->designated, $model, 'the old worker still owns the model');

kill 'QUIT', $old;
ok(round_of_requests(sub { $s->ended }), 'QUIT: the old master and its workers go');

$s->{pid} = $new;
ok(round_of_requests(sub { $s->designated }), 'a worker of the new one has the model');
is(scalar(grep { kill 0, $_ } @workers), 0, 'no old process is left');

round_of_requests();
my @answers = ((map { $_->response } @done), $s->end_all(@open));

cmp_ok(scalar @answers, '>', 20, 'many have asked all the time');
is(scalar(grep { $_->{code} ne '200' || $_->{json}{answer} ne $RIGHT } @answers), 0,
   'every request was answered')
    or diag(join "\n", map { "$_->{code} $_->{body}" } grep { $_->{code} ne '200' } @answers);
is(scalar @{ $s->get('/api/history/u0')->{json} || [] }, 2, 'the sessions exist');

ok($s->reload, 'the new master reloads');
$s->ready;
stops($s, 'of the new master');

done_testing();
