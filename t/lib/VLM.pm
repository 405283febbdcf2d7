package VLM;

# Runs a server for the tests of t/live, which Test::Nginx's format cannot express.
# An object is an nginx with its own prefix below build/live/ and a free port; HTTP_BUILD
# names another build directory.  A request is begun and ended by separate calls, so that
# many can be in flight and a client can leave at any point.
#
#     my $s = VLM->new(name => 'queue', engine => 'queue 2;')->start->ready;
#     my $r = $s->post('/api/chat', { session_id => 'a', message => 'hi' });
#     is $r->{code}, 200;
#
# Every response carries X-Worker: the pid of the worker that accepted it.

use strict;
use warnings;

use Cwd ();
use File::Basename qw(dirname);
use File::Path ();
use IO::Select;
use IO::Socket::INET;
use JSON::PP ();
use POSIX ();
use Socket qw(PF_INET SOCK_STREAM SOL_SOCKET SO_RCVBUF inet_aton sockaddr_in);
use Test::More ();
use Time::HiRes qw(sleep time);

# A test waits for a state.  This limit in seconds guards against a state that never comes, also on
# a busy machine.
our $PATIENCE = 1200;             # sanitizers, an emulated GPU and other work slow an answer down

my $ROOT = Cwd::getcwd();
our $LIVE = "$ROOT/" . ($ENV{HTTP_BUILD} || 'build') . '/live';
my @RUNNING;

my $JSON = JSON::PP->new->utf8->canonical;


# name       directory, and the name in messages
# engine     directives of vlm_engine; model, store and thinking are ours
# model      checkpoint directory; the default is the demo model
# workers    worker_processes
# listen     more words for listen: "reuseport"
# store      more words for store: "max=1m"
# store_dir  a directory in place of that below the prefix
# under      a command that runs nginx, as a list
# pass       engines of the location; the default is the only one
# user       the workers' user, if the master is root's
# address    where it listens, with a conf that has another than 127.0.0.1
# daemon     on: as a service, which an upgrade of the binary needs
# main, http, server                   more lines there
# conf       the whole configuration, in place of all these
sub new {
    my ($class, %conf) = @_;

    my $self = bless {
        name    => 'live',
        engine  => '',
        model   => 'demo/model',
        workers => 1,
        listen  => '',
        store   => '',
        daemon  => 'off',
        pass    => 'live',
        user    => 'root',
        address => '127.0.0.1',
        main    => '',
        http    => '',
        server  => '',
        port    => free_port(),
        %conf,
    }, $class;

    $self->{dir} = "$LIVE/$self->{name}";
    $self->{store_dir} ||= "$self->{dir}/store";
    $self->{model} = "$ROOT/$self->{model}" if $self->{model} =~ m{^demo/};

    File::Path::remove_tree($self->{dir});
    File::Path::make_path("$self->{dir}/logs");

    return $self;
}


my %given;

sub free_port {
    # The port is outside the range of ephemeral ports, and this program has not got it yet.
    for (1 .. 1000) {
        my $port = 10_000 + int rand 22_000;

        next if $given{$port}++;
        return $port if IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1',
                                              LocalPort => $port);
    }

    die "no free port\n";
}


