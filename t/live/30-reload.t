# Tests reloads under load: no request is refused, no answer is cut, and no process
# remains.

use strict;
use warnings;

use lib 't/lib';
use Fcntl qw(:flock);
use File::Path ();
use IO::Socket::INET;
use JSON::PP ();
use Test::More;
use Time::HiRes qw(sleep time);
use VLM;

my $WALL = 0x40000000;                  # Linux's
my ($SYS_POLL, $SYS_PTRACE) = (7, 101); # x86-64's
my ($PTRACE_SEIZE, $PTRACE_INTERRUPT, $PTRACE_POKEUSER, $PTRACE_DETACH) = (0x4206, 0x4207, 6, 17);
my ($RAX, $ORIG_RAX) = (10, 15);
my $PNG = 't/fidelity/pictures/118x62.png';

my $s = VLM->new(name => 'reload', workers => 2,
                 engine => 'thinking off; queue 64 timeout=1h; max_tokens 32;'
                           . ' sampling temperature=0;');

$s->start->ready;

my $picture = $s->upload($PNG);
my @requests;
my $n = 0;

for my $round (1 .. 5) {
    my %old = map { $_ => 1 } $s->workers;

    for (1 .. 4) {
        push @requests, $s->begin_chat('s' . ++$n, "How many cups are there?",
                                       image => $picture);
    }

    $s->signal('HUP');
    sleep 0.05;

    for (1 .. 4) {
        push @requests, $s->begin_chat('s' . ++$n, "How many cups are there?",
                                       image => $picture);
        sleep 0.02;
    }

    my $gone = VLM::wait_for(sub {
        my @now = $s->workers;
        $s->drain(@requests);
        return @now >= 2 && !grep { $old{$_} } @now;
    });

    ok($gone, "reload $round: the old workers leave when they are done");
}

my @answers = $s->end_all(@requests);

is(scalar(grep { $_->{code} eq '200' && $_->{whole} } @answers), $n,
   "all $n answers are whole")
    or diag(join "\n", map { "$_->{code} $_->{body}" }
                       grep { $_->{code} ne '200' } @answers);

is(scalar(grep { ($_->{json}{turn_number} || 0) == 2 } @answers), $n,
   'each is the first turn of its session');

