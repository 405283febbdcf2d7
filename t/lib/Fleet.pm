package Fleet;

# Nodes and a front on this machine, from the text of conf/scale-out-node.conf and
# conf/scale-out.conf.  Ports, paths, the checkpoint and the list of nodes are replaced.
# The nodes have one directory as their store, whose lock files take the engines' names, which
# differ therefore; or a Redis.
#
# The Redis has the settings of docs/scale.md, with its password, and the nodes have the page's line for it;
# a unix socket is in place of the address.  With networks of their own the nodes have the addresses of
# conf/scale-out.conf, Redis has its own, and the front's side has the settings that docs/scale.md gives to
# its kernel.  The program is then in a network apart from the machine's, by alone(), which it calls first.
#
#     my $f = Fleet->new(name => 'scale', nodes => 3, engine => 'slots 1;')->start;
#     my ($r, $nodes) = $f->ended($f->begin('/api/tasks'));
#     $f->list(1, '2 down')->reload;

use strict;
use warnings;

use Cwd ();
use POSIX ();
use VLM;

my $ROOT = Cwd::getcwd();
my $FRONT = 'conf/scale-out.conf';
my $NODE = 'conf/scale-out-node.conf';
my $FRONTS = '10.0.0.254';              # the front's side, to nodes with networks of their own
my $redis;                              # the process


# name    of the directories
# nodes   their number
# engine  more directives of vlm_engine, in place of those of the same name
# model   checkpoint directory; the default is the demo model
# affinity      0: the nodes take turns, without the hash
# fail_timeout  in place of the shipped one
# redis         1: sessions are in a redis-server, which starts with the nodes
# networks      1: each node has a network of its own
# steps         1: the configurations are as the commands of docs/scale.md make them, for two nodes
# loses         the front loses questions whose tag this matches: no node has them
sub new {
    my ($class, %conf) = @_;

    my $self = bless { nodes => 3, engine => '', model => "$ROOT/demo/model", affinity => 1, tag => 'a', %conf }, $class;

    $self->{front} = VLM->new(name => "$self->{name}-front");
    $self->{members} = [map { VLM->new(name => "$self->{name}-node-$_") } 1 .. $self->{nodes}];
    $self->{store} = $self->{front}->dir . '/store';

    $self->connect_networks if $self->{networks};

    $self->{members}[$_ - 1]{conf} = $self->node_conf($_) for 1 .. $self->{nodes};

    return $self->list(1 .. $self->{nodes});
}

sub front { $_[0]{front} }
sub store { $_[0]{store} }
sub node  { $_[0]{members}[$_[1] - 1] }
sub nodes { @{ $_[0]{members} } }


sub address { my $node = $_[0]->node($_[1]); "$node->{address}:" . $node->port }


# ---- networks ---------------------------------------------------------------------

# Runs this program again in a network of its own.  Returns why that is not possible here.
sub alone {
    return '' if $ENV{VLM_ALONE};

    my $why = `unshare --net sh -ec 'ip link set lo up; ip link add name a type veth peer name b' 2>&1`;

    return "no network of its own: $why" =~ s/\s+$//r if $? != 0;

    $ENV{VLM_ALONE} = 1;
    exec qw(unshare --net sh -ec), 'ip link set lo up; exec "$@"', 'sh', $^X, $0, @ARGV;
    die "unshare: $!\n";
}


sub run {
    system(@_) == 0 or die "@_ failed\n";
}


