# Tests "reload overlap": the old worker answers until the new one has loaded its model,
# also if that fails.  A worker that waits for the lock of another server names it, and a disk that
# hangs at the lock file does not stop the event loop.

use strict;
use warnings;

use lib 't/lib';
use Fcntl qw(:DEFAULT :flock);
use Test::More;
use VLM;

my $F_SETLEASE = 1024;                  # Linux's
my $SYS_OPENAT = 257;                   # x86-64's

sub ask {
    my ($s, $tokens) = @_;

    return $s->begin('POST', '/v1/chat/completions',
                     { max_tokens => $tokens, messages => [{ role => 'user', content => 'hi' }] });
}

sub pid { $_[0]->health->{heartbeat}{pid} || 0 }

# ---- a model that does not load ----------------------------------------------------------

# The new configuration passes nginx -t, then its model is removed: the old worker answers.
{
    my $s = VLM->new(name => 'overlap-fails', workers => 2,
                     engine => 'thinking off; max_tokens 4; reload overlap;')->start->ready;
    my $old = pid($s);
    my $good = $s->{model};
    my $model = $s->dir . '/model';

    mkdir $model or die;
    symlink $_, "$model/" . (split m{/}, $_)[-1] for glob "$good/*";

    # Every worker forwards its requests, and the test uses both kinds of path.
    my $answers = sub {
        my ($when) = @_;
        my %seen;
        VLM::wait_for(sub {
            my $r = ask($s, 2)->end;
            $seen{$r->{worker} || 0} = $r->{code};
            return keys %seen == 2 || $r->{code} ne '200';
        });
        is(join(' ', values %seen), '200 200', "$when: both workers answer");
        is($s->get('/api/health/ready')->{code}, 200, 'the readiness probe succeeds');
    };

    # The new worker waits for the second lock, so that the model can be removed meanwhile.
    open my $lock, '>>', $s->dir . '/store/live.lock.2' or die;
    flock $lock, LOCK_EX or die;

    $s->{model} = $model;
    $s->write_conf;

    my %before = map { $_ => 1 } $s->workers;
    my $turned = sub {
        VLM::wait_for(sub {
            my @w = $s->workers;
            return @w == 3 && 2 == grep { !$before{$_} } @w;
        });
    };

    $s->signal('HUP');
    ok($turned->(), 'the old worker keeps the model after a reload');
    $answers->('while the new one waits');
    is(pid($s), $old, 'the old worker answers');

    unlink "$model/model.safetensors" or die;
    close $lock;

    ok(VLM::wait_for(sub { $s->health->{reload_reason} }), 'the load fails');
    like($s->health->{reload_reason}, qr/neither model.safetensors nor/, 'health has the reason');
    is($s->health->{status}, 'healthy', 'the model is loaded');
    ok($s->log_has(qr/the worker before this one goes on with its model/), 'the log has the reason');
    $answers->('after it');
    is(pid($s), $old, 'the old worker answers');

    # The model is restored.
    symlink "$good/model.safetensors", "$model/model.safetensors" or die;
    $s->signal('HUP');
    ok(VLM::wait_for(sub { pid($s) != $old }), 'the next reload has a worker that loads');
    ok(VLM::wait_for(sub { !kill 0, $old }), 'the old worker leaves');
    is($s->health->{reload_reason}, undef, 'health has no reason any more');
    $answers->('by the new one');

    # No process remains if the server ends meanwhile.
    my $last = pid($s);
    unlink "$model/model.safetensors" or die;
    open $lock, '>>', $s->dir . '/store/live.lock' or die;
    open my $other, '>>', $s->dir . '/store/live.lock.2' or die;
    flock $lock, LOCK_EX|LOCK_NB or flock $other, LOCK_EX|LOCK_NB or die 'no lock is free';
    symlink "$good/model.safetensors", "$model/model.safetensors" or die;
    %before = map { $_ => 1 } $s->workers;
    $s->signal('HUP');
    ok($turned->(), 'a reload that waits again');
    ok($s->stop('QUIT', 30), 'all processes exit at the stop');
    ok(!kill(0, $last), 'the old worker exits, too');
    $s->check_log;
}


# ---- a crash of an old worker ------------------------------------------------------------

{
    my $s = VLM->new(name => 'overlap-dies', workers => 2,
                     engine => 'thinking off; max_tokens 4; reload overlap;')->start->ready;
    my $old = pid($s);

    open my $lock, '>>', $s->dir . '/store/live.lock.2' or die;
    flock $lock, LOCK_EX or die;

    # The kernel wakes one worker for a connection (EPOLLEXCLUSIVE).  If that one is killed before
    # it accepts, the connection waits for the next: the old worker has to be exiting.
    $s->signal('HUP');
    ok(VLM::wait_for(sub { 3 == (() = $s->workers)
                           && $s->log_has(qr/answers until the next worker has loaded/) }),
       'the old worker goes on');
    kill 'KILL', $old;
    ok(VLM::wait_for(sub { my $pid = pid($s); $pid && $pid != $old }), 'the old worker crashes: the new one takes over');
    $s->ready;
    is(ask($s, 2)->end->{code}, 200, 'the new worker answers and owns the lock');

    ok($s->stop, 'the server stops in time');
    $s->check_log(undef, qr/exited on signal 9/);
}


# ---- many reloads at once ----------------------------------------------------------------

