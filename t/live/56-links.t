# Another user may put links on the way to the paths that root prepares.  This file tests that root
# follows none of them, that nginx -t changes nothing, and that a start changes what it makes alone.

use strict;
use warnings;

use lib 't/lib';
use File::Copy qw(copy);
use File::Temp ();
use IO::Socket::UNIX;
use POSIX ();
use Test::More;
use VLM;

plan skip_all => 'an ordinary user follows links with no rights but its own' if $> != 0;

my ($NOBODY, $NOGROUP) = (getpwnam 'nobody')[2, 3];
my $BIN = getpwnam 'bin';                       # neither root nor the workers' user

my $tmp = File::Temp->newdir;
my $top = $tmp->dirname;
my $model = "$top/model";

chmod 0755, $top or die;
mkdir "$top/$_" or die "$top/$_: $!" for qw(model victim theirs mine);
copy($_, $model) or die "$_: $!" for glob 'demo/model/*';
chown $NOBODY, $NOGROUP, "$top/theirs" or die;

# Each file and directory, with its owner, mode and, but for its own bookkeeping, time.
sub tree { scalar `find @_ -printf '%p %y %U %G %m %T@ %l\n' | sort` }

sub as_nobody {
    my ($do) = @_;
    my $pid = fork // die "fork: $!";

    if (!$pid) {
        POSIX::setgid($NOGROUP);
        POSIX::setuid($NOBODY);
        $do->();
        POSIX::_exit(0);
    }

    return $pid;
}

sub attack { waitpid as_nobody(@_), 0 }

# A server whose store is its own, with more lines.
sub server {
    my ($engine, %more) = @_;

    return VLM->new(name => 'links', user => 'nobody nogroup', model => $model, store_dir => "$top/mine/store",
                    engine => "thinking off; max_tokens 4;\n$engine", %more);
}

sub line_of {
    my ($s, $text) = @_;
    my @before = split /\n/, (split /\Q$text\E/, VLM::slurp($s->dir . '/nginx.conf'))[0], -1;

    return $s->dir . '/nginx.conf:' . @before;
}

sub refused {
    my ($name, $component, $directive, $s) = @_;
    my $before = tree("$top/victim", "$top/theirs", "$top/mine");
    my $why = qr/\Q"$component" in "$top\E\S*" is a link, which is followed only if root made it in a directory that root alone can write/;

    for my $how ('nginx -t', 'a start') {
        my $said = $how eq 'nginx -t' ? $s->check_conf : join ' ', `timeout 60 @{[ $s->command ]} 2>&1`;

        like($said, qr/\[emerg\] .*$why in \Q@{[ line_of($s, $directive) ]}\E$/m, "$name: $how names the link, file and line");
    }

    is(tree("$top/victim", "$top/theirs", "$top/mine"), $before, 'and changes nothing');
}


# ---- another user's links ------------------------------------------------------------------

attack(sub { symlink "$top/victim", "$top/theirs/link"; mkdir "$top/theirs/own"; symlink '../../victim', "$top/theirs/own/store" });
ok(-d "$top/theirs/own/store", 'the links lead to a directory of root');

my $REDIS = 'store redis://127.0.0.1:1 uploads=';

refused('store', 'link', 'store ', server('', store_dir => "$top/theirs/link"));
refused('store below one', 'link', 'store ', server('', store_dir => "$top/theirs/link/new"));
refused('a relative one', 'store', 'store ', server('', store_dir => "$top/theirs/own/store"));
refused('cache', 'link', 'cache ', server("cache $top/theirs/link;"));
refused('cache below one', 'link', 'cache ', server("cache $top/theirs/link/new/;"));
refused('lora', 'link', 'lora ', server("lora $top/theirs/link;"));
refused('socket', 'link', 'socket ', server("socket $top/theirs/link/hop.sock;"));

SKIP: {
    skip 'this module has no hiredis', 6 if server('', store_dir => "redis://127.0.0.1:1 uploads=$top/mine/up")->check_conf
                                                =~ /hiredis/;
    refused('uploads=', 'link', 'store ', server('', store_dir => "${\ substr $REDIS, 6}$top/theirs/link/up"));
    refused('directory=', 'link', 'store ', server('', store_dir => "${\ substr $REDIS, 6}$top/mine/up directory=$top/theirs/link/d"));
}

symlink "$top/victim", "$top/mine/by-bin" or die;
system('chown', '-h', $BIN, "$top/mine/by-bin") == 0 or die;
refused("a link in root's directory that another user owns", 'by-bin', 'store ', server('', store_dir => "$top/mine/by-bin"));
unlink "$top/mine/by-bin";

symlink 'loop', "$top/mine/loop" or die;
refused('a loop', 'loop', 'cache ', server("cache $top/mine/loop;"));
unlink "$top/mine/loop";

chmod 01777, "$top/mine" or die;
symlink '../victim', "$top/mine/open" or die;
refused("root's link in a sticky directory", 'open', 'store ', server('', store_dir => "$top/mine/open"));
unlink "$top/mine/open";
chmod 0755, "$top/mine" or die;


# ---- nginx -t ------------------------------------------------------------------------------

# A store of root's, and one that is not there yet.
mkdir "$top/mine/store", 0755 or die;
mkdir "$top/mine/store/uploads", 0755 or die;
VLM::spew("$top/mine/store/live.lock", '');

for my $store ("$top/mine/store", "$top/mine/new") {
    my $s = server("cache $top/mine/cache;", store_dir => $store);
    my $before = tree("$top/mine");

    like($s->check_conf, qr/test is successful/, "nginx -t takes $store");
    is(tree("$top/mine"), $before, 'and changes nothing, the times of its directories included');
}


# ---- a start -------------------------------------------------------------------------------

