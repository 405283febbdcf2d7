package Test::Nginx::Socket;

# Runs the blocks of a t/*.t file against a real nginx: for each block it writes a
# configuration, starts a server, sends the requests over a socket, and compares
# the responses.  Test::Base reads the file.
#
# The data format, the names of functions and of environment variables are
# those of openresty's Test::Nginx, which Debian does not package, so that the
# same files run under either.  %SECTIONS lists the supported part of the format;
# an unknown section stops the run, so that a misspelt check cannot pass.

use strict;
use warnings;

use Cwd ();
use File::Path ();
use IO::Select;
use IO::Socket::INET;
use List::Util qw(max min);
use POSIX ();
use Test::Base ();
use Test::More ();
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
    run_tests repeat_each no_long_string no_shuffle no_root_location
    log_level workers master_on master_off worker_connections timeout
    server_root server_port server_addr html_dir config_preamble
    add_block_preprocessor
);

my %SECTIONS = map { $_ => 1 } qw(
    main_config http_config config user_files init
    request pipelined_requests raw_request raw_request_middle_delay
    more_headers timeout abort wait
    ignore_response must_die log_level
    error_code error_code_like
    response_headers response_headers_like
    raw_response_headers_like raw_response_headers_unlike
    response_body response_body_like response_body_unlike
    response_body_filters
    error_log no_error_log access_log no_access_log
    grep_error_log grep_error_log_out
    ONLY SKIP LAST
    name description
);

my $Binary   = $ENV{TEST_NGINX_BINARY} || 'nginx';
my $Port     = $ENV{TEST_NGINX_SERVER_PORT} || $ENV{TEST_NGINX_PORT} || 1984;
my $Addr     = '127.0.0.1';
my $Root     = $ENV{TEST_NGINX_SERVROOT} || Cwd::getcwd() . '/t/servroot';
my $Timeout  = $ENV{TEST_NGINX_TIMEOUT} || 240;        # s: a machine may be busy
my $Level    = $ENV{TEST_NGINX_LOG_LEVEL} || 'debug';
my $Master   = ($ENV{TEST_NGINX_MASTER_PROCESS} || 'off') eq 'on';

my $Workers     = 1;
my $Connections = 64;
my $Repeat      = 1;
my $RootLocation = 1;
my $Preamble    = '';
my @Preprocessors;

my $Pid;                    # of the current server
my $Status = 0;             # exit status of the last server
my $LogPos;                 # beginning of this request's part of error.log


# Exports the names of this file and those of Test::Base to the caller.
sub import {
    my $class = shift;
    my $caller = caller;

    no strict 'refs';

    for my $name (@EXPORT) {
        *{"${caller}::$name"} = \&{$name};
    }

    @_ = ('Test::Base', @_);
    goto &Test::Base::import;
}


sub no_long_string      { }
sub no_shuffle          { }
sub no_root_location    { $RootLocation = 0 }
sub log_level           { $Level = shift }
sub master_on           { $Master = 1 }
sub master_off          { $Master = 0 }
sub workers             { $Workers = shift if @_; $Workers }
sub worker_connections  { $Connections = shift if @_; $Connections }
sub timeout             { $Timeout = shift if @_; $Timeout }
sub repeat_each         { $Repeat = shift if @_; $Repeat }
sub server_root         { $Root }
sub server_port         { $Port = shift if @_; $Port }
sub server_addr         { $Addr = shift if @_; $Addr }
sub html_dir            { "$Root/html" }
sub config_preamble     { $Preamble = shift }
sub add_block_preprocessor  { push @Preprocessors, shift }


sub run_tests {
    $ENV{TEST_NGINX_SERVER_PORT} = $Port;

    for my $block (Test::Base::blocks()) {
        for my $sub (@Preprocessors) {
            $sub->($block);
        }

        check_sections($block);
        run_block($block);
    }

    stop_nginx();
}


# A server that runs on after its test would occupy the port of the next file.
END {
    my $status = $?;
    stop_nginx();
    $? = $status;
}