# Makes a checkpoint of random weights whose answers have max_tokens tokens, and
# are slow: its head has very many rows, which each token of an answer costs, and a
# prompt once.  Its end of text is a row of the head without a token in the tokenizer,
# which is never sampled.
sub slow_model {
    my $rows = $ENV{VLM_REPORTS} ? 12_000 : 96_000;       # sanitizers make it slow by themselves
    my $dir = "$LIVE/slow-model-$rows";
    my $new = "$dir.$$";

    return $dir if -d $dir;

    my $shape = $JSON->decode(slurp("$ROOT/bench/shapes/tiny-f.json"));
    my $text = $shape->{text_config} || $shape;

    $text->{num_hidden_layers} = 4;
    $text->{vocab_size} = $rows;

    spew("$new.json", $JSON->encode($shape));

    my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || '';
    my $build = $module ? dirname($module) : '';

    $build = "$ROOT/build" unless -x "$build/random-checkpoint";    # the emulated GPU's has none

    system("$build/random-checkpoint", "$new.json", $new, '--seed', 1,
           '--type', 'bf16', '--tokenizer', "$ROOT/t/fidelity/tokenizer") == 0
        or die "random-checkpoint failed\n";

    spew("$new/generation_config.json",
         $JSON->encode({ eos_token_id => [$text->{vocab_size} - 1],
                         do_sample => JSON::PP::true, temperature => 0.7,
                         repetition_penalty => 1.05 }));

    unlink "$new.json";

    # Another test may have made the same checkpoint meanwhile.
    rename $new, $dir or File::Path::remove_tree($new);

    return $dir;
}

# Settings for endless answers: an answer ends by a timeout only in a test that sets one.
sub slow {
    my (%conf) = @_;
    my $timeout = $conf{engine} =~ /(?:^|;)\s*timeout\b/ ? '' : 'timeout 1h;';

    return (model => slow_model(), %conf, engine => <<"_EOC_" . $conf{engine});
        $timeout
        device cpu ops=plain;
        weights f32;
        threads 1;
        thinking off;
        context 4k;
        max_tokens 3500;
        sampling temperature=0 repetition_penalty=1;
_EOC_
}


# Makes a picture of any size without a library; returns the path of its file.
sub bmp {
    my ($width, $height) = @_;

    my $file = "$LIVE/${width}x$height.bmp";
    my $new = "$file.$$";
    my $row = pack('x' . (($width * 3 + 3) & ~3));
    my $bytes = length($row) * $height;

    File::Path::make_path(dirname($file));

    open my $out, '>:raw', $new or die "$new: $!";
    print $out pack('a2VvvV VVVvvVVVVVV', 'BM', 54 + $bytes, 0, 0, 54,
                    40, $width, $height, 1, 24, 0, $bytes, 2835, 2835, 0, 0);
    print $out $row x $height;
    close $out or die "$new: $!";
    rename $new, $file or die "$file: $!";

    return $file;
}


# The factor by which a sanitizer or memcheck makes a server slower and larger.
sub slower { $ENV{VLM_REPORTS} ? 20 : 1 }

sub port { $_[0]{port} }
sub dir  { $_[0]{dir} }
sub pid  { $_[0]{pid} }


# ---- start and stop --------------------------------------------------------

sub write_conf {
    my ($self) = @_;

    return spew("$self->{dir}/nginx.conf", $self->{conf}) if defined $self->{conf};

    my $load = join "\n", map { "load_module $_;" }
                          split ' ', $ENV{TEST_NGINX_LOAD_MODULES}
                                     || "$ROOT/build/ngx_http_vlm_module.so";

    # On a busy machine a step takes long, most of all that of an emulated GPU, which has 10 s.
    my $stall = $self->{engine} =~ /(?:^|[;\s])stall\b/ ? '' : 'stall 10m;';

    # Other users may be unable to read the checkout.
    my $user = $> == 0 ? "user $self->{user};" : '';

    my $temp = join "\n", map { "    ${_}_temp_path $self->{dir}/$_;" }
                          qw(client_body proxy fastcgi uwsgi scgi);

    open my $out, '>', "$self->{dir}/nginx.conf" or die "nginx.conf: $!";
    print $out <<"_EOC_";
$load
$user
daemon $self->{daemon};
worker_processes $self->{workers};
pid $self->{dir}/nginx.pid;
error_log $self->{dir}/logs/error.log info;
thread_pool vlm threads=1;
$self->{main}

events {
    worker_connections 512;
}

http {
    log_format live '\$pid \$status \$request_uri \$request_time';
    access_log $self->{dir}/logs/access.log live;
$temp
$self->{http}

    vlm_engine live {
        model $self->{model};
        store $self->{store_dir} $self->{store}; $stall
$self->{engine}
    }

    server {
        listen 127.0.0.1:$self->{port} $self->{listen};
        add_header X-Worker \$pid always;
$self->{server}

        location ~ ^/(api|v1|uploads|result)/ {
            vlm_pass $self->{pass};
        }
    }
}
_EOC_
    close $out or die "nginx.conf: $!";
}


