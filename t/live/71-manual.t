# Runs the commands of docs/operations.md, docs/security.md and docs/migrate.md from their own text,
# against servers with the pages' own configurations.  t/clients runs those of the other pages.

use strict;
use warnings;

use lib 't/lib';
use Cwd ();
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path);
use IO::Socket::INET;
use JSON::PP ();
use Shipped;
use Test::More;
use VLM;

my $BINARY = $ENV{TEST_NGINX_BINARY} || (grep { -x } '/usr/sbin/nginx', '/usr/local/sbin/nginx')[0];

# The new master of an upgrade is a child of the old one, and becomes one of this test at its exit.
VLM::adopt();
$ENV{TEST_NGINX_BINARY} = $BINARY;


# Returns the commands of a page, each with the comment behind it; a line that ends with a backslash
# goes on in the next one.  With a word, only those of the blocks that have it.
sub commands {
    my ($page, $word) = @_;
    my @found;

    for my $block (VLM::slurp($page) =~ /^```sh\n(.*?)^```/msg) {
        next if defined $word && index($block, $word) < 0;

        (my $text = $block) =~ s/\\\n\s*/ /g;

        for my $line (grep { /^[^#]/ } split /\n/, $text) {
            my ($command, $told) = $line =~ /^(.*?)(?:\s+#\s*(.*))?$/;

            push @found, [$command, $told];
        }
    }

    return @found;
}


sub run {
    my ($command) = @_;

    open my $out, '-|', 'bash', '-c', "$command 2>&1" or die "bash: $!";
    my $said = do { local $/; <$out> };
    close $out;

    return ($?, $said // '');
}


# Makes a systemctl that knows this server as nginx, for the commands of a page, and returns the PATH that has it.
sub systemctl {
    my ($s) = @_;
    my ($dir, $nginx) = ($s->dir, join ' ', $s->command);

    make_path("$dir/shim");
    VLM::spew("$dir/shim/systemctl", <<"_EOC_");
#!/bin/sh
exec >>$dir/logs/stderr.log 2>&1
case \$* in
    'stop nginx') exec $nginx -s quit ;;
    'start nginx' | 'restart nginx') exec $nginx ;;
    *) echo "systemctl \$*: not in this test"; exit 1 ;;
esac
_EOC_
    chmod 0755, "$dir/shim/systemctl";

    return "$dir/shim:$ENV{PATH}";
}


# ---- docs/operations.md -------------------------------------------------------

{
    my $s = VLM->new(name => 'operations', workers => 2, daemon => 'on',
                     engine => 'thinking off; max_tokens 32; sampling temperature=0;',
                     main => 'env LD_PRELOAD; env ASAN_OPTIONS; env UBSAN_OPTIONS;');
    my $dir = $s->dir;
    my $nginx = join ' ', $s->command;
    my ($file, $old, $model, %seen) = ($s->dir . '/logs/error.log', 0, 0);

    $s->start->ready;

    my $picture = $s->upload('demo/pictures/table-01.png');
    my $ask = sub { $s->chat($_[0], 'How many objects are on the table?', image => $picture) };

    local $ENV{PATH} = systemctl($s);

    is($ask->('kept')->{code}, 200, 'a session before the backup');

    for (commands('docs/operations.md')) {
        my ($command, $told) = @$_;
        my $run = $command;

        for ($run) {
            s{/var/log/nginx/}{$dir/logs/}g;
            s{/run/nginx\.pid}{$dir/nginx.pid}g;
            s{/var/lib/nginx/vlm}{$dir/store}g;
            s{/backup}{$dir/backup}g;
            s{www-data:}{getpwuid($>) . ':'}e;
            s{\bnginx -}{$nginx -}g;
            s{127\.0\.0\.1:5001}{"127.0.0.1:" . $s->port}e;
        }

        $seen{$command =~ /^(\S+ ?\S*)/ ? $1 : ''}++;

        $old = $s->pid;
        $model = $s->designated;

        if ($command =~ m{^cp .* /backup/$}) {
            is($ask->('later')->{code}, 200, 'a session after the backup of the database');
            is($s->begin('DELETE', '/api/session/kept')->end->{code}, 200, 'and one that is deleted then');
        }

        my ($status, $said) = run($run);

        is($status, 0, "$command: it runs") or diag($said);

        if ($command =~ /reopen/) {
            ok(VLM::wait_for(sub { -e $file }), 'nginx makes a new log');

        } elsif ($command =~ /reload/) {
            ok(VLM::wait_for(sub { my $new = $s->designated; $new && $new != $model }), 'another worker has the model');
            $s->ready;
            like(VLM::slurp($file), qr/model loaded/, 'which the new log has');
            unlike(VLM::slurp("$file.1"), qr/model loaded.*model loaded/s, 'and the old one has not');

        } elsif ($command =~ /USR2/) {
            ok(VLM::wait_for(sub { -e "$dir/nginx.pid.oldbin" && $s->master($old) }), 'a second master');

        } elsif ($command =~ /QUIT/) {
            my $new = $s->master($old);

            ok(VLM::wait_for(sub { $s->ended }), 'the old master and its workers go');
            $s->{pid} = $new;
            $s->ready;
            is($ask->('kept')->{code}, 200, 'the new one answers');

        } elsif ($command =~ /^systemctl stop/) {
            ok(VLM::wait_for(sub { $s->ended }), 'the server ends');

        } elsif ($command =~ /^systemctl start/) {
            $s->started($s->master)->ready;

        } elsif ($command =~ /integrity_check/) {
            is($said, "ok\n", 'the backup is whole');

        } elsif ($command =~ m{health/ready}) {
            is($said, qq({"status":"ok"}\n), 'the answer is that of the page');
        }

        if ($command =~ /^chown/) {
            ok(!-e "$dir/store/vlm.db-wal", 'nothing of the old database is left');
        }
    }

    is($seen{"systemctl start"}, 1, 'the page has a restore');
    is(scalar @{ $s->get('/api/history/kept')->{json} || [] }, 4, 'the restored store has the session');
    is($s->get("/uploads/$picture")->{code}, 200, 'and its picture');
    is($s->get('/api/history/later')->{code}, 404, 'and none of what came later');
    is($ask->('kept')->{code}, 200, 'and it can be asked');
    ok($s->stop, 'the server stops');
    $s->check_log;
}


# ---- docs/security.md -----------------------------------------------------------

{
    my @blocks = Shipped::fences('docs/security.md');
    my ($keys) = grep { /if \(\$client = ""\)/ } @blocks;
    my ($login) = grep { /auth_request/ } @blocks;
    my $http = join '', grep { /^map/ } @blocks;
    my $engine = join '', grep { /^fair/ } @blocks;
    my ($one, $two, $three) = map { VLM::free_port() } 1 .. 3;
    my $s = VLM->new(name => 'security', port => $one);

    $keys =~ s/vlm_pass/limit_req zone=questions burst=8 nodelay;\n    vlm_pass/;
    $login =~ s/127\.0\.0\.1:9000/127.0.0.1:$three/;

    $s->{conf} = Shipped::placed(<<"_EOC_", $s->dir, $one);
load_module modules/ngx_http_vlm_module.so;
user www-data;
error_log /var/log/nginx/error.log notice;
thread_pool vlm threads=1;
events { }

http {
$http
    vlm_engine robobrain { model /models/RoboBrain2.0-3B; store /var/lib/nginx/vlm; $engine }
    server { listen 127.0.0.1:$one; $keys }
    server { listen 127.0.0.1:$two; $login }
    server {
        listen 127.0.0.1:$three;
        location / { if (\$http_cookie = "login=ok") { return 200; } return 401; }
    }
}
_EOC_

    $s->start;
    ok(VLM::wait_for(sub { $s->get('/health')->{code} eq '200' }), 'the server of docs/security.md is ready');

    my ($at, $n) = ('', 0);

    for (commands('docs/security.md')) {
        my ($command, $told) = @$_;

        $command =~ s/127\.0\.0\.1:5001/127.0.0.1:$one/;
        $command =~ s/127\.0\.0\.1:5002/127.0.0.1:$two/;

        if ($command =~ /^S=/) {
            $at = $command;
            next;
        }

        my ($status, $said) = run("$at; $command");

        is($said, "$told\n", $command);
        $n++;
    }

    cmp_ok($n, '>=', 7, 'docs/security.md has commands');

    my $key = 'Authorization: Bearer a-long-secret';
    my (undef, $codes) = run(qq(curl -s -o /dev/null -w '%{http_code} ' -H '$key' -d '{}' 'http://127.0.0.1:$one/v1/chat/completions?[1-40]'));

    cmp_ok(scalar(() = $codes =~ /429/g), '>', 20, 'most of forty questions at once are too many') or diag($codes);
    ok($s->stop, 'the server stops');
}


# ---- docs/migrate.md: conf/robobrain.conf in the script's place --------------------

my @INSTALL = commands('docs/migrate.md', 'robobrain.conf');

{
    my $s = VLM->new(name => 'script');
    my ($dir, $port) = ($s->dir, $s->port);
    my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || 'build/ngx_http_vlm_module.so';
    my $doctor = '--user ' . getpwuid($>) . " --nginx $BINARY --module $module";
    my $script = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1', LocalPort => $port, ReuseAddr => 1)
        or die "port $port: $!";
    my $place = Shipped::model($dir, 'weights');
    my $weights = "$dir/opt/robobrain/weights";
    my %ran;

    local $ENV{PATH} = systemctl($s);

    make_path($weights, "$dir/etc");
    VLM::spew("$dir/etc/nginx.conf", "events { }\n");

    for my $file (glob "$place/*") {
        copy($file, $weights) or die "$file: $!";
    }

    chmod 0600, glob "$weights/*";

    for (@INSTALL) {
        my $command = my $run = $_->[0];

        for ($run) {
            s{/etc/nginx/}{$dir/etc/}g;
            s{/opt/robobrain}{$dir/opt/robobrain}g;
            s{/var/cache/nginx-vlm}{$dir/cache}g;
            s{127\.0\.0\.1:5001}{127.0.0.1:$port};
            s{^vlm (.*)}{dirname($module) . "/vlm $1 $doctor"}e;
            s{^nginx -t}{join ' ', $s->command('-t')}e;
        }

        if ($command eq 'nginx -t') {
            my $text = VLM::slurp("$dir/etc/nginx.conf");

            is(() = $text =~ m{\Q$dir\E/opt/robobrain}g, () = VLM::slurp('conf/robobrain.conf') =~ m{/srv/robobrain}g,
               'the file has the path of this script');
            $s->{conf} = Shipped::placed($text, $dir, $port) =~ s/^daemon off;/daemon on;/r;
            $s->write_conf;

        } elsif ($command =~ /^systemctl/) {
            close $script;
        }

        my ($status, $said) = run($run);

        is($status, 0, "$command: it runs") or diag($said);
        $ran{$command =~ /^(\w+)/ ? $1 : ''}++;

        if ($command =~ /^systemctl/) {
            $s->started($s->master);

        } elsif ($command =~ /^chmod/) {
            is(join(' ', grep { ((stat)[2] & 044) != 044 } $weights, glob "$weights/*"), '', 'the workers can read the weights');

        } elsif ($command =~ /^curl/) {
            ok(VLM::wait_for(sub { (run($run))[1] =~ /"model_loaded":true/ }), 'the server has the model');
        }
    }

    is_deeply(\%ran, { map { $_ => 1 + ($_ eq 'cp') } qw(chmod vlm cp sed nginx systemctl curl) }, 'the page has an installation');
    is(VLM::slurp("$dir/etc/nginx.conf.before"), "events { }\n", 'the old configuration is kept');
    is($s->chat('a', 'hi', text_only => JSON::PP::true)->{code}, 200, 'a question is answered in the script\'s place');
    ok($s->stop, 'the server stops');
    $s->check_log;
}


# ---- docs/migrate.md: its examples --------------------------------------------------

{
    my ($brain, $ollama, $pdf, $lora) = Shipped::fences('docs/migrate.md');
    my ($one, $two) = map { VLM::free_port() } 1 .. 2;
    my $s = VLM->new(name => 'migrate', port => $one);
    my ($paths) = VLM::slurp('conf/minimal.conf') =~ /location (~ \S+) \{/;
    my $helper = Cwd::getcwd() . '/build/vlm-pdf';

    die "make documents builds $helper\n" unless -x $helper;

    # A kernel without Landlock needs the other sandbox.
    $pdf =~ s{documents on}{"documents on helper=$helper sandbox=" . (syscall(444, 0, 0, 1) > 0 ? 'landlock' : 'seccomp')}e;

    $s->{conf} = Shipped::placed(<<"_EOC_", $s->dir, $one);
load_module modules/ngx_http_vlm_module.so;
user www-data;
error_log /var/log/nginx/error.log notice;
thread_pool vlm threads=1;
thread_pool bloom threads=1;
events { }

http {
    vlm_engine robobrain { $brain $ollama $pdf }
    vlm_engine bloom { $lora store /var/lib/nginx/vlm; thread_pool bloom; }
    server { listen 127.0.0.1:$one; location $paths { vlm_pass robobrain; } }
    server { listen 127.0.0.1:$two; location $paths { vlm_pass bloom; } }
}
_EOC_

    copy('demo/pictures/table-01.png', $s->dir . '/kitchen.png') or die "kitchen.png: $!";
    copy('t/documents/files/latin.pdf', $s->dir . '/manual.pdf') or die "manual.pdf: $!";

    $s->start;
    ok(VLM::wait_for(sub { $s->get('/health')->{code} eq '200' }), 'the server of docs/migrate.md is ready');
    ok(VLM::wait_for(sub { (run("curl -s http://127.0.0.1:$two/health"))[1] =~ /"ok"/ }), 'with both engines');

    my $set = 'cd ' . $s->dir;
    my $n = 0;

    my %install = map { $_->[0] => 1 } @INSTALL;

    for (grep { !$install{$_->[0]} } commands('docs/migrate.md')) {
        my ($command, $told) = @$_;

        $command =~ s/127\.0\.0\.1:5001/127.0.0.1:$one/;
        $command =~ s/127\.0\.0\.1:5002/127.0.0.1:$two/;

        if ($command =~ /^[A-Z]+=/) {
            $set .= "; $command";
            next;
        }

        my ($status, $said) = run("$set; $command");

        is($said, $command =~ /^curl/ ? "$told\n" : '', substr $command, 0, 160);
        $n++;
    }

    cmp_ok($n, '>=', 22, 'docs/migrate.md has commands');

    ok($s->stop, 'the server stops');
}

done_testing();