sub run_block {
    my ($block) = @_;

    my $name = $block->name;

    setup_root();
    write_user_files($block);
    write_conf($block);

    if (defined $block->init) {
        eval $block->init;
        bail("$name - init: $@") if $@;
    }

    $LogPos = 0;

    if (defined $block->must_die) {
        check_must_die($block);
        return;
    }

    start_nginx($name);

    for my $i (0 .. $Repeat - 1) {
        run_requests($block, $i);
    }

    stop_nginx();
    check_death($name);
}


sub check_sections {
    my ($block) = @_;

    for my $section (@{ $block->{_section_order}[0] }) {
        bail($block->name . " - unknown section \"$section\"")
            unless $SECTIONS{$section};
    }
}


# Ends this file; other files run.
sub bail {
    my ($text) = @_;

    stop_nginx();
    die "$text\n";
}


# ---- server ----------------------------------------------------------------

# Only files of an earlier run are removed, so that a TEST_NGINX_SERVROOT that
# names a home directory does no harm.
sub setup_root {
    if (-d $Root) {
        File::Path::remove_tree("$Root/conf", "$Root/html", "$Root/logs",
                                glob("$Root/*_temp"));
        rmdir $Root or bail("$Root holds files that no test made: $!");
    }

    File::Path::make_path("$Root/conf", "$Root/html", "$Root/logs");
    write_file("$Root/html/index.html",
               '<html><head><title>It works!</title></head>'
               . '<body>It works!</body></html>');
}


sub write_file {
    my ($path, $data) = @_;

    if ($path =~ m{^(.*)/}s && !-d $1) {
        File::Path::make_path($1);
    }

    open my $out, '>', $path or bail("open $path: $!");
    binmode $out;
    print $out $data;
    close $out or bail("write $path: $!");
}


# "--- user_files" has ">>> name" and then the content of the file, below html/.
sub write_user_files {
    my ($block) = @_;

    my $files = $block->user_files;

    return unless defined $files;

    if (!ref $files) {
        my @parts = split /^>>> (\S+)[^\n]*\n/m, $files;
        my @list;

        shift @parts;

        while (my ($path, $data) = splice @parts, 0, 2) {
            push @list, [$path, defined $data ? $data : ''];
        }

        $files = \@list;
    }

    for my $file (@$files) {
        my ($path, $data) = @$file;

        $path = "$Root/html/$path" unless $path =~ m{^/};
        write_file($path, $data);
    }
}


sub expand {
    my ($text) = @_;

    return '' unless defined $text;

    $text =~ s{\$(TEST_NGINX_[A-Z0-9_]+)}{
        defined $ENV{$1} ? $ENV{$1} : bail("no environment variable $1")
    }ge;

    return $text;
}


sub write_conf {
    my ($block) = @_;

    my $level = $block->log_level || $Level;
    my $master = $Master ? 'on' : 'off';
    my $load = join "\n", map { "load_module $_;" }
                          split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || '';
    my $main = expand($block->main_config);
    my $http = expand($block->http_config);
    my $config = expand($block->config);
    my $user = '';
    my $temp = '';
    my $root = '';

    # Workers must be able to read a checkout in root's home.
    if ($> == 0 && $main !~ /^\s*user\s/m) {
        $user = 'user root;';
    }

    # Debian's nginx has these in directories where only root may write.
    for my $kind (qw(client_body proxy fastcgi scgi uwsgi)) {
        next if $http =~ /\b${kind}_temp_path\b/;
        $temp .= "    ${kind}_temp_path $Root/${kind}_temp;\n";
    }

    if ($RootLocation) {
        $root = "        location / {\n            root $Root/html;\n"
                . "            index index.html index.htm;\n        }\n";
    }

    write_file("$Root/conf/nginx.conf", <<"_EOC_");
$load
worker_processes  $Workers;
master_process $master;
error_log $Root/logs/error.log $level;
pid $Root/logs/nginx.pid;
$user

$main

http {
    access_log $Root/logs/access.log;
    default_type text/plain;
    keepalive_timeout 68;
$temp
$http

    server {
        listen $Port;
        server_name localhost;

        client_max_body_size 30M;

$Preamble
$config

$root    }
}

events {
    accept_mutex off;
    worker_connections $Connections;
}
_EOC_
}