# Gives each node a network, which a process keeps until this program ends, and a link to it.
sub connect_networks {
    my ($self) = @_;

    my $page = VLM::slurp("$ROOT/docs/scale.md");

    VLM::spew("/proc/sys/net/ipv4/$1", $2) while $page =~ /^net\.ipv4\.(\w+) = (\d+)$/mg;
    run(qw(ip address add), "$_/32", qw(dev lo)) for $FRONTS, ($self->on_redis)[1];

    for my $n (1 .. $self->{nodes}) {
        my $node = $self->node($n);
        my $own = readlink '/proc/self/ns/net';
        my $pid = open $node->{keeper}, '|-', qw(unshare --net cat) or die "unshare: $!\n";

        VLM::wait_for(sub { (readlink("/proc/$pid/ns/net") // $own) ne $own }) or die "no network\n";

        @$node{qw(address port under)} = ("10.0.0.$n", 5001, ['nsenter', "--net=/proc/$pid/ns/net"]);

        run(qw(ip link add name), "node$n", qw(type veth peer name eth0 netns), $pid);
        run(qw(ip link set), "node$n", 'up');
        run(@{ $node->{under} }, 'sh', '-ec', "ip link set lo up; ip address add 10.0.0.$n/24 dev eth0; ip link set eth0 up");
        run(qw(ip route add), "10.0.0.$n/32", 'dev', "node$n", 'src', $FRONTS);
    }
}

# Takes a node off the network, and back.
sub cut    { $_[0]->link_of($_[1], 'down') }
sub rejoin { $_[0]->link_of($_[1], 'up') }

sub link_of {
    my ($self, $n, $state) = @_;

    run(@{ $self->node($n)->{under} }, qw(ip link set eth0), $state);
}


# ---- configurations ----------------------------------------------------------------

sub placed {
    my ($text, $dir, $port, $address) = @_;

    $address ||= '127.0.0.1';

    my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || "$ROOT/build/ngx_http_vlm_module.so";
    my $user = $> == 0 ? 'user root;' : '';
    my $temp = join "\n", map { "    ${_}_temp_path $dir/$_;" } qw(client_body proxy fastcgi uwsgi scgi);

    for ($text) {
        s{modules/ngx_http_vlm_module\.so}{$module};
        s{^user www-data;}{$user}m;
        s{/var/log/nginx/}{$dir/logs/}g;
        s{/var/cache/nginx-vlm}{$dir/cache}g;
        s{listen (?:127\.0\.0\.1|10\.0\.0\.\d):\d+}{listen $address:$port};
        s/^http \{\n/http {\n$temp\n/m;
    }

    $text =~ s/^http \{\n/http {\n    access_log $dir\/logs\/access.log;\n/m unless $text =~ /^    access_log /m;

    return "daemon off;\npid $dir/nginx.pid;\n$text";
}


# Returns the text of a configuration; with steps, what the commands of docs/scale.md make of it.
sub shipped {
    my ($self, $conf, $n) = @_;

    return VLM::slurp("$ROOT/$conf") unless $self->{steps};

    my $file = $self->front->dir . '/steps.conf';
    my ($block) = VLM::slurp("$ROOT/docs/scale.md") =~ m{^(cp \Q$conf\E /etc/nginx/nginx\.conf\n(?:sed -i .*\n)+)}m
        or die "no steps for $conf\n";

    $block =~ s{listen 10\.0\.0\.\K1:}{$n:} if $n;
    $block =~ s{/etc/nginx/nginx\.conf}{$file}g;
    run('sh', '-ec', $block);

    return VLM::slurp($file);
}


sub node_conf {
    my ($self, $n) = @_;

    my $node = $self->node($n);
    my $conf = placed($self->shipped($NODE, $n), $node->dir, $node->port, $node->{address});

    for my $directive ($self->{engine} =~ /(?:^|;)\s*(\w+)\s/g) {
        $conf =~ s/^        \Q$directive\E +[^;]+;.*\n//m;
    }

    $conf =~ s{(vlm_engine|vlm_pass|vlm_status) +robobrain}{$1 node$n}g;
    $conf =~ s{model +/models/[^;]+;}{model $self->{model};\n        alias robobrain;\n        $self->{engine}};

    if ($self->{redis}) {
        my $own = $node->dir;
        my ($line, $address) = $self->on_redis;

        $line =~ s{\@\Q$address\E:6379/}{'@unix:' . socket_of() . ':/'}e or die "no address in $line\n" unless $self->{networks};
        $line =~ s{ uploads=/srv/vlm directory=\S+}{ uploads=$self->{store} directory=$own/own} or die "no uploads in $line\n";
        $conf =~ s{^ +store +[^;]+;}{        $line}m or die "$NODE has no store\n";
    }

    $conf =~ s{/var/lib/nginx/vlm}{$self->{store}}g;

    return $conf;
}


# A unix socket's path has 107 bytes at most.
sub socket_of { "/tmp/vlm-scale-redis-$$.sock" }

# Returns of docs/scale.md the nodes' line for Redis, Redis's address, and its settings.
sub on_redis {
    my $page = VLM::slurp("$ROOT/docs/scale.md");
    my ($line) = $page =~ /^(store redis:.*;)$/m or die "no store on a Redis\n";
    my ($settings, $address) = $page =~ /^```\n(bind (\S+)\n.*?)^```/ms or die "no settings of Redis\n";

    return ($line, $address, $settings);
}

sub start_redis {
    my ($self) = @_;

    my $dir = $self->front->dir;
    my $socket = socket_of();
    my $settings = ($self->on_redis)[2];

    $settings =~ s/^bind .*$/port 0/m unless $self->{networks};
    VLM::spew("$dir/redis.conf", "$settings\nsave \"\"\nunixsocket $socket\ndir $dir\n");

    $redis = fork() // die "fork: $!";

    if ($redis == 0) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$dir/logs/redis.log";
        open STDERR, '>&', \*STDOUT;
        { exec 'redis-server', "$dir/redis.conf"; }
        POSIX::_exit(127);
    }

    VLM::wait_for(sub {
        waitpid($redis, POSIX::WNOHANG()) == 0 or die "redis-server does not run: t/deps test installs it\n";
        -S $socket;
    }) or die "redis-server does not listen\n";
}

END {
    my $status = $?;

    if ($redis && kill 'TERM', $redis) {
        waitpid $redis, 0;
        unlink socket_of();
    }

    $? = $status;
}


# Gives the front these nodes, such as 1, '2 down'.
sub list {
    my ($self, @nodes) = @_;

    my $front = $self->front;
    my $conf = placed($self->shipped($FRONT), $front->dir, $front->port);
    my $lists = 0;

    my $servers = sub {
        my ($first) = @_;
        $lists++;

        return join '', map {
            my ($n, $down) = split ' ';
            my $address = $self->address($n);
            $first =~ s/10\.0\.0\.1:5001/$address/r =~ s/;/$down ? " $down;" : ';'/er;
        } @nodes;
    };

    $conf =~ s{((?:^        server 10\.0\.0\.\d:5001 .*\n)+)}{$servers->((split /^/, $1)[0])}gme;
    $lists == 2 or die "$FRONT has $lists lists of nodes\n";

    $conf =~ s/^ +hash .*\n//m unless $self->{affinity};
    $conf =~ s/fail_timeout=\K\w+/$self->{fail_timeout}/g if $self->{fail_timeout};
    $conf =~ s/^( +)recursive_error_pages on;\n\K/$1if (\$args ~ "$self->{loses}") { return 502 \$cut; }\n/m or die
        if $self->{loses};
    $front->{conf} = $conf;

    return $self;
}


# Changes the front's configuration by a command of docs/scale.md, which has nodes from 10.0.0.1 on.
sub command {
    my ($self, $command) = @_;

    my $file = $self->front->dir . '/nginx.conf';

    $command =~ s{/etc/nginx/nginx\.conf}{$file} or die "a command for another file: $command\n";
    $command =~ s{10(\\?)\.0\1\.0\1\.(\d):5001}{my $escape = $1; $self->address($2) =~ s/\./$escape./gr}ge;

    $self->front->write_conf;
    system($command) == 0 or die "$command failed\n";
    $self->front->{conf} = VLM::slurp($file);

    return $self;
}


sub start {
    my ($self) = @_;

    $self->start_redis if $self->{redis};
    $_->start for $self->nodes;
    wait_ready($_) for $self->nodes;
    $self->front->start;

    return $self;
}

sub wait_ready {
    my ($node) = @_;

    VLM::wait_for(sub { $node->get('/health/ready')->{code} == 200 }) or die "not ready:\n", $node->log;
}


# Reloads the front, by a command of docs/scale.md if there is one; its old workers take no more requests,
# but may have answers in flight.
sub reload {
    my ($self, $command) = @_;

    my $front = $self->front;
    my %old = map { $_ => 1 } $front->workers;

    $front->write_conf;

    if ($command) {
        my $nginx = join ' ', $front->command;

        $command =~ s/\bnginx -/$nginx -/g;
        run("{ $command; } 2>>" . $front->dir . '/logs/stderr.log');

    } else {
        $front->signal('HUP');
    }

    VLM::wait_for(sub {
        my @now = $front->workers;
        my @taking = grep { VLM::slurp("/proc/$_/cmdline") !~ /shutting down/ } @now;

        return @taking && !grep { $old{$_} } @taking;
    }) or die "the front does not reload\n";

    return $self;
}


# ---- requests ------------------------------------------------------------------------

# Sends the front a request with a tag of its own in its query; returns it, begun.
sub begin {
    my ($self, $path, $body, %headers) = @_;

    my $tag = ++$self->{tag};
    my $r = $self->front->begin($body ? 'POST' : 'GET', "$path?$tag", $body, \%headers);
    $r->{tag} = $tag;

    return $r;
}


# Returns the response, the nodes that had the request, and their statuses.
sub ended {
    my ($self, $request) = @_;

    my $r = $request->end;

    return ($r, $self->took($request->{tag}));
}


# The node of a session, by a request that asks the model nothing.
sub home {
    my ($self, $session) = @_;

    return ($self->ended($self->begin("/api/history/$session")))[1];
}


# The nodes that had the request with this tag in its query, such as "1" or "2 3", and their statuses.
sub took {
    my ($self, $tag) = @_;

    my $line = VLM::wait_for(sub { (grep { /\?$tag / } $self->front_log)[0] }) or die "no line of $tag\n";

    return $self->told($line);
}


# The last node that had each request, by the tag, of those of which the front's log has a node.
sub last_nodes {
    my ($self) = @_;

    my %last;

    for ($self->front_log) {
        my ($tag) = /\?(\S+) HTTP/ or next;
        my ($nodes) = $self->told($_);

        $last{$tag} = (split ' ', $nodes)[-1];
    }

    return \%last;
}


sub front_log { split /\n/, VLM::slurp($_[0]->front->dir . '/logs/front.log') }

# The nodes of a line of the front's log, and their statuses.
sub told {
    my ($self, $line) = @_;

    my %node = map { $self->address($_) => $_ } 1 .. $self->{nodes};
    my ($nodes, $said) = $line =~ / node=(.*?) said=(.*?) in=/;

    return (join(' ', map { $node{$_} || $_ } grep { /\S/ } split /[ ,]+/, $nodes =~ s/ : /, /gr),
            join(' ', split /[ ,:]+/, $said));
}

1;
