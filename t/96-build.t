# Tests builds with other compilers and in other places: the Makefiles and nginx's
# configure run with a compiler, a pkg-config and an auto/module that print their
# arguments.

use strict;
use warnings;

use Cwd qw(cwd);
use File::Path qw(make_path remove_tree);
use Test::More;

require './t/lib/VLM.pm';

delete @ENV{qw(MAKEFLAGS MAKELEVEL CC CFLAGS CPPFLAGS LDFLAGS WERROR ENGINE_BUILD)};

my $root = cwd();
my $dir = "$root/build/other";
my $object = "$dir/engine/lib/base/err.o";

remove_tree($dir);
make_path("$dir/bin", "$dir/a b", "$dir/nginx/auto");


sub program {
    my ($name, $text) = @_;

    VLM::spew("$dir/bin/$name", "#!/bin/sh\n$text\n");
    chmod 0755, "$dir/bin/$name";

    return "$dir/bin/$name";
}


sub engine {
    return scalar `make --no-print-directory -C engine B=$dir/engine @_ 2>&1`;
}


# The commands by which nginx's makefile would make the module.
sub module {
    return scalar `make -n --no-print-directory -C build/nginx -f objs/Makefile @_ modules 2>&1`;
}


sub slurp {
    local (@ARGV, $/) = @_;

    return <> // '';
}


# ---- the checkout ----------------------------------------------------------

like(scalar `make -C "$dir/a b" -f $root/Makefile help 2>&1`,
     qr/"[^"]*a b" has a space in it.* move the checkout/, 'a path with a space is refused');


# ---- another processor -----------------------------------------------------

my $arm = program('arm-cc', 'test "$1" = -dumpmachine || exec cc "$@"; echo aarch64-linux-gnu');

my $here = engine('-n all');
my $there = engine("-n all CC=$arm");

like($_, qr{ops/plain/linear\.c}, 'the plain kernels are for every processor') for $here, $there;
like($here, qr{ops/avx2/}, "x86's are for x86") if `cc -dumpmachine` =~ /^x86_64-/;
unlike($here, qr{ops/(?:neon|i8mm)/}, "and arm64's are not") if `cc -dumpmachine` =~ /^x86_64-/;
unlike($there, qr{ops/a(?:vx|mx)}, 'other processors have no kernels for x86');
like($there, qr{-march=\S+\+dotprod .*ops/neon/linear\.c}, "arm64's are for arm64");


# ---- warnings --------------------------------------------------------------

unlike($here, qr/-Werror/, 'a warning ends no build');
like(engine('-n all WERROR=-Werror'), qr/-Werror .*-c /, 'WERROR=-Werror is passed to the compiler');


# ---- conditions for a rebuild ----------------------------------------------

my $compiled = qr/-c -o \Q$object\E /;

like(engine($object), $compiled, 'an object is compiled');
unlike(engine($object), $compiled, 'an unchanged object is not compiled again');
like(engine($object, 'CFLAGS="-O1 -g"'), $compiled, 'other flags compile it again');
unlike(engine($object, 'CFLAGS="-O1 -g"'), $compiled, 'the same flags do not compile it again');

# As if these headers, by their names in the compiler's list, had just changed.
like(engine($object, 'CFLAGS="-O1 -g"', '-W ../lib/base/err.h'), $compiled, 'a change of its header compiles it again');
unlike(engine($object, 'CFLAGS="-O1 -g"', '-W ../lib/base/json.h'), $compiled, 'a header that it does not include does not');

my @objects = glob "$root/build/nginx/objs/addon/*/*.o";

cmp_ok(scalar @objects, '>', 50, 'the module has objects');
is(join(' ', grep { !-e s/o$/d/r } @objects), '', 'the compiler has listed the headers of each');

my $queue = "$root/build/nginx/objs/addon/line/queue";