sub nginx_command {
    return ($Binary, '-p', "$Root/", '-c', "$Root/conf/nginx.conf",
            '-e', "$Root/logs/error.log");
}


# The server is a child and not a daemon, so that its exit status and signal are
# known.  Its output goes into the log.
sub spawn_nginx {
    my $pid = fork();
    bail("fork: $!") unless defined $pid;

    return $pid if $pid;

    my @command = ($Binary, '-p', "$Root/", '-c', "$Root/conf/nginx.conf",
                   '-e', "$Root/logs/error.log", '-g', 'daemon off;');

    open STDIN, '<', '/dev/null';
    open STDOUT, '>', '/dev/null';
    open STDERR, '>', "$Root/logs/stderr.log";

    { exec { $command[0] } @command; }

    POSIX::_exit(127);
}


sub start_nginx {
    my ($name) = @_;

    wait_for($Timeout, sub { !listening() })
        or bail("$name - port $Port is in use");

    $Pid = spawn_nginx();

    wait_for($Timeout, sub { ended() || (-s "$Root/logs/nginx.pid" && listening()) });

    if (ended() || !listening()) {
        bail("$name - nginx does not start:\n" . error_log());
    }
}


# Returns true once the server has ended; $Status then has its exit status.
sub ended {
    return 1 unless $Pid;

    if (waitpid($Pid, POSIX::WNOHANG()) == $Pid) {
        $Status = $?;
        undef $Pid;
        return 1;
    }

    return 0;
}


sub listening {
    my $sock = IO::Socket::INET->new(PeerAddr => $Addr, PeerPort => $Port,
                                     Timeout => 1);
    return defined $sock;
}


sub wait_for {
    my ($seconds, $sub) = @_;

    my $end = time + $seconds;

    while (time < $end) {
        return 1 if $sub->();
        sleep 0.01;
    }

    return $sub->();
}


sub slurp {
    my ($path) = @_;

    open my $in, '<', $path or return '';
    binmode $in;
    local $/;

    return scalar <$in>;
}


sub stop_nginx {
    return if ended();

    kill 'QUIT', $Pid;

    if (!wait_for($Timeout, \&ended)) {
        kill 'KILL', $Pid;
        waitpid $Pid, 0;
        undef $Pid;
        Test::More::fail('nginx ends after SIGQUIT');
    }
}


# Reports an unexpected fault; the plan does not count this check.
sub check_death {
    my ($name) = @_;

    if ($Status != 0) {
        Test::More::fail("$name - nginx ends with status $Status");
    }

    for my $line (split /\n/, slurp("$Root/logs/error.log")) {
        next unless $line =~ /\[alert\]|\[emerg\]|Assertion .* failed|runtime error:/;
        Test::More::fail("$name - error.log: $line");
    }
}


sub check_must_die {
    my ($block) = @_;

    my $name = $block->name;
    my $want = $block->must_die;

    $Pid = spawn_nginx();

    if (!wait_for($Timeout, \&ended)) {
        stop_nginx();
        $Status = 0;
    }

    if ($want =~ /^\d+$/) {
        Test::More::is($Status >> 8, $want, "$name - exit code");

    } elsif ($Status & 127) {
        Test::More::fail("$name - nginx ends by signal " . ($Status & 127));

    } else {
        Test::More::isnt($Status, 0, "$name - nginx refuses to start");
    }

    check_error_log($block);
}


# ---- requests --------------------------------------------------------------