sub owner { join ' ', map { my @s = lstat $_; @s ? sprintf('%d:%o', $s[4], $s[2] & 07777) : "no $_" } @_ }

# Root's own links are followed, the relative one and the one that is in a target.
mkdir "$top/safe" or die;
mkdir "$top/safe/data" or die;
symlink "$top/safe", "$top/disk" or die;
symlink 'data', "$top/safe/vlm" or die;

{
    my $s = server("cache $top/disk/vlm/cache; socket $top/disk/vlm/hop.sock;", store_dir => "$top/disk/vlm/store");

    $s->start->ready;
    is(owner("$top/disk", "$top/safe/vlm", "$top/safe/data"), '0:777 0:777 0:755', 'links of root are followed, and stay');
    is(owner(map { "$top/safe/data/$_" } qw(store store/uploads store/results store/documents cache)),
       join(' ', ("$NOBODY:700") x 5), 'the new directories are the workers\' alone');
    is(owner(map { "$top/safe/data/$_" } qw(store/vlm.db store/live.lock hop.sock)), join(' ', ("$NOBODY:600") x 3),
       'and so are the new files, and the socket');
    is($s->post('/api/session')->{code}, 200, 'they use the store');
    ok($s->stop, 'the server stops in time');
    $s->check_log;
}

# What is there stays as it is, and the log says who cannot use it.
chown $BIN, $BIN, "$top/safe/data/store/uploads" or die;
chmod 0755, "$top/safe/data/store/uploads", "$top/safe/data/cache" or die;

{
    my $s = server("cache $top/disk/vlm/cache;", store_dir => "$top/disk/vlm/store");

    $s->start->ready;
    is(owner(map { "$top/safe/data/$_" } qw(store/uploads cache)), "$BIN:755 $NOBODY:755", 'owners and modes stay');
    like($s->health->{store_reason} || '', qr{store \S+/uploads cannot be written: Permission denied}, 'health names what the workers cannot write');
    is($s->post('/v1/completions', { prompt => 'hi', max_tokens => 1 })->{code}, 200, 'the server answers');

    # The workers' own user leads a reload elsewhere.
    my $secret = "$top/victim/secret";
    VLM::spew($secret, '');
    chmod 0600, $secret or die;
    attack(sub {
        chdir "$top/safe/data/store";
        rename 'live.sock', 'aside' and symlink $secret, 'live.sock' or POSIX::_exit(1);
        rmdir 'results' and symlink "$top/victim", 'results' or POSIX::_exit(1);
    });
    is($?, 0, 'the workers\' user puts links to files of root in the store');
    $s->signal('HUP');
    ok($s->log_has(qr/"results" is a link: move it away/), 'a reload refuses the store');
    is(owner("$top/victim", $secret), '0:755 0:600', 'and gives nothing of root away');
    ok($s->stop, 'the server stops in time');
    is(owner("$top/victim", $secret), '0:755 0:600', 'nor does the end');
}

# Another user changes the path all the time, while root checks and starts.
{
    my $dir = "$top/theirs/race";
    my $parent = $$;
    my $pid = as_nobody(sub {
        mkdir $dir;
        mkdir "$dir/a";

        while (getppid == $parent) {
            symlink "$top/victim", "$dir/b";
            rename "$dir/b", "$dir/store" or unlink "$dir/b";
            unlink "$dir/store";
            rename "$dir/a", "$dir/store";
            symlink "$top/victim/secret", "$dir/store/x";
            rename "$dir/store/x", "$dir/store/live.sock";
            rename "$dir/store/x", "$dir/store/vlm.db" if symlink "$top/victim/secret", "$dir/store/x";
            rename "$dir/store", "$dir/a";
        }
    });

    my $before = tree("$top/victim");
    my $s = server('', store_dir => "$dir/store", user => 'bin bin');

    for my $round (1 .. 20) {
        $s->check_conf;
        is(tree("$top/victim"), $before, "round $round of nginx -t in a race") unless tree("$top/victim") eq $before;
    }

    is(tree("$top/victim"), $before, "nginx -t in a race leaves root's files alone");
    kill 'KILL', $pid;
    waitpid $pid, 0;
}


# ---- make run ------------------------------------------------------------------------------

# In a checkout of another user, with a program in nginx's place that says who runs it.
{
    my $checkout = "$top/checkout";
    my $port = VLM::free_port();

    mkdir "$top/bin" or die;
    VLM::spew("$top/bin/nginx", "#!/bin/sh\nid -u\n");
    chmod 0755, "$top/bin/nginx" or die;
    system("mkdir -p $checkout/conf $checkout/demo/model && cp -p conf/run.sh conf/run.conf.in $checkout/conf/ && "
           . "cp demo/model/config.json $checkout/demo/model/ && chown -R $NOBODY:$NOGROUP $checkout && "
           . "ln -s $top/victim $checkout/run && chown -h $NOBODY $checkout/run") == 0 or die;

    my $before = tree("$top/victim");
    my $run = "PATH=$top/bin:\$PATH PORT=$port MODEL= MMPROJ= LORA= $checkout/conf/run.sh 2>&1";

    like(`$run`, qr/Permission denied/, "root's make run does not write where a link of the checkout's owner leads");
    is(tree("$top/victim"), $before, 'and changes nothing there');

    unlink "$checkout/run" or die;
    is(`$run`, "$NOBODY\n", 'nginx runs as the owner of the checkout');
    is(owner("$checkout/run/$port/store"), "$NOBODY:755", 'and so are its files made');

    system("chown -R 0:0 $checkout") == 0 or die;
    is(`$run`, "0\n", 'and as root in a checkout of root');
    like(VLM::slurp("$checkout/run/$port/nginx.conf"), qr/^user root root;$/m, 'whose workers are root, too');
}

done_testing();