{
    my $s = VLM->new(name => 'overlap-storm', workers => 2,
                     engine => 'thinking off; max_tokens 4; reload overlap;')->start->ready;
    my $old = pid($s);

    my @asked;

    for (1 .. 12) {
        $s->signal('HUP');
        push @asked, ask($s, 2);
        is($asked[-1]->end->{code}, 200, "reload $_ of many: a request is answered");
    }

    ok(VLM::wait_for(sub { 2 == (() = $s->workers) }), 'two workers are left');
    ok(VLM::wait_for(sub { my $pid = pid($s); grep { $_ == $pid } $s->workers }), 'one of the workers answers');
    isnt(pid($s), $old, 'a new worker answers');
    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- another server with the same store --------------------------------------------------

{
    my %how = (workers => 1);
    my $one = VLM->new(%how, name => 'overlap-one', engine => 'thinking off; max_tokens 4;')->start->ready;
    my $two = VLM->new(%how, name => 'overlap-two', store_dir => $one->dir . '/store');
    $two->{engine} = 'thinking off; max_tokens 4; socket ' . $two->dir . '/two.sock;';
    $two->start;

    ok(VLM::wait_for(sub { $two->health->{reason} }), 'a second server waits for the first');
    my $owner = pid($one);
    like($two->health->{reason}, qr/live\.lock", which process $owner has locked: another server with this store/,
         'its health names the other server');
    is($two->health->{state}, 'loading', 'the second server is loading');
    ok($two->log_has(qr/\[warn\] .*which process $owner has locked: another server/), 'its log names the other server');

    # The lock file goes, and what waits does not take that for the end of its owner.
    my $lock = $one->dir . '/store/live.lock';

    for my $gone (1, 2) {
        my $before = () = $one->log =~ /was deleted, and is made again/g;

        unlink $lock or die "$lock: $!";

        ok(VLM::wait_for(sub { my $n = () = $one->log =~ /was deleted, and is made again/g; $n > $before }),
           'a lock file that was deleted is made again by its owner') or diag($one->log);
        ok(-e $lock, 'the lock file is at its place');
        is($two->health->{state}, 'loading', 'the second server waits as before');
    }

    ok($one->stop, 'the first one stops');
    $two->ready;
    is($two->health->{reason}, undef, 'the second server loads the model');
    ok($two->stop, 'the second server stops');
    $two->check_log;
}


# ---- a disk that hangs ---------------------------------------------------------------------

# A write lease has another process's open() of the file wait, until it is given back or for 45 s.
{
    my $s = VLM->new(name => 'overlap-hangs', engine => 'thinking off; max_tokens 4;')->start->ready;
    my $lock = $s->dir . '/store/live.lock';
    my $pid = $s->designated;

    my $openers = sub { grep { VLM::slurp("/proc/$pid/task/$_/syscall") =~ /^$SYS_OPENAT / }
                        map { m{(\d+)$} } glob "/proc/$pid/task/*" };
    local $SIG{IO} = 'IGNORE';

    open my $file, '>', "$lock.new" or die "$lock.new: $!";
    defined fcntl($file, $F_SETLEASE, F_WRLCK) or die "a lease: $!";
    rename "$lock.new", $lock or die "$lock: $!";

    my $opener;
    ok(VLM::wait_for(sub { ($opener) = $openers->() }), 'the worker opens the new lock file, and waits');
    isnt($opener, $pid, 'the event loop does not wait for it');

    is($s->get('/api/health')->{code}, 200, 'health is answered meanwhile');
    is(ask($s, 2)->end->{code}, 200, 'a question is answered meanwhile');

    my ($beats, $age) = (0, 0);

    VLM::wait_for(sub {
        my $last = $age;
        $age = $s->health->{heartbeat}{loop_ms};
        return ($beats += $age < $last) >= 3;
    });

    is(join(' ', $openers->()), $opener, 'one thread waits for it, whatever the number of heartbeats');

    fcntl $file, $F_SETLEASE, F_UNLCK;
    ok($s->log_has(qr/was deleted, and is made again/), 'the worker takes the lock once the disk answers');
    is($s->designated, $pid, 'the worker has the lock');
    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- an owner that cannot be named ---------------------------------------------------------

# A process that took the lock has ended, and its child has the open file.
{
    my $s = VLM->new(name => 'overlap-unseen', engine => 'thinking off; max_tokens 4;');
    my $lock = $s->dir . '/store/live.lock';

    VLM::spew($lock, '');
    pipe my $ended, my $open or die "pipe: $!";

    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        open my $file, '+<', $lock or POSIX::_exit(1);
        flock $file, LOCK_EX or POSIX::_exit(1);

        if (fork == 0) {
            close $open;
            readline $ended;
        }

        POSIX::_exit(0);
    }

    waitpid $pid, 0;
    is($?, 0, 'a process locks the file and ends');
    $s->start;

    ok(VLM::wait_for(sub { $s->health->{reason} }), 'a server waits for the lock');
    like($s->health->{reason}, qr/live\.lock", which a process that is not visible from here has locked: another server/,
         'its health names no process');
    ok($s->log_has(qr/which a process that is not visible from here has locked/), 'its log names none either');

    close $open;
    $s->ready;
    ok($s->stop, 'the server loads the model when the lock is free, and stops in time');
    $s->check_log;
}

done_testing();