# Returns the requests of a block, each a list of packets of a string and a delay.
sub requests_of {
    my ($block) = @_;

    my $raw = $block->raw_request;

    if (defined $raw) {
        return [map { { value => $_ } } ref $raw ? @$raw : $raw];
    }

    my $list = $block->pipelined_requests;

    if (defined $list) {
        my $i = 0;
        my $all = join '', map {
            my $last = ($i == $#$list);
            build_request($block, $list->[$i], $i++,
                          $last ? 'close' : 'keep-alive');
        } @$list;

        return [{ value => $all }];
    }

    my $request = $block->request;

    bail($block->name . " - no request") unless defined $request;

    my $i = 0;

    return map { [packets_of($block, $_, $i++)] }
           ref $request ? @$request : $request;
}


# A request may be cut into packets, with a delay before each.
sub packets_of {
    my ($block, $request, $i) = @_;

    if (!ref $request) {
        return { value => build_request($block, $request, $i, 'close') };
    }

    my @parts = map { ref $_ ? $_ : { value => $_ } } @$request;
    my $whole = join '', map { $_->{value} } @parts;
    my $built = build_request($block, $whole, $i, 'close');
    my $tail = length $built;
    my @packets;

    # The head is rebuilt and therefore belongs to the first packet; the rest of the
    # body is cut from the end, where both strings are equal.
    for my $part (reverse @parts[1 .. $#parts]) {
        my $n = min(length $part->{value}, $tail);

        $tail -= $n;
        unshift @packets, { %$part, value => substr($built, $tail, $n) };
    }

    return ({ %{ $parts[0] }, value => substr($built, 0, $tail) }, @packets);
}


sub headers_of {
    my ($block, $i) = @_;

    my $text = $block->more_headers;

    $text = '' unless defined $text;

    if (ref $text) {
        bail($block->name . " - more_headers has none for request $i")
            unless defined $text->[$i];
        $text = $text->[$i];
    }

    return map { /^([^:]+):\s*(.*?)\s*$/s ? "$1: $2" : "$_: " }
           grep { /\S/ && !/^\s*#/ }
           split /\n+/, $text;
}


# Parses "METHOD [URI [VERSION]]", a line feed, and the body, of which leading and
# trailing white space is removed.
sub build_request {
    my ($block, $request, $i, $connection) = @_;

    $request =~ s/^\s*#[^\n]+\s+|^\s+//gs;

    my ($first, $body) = split /\n/, $request, 2;
    my ($method, $uri, $version) = split ' ', defined $first ? $first : '';

    bail($block->name . " - empty request line") unless defined $method;

    $uri = '/' unless defined $uri;
    $version = 'HTTP/1.1' unless defined $version;
    $body = '' unless defined $body;

    my @headers = headers_of($block, $i);
    my $text = join '', map { lc "\n$_" } @headers;

    if ($text !~ /\n(?:content-length|transfer-encoding):/ && $body ne '') {
        $body =~ s/^\s+|\s+$//gs;
        push @headers, 'Content-Length: ' . length $body;
    }

    unshift @headers, "Connection: $connection" if $text !~ /\nconnection:/;
    unshift @headers, 'Host: localhost' if $text !~ /\nhost:/;

    return join "\r\n", "$method $uri $version", @headers, '', $body;
}


sub run_requests {
    my ($block, $repeat) = @_;

    my @requests = requests_of($block);
    my $pipelined = $block->pipelined_requests;
    my $array = @requests > 1 || defined $pipelined;
    my $index = 0;

    for my $packets (@requests) {
        my $raw = exchange($block, ref $packets eq 'ARRAY' ? $packets
                                                           : [$packets]);
        my $n = defined $pipelined ? @$pipelined : 1;

        while ($n--) {
            my $head = $packets->[0]{value} =~ /^HEAD /;
            my $res;

            if (!defined $block->ignore_response) {
                ($res, $raw) = parse_response($raw, $head);
                check_response($block, $res, $index, $array);
            }

            $index++;
        }

        if (defined $raw && length $raw && !defined $block->ignore_response) {
            Test::More::diag($block->name . ' - ' . length($raw)
                             . ' bytes after the response');
        }

        sleep $block->wait if $block->wait;

        check_error_log($block);
        check_access_log($block) unless defined $block->ignore_response;
    }
}


sub seconds {
    my ($text) = @_;

    return undef unless defined $text && $text =~ /^\s*([\d.]+)\s*(ms|s)?\s*$/;

    return defined $2 && $2 eq 'ms' ? $1 / 1000 : $1;
}


# Sends the packets and reads until the server closes or time is up.
sub exchange {
    my ($block, $packets) = @_;

    my $timeout = seconds($block->timeout);
    my $sock = IO::Socket::INET->new(PeerAddr => $Addr, PeerPort => $Port,
                                     Timeout => 5);
    my $response = '';
    my ($delay, $end, $sent);

    $timeout = $Timeout unless defined $timeout;

    if (!defined $sock) {
        Test::More::diag($block->name . " - connect to port $Port: $!");
        return '';
    }

    local $SIG{PIPE} = 'IGNORE';

    $sock->blocking(0);
    $delay = seconds($block->raw_request_middle_delay);
    $end = time + $timeout;

    for my $i (0 .. $#$packets) {
        my $pause = seconds($packets->[$i]{delay_before});

        $pause = $delay if !defined $pause && $i > 0;
        sleep $pause if $pause;

        $sent = send_all($sock, $packets->[$i]{value}, $end, \$response);
        last unless $sent;
    }

    # The client of "--- abort" closes the connection after its time.
    while (time < $end) {
        next unless IO::Select->new($sock)->can_read(max(0, $end - time));

        my $n = sysread $sock, $response, 65536, length $response;

        last if defined $n && $n == 0;
        last if !defined $n && !$!{EAGAIN} && !$!{EINTR};
    }

    if (time >= $end && !defined $block->abort) {
        Test::More::diag($block->name . " - no end of the response within "
                         . "$timeout s");
    }

    return $response;
}


# A server may answer before it has read everything, so the client reads on.
sub send_all {
    my ($sock, $data, $end, $response) = @_;

    my $at = 0;
    my $select = IO::Select->new($sock);

    while ($at < length $data) {
        return 0 if time >= $end;

        my ($r, $w) = IO::Select->select($select, $select, undef,
                                         max(0.01, $end - time));

        if ($r && @$r) {
            my $n = sysread $sock, $$response, 65536, length $$response;
            return 0 if defined $n && $n == 0;
        }

        if ($w && @$w) {
            my $n = syswrite $sock, $data, 65536, $at;

            if (defined $n) {
                $at += $n;

            } elsif (!$!{EAGAIN} && !$!{EINTR}) {
                return 0;
            }
        }
    }

    return 1;
}


# Removes one response from the front of the received bytes.
sub parse_response {
    my ($raw, $head) = @_;

    my %res = (code => '', headers => {}, raw_headers => '', body => '');

    return (\%res, '') unless defined $raw;

    while ($raw =~ s{^(HTTP/1\.[01] 1\d\d [^\r\n]*\r\n.*?\r\n\r\n)}{}s) { }

    return (\%res, '') unless $raw =~ s{^(HTTP/1\.[01] (\d+).*?\r\n)\r\n}{}s;

    ($res{raw_headers}, $res{code}) = ($1, $2);

    for my $line (split /\r\n/, $res{raw_headers}) {
        next unless $line =~ /^([^:\s]+):\s*(.*?)\s*$/;

        my $key = lc $1;

        $res{headers}{$key} = defined $res{headers}{$key}
                              ? "$res{headers}{$key}, $2" : $2;
    }

    if ($head || $res{code} == 204 || $res{code} == 304) {
        return (\%res, $raw);
    }

    if (lc($res{headers}{'transfer-encoding'} || '') eq 'chunked') {
        ($res{body}, $raw) = dechunk($raw);
        return (\%res, $raw);
    }

    my $length = $res{headers}{'content-length'};

    $length = length $raw unless defined $length;
    $res{body} = substr $raw, 0, $length, '';

    return (\%res, $raw);
}


# An incomplete body is reported, because its beginning could pass as complete.
sub dechunk {
    my ($raw) = @_;

    my $body = '';

    while ($raw =~ s/^([0-9A-Fa-f]+)[^\r\n]*\r\n//) {
        my $n = hex $1;

        if ($n == 0) {
            $raw =~ s/^.*?\r\n//s;
            return ($body, $raw);
        }

        last if length $raw < $n + 2;

        $body .= substr $raw, 0, $n, '';
        $raw =~ s/^\r\n//;
    }

    Test::More::fail('the chunked body ends with a chunk of length 0');

    return ($body . $raw, '');
}


# ---- checks ----------------------------------------------------------------

sub expected {
    my ($block, $section, $index, $array) = @_;

    my $value = $block->$section;

    return undef unless defined $value;

    if (ref $value eq 'ARRAY') {
        return $value->[$index];
    }

    bail($block->name . " - $section is to be an array, as request is")
        if $array;

    return $value;
}


sub check_response {
    my ($block, $res, $index, $array) = @_;

    my @args = ($block, $res, $index, $array);

    check_error_code(@args);
    check_raw_headers(@args);
    check_headers(@args);
    filter_body(@args);
    check_body(@args);
}


sub check_error_code {
    my ($block, $res, @args) = @_;

    my $name = $block->name;

    if (defined $block->error_code_like) {
        my $like = expected($block, 'error_code_like', @args);

        Test::More::like($res->{code}, qr/$like/sm, "$name - status");
        return;
    }

    my $code = defined $block->error_code
               ? expected($block, 'error_code', @args) : 200;

    $code =~ s/^\s+|\s+$//g;

    Test::More::is($res->{code}, $code, "$name - status")
        or Test::More::diag('body: ' . substr $res->{body}, 0, 600);
}


sub check_raw_headers {
    my ($block, $res, @args) = @_;

    my $name = $block->name;
    my $like = expected($block, 'raw_response_headers_like', @args);
    my $unlike = expected($block, 'raw_response_headers_unlike', @args);

    if (defined $like) {
        Test::More::like($res->{raw_headers}, qr/$like/s,
                         "$name - raw headers");
    }

    if (defined $unlike) {
        Test::More::unlike($res->{raw_headers}, qr/$unlike/s,
                           "$name - raw headers");
    }
}


# "Name: value", or "!Name" for a header that must be absent.
sub check_headers {
    my ($block, $res, @args) = @_;

    my $name = $block->name;
    my $like = !defined $block->response_headers;
    my $text = expected($block, $like ? 'response_headers_like'
                                      : 'response_headers', @args);

    return unless defined $text;

    for my $line (grep { /\S/ } split /\n/, $text) {
        $line =~ s/^\s+|\s+$//g;

        if ($line =~ s/^!\s*//) {
            Test::More::ok(!defined $res->{headers}{lc $line},
                           "$name - no header $line");
            next;
        }

        my ($key, $want) = split /\s*:\s*/, $line, 2;
        my $have = $res->{headers}{lc $key};

        $have = '' unless defined $have;
        $want =~ s/\$ServerPort(?:ForClient)?\b/$Port/g;

        if ($like) {
            Test::More::like($have, qr/^$want$/, "$name - header $key");

        } else {
            Test::More::is($have, $want, "$name - header $key");
        }
    }
}


my %Filters = (
    uc      => sub { uc $_[0] },
    lc      => sub { lc $_[0] },
    ucfirst => sub { ucfirst $_[0] },
    lcfirst => sub { lcfirst $_[0] },
    length  => sub { length $_[0] },
    md5_hex => sub { require Digest::MD5; Digest::MD5::md5_hex($_[0]) },
    sha1_hex => sub { require Digest::SHA; Digest::SHA::sha1_hex($_[0]) },
);

sub filter_body {
    my ($block, $res, $index) = @_;

    my $filters = $block->response_body_filters;

    return unless defined $filters;

    if (!ref $filters) {
        $filters = [split ' ', $filters];

    } elsif (ref $filters ne 'ARRAY') {
        $filters = [$filters];

    } elsif (ref $filters->[0] eq 'ARRAY') {
        $filters = $filters->[$index] || [];
    }

    for my $filter (@$filters) {
        my $sub = ref $filter ? $filter : $Filters{$filter};

        bail($block->name . " - unknown filter \"$filter\"") unless $sub;
        $res->{body} = $sub->($res->{body});
    }
}


sub check_body {
    my ($block, $res, @args) = @_;

    my $name = $block->name;
    my $body = $res->{body};

    if (defined $block->response_body) {
        my $want = expected($block, 'response_body', @args);

        if (ref $want eq 'CODE') {
            Test::More::ok($want->($body), "$name - body");
            return;
        }

        $want =~ s/\$ServerPort(?:ForClient)?\b/$Port/g;
        Test::More::is($body, $want, "$name - body");

    } elsif (defined $block->response_body_like) {
        my $want = expected($block, 'response_body_like', @args);
        Test::More::like($body, qr/$want/s, "$name - body");

    } elsif (defined $block->response_body_unlike) {
        my $want = expected($block, 'response_body_unlike', @args);
        Test::More::unlike($body, qr/$want/s, "$name - body");
    }
}


# ---- logs ------------------------------------------------------------------

sub error_log {
    return slurp("$Root/logs/error.log") . slurp("$Root/logs/stderr.log");
}


sub patterns {
    my ($value) = @_;

    return () unless defined $value;
    return grep { defined } @$value if ref $value eq 'ARRAY';
    return $value if ref $value;

    return grep { length } split /\n+/, $value;
}


sub matching {
    my ($pattern, $text) = @_;

    return ref $pattern ? scalar($text =~ /$pattern/)
                        : index($text, $pattern) >= 0;
}


# A line may be logged shortly after the answer: the check waits for expected
# lines, and as long for forbidden ones.
sub check_log {
    my ($block, $path, $from, $yes, $no) = @_;

    my $name = $block->name;
    my ($log) = $path =~ m{([^/]+)$};
    my $lines = sub { split /^/, substr slurp($path), $from };
    my @yes = patterns($block->$yes);
    my @no = patterns($block->$no);

    return unless @yes || @no;

    sleep 0.06 if @no;

    for my $pattern (@yes) {
        my $ok = wait_for($Timeout, sub { grep { matching($pattern, $_) }
                                   $lines->() });
        Test::More::ok($ok, "$name - $log has \"$pattern\"")
            or Test::More::diag(grep { /\[(?:emerg|alert|crit|error|warn)\]/ }
                                $lines->());
    }

    for my $pattern (@no) {
        my @found = grep { matching($pattern, $_) } $lines->();

        Test::More::ok(!@found, "$name - $log has no \"$pattern\"")
            or Test::More::diag(@found);
    }
}


sub check_error_log {
    my ($block) = @_;

    my $path = "$Root/logs/error.log";
    my $from = $LogPos;

    check_log($block, $path, $from, 'error_log', 'no_error_log');

    if (defined $block->grep_error_log) {
        my $want = $block->grep_error_log_out;
        my $pattern = $block->grep_error_log;
        my $found = '';

        $pattern = qr/\Q$pattern\E/ unless ref $pattern;

        for my $line (split /^/, substr slurp($path), $from) {
            $found .= "$&\n" if $line =~ $pattern;
        }

        Test::More::is($found, $want, $block->name . ' - grep_error_log_out');
    }

    $LogPos = -s $path || 0;
}


sub check_access_log {
    my ($block) = @_;

    check_log($block, "$Root/logs/access.log", 0,
              'access_log', 'no_access_log');
}


1;
