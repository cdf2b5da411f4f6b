#!/bin/sh
# Install a release on a Debian that has nothing but its minimal packages, and use it as
# its first user would: run.sh DIST WHEEL SCRATCH. "make test-install" runs it.
#
# DIST is the folder of a release with the package and the archive of this machine, WHEEL
# the Python client. mmdebstrap makes the Debian in a temporary folder and throws it away
# again. Who is not root needs newuidmap (Debian's package uidmap) and ids in /etc/subuid;
# root uses neither. INSTALL_SUITE is the release of Debian (trixie), INSTALL_SOURCES what
# mmdebstrap takes packages from, in place of its own choice.
set -eu
dist=$1
wheel=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$3"
scratch=$(cd "$3" && pwd)
suite=${INSTALL_SUITE:-trixie}

fail() {
	echo "install: $1" >&2
	exit 1
}

command -v mmdebstrap >/dev/null || fail "mmdebstrap is not installed; on Debian: apt-get install mmdebstrap uidmap"
if [ "$(id -u)" = 0 ]; then
	mode=root
	echo "==> as root; a user with ids in /etc/subuid can do the same"
else
	mode=unshare
	command -v newuidmap >/dev/null || fail "without root this needs newuidmap; on Debian: apt-get install uidmap"
	grep -q "^$(id -un):" /etc/subuid || fail "without root this needs ids for $(id -un) in /etc/subuid: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un)"
	echo "==> without root, in a namespace of users"
fi

case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no release for $(uname -m)" ;;
esac

# What the new machine is given: the files that a user downloads, and the steps.
try=$scratch/try
rm -rf "$try"
mkdir -p "$try/dist"
for file in "$dist"/coppice_*_"$arch".deb "$dist"/coppice_*_linux_"$arch".tar.gz "$dist/SHA256SUMS"; do
	[ -f "$file" ] || fail "there is no ${file##*/} in $dist"
	cp "$file" "$try/dist/"
done
cp "$here/../../release/install.sh" "$try/dist/"
cp "$wheel" "$here/inside.sh" "$here/steps.sh" "$here/package.sh" "$here/archive.sh" "$try/"
# The Python of the README as it stands.
awk '/^```python$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$here/../../README.md" >"$try/ten.py"
[ -s "$try/ten.py" ] || fail "README.md has no lines of Python"
chmod -R a+rX "$try"

echo "==> Debian $suite, its minimal packages"
# shellcheck disable=SC2016 # $1 is the hook's
mmdebstrap --quiet --mode="$mode" --variant=minbase --architectures="$arch" \
	--customize-hook="copy-in '$try' /" \
	--customize-hook='chroot "$1" bash /try/inside.sh' \
	"$suite" /dev/null ${INSTALL_SOURCES:+"$INSTALL_SOURCES"}
