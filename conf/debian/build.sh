#!/bin/sh
#
# `make deb` calls this script.  It builds packages for the Debian that it runs on and leaves them in
# build/deb/.  dpkg-buildpackage wants a directory debian/ at the top of the sources, so they are
# copied, and conf/debian is that directory in the copy.
#
# NVCC is the path of nvcc; without it nginx-vlm-cuda is left out.  DEBFULLNAME and DEBEMAIL, the
# variables of Debian's own tools, name the maintainer.  Without them the packages name the authors
# at an address that cannot exist (RFC 2606), since the project has no mailbox.

set -eu

cd "$(dirname "$0")/../.."

. /etc/os-release

version=$(sed -n 's/^#define VLM_VERSION "\([^"]*\)".*/\1/p' engine/vlm.h)
top=$PWD/build/deb
src=$top/nginx-vlm-$version

rm -rf "$top"
mkdir -p "$src"

tar -c --exclude=engine/build config config.make Makefile LICENSE README.md CHANGELOG.md \
    ngx_http_vlm_module.c conf engine lib http html pdf cuda docs | tar -x -C "$src"
mv "$src/conf/debian" "$src/debian"

# The module fits one nginx, so each Debian has a version of its own; the later Debian's is higher.
sed -i "1s/) unstable;/~deb$VERSION_ID) $VERSION_CODENAME;/" "$src/debian/changelog"

if [ -n "${DEBEMAIL:-}" ]; then
    maintainer=$(printf '%s' "${DEBFULLNAME:-nginx-vlm authors} <$DEBEMAIL>" | sed 's/[&|\\]/\\&/g')
    sed -i "s|^Maintainer: .*|Maintainer: $maintainer|" "$src/debian/control"
    sed -i "s|^ -- .*>  | -- $maintainer  |" "$src/debian/changelog"
fi

profiles=
if [ -n "${NVCC:-}" ]; then
    profiles=-Ppkg.nginx-vlm.cuda
    export NVCC
    cuda/toolkit words "$NVCC"
else
    echo 'nginx-vlm-cuda is left out, because there is no nvcc: docs/gpu.md says where it comes from.'
fi

# The variables of the make that called the script are not the package's.
unset MAKEFLAGS MFLAGS MAKELEVEL ENGINE_BUILD WERROR CFLAGS NGINX

cd "$src"
DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage -b -us -uc $profiles

cd "$top"
rm -r "$src"
ls -l -- *.deb
