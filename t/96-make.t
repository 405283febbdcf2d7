# Tests the output of make: its targets, and what make run says and runs.

use strict;
use warnings;

use File::Path qw(remove_tree);
use IO::Socket::INET;
use POSIX qw(WNOHANG);
use Test::More;
use Time::HiRes qw(sleep);

# The variables of the make that runs these tests are removed.
delete @ENV{qw(MAKEFLAGS MFLAGS SAN ENGINE_BUILD)};

my $help = `make -s help`;
my ($phony) = do { local (@ARGV, $/) = 'Makefile'; <> } =~ /^\.PHONY: (.*?[^\\])\n/ms;
my %phony = map { $_ => 1 } split /[\s\\]+/, $phony;
my @listed = $help =~ /^make ([\w-]+) /mg;

is(join(' ', grep { !$phony{$_} } @listed), '', 'make help lists existing targets');
cmp_ok(scalar @listed, '>', 15, 'make help lists most targets');

# Those whose programs another target runs are left out.
my @tests = grep { /^test(?:-|$)/ && !/-programs$/ } sort keys %phony;
my $page = do { local (@ARGV, $/) = 't/README.md'; <> };
my ($rows) = $page =~ /^\|---\|---\|\n((?:\|.*\n)+)/m;
my @tools = grep { !/\.t$|^README|^servroot$/ } map { m{([^/]+)$} } glob 't/*';

cmp_ok(scalar @tests, '>', 10, 'there are targets that test');
is(join(' ', grep { my $name = $_; !grep { $_ eq $name } @listed } @tests), '', 'make help lists each of them');
is(join(' ', grep { $rows !~ /`make $_`/ } @tests), '', 't/README.md has each of them');
is(join(' ', grep { $rows !~ m{^\| [^|]*`\Q$_\E[/`*]}m } @tools), '', 'and each directory and program of t/');

is(`make -s deps 2>&1`, '', 'make deps finds that nothing is missing, as this checkout is built');

my $taken = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', LocalPort => 0)
    or die "listen: $!";
my $port = $taken->sockport;
my $next = $port + 1;
my $said = `PORT=$port MODEL= conf/run.sh 2>&1`;

is($? >> 8, 1, 'make run on a port in use fails');
is($said, "make run: port $port is in use; \"make run PORT=$next\" takes another\n", 'the message is one line');

# Models of two GGUF files.
my @GGUF = map { "t/fixtures/gguf/$_" } 'q8_0.gguf', 'mmproj-q8_0.gguf';

for ([$GGUF[0], 'none.gguf', 'there is no file none.gguf'],
     ["none.gguf mmproj=$GGUF[1]", '', 'there is no file none.gguf'],
     ['t/fixtures', '', 'no checkpoint at t/fixtures: there is no config.json'])
{
    my ($model, $mmproj, $says) = @$_;

    is(`PORT=$port MODEL='$model' MMPROJ='$mmproj' conf/run.sh 2>&1`, "make run: $says\n", "make run: $says");
}

# The second one begins beside the first, and the first goes on.
my @servers;

for my $set ([$GGUF[0], $GGUF[1]], ["$GGUF[0] mmproj=$GGUF[1]", '']) {
    my $free = free_port();
    my $pid = fork // die "fork: $!\n";

    if (!$pid) {
        @ENV{qw(PORT MODEL MMPROJ)} = ($free, @$set);
        open STDERR, '>', "build/run-$$.log" and open STDOUT, '>&', \*STDERR and exec 'conf/run.sh';
        die "exec: $!\n";
    }

    push @servers, {pid => $pid, port => $free};
    like(health($servers[-1]), qr/"model_loaded": *true/, "make run MODEL='$set->[0]' MMPROJ='$set->[1]' loads the files")
        or diag(`cat build/run-$pid.log`);
    like(`curl -s http://127.0.0.1:$free/api/tags`, qr/"format":"gguf"/, 'the server reports them as GGUF');
}

for my $server (@servers) {
    my ($pid, $port) = @$server{qw(pid port)};

    like(`curl -s -m 60 http://127.0.0.1:$port/api/health`, qr/"model_loaded": *true/, 'each of the two serves');
    is(`cat run/$port/nginx.pid`, "$pid\n", 'from a directory of its own');
    $server->{ended} or kill 'QUIT', $pid and waitpid $pid, 0;
    unlink "build/run-$pid.log";
    remove_tree("run/$port");
}

my $there = "build/install-$$";

is(system("make -s install DESTDIR=$there >/dev/null 2>&1"), 0, 'make install succeeds');
ok(-s "$there/usr/$_", "make install has $_")
    for qw(lib/nginx/modules/ngx_http_vlm_module.so share/nginx-vlm/html/page.css
           share/doc/nginx-vlm/LICENSE share/doc/nginx-vlm/conf/minimal.conf share/doc/nginx-vlm/conf/grafana/dashboard.json
           share/doc/nginx-vlm/conf/kubernetes/deployment.yaml bin/vlm share/man/man1/vlm.1
           libexec/nginx-vlm/vlm-pdf);
like(do { local (@ARGV, $/) = "$there/usr/lib/nginx/modules/ngx_http_vlm_module.so"; <> }, qr{\0/usr/libexec/nginx-vlm/vlm-pdf\0},
     'the module looks for vlm-pdf where make install puts it');
remove_tree($there);

done_testing();


# Returns what a server says of itself once it has its model, or has ended.
sub health {
    my ($server) = @_;
    my $said = '';

    for (1 .. 3000) {
        $said = `curl -s -m 5 http://127.0.0.1:$server->{port}/api/health`;
        last if $said =~ /"model_loaded": *true/ || ($server->{ended} = waitpid($server->{pid}, WNOHANG) == $server->{pid});
        sleep 0.02;
    }

    return $said;
}


sub free_port {
    my $socket = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1', LocalPort => 0)
        or die "listen: $!";

    return $socket->sockport;
}