sub start {
    my ($self) = @_;

    $self->write_conf();

    my $pid = fork();
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', "$self->{dir}/logs/stderr.log";
        open STDERR, '>>', "$self->{dir}/logs/stderr.log";

        { exec @{ $self->{under} || [] }, $self->command; }

        POSIX::_exit(127);
    }

    if ($self->{daemon} eq 'on') {
        waitpid $pid, 0;
        $pid = $self->master();
    }

    return $self->started($pid);
}


# Takes an nginx that listens, or will soon, for this one, such as one that a command of a page has started.
sub started {
    my ($self, $pid) = @_;

    $self->{pid} = $pid;
    push @RUNNING, $self;

    wait_for(sub { $self->ended() || $self->listening() });

    if ($self->ended()) {
        die "$self->{name}: nginx does not start:\n", $self->log();
    }

    return $self;
}


# Makes the model of a running server unloadable: nginx -t refuses such a model, so
# the tokenizer is damaged after the start, and the worker that owns it is killed.
sub start_broken {
    my ($self) = @_;

    $self->start->ready;

    my $pid = $self->health->{heartbeat}{pid};

    spew("$self->{model}/tokenizer.json", '{}');
    kill 'KILL', $pid;

    wait_for(sub { ($self->health->{state} || '') eq 'failed' })
        or die "$self->{name}: the model was loaded\n";

    return $self;
}


sub command {
    my ($self, @more) = @_;

    return ($ENV{TEST_NGINX_BINARY} || 'nginx', '-p', "$self->{dir}/", '-c', "$self->{dir}/nginx.conf",
            '-e', "$self->{dir}/logs/error.log", @more);
}

# Returns the output of nginx -t for the configuration with its current settings.
sub check_conf {
    my ($self) = @_;

    $self->write_conf;

    my $pid = open my $out, '-|';
    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        open STDERR, '>&', \*STDOUT;
        { exec @{ $self->{under} || [] }, $self->command('-t'); }
        POSIX::_exit(127);
    }

    local $/;
    my $said = <$out>;
    close $out;

    return $said;
}

# Returns the master in the pid file, if it is another than this one.
sub master {
    my ($self, $other) = @_;

    my $pid = wait_for($other ? 0 : $PATIENCE, sub { slurp("$self->{dir}/nginx.pid") =~ /^(\d+)$/ && $1 });

    return $pid && $pid != ($other || 0) ? $pid : 0;
}


# Makes this process the parent of orphans, so that it can wait for them.
sub adopt {
    my ($prctl, $subreaper) = (157, 36);           # x86-64's, PR_SET_CHILD_SUBREAPER

    syscall($prctl, $subreaper, 1, 0, 0, 0) == 0 or die "prctl: $!";
}


sub listening {
    my ($self) = @_;

    return defined IO::Socket::INET->new(PeerAddr => $self->{address},
                                         PeerPort => $self->{port},
                                         Timeout => 1);
}


# Waits until the model is loaded.
sub ready {
    my ($self) = @_;

    my $ok = wait_for(sub {
        my $r = $self->get('/api/health');
        return $r->{json} && $r->{json}{model_loaded};
    });

    die "$self->{name}: the model does not load:\n", $self->log() unless $ok;

    return $self;
}


sub health {
    my ($self) = @_;

    return $self->get('/api/health')->{json} || {};
}


