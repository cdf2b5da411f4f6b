#!/bin/sh
# Make the parts of the container image in SCRATCH, and put them together as a folder in the
# OCI layout: release/image/build.sh SCRATCH OUT VERSION. "make image" runs it.
#
# No daemon is needed, and root only where mmdebstrap says so. IMAGE_SUITE is the release of
# Debian (trixie), IMAGE_ARCH the architectures ("amd64 arm64"), IMAGE_SOURCES what
# mmdebstrap takes packages from, in place of its own choice: an address of a mirror, or of
# a snapshot, with which an image of some day can be made again.
set -eu
mkdir -p "$1"
scratch=$(cd "$1" && pwd)
out=$2
version=$3
suite=${IMAGE_SUITE:-trixie}
archs=${IMAGE_ARCH:-amd64 arm64}
python=3.13
here=$(dirname "$0")

for program in mmdebstrap python3 go git; do
	command -v "$program" >/dev/null || { echo "image: $program is not installed (Debian's package mmdebstrap makes the system of the image)" >&2; exit 1; }
done
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# uv, which can lay out packages for another architecture than this one.
cmp -s "$here/requirements.txt" "$scratch/ready.txt" || {
	python3 -m venv --clear "$scratch/venv"
	"$scratch/venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r "$here/requirements.txt"
	cp "$here/requirements.txt" "$scratch/ready.txt"
}

case $(uname -m) in
x86_64 | amd64) native=amd64 loader=usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 libraries=usr/lib/x86_64-linux-gnu ;;
aarch64 | arm64) native=arm64 loader=usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1 libraries=usr/lib/aarch64-linux-gnu ;;
*) echo "image: it is made on amd64 and arm64, not on $(uname -m)" >&2; exit 1 ;;
esac
case " $archs " in
*" $native "*) ;;
*) echo "image: IMAGE_ARCH must name $native, whose Python runs here and compiles for all" >&2; exit 1 ;;
esac

packages=python$python,bash,coreutils,libstdc++6,ca-certificates,tzdata,tini,base-files,libc-bin
for arch in $archs; do
	case $arch in amd64) machine=x86_64 ;; arm64) machine=aarch64 ;; *) echo "image: IMAGE_ARCH knows amd64 and arm64, not $arch" >&2; exit 1 ;; esac
	echo "==> linux/$arch: packages of Debian $suite, Python packages, coppice"
	mkdir -p "$scratch/$arch"
	rm -rf "$scratch/$arch/root.tar" "$scratch/$arch/packages" "$scratch/$arch/coppice"
	# shellcheck disable=SC2016 # $1 is the hook's
	mmdebstrap --quiet --variant=extract --architectures="$arch" --include="$packages" \
		--extract-hook='mkdir -p "$1/var/lib/dpkg/status.d" && for deb in "$1"/var/cache/apt/archives/*.deb; do
			dpkg-deb -f "$deb" >"$1/var/lib/dpkg/status.d/$(dpkg-deb -f "$deb" Package)" || exit 1; done' \
		"$suite" "$scratch/$arch/root.tar" ${IMAGE_SOURCES:+"$IMAGE_SOURCES"}
	"$scratch/venv/bin/uv" pip install --quiet --no-config --target "$scratch/$arch/packages" --python "$scratch/venv/bin/python" \
		--python-platform "$machine-manylinux_2_28" --python-version "$python" --only-binary :all: --no-deps --require-hashes --link-mode copy \
		-r internal/pyenv/requirements.txt
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=true \
		-ldflags "-s -w -X github.com/coppice-run/coppice/cmd/internal/version.linked=$version" -o "$scratch/$arch/coppice" ./cmd/coppice
done

# The Python of the image compiles its modules and packages, since a root that is
# read-only keeps no bytecode.
echo "==> bytecode of the Python modules"
rm -rf "$scratch/compiled"
mkdir -p "$scratch/compiled"
site=opt/coppice/python/lib/python$python/site-packages
tar -xf "$scratch/$native/root.tar" -C "$scratch/compiled" --exclude=./dev --no-same-owner
mkdir -p "$scratch/compiled/$site"
cp -R "$scratch/$native/packages/." "$scratch/compiled/$site/"
(
	cd "$scratch/compiled"
	# What the compiler itself imports is compiled as all else (-B, -f), not when it is
	# imported, with the path of this machine. Errors are those of templates and of tests that are not Python of this version.
	env -i PYTHONHOME="$PWD/usr" PYTHONHASHSEED=0 "./$loader" --library-path "$PWD/$libraries" "./usr/bin/python$python" -B -P -s -S -m compileall \
		-f -q -j 1 --invalidation-mode unchecked-hash -p / "usr/lib/python$python" "$site" >"$scratch/compiled.log" 2>&1 || true
)
[ -f "$scratch/compiled/usr/lib/python$python/__pycache__/os.cpython-$(echo "$python" | tr -d .).pyc" ] ||
	{ echo "image: the Python of the image did not compile its modules; see $scratch/compiled.log" >&2; exit 1; }

echo "==> the image"
mkdir -p "$(dirname "$out")"
out=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")
(cd tools/image && go build -o "$scratch/image" .)
"$scratch/image" -parts "$scratch" -out "$out" -version "$version" -revision "$(git rev-parse HEAD)" -epoch "$SOURCE_DATE_EPOCH" -arch "$(echo "$archs" | tr ' ' ,)"
