package Shipped;

# Reads the shipped configurations from their own text: conf/*.conf and that of
# README.md.  Only ports, paths and the checkpoint are replaced.  Fleet.pm reads
# conf/scale-out.conf, which has no engine.

use strict;
use warnings;

use Cwd ();
use File::Basename qw(basename);
use File::Path qw(make_path);
use Script;
use VLM;

my $ROOT = Cwd::getcwd();


# name => text
sub all {
    my %all = map { basename($_) => VLM::slurp($_) } grep { !m{/scale-out\.conf$} } glob 'conf/*.conf';

    ($all{'README.md'}) = grep { /^http \{/m } fences('README.md');

    return %all;
}


# Returns the blocks of a page that are configuration.
sub fences {
    return VLM::slurp($_[0]) =~ /^```nginx\n(.*?)^```/msg;
}


# Returns all configuration of a page, fenced, indented, or behind "Example:", without the text that the
# module generates.
sub snippets {
    my ($file) = @_;

    my $text = VLM::slurp($file);

    $text =~ s/^## The generated text\n.*//ms;

    my @found = $text =~ /^```nginx\n(.*?)^```/msg;

    $text =~ s/^```.*?^```//msg;

    push @found, map { s/^    //mgr } grep { /[;}]$/m && !/^    Syntax:/m && !/^    (?:vlm_engine )?"/m }
                 $text =~ /((?:^    \S.*\n|^     +\S.*\n)+)/mg unless $file =~ m{^docs/dev/};

    push @found, $text =~ /^    Example:  (.*)/mg;

    return map { split /^\.\.\.\n/m } @found;
}


# Returns a configuration for a server in this directory, with this port.
sub placed {
    my ($text, $dir, $port) = @_;

    my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES}
                              || "$ROOT/build/ngx_http_vlm_module.so";
    my $user = $> == 0 ? 'user root;' : '';
    my $temp = join "\n", map { "    ${_}_temp_path $dir/$_;" }
                          qw(client_body proxy fastcgi uwsgi scgi);

    for ($text) {
        s{modules/ngx_http_vlm_module\.so}{$module};
        s{^user www-data;}{$user}m;
        s{/var/log/nginx/}{$dir/logs/}g;
        s{/var/lib/nginx/vlm}{$dir/store}g;
        s{/var/cache/nginx-vlm}{$dir/cache}g;
        s{/run/nginx-vlm\.sock}{$dir/vlm.sock}g;
        s{/models/(RoboBrain2\.0-3B|Qwen3-VL-2B-Instruct)}{model($dir, $1)}ge;
        s{/srv/robobrain/(weights)}{model($dir, $1)}ge;
        s{/models/bloomz-560m}{$ROOT/demo/model-bloom}g;
        s{/models/adapters}{$ROOT/demo/adapters}g;
        s{/models/all-MiniLM-L6-v2}{$ROOT/t/fixtures/embed/tiny}g;
        s{/usr/share/nginx-vlm/html}{$ROOT/html}g;
        # nginx -t asks whether the program can be run, and the kernel for Landlock
        s{/usr/libexec/nginx-vlm/vlm-pdf}{/bin/true sandbox=seccomp}g;
        s{/etc/ssl/\w+/robobrain}{$dir/robobrain}g;
        s{listen 127\.0\.0\.1:5001}{listen 127.0.0.1:$port}g;
        s{listen 443}{listen 127.0.0.1:$port}g;
        s/^http \{\n/http {\n    access_log $dir\/logs\/access.log;\n$temp\n/m;
    }

    return "daemon off;\npid $dir/nginx.pid;\n$text";
}

# Links a demo model under the name of the real one, in a directory of its own.
# RoboBrain's script has its model in weights/, and asks it to think, or to answer behind
# "<answer>": the demo models learned neither, so this one is scripted.
sub model {
    my ($dir, $name) = @_;

    my $model = "$dir/models/$name";

    return $model if -d $model;

    my $files = $name eq 'weights' ? Script::model('weights', thought => ['A mug', '</think>', '<answer>', 'One.', '</answer>'],
                                                              ''      => ['I see', ' a mug.'])
              : $name =~ /^Qwen3/  ? "$ROOT/demo/model-3" : "$ROOT/demo/model";

    make_path($model);
    symlink $_, "$model/" . basename($_) or die "$model: $!" for glob "$files/*";

    return $model;
}

1;
