package Walls;

# Runs a server of VLM.pm on a root that is read-only but for some directories, with no more rights
# than a container or a service gives it.  Root alone can do so.
#
#     my $s = VLM->new(name => 'walls');
#     my $at = Walls::build($s, ['store', 'tmp'], '', '--reuid', 10001, ...);
#     $s->{conf} = "... $at->{dir}/store ...";
#
# In the server's mount namespace the checkout is at /mnt, since another user may be unable to search
# the directories above it.

use strict;
use warnings;

use Cwd qw(getcwd);
use File::Path qw(make_path);

my $SCRIPT = <<'_EOC_';
    root=$1 dir=$2 writable=$3 calls=$4 rights=$5
    shift 5

    mount --make-rprivate /
    mount --bind "$root" /mnt
    for place in $writable; do mount --bind "/mnt$dir/$place" "/mnt$dir/$place"; done
    mount --bind / /
    mount -o remount,bind,ro /
    mount -o remount,bind,ro /mnt
    cd /

    for file in /etc/read-only "/mnt$dir/read-only"; do
        ! touch "$file" 2>/dev/null || { echo "$file can be written"; exit 1; }
    done

    set -- $(printf '%s\n' "$@" | sed "s|$root|/mnt|g")
    [ -z "$calls" ] || set -- python3 -B /mnt/t/tools/filter.py "$calls" "$@"
    exec setpriv $rights --no-new-privs "$@"
_EOC_


# writable: directories below the server's, which are made; calls: a SystemCallFilter of systemd, or '';
# rights: of setpriv.  Returns the paths of the
# checkout and of the server's directory as the server sees them.
sub build {
    my ($s, $writable, $calls, @rights) = @_;

    my $root = getcwd();
    my $dir = substr $s->dir, length $root;

    make_path(map { $s->dir . "/$_" } @$writable, 'logs');
    $s->{under} = ['unshare', '--mount', 'sh', '-ec', $SCRIPT, 'sh', $root, $dir, "@$writable logs", $calls, "@rights"];

    my ($module) = split ' ', $ENV{TEST_NGINX_LOAD_MODULES} || "$root/build/ngx_http_vlm_module.so";

    return { root => '/mnt', dir => "/mnt$dir", module => $module =~ s{^\Q$root\E}{/mnt}r };
}

1;