for my $header (qw(http/line/line.h lib/base/err.h lib/base/pixels.h engine/vlm.h)) {
    my ($name) = slurp("$queue.d") =~ /(\S+\Q$header\E)/;

    like(module('-W', $name // $header), qr{-o objs/addon/line/queue\.o }, "a change of $header compiles line/queue.c again");
}

unlike(module('-W', "$root/http/api/messages.h"), qr{-o objs/addon/line/queue\.o }, 'a header of a higher floor does not');

# The archive is made again when a source comes or goes, though no object is newer then.
my $list = "$dir/engine/made-of";

VLM::spew($list, "removed.o\n");
engine($list);
like(slurp($list), qr{/lib/base/err\.o }, 'the list of objects is that of the sources');
utime 1, 1, $list;
engine($list);
is((stat $list)[9], 1, 'an unchanged list stays as it is');
like(engine('-n', '-p', "$dir/engine/libvlm.a"), qr{^\S+/libvlm\.a:.* \S+/made-of$}m, 'the archive depends on the list');

program('pkg-config', 'test "$1" = --modversion && echo 99.1 || exec /usr/bin/pkg-config "$@"');

{
    local $ENV{PATH} = "$dir/bin:$ENV{PATH}";

    like(engine($object, 'CFLAGS="-O1 -g"'), $compiled, 'another version of a library compiles it again');
}


# ---- conditions for nginx's configure ----------------------------------------

# The tree of another nginx, whose configure counts its runs.
make_path("$dir/src/src/core", "$dir/e");
VLM::spew("$dir/e/built-with", "cc\n");
VLM::spew("$dir/src/conf_flags", "NGX_CONF_FLAGS=()\n");
VLM::spew("$dir/src/configure", "mkdir objs && touch objs/Makefile && echo >>$dir/runs\n");
VLM::spew("$dir/src/src/core/nginx.h", "#define NGINX_VERSION \"1.22.1\"\n");

sub configured {
    my $said = `make --no-print-directory ENGINE=true O=$dir/o E=$dir/e NGINX_SRC=$dir/src $dir/o/nginx/objs/Makefile 2>&1`;

    return $? == 0 ? length VLM::slurp("$dir/runs") : $said;
}

is(configured(), 1, 'nginx is configured');
is(configured(), 1, 'once');

VLM::spew("$dir/src/src/core/nginx.h", "#define NGINX_VERSION \"1.26.3\"\n");
utime 1e9, 1e9, "$dir/src/src/core/nginx.h";     # as a package has it: older than the build
is(configured(), 2, 'another version of nginx configures again');

VLM::spew("$dir/e/built-with", "clang\n");
is(configured(), 3, "another compiler, as the engine's file tells it, too");

program('pkg-config', 'test "$*" = "--modversion sqlite3" && echo 99.1 || exec /usr/bin/pkg-config "$@"');

{
    local $ENV{PATH} = "$dir/bin:$ENV{PATH}";

    is(configured(), 4, 'another version of a library of the nginx side, too');
    is(configured(), 4, 'once');
}


# A checkout of another nginx has its configure below auto/, and no flags of Debian's.
make_path("$dir/checkout/src/core", "$dir/checkout/auto");
VLM::spew("$dir/checkout/src/core/nginx.h", "#define NGINX_VERSION \"1.31.5\"\n");
VLM::spew("$dir/checkout/auto/configure", "mkdir objs && touch objs/Makefile && { echo \"\$@\"; env; } >$dir/flags\n");

sub from_checkout {
    my ($from, @more) = @_;

    return scalar `make --no-print-directory NGINX=$from ENGINE=true O=$dir/p E=$dir/e @more 2>&1`;
}

like(from_checkout("$dir/bin", "$dir/p/nginx/objs/Makefile"), qr{^\Q$dir\E/bin has no sources of nginx$}m,
     'NGINX= of another directory is refused');

from_checkout("$dir/checkout", "$dir/p/nginx/objs/Makefile");
like(VLM::slurp("$dir/flags"), qr{--with-compat .*--with-threads .*--add-dynamic-module=\Q$root\E }, "NGINX= of a checkout is configured with Debian's flags");
unlike(VLM::slurp("$dir/flags"), qr/^NGINX=/m, 'nginx does not find NGINX= in its environment, where it has the sockets of another');
like(from_checkout("$dir/checkout", '-n module'), qr{^make .*objs/Makefile binary modules$}m, 'and that nginx is built, too')
    or diag(from_checkout("$dir/checkout", '-n module'));


# ---- inside another nginx --------------------------------------------------

VLM::spew("$dir/nginx/auto/module", 'echo "type $ngx_module_type; libs $ngx_module_libs"');
VLM::spew("$dir/nginx/auto/define", 'echo "$have $value" >>defined');

my %said = map { $_ => scalar `cd $dir/nginx && USE_THREADS=YES NGX_OBJS=objs ngx_addon_dir=$root \\
                               ngx_module_link=$_ sh -e $root/config 2>&1` } qw(ADDON DYNAMIC);

like($said{$_}, qr/^type HTTP_AUX_FILTER;/, "$_: the filters stand among nginx's own")
    for qw(ADDON DYNAMIC);
like($said{DYNAMIC}, qr/--version-script=/, 'a module exports only the symbols that nginx looks up');
unlike($said{ADDON}, qr/--version-script=/, 'an nginx exports the symbols for its modules');

like(VLM::slurp("$dir/nginx/defined"), qr{^NGX_HTTP_VLM_LIBEXEC "/usr/libexec/nginx-vlm"$}m, 'the module knows where vlm-pdf is installed');

# nginx calls the header filters from the last module of its list to the first, and the same for bodies: a
# module in front of the write filter, as one of the type HTTP is, has filters that never run.
my $modules = <<'_EOC_';
    . auto/options && . auto/init && . auto/sources && mkdir -p $NGX_OBJS && : >$NGX_AUTO_CONFIG_H
    NGX_PLATFORM=Linux
    . auto/modules
_EOC_

VLM::spew("$dir/modules.sh", $modules);
system("cp -rL /usr/share/nginx/src $dir/static") == 0 or die 'nginx-dev';
my $out = `cd $dir/static && bash $dir/modules.sh --with-threads --add-module=$root 2>&1`;
my @order = VLM::slurp("$dir/static/objs/ngx_modules.c") =~ /^\s+"(\w+_filter_module|ngx_http_vlm_module)",$/mg;
my ($vlm) = grep { $order[$_] eq 'ngx_http_vlm_module' } 0 .. $#order;

ok($vlm, 'an nginx with the module inside calls its filters before the one that writes') or diag($out);
is(join(' ', @order[$vlm - 1 .. $vlm + 1]),
   'ngx_http_headers_filter_module ngx_http_vlm_module ngx_http_copy_filter_module',
   'its filters run, between those of headers and copy') if $vlm;
is($order[0], 'ngx_http_write_filter_module', 'the last filter is the one that writes');

done_testing();