# Waits until so many requests are in the engine, and so many in the queue.
sub busy {
    my ($self, $running, $waiting) = @_;

    return wait_for(sub {
        my $line = $self->health->{queue} || {};
        return ($line->{running} // -1) == $running
               && (!defined $waiting || ($line->{waiting} // -1) == $waiting);
    });
}


# Waits until the server has read this request: a request that begins after that
# has arrived later, also at another worker.
sub taken {
    my ($self, $request) = @_;

    return wait_for(sub {
        my $line = $self->health->{queue} || {};
        $self->drain($request);
        return $request->done || length $request->{raw}
               || ($line->{running} || 0) + ($line->{waiting} || 0) > 0;
    });
}


sub ended {
    my ($self) = @_;

    return 1 unless $self->{pid};

    if (waitpid($self->{pid}, POSIX::WNOHANG()) == $self->{pid}) {
        $self->{status} = $?;
        delete $self->{pid};
        return 1;
    }

    return 0;
}


sub signal {
    my ($self, $name) = @_;

    kill $name, $self->{pid} if $self->{pid};

    return $self;
}


# Returns true if all processes exited by themselves.
sub stop {
    my ($self, $signal) = @_;

    return 1 if $self->ended();

    kill $signal || 'QUIT', $self->{pid};

    return 1 if wait_for(sub { $self->ended() });

    $self->kill_all();

    return 0;
}


sub kill_all {
    my ($self) = @_;

    return unless $self->{pid};

    my @workers = $self->workers();

    kill 'KILL', $self->{pid}, @workers;
    waitpid $self->{pid}, 0;
    delete $self->{pid};
}


END {
    my $status = $?;

    for my $self (@RUNNING) {
        $self->stop('TERM');
    }

    $? = $status;
}


# ---- processes -------------------------------------------------------------

# Returns the children of the master, oldest first, without zombies.
sub workers {
    my ($self) = @_;

    return () unless $self->{pid};

    my @pids;

    for my $file (glob '/proc/[0-9]*/stat') {
        open my $in, '<', $file or next;
        my $line = <$in>;
        next unless defined $line;
        my ($pid, $state, $parent) = $line =~ /^(\d+) \(.*\) (\S) (\d+)/ or next;
        push @pids, $pid if $parent == $self->{pid} && $state ne 'Z';
    }

    return sort { $a <=> $b } @pids;
}


# Returns the designated worker, which holds the engine's lock file.
sub designated {
    my ($self) = @_;

    my %inodes;

    for my $file (glob "$self->{dir}/store/* $self->{dir}/*") {
        my @stat = stat $file or next;
        $inodes{$stat[1]} = 1;
    }

    my %workers = map { $_ => 1 } $self->workers();

    open my $in, '<', '/proc/locks' or return undef;

    while (<$in>) {
        next unless /FLOCK\s+ADVISORY\s+WRITE\s+(-?\d+)\s+\w+:\w+:(\d+)\s/;
        return $1 if $workers{$1} && $inodes{$2};
    }

    return undef;
}


# Ends the designated worker as a master does at SIGTERM.  A master kills a worker that has not ended
# within 1.6 s, which is too short on a busy machine; this waits.  Returns the seconds of processor time
# that the worker took to end, or undef if it ended in another way than by itself.
sub end_designated {
    my ($self) = @_;

    my $pid = $self->designated() or return undef;
    my $before = processor($self->{pid}, 'children') + processor($pid);

    kill 'TERM', $pid;

    $self->log_has(qr/worker process $pid exited with code 0/) or return undef;

    return processor($self->{pid}, 'children') - $before;
}


# Returns the seconds of processor time of a process, or of its children that have ended.
sub processor {
    my ($pid, $children) = @_;

    my ($fields) = slurp("/proc/$pid/stat") =~ /^\d+ \(.*\) (.*)/;
    my @times = (split / /, $fields)[$children ? (13, 14) : (11, 12)];

    return ($times[0] + $times[1]) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}


# Reloads; returns true when the old workers have exited.
sub reload {
    my ($self) = @_;

    my %old = map { $_ => 1 } $self->workers();

    $self->signal('HUP');

    return wait_for(sub {
        my @now = $self->workers();
        return @now && !grep { $old{$_} } @now;
    });
}


# ---- requests --------------------------------------------------------------

sub get  { my $self = shift; $self->begin('GET', @_)->end }
sub post { my $self = shift; $self->begin('POST', @_)->end }

sub chat {
    my ($self, $session, $message, %more) = @_;

    return $self->post('/api/chat', chat_body($session, $message, %more));
}

sub begin_chat {
    my ($self, $session, $message, %more) = @_;

    return $self->begin('POST', '/api/chat',
                        chat_body($session, $message, %more));
}

sub chat_body {
    my ($session, $message, %more) = @_;

    return { session_id => $session, message => $message, task => 'general',
             enable_thinking => JSON::PP::false, %more };
}


# Uploads a picture; returns its name.
sub upload {
    my ($self, $path) = @_;

    open my $in, '<', $path or die "open $path: $!";
    binmode $in;
    my $data = do { local $/; <$in> };
    my ($name) = $path =~ m{([^/]+)$};
    my $body = "--xxxx\r\nContent-Disposition: form-data; name=\"file\"; "
               . "filename=\"$name\"\r\nContent-Type: image/jpeg\r\n\r\n"
               . "$data\r\n--xxxx--\r\n";

    my $r = $self->begin('POST', '/api/upload', $body,
        { 'Content-Type' => 'multipart/form-data; boundary=xxxx' })->end;

    die "upload of $path: $r->{code} $r->{body}" unless $r->{code} eq '200';

    return $r->{json}{filename};
}


# body: bytes, or a structure for JSON.  The request is sent completely when this returns.
sub begin {
    my ($self, @args) = @_;

    return VLM::Request->new($self->{port}, request_text(@args), $self->{address});
}


# Returns an open connection and the pid of its worker.
sub connection {
    my ($self) = @_;

    my $r = $self->begin('GET', '/api/tasks', undef,
                         { Connection => 'keep-alive' });

    $r->more until $r->done || $r->response->{whole};
    $r->{worker} = $r->response->{worker};
    $r->{raw} = '';

    return $r;
}

# Returns a connection whose small receive buffer is full until the test reads.
sub narrow {
    my ($self) = @_;

    socket my $sock, PF_INET, SOCK_STREAM, 0 or die "socket: $!";
    setsockopt $sock, SOL_SOCKET, SO_RCVBUF, 4096;
    connect $sock, sockaddr_in($self->{port}, inet_aton('127.0.0.1')) or die "connect: $!";

    return bless { sock => $sock, raw => '', begun => time, done => 0 }, 'VLM::Request';
}

sub chat_on {
    my ($self, $connection, $session, $message, %more) = @_;

    $connection->{begun} = time;
    $connection->send(request_text('POST', '/api/chat',
                                   chat_body($session, $message, %more)));
    return $connection;
}


sub request_text {
    my ($method, $path, $body, $headers) = @_;

    my %headers = (Host => 'localhost', Connection => 'close',
                   %{ $headers || {} });

    if (ref $body) {
        $body = $JSON->encode($body);
        $headers{'Content-Type'} ||= 'application/json';
    }

    if (defined $body) {
        $headers{'Content-Length'} = length $body
            unless defined $headers{'Content-Length'};

    } else {
        $body = '';
        $headers{'Content-Length'} = 0 if $method eq 'POST';
    }

    return "$method $path HTTP/1.1\r\n"
           . join('', map { "$_: $headers{$_}\r\n" } sort keys %headers)
           . "\r\n$body";
}


# Reads several responses to their ends at once; returns them in order.
sub end_all {
    my ($self, @requests) = @_;

    my $end = time + $PATIENCE;

    while (my @open = grep { !$_->done } @requests) {
        my $left = $end - time;
        last if $left <= 0;

        my %by = map { fileno($_->{sock}) => $_ } @open;
        my $select = IO::Select->new(map { $_->{sock} } @open);

        $by{fileno $_}->read_some() for $select->can_read($left);
    }

    return map { $_->response } @requests;
}


# Reads available bytes, so that the server can close answered connections.
sub drain {
    my ($self, @requests) = @_;

    for my $r (grep { !$_->done } @requests) {
        $r->read_some() while !$r->done
                              && IO::Select->new($r->{sock})->can_read(0);
    }
}


# ---- logs ------------------------------------------------------------------

sub slurp {
    my ($path) = @_;

    open my $in, '<', $path or return '';
    local $/;

    return scalar(<$in>) // '';
}

sub spew {
    my ($path, $text) = @_;

    File::Path::make_path(dirname($path));

    open my $out, '>', $path or die "$path: $!";
    print $out $text;
    close $out or die "$path: $!";
}

sub log {
    my ($self) = @_;

    return slurp("$self->{dir}/logs/error.log")
           . slurp("$self->{dir}/logs/stderr.log");
}

sub log_has {
    my ($self, $pattern) = @_;

    return wait_for(sub { $self->log() =~ $pattern });
}

# Returns lines that must not be in a log after any test.
sub check_log {
    my ($self, $name, $except) = @_;

    my @bad = grep { /\[(?:alert|emerg)\]|open socket|Assertion|runtime error:/ }
              split /\n/, $self->log();

    @bad = grep { !/$except/ } @bad if $except;

    Test::More::ok(!@bad, $name || 'nothing alarming in the log')
        or Test::More::diag(join "\n", @bad);
}


# Calls the sub until its result is true, and returns that.  A number before it replaces $PATIENCE.
sub wait_for {
    my $sub = pop;
    my $end = time + (@_ ? $_[0] : $PATIENCE);

    for ( ;; ) {
        my $value = $sub->();
        return $value if $value;
        return undef if time >= $end;
        sleep 0.02;
    }
}


# ---- threads that are stopped ------------------------------------------------

# A stopped thread must have no lock that others wait for, such as malloc's: the event loop would hang with
# it.  So ptrace stops threads, then each is looked at, and all run on and are stopped again if one may
# have a lock.

my ($SYS_PTRACE, $SYS_FUTEX, $SYS_POLL) = (101, 202, 7);       # x86-64's
my ($PTRACE_SEIZE, $PTRACE_INTERRUPT, $PTRACE_DETACH) = (0x4206, 0x4207, 17);
my $WALL = 0x40000000;

# A thread that waits for work, or until it looks at the loop again.
sub waits { slurp("/proc/$_[0]/syscall") =~ /^(?:$SYS_FUTEX|$SYS_POLL) / }

# A stopped thread in the engine's arithmetic: plain C that calls nothing.
sub computes { source_of($_[0]) =~ m{/engine/ops/plain/} }

# Returns the source file of a stopped thread's next instruction, if it is in a shared library.
sub source_of {
    my ($tid) = @_;
    my ($pc) = slurp("/proc/$tid/syscall") =~ /^-1 \w+ 0x(\w+)/ or return '';

    no warnings 'portable';

    for (split /\n/, slurp("/proc/$tid/maps")) {
        my ($from, $to, $offset, $file) = /^(\w+)-(\w+) r-xp (\w+) \S+ \d+ +(\S+\.so)$/ or next;

        return scalar `addr2line -e '$file' @{[sprintf '0x%x', hex($pc) - hex($from) + hex $offset]}`
            if hex $pc >= hex $from && hex $pc < hex $to;
    }

    return '';
}

# Stops these threads where $safe of all of them is true; they are this process's to wait for until resume().
sub halt {
    my ($safe, @tids) = @_;

    return wait_for(sub {
        my @seized;

        for my $tid (@tids) {
            if (syscall($SYS_PTRACE, $PTRACE_SEIZE, $tid, 0, 0) == -1) {
                next if $!{ESRCH};                         # a thread of the load has ended
                die "ptrace: $!";
            }

            push @seized, $tid;
            syscall($SYS_PTRACE, $PTRACE_INTERRUPT, $tid, 0, 0);
            waitpid $tid, $WALL;
        }

        return 1 if $safe->(@seized);

        resume(@seized);
        return 0;
    });
}

sub resume { syscall($SYS_PTRACE, $PTRACE_DETACH, $_, 0, 0) for @_ }


# ---- one request -----------------------------------------------------------

package VLM::Request;

use strict;
use warnings;

use Time::HiRes qw(time);

sub new {
    my ($class, $port, $request, $address) = @_;

    local $SIG{PIPE} = 'IGNORE';

    my $sock = IO::Socket::INET->new(PeerAddr => $address || '127.0.0.1',
                                     PeerPort => $port, Timeout => 10);
    my $self = bless { sock => $sock, raw => '', begun => time, done => 0 },
                     $class;

    if (!defined $sock) {
        $self->{done} = 1;
        return $self;
    }

    $sock->blocking(1);
    $self->send($request);

    return $self;
}


# A server that refuses early may close during the sending; its answer counts.
sub send {
    my ($self, $data) = @_;

    local $SIG{PIPE} = 'IGNORE';

    my $at = 0;

    while ($at < length $data) {
        my $n = syswrite $self->{sock}, $data, length($data) - $at, $at;
        last unless defined $n;
        $at += $n;
    }

    return $at;
}


sub done { $_[0]{done} }


# Closes the connection at once, without reading.
sub leave {
    my ($self) = @_;

    close $self->{sock} if $self->{sock};
    $self->{done} = 1;
}


sub read_some {
    my ($self) = @_;

    my $n = sysread $self->{sock}, $self->{raw}, 65536, length $self->{raw};

    return if !defined $n && $!{EINTR};

    if (!$n) {
        $self->{done} = 1;
        $self->{ended} = time;
        close $self->{sock};
    }
}


# Waits for more bytes; returns true if some have come.
sub more {
    my ($self, $seconds) = @_;

    my $had = length $self->{raw};
    my $end = time + ($seconds // $VLM::PATIENCE);

    while (!$self->{done} && length $self->{raw} == $had) {
        my $left = $end - time;
        last if $left <= 0;
        $self->read_some()
            if IO::Select->new($self->{sock})->can_read($left);
    }

    return length $self->{raw} > $had;
}


sub end {
    my ($self) = @_;

    my $end = time + $VLM::PATIENCE;

    while (!$self->{done}) {
        my $left = $end - time;
        last if $left <= 0;
        $self->read_some()
            if IO::Select->new($self->{sock})->can_read($left);
    }

    return $self->response;
}


# code is 0 without a response; whole is false if the response is incomplete.
sub response {
    my ($self) = @_;

    my %r = (code => 0, headers => {}, body => '', whole => 0, raw => $self->{raw},
             seconds => ($self->{ended} || time) - $self->{begun});

    my ($head, $body) = split /\r\n\r\n/, $self->{raw}, 2;

    return \%r unless defined $body && $head =~ m{^HTTP/1\.\d (\d+)};

    $r{code} = $1;

    for my $line (split /\r\n/, $head) {
        $r{headers}{lc $1} = $2 if $line =~ /^([^:\s]+):\s*(.*?)\s*$/;
    }

    $r{worker} = $r{headers}{'x-worker'};

    if (($r{headers}{'transfer-encoding'} || '') eq 'chunked') {
        ($r{body}, $r{whole}) = chunks($body);

    } else {
        $r{body} = $body;
        $r{whole} = !defined $r{headers}{'content-length'}
                    || length $body == $r{headers}{'content-length'};
    }

    $r{json} = eval { $JSON->decode($r{body}) }
        if ($r{headers}{'content-type'} || '') =~ m{^application/json};

    return \%r;
}


sub chunks {
    my ($raw) = @_;

    my $body = '';

    while ($raw =~ s/^([0-9A-Fa-f]+)[^\r\n]*\r\n//) {
        my $n = hex $1;

        return ($body, 1) if $n == 0;
        return ($body . $raw, 0) if length $raw < $n + 2;

        $body .= substr $raw, 0, $n, '';
        $raw =~ s/^\r\n//;
    }

    return ($body, 0);
}


1;