my %texts = map { ($_->{json}{answer} // 'none') => 1 } @answers;

is(scalar keys %texts, 1, 'all answers are the same') or diag(join "\n", keys %texts);

$s->ready;
is($s->get('/api/history/s1')->{code}, 200, 'a session is still there');
is($s->health->{active_sessions} || 0, $n, 'all sessions are still there');

# An invalid configuration changes nothing.
open my $out, '>>', $s->dir . '/nginx.conf' or die;
print $out "nonsense;\n";
close $out;

my @before = $s->workers;

$s->signal('HUP');
ok($s->log_has(qr/unknown directive "nonsense"/), 'a mistake is named');
is_deeply([$s->workers], \@before, 'the workers are the same');
is($s->chat('last', 'hi', image => $picture)->{code}, 200, 'the workers answer');

ok($s->stop('QUIT', 30), 'the server stops in time');
$s->check_log(undef, qr/unknown directive "nonsense"/);


# ---- a reload must not end the master -----------------------------------------------

# Returns the number of the line of nginx.conf that has this text.
sub line_of {
    my ($s, $what) = @_;

    my @lines = split /\n/, VLM::slurp($s->dir . '/nginx.conf');
    my ($at) = grep { $lines[$_] =~ $what } 0 .. $#lines;

    return defined $at ? $at + 1 : 'nowhere';
}

# nginx -t and a reload refuse the configuration, and the server runs on.
sub refused {
    my ($s, $name, $sentence, $directive) = @_;

    my $said = $s->check_conf;
    my $where = $s->dir . '/nginx.conf:' . line_of($s, $directive);

    like($said, qr/\[emerg\] .*$sentence.* in \Q$where\E$/m, "$name: nginx -t says it, with file and line");
    like($said, qr/test failed/, 'nginx -t fails');

    my @workers = $s->workers;
    my $logged = () = $s->log =~ /$sentence/g;

    $s->signal('HUP');
    ok(VLM::wait_for(sub { (() = $s->log =~ /$sentence/g) > $logged }), 'a reload says it, too');
    ok(!$s->ended, 'the master runs');
    is_deeply([$s->workers], \@workers, 'the workers are the same');
    is($s->chat("after $name", 'hi', text_only => JSON::PP::true)->{code}, 200, 'the workers answer');
}

sub small { (workers => 2, engine => 'thinking off; max_tokens 4;', @_) }

{
    my $s = VLM->new(small(name => 'reload-store'))->start->ready;

    # A file or a link has the name of a directory; an ordinary user's links are followed.
    my %other = ('no directory' => sub { VLM::spew($_[0], 'a file') });
    $other{'a link'} = sub { symlink $s->dir . '/aside', $_[0] or die } if $> == 0;

    rename $s->dir . '/store/uploads', $s->dir . '/aside' or die;

    for my $what (sort keys %other) {
        $other{$what}->($s->dir . '/store/uploads');
        refused($s, "uploads is $what", qr/"uploads" is $what: move it away/, qr/^ *store /);
        unlink $s->dir . '/store/uploads' or die;
    }

    rename $s->dir . '/aside', $s->dir . '/store/uploads' or die;

    VLM::spew($s->dir . '/file', 'not a store');
    $s->{store_dir} = $s->dir . '/file';
    refused($s, 'a store that is a file', qr/store \S+ is no directory/, qr/^ *store /);

    $s->{store_dir} = $s->dir . '/none/store';
    refused($s, 'a store below nothing', qr/store store cannot be made in \S+: No such file/, qr/^ *store /);

    $s->{store_dir} = $s->dir . '/store';
    my $engine = $s->{engine};
    $s->{engine} = "$engine\n socket " . $s->dir . '/none/x.sock;';
    refused($s, 'a socket below nothing', qr/socket "\S+" cannot be made in "\S+"/, qr/^ *socket /);

    $s->{engine} = "$engine\n socket " . $s->dir . '/file;';
    refused($s, 'a socket that is a file', qr/"\S+" is no socket: move it away/, qr/^ *socket /);

    # A third engine, with two workers and one pool, is in one worker with the first.
    $s->{engine} = $engine;
    $s->{http} = join "\n", map {
        "vlm_engine more$_ {\n model $s->{model}; store $s->{dir}/more$_; thread_pool one; $engine }"
    } 1 .. 3;
    $s->{main} = 'thread_pool one threads=1;';
    refused($s, 'a pool for two', qr/"more3" needs a thread_pool of its own: .* in one worker with "more1"/,
            qr/^ *vlm_engine more3/);

    # nginx itself refuses a configuration after the socket of a new engine was made.
    my $busy = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die "port: $!";
    my $late = $s->dir . '/late';

    $s->{http} = "vlm_engine late {\n model $s->{model}; store $late; thread_pool one; $engine }";
    $s->{server} = 'location /late/ { vlm_pass late; } listen 127.0.0.1:' . $busy->sockport . ';';
    $s->write_conf;
    $s->signal('HUP');
    ok($s->log_has(qr/still could not bind/), 'a busy port: a reload fails');
    ok(-S "$late/late.sock", 'the socket file remains');
    ok(!$s->ended && 2 == (() = $s->workers), 'the master and its workers run');

    close $busy;
    ok($s->reload, 'when the port is free a reload is taken');
    ok($s->log_has(qr/removes "\Q$late\E\S+", on which no process listens/), 'the new worker makes a new socket');
    $s->ready;

    $s->{http} = $s->{main} = $s->{server} = '';
    $s->write_conf;
    ok($s->reload, 'a configuration without it is reloaded');
    ok(!-e "$late/late.sock", 'the reload removes the socket');
    ok($s->ready->stop, 'the server stops in time');
    $s->check_log(undef, qr/\[emerg\] .*(?: in \S+:\d+$|could not bind|bind\(\) to 127)/);
}

# New workers could not load this model, or not read it.
{
    my $s = VLM->new(small(name => 'reload-model'))->start->ready;
    my $good = $s->{model};
    my $model = $s->{model} = $s->dir . '/model';

    mkdir $model or die;
    symlink $_, "$model/" . (split m{/}, $_)[-1] for glob "$good/*";
    unlink "$model/tokenizer.json" or die;
    VLM::spew("$model/tokenizer.json", substr VLM::slurp("$good/tokenizer.json"), 0, 1000);
    refused($s, 'a damaged tokenizer', qr/tokenizer\.json\b/, qr/^ *vlm_engine /);

    SKIP: {
        skip 'only root has workers of another user', 6 if $> != 0;

        VLM::spew("$model/tokenizer.json", VLM::slurp("$good/tokenizer.json"));
        chmod 0600, "$model/tokenizer.json" or die;
        $s->{user} = 'nobody nogroup';
        refused($s, 'a model that is not for the workers', qr/Permission denied: .*: the workers' user is "nobody"/,
                qr/^ *vlm_engine /);
    }

    ok($s->stop, 'the server stops in time');
    $s->check_log(undef, qr/\[emerg\] .* in \S+:\d+$/);
}

# Runs nginx -t and stops the child process that reads the model's files; returns both, and the output.
sub stopped_check {
    my ($s) = @_;
    my ($pid, $child, $out);
    my $state = sub { (VLM::slurp("/proc/$_[0]/stat") =~ /^\d+ \(.*\) (\w)/)[0] || 'gone' };

    # A child process that ends before the signal comes is one try.
    ok(VLM::wait_for(sub {
        $pid = open($out, '-|') // die "fork: $!";

        if ($pid == 0) {
            open STDERR, '>&', \*STDOUT;
            { exec $s->command('-t'); }
            POSIX::_exit(127);
        }

        do {
            ($child) = grep { VLM::slurp("/proc/$_/comm") eq "nginx\n" } VLM::workers({ pid => $pid });
        } until $child || $state->($pid) eq 'Z';

        kill 'STOP', $child if $child;
        return 1 if $child && VLM::wait_for(sub { $state->($child) =~ /^(?:[tTZ]|gone)$/ })
                    && $state->($child) =~ /^[tT]$/;

        close $out;
        return 0;
    }), "the child process that reads the model's files is stopped");

    ok(VLM::wait_for(sub { VLM::slurp("/proc/$pid/syscall") =~ /^$SYS_POLL 0x\w+ 0x1 0xea60 / }),
       'nginx -t waits for it for a minute');

    return ($pid, $child, $out);
}

{
    my $s = VLM->new(small(name => 'reload-hangs', model => VLM::slow_model()));

    $s->write_conf;

    my ($pid, $child, $out) = stopped_check($s);

    # The minute is over: ptrace has poll() return 0 and not begin again.
    syscall($SYS_PTRACE, $PTRACE_SEIZE, $pid, 0, 0) == -1 and die "ptrace: $!";
    syscall($SYS_PTRACE, $PTRACE_INTERRUPT, $pid, 0, 0);
    waitpid $pid, $WALL;
    syscall($SYS_PTRACE, $PTRACE_POKEUSER, $pid, 8 * $ORIG_RAX, -1);
    syscall($SYS_PTRACE, $PTRACE_POKEUSER, $pid, 8 * $RAX, 0);
    syscall($SYS_PTRACE, $PTRACE_DETACH, $pid, 0, 0);

    my $said = join '', <$out>;
    like($said, qr/\[warn\] .* reading the model's files took longer than 60 seconds: they were not checked/,
         'then it says that the files were not checked');
    like($said, qr/test is successful/, 'and takes the configuration');
    ok(!-e "/proc/$child", 'the child process has ended');

    (undef, $child, $out) = stopped_check($s);
    kill 'KILL', $child;

    $said = join '', <$out>;
    like($said, qr/\[emerg\] .* the process that checks the model's files was killed by signal 9 \(out of memory\?\) in \S+:\d+$/m,
         'a child process that was killed is named, with its signal');
    like($said, qr/test failed/, 'nginx -t fails');
}

# An obstacle that appears after nginx -t fails the engine, not the master.
{
    my $s = VLM->new(small(name => 'reload-lock', engine => 'thinking off; max_tokens 4; slots 1;'))->start->ready;
    my $lock = $s->dir . '/store/live.lock';

    # With a second link the file is not given away by root.
    link $lock, $s->dir . '/second' or die;
    unlink $s->dir . '/store/live.sock' or die;

    ok($s->reload, 'the server reloads after the socket was removed');
    ok($s->ready, 'that reload loads the model again');
    my %seen;
    VLM::wait_for(sub {
        my $r = $s->post('/v1/completions', { prompt => 'hi', max_tokens => 1 });
        is($r->{code}, 200, 'the worker answers') unless $seen{$r->{worker}}++;
        return keys %seen == 2;
    });
    is(scalar keys %seen, 2, 'chats are answered through every worker');
    ok($s->log_has(qr/socket "\S+" was gone and is made again/), 'the log has the reason');
    is((stat $s->dir . '/store/live.sock')[2] & 0777, 0600, 'the mode of the new socket is 0600');
    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

# A socket that belongs to another user, and has a second name, is not given to the workers.
SKIP: {
    skip 'only root gives files away', 9 if $> != 0;

    my $s = VLM->new(small(name => 'reload-socket'))->start->ready;
    my $socket = $s->dir . '/store/live.sock';

    link $socket, $s->dir . '/second' or die;
    chown 65534, -1, $socket or die;

    like($s->check_conf, qr/test is successful/, 'the socket of another user: nginx -t takes it');
    ok($s->reload, 'the server reloads');
    $s->ready;
    ok($s->log_has(qr/socket "\Q$socket\E" was not the workers' alone and is made again/), 'the log has the reason');
    is($s->post('/v1/completions', { prompt => 'hi', max_tokens => 1 })->{code}, 200, 'chats are answered');
    is((stat $socket)[4], 0, 'the new socket belongs to the workers');
    is((stat $s->dir . '/second')[4], 65534, 'and the old one to its owner');

    unlink $socket or die;
    VLM::spew($socket, 'no socket');
    $s->signal('HUP');
    ok($s->log_has(qr/"\Q$socket\E" is no socket: move it away/), 'a file in its place is refused');
    ok(-f $socket, 'and stays');
    ok($s->stop, 'the server stops in time');
    $s->check_log(undef, qr/is no socket/);
}


# ---- a store that cannot be written -------------------------------------------------

# The store is in a directory in which no process can make a file, and on a
# read-only disk, which an ordinary user cannot mount.
my $dir = "$VLM::LIVE/readonly-store";
my @mounted = ('unshare', '-m', 'sh', '-c', "mount --bind $dir $dir && mount -o remount,ro,bind $dir && exec \"\$@\"", 'sh');
my %readonly = ('a directory of the system' => { store_dir => '/sys/kernel' });

File::Path::remove_tree($dir);                   # an existing lock file would be enough
mkdir $dir;

if ($> == 0 && system("unshare -m mount --bind $dir $dir 2>/dev/null") == 0) {
    $readonly{'a read-only disk'} = { store_dir => $dir, under => \@mounted, mend => sub {
        system('nsenter', '-m', '-t', $_[0]->pid, 'mount', '-o', 'remount,rw,bind', $dir) == 0;
    } };
}

# Returns true if no process has locked this file.
sub unlocked {
    open my $file, '<', $_[0] or return 0;
    return flock $file, LOCK_EX|LOCK_NB;
}

for my $how (sort keys %readonly) {
    my $s = VLM->new(small(name => 'reload-readonly', %{ $readonly{$how} }));
    $s->{engine} .= ' socket ' . $s->dir . '/live.sock;';

    like($s->check_conf, qr/test is successful/, "$how: nginx -t takes it");
    $s->start->ready;

    for my $round ('after a start', 'after a reload') {
        like($s->health->{store_reason} || '', qr{store \S+(?:: No such| cannot be written: Read-only| cannot be written: Perm)}, "$round health has the reason");
        is($s->health->{status}, 'healthy', 'the server is healthy');
        is($s->post('/v1/completions', { prompt => 'hi', max_tokens => 1 })->{code}, 200,
           'a request without a session is answered');
        is($s->post('/api/show', { model => 'live' })->{code}, 200, 'a request about the model is answered');

        my $r = $s->post('/api/session');
        is($r->{code}, 500, 'a session is not made');
        like($r->{json}{error}, qr/The store (?:cannot be written|failed)/, 'the client receives the reason');
        ok($s->reload, 'a reload') if $round eq 'after a start';
        $s->ready;
    }

    ok($s->log_has(qr/\[warn\] .*: sessions and uploads are refused, other chats are answered/), 'the log has the reason');

    if ($s->{mend}) {
        my ($beside, $lock) = ($s->dir . '/live.sock.lock', "$dir/live.lock");

        ok(!unlocked($beside), 'the lock is beside the socket');
        ok($s->{mend}->($s), "$how: the store is repaired");
        ok(VLM::wait_for(sub { -e $lock && !unlocked($lock) }), "the owner locks the store's file, too");
        ok(!unlocked($beside), 'the owner has both locks');

        for my $round (1, 2) {
            ok($s->reload, 'the server reloads');
            $s->ready;
            ok(!unlocked($lock), 'the lock is in the store');
            ok(unlocked($beside), 'the lock is not beside the socket');
            is($s->post('/api/session')->{code}, 200, 'a session is made');
        }
    }

    ok($s->stop, 'the server stops in time');
    $s->check_log;
}


# ---- obstacles for the master only --------------------------------------------------

# The lock can be made neither in the store nor beside the socket.
{
    my $s = VLM->new(small(name => 'reload-broken', store_dir => '/sys/kernel'));
    my $lock = $s->dir . '/live.sock.lock';

    $s->{engine} .= ' socket ' . $s->dir . '/live.sock;';
    symlink '/nonexistent/lock', $lock or die;
    $s->start;

    for my $when ('a start', 'a reload') {
        ok(VLM::wait_for(sub { ($s->health->{state} || '') eq 'failed' }), "$when: an engine without a lock has failed");
        like($s->health->{reason}, qr/the lock file cannot be made: "\Q$lock\E": /, 'health has the reason');
        is($s->post('/v1/completions', { prompt => 'hi', max_tokens => 1 })->{code}, 503, 'chats are refused');
        is($s->get('/api/tasks')->{code}, 200, 'the server answers');
        ok($s->reload, 'the server reloads') if $when eq 'a start';
    }

    unlink $lock or die;
    ok($s->reload, 'the next reload');
    ok($s->ready, 'the next reload finds it repaired');
    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

done_testing();
