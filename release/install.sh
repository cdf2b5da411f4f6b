#!/bin/sh
# Install the command coppice for this user, or elsewhere with --dir: download the archive
# for this system, compare it with its checksum, and put the program in its place.
#
#   sh install.sh [--version 0.1.0] [--dir ~/.local/bin] [--from URL or folder]
#
# --from is where the files of one release are: an https address, or a folder on a machine
# without a network. Nothing but the program is installed, and nothing is changed before
# its checksum was found right.
set -eu

version=latest
dir="${HOME:?}/.local/bin"
from=
releases=https://github.com/coppice-run/coppice/releases

fail() {
	echo "install.sh: $1" >&2
	exit 1
}

while [ $# -gt 0 ]; do
	case $1 in
	--help | -h)
		sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' "$0"
		exit 0
		;;
	--version | --dir | --from)
		[ $# -ge 2 ] || fail "$1 needs a value"
		case $1 in
		--version) version=${2#v} ;;
		--dir) dir=$2 ;;
		--from) from=$2 ;;
		esac
		shift 2
		;;
	*) fail "$1 is not an option; see --help" ;;
	esac
done

if [ -z "$from" ]; then
	if [ "$version" = latest ]; then from=$releases/latest/download; else from=$releases/download/v$version; fi
fi

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "there is no archive for $(uname -s) that this script can install; on Windows, unpack the .zip of $releases" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no archive for a processor $(uname -m); build it with: go install github.com/coppice-run/coppice/cmd/coppice@latest" ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# fetch NAME puts a file of the release into the scratch folder.
fetch() {
	case $from in
	https://*)
		if command -v curl >/dev/null 2>&1; then
			curl --proto '=https' --tlsv1.2 -fsSL --retry 2 -o "$scratch/$1" "$from/$1" || fail "$from/$1 could not be downloaded"
		elif command -v wget >/dev/null 2>&1; then
			wget -q --https-only -O "$scratch/$1" "$from/$1" || fail "$from/$1 could not be downloaded"
		else
			fail "neither curl nor wget is installed"
		fi
		;;
	*://*) fail "--from must be an https address or a folder, not $from" ;;
	*) cp "$from/$1" "$scratch/$1" || fail "there is no $1 in $from" ;;
	esac
}

sum() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum "$1"
	elif command -v shasum >/dev/null 2>&1; then
		shasum -a 256 "$1"
	else
		fail "neither sha256sum nor shasum is installed, so that the archive cannot be checked"
	fi | cut -d' ' -f1
}

fetch SHA256SUMS
archive=$(sed -n "s/^[0-9a-f]\{64\}  \(coppice_[^/]*_${os}_${arch}\.tar\.gz\)\$/\1/p" "$scratch/SHA256SUMS")
case $archive in
"") fail "the release has no archive for $os on $arch" ;;
*"
"*) fail "the release has several archives for $os on $arch" ;;
esac
if [ "$version" != latest ] && [ "$archive" != "coppice_${version}_${os}_${arch}.tar.gz" ]; then
	fail "the release holds $archive, not version $version"
fi
expected=$(sed -n "s/^\([0-9a-f]\{64\}\)  $archive\$/\1/p" "$scratch/SHA256SUMS")
fetch "$archive"
found=$(sum "$scratch/$archive")
[ "$found" = "$expected" ] || fail "$archive is not what the release says: its checksum is $found, not $expected; nothing was installed"

tar -xzf "$scratch/$archive" -C "$scratch"
program=$scratch/${archive%.tar.gz}/coppice
[ -f "$program" ] || fail "$archive holds no program"
chmod 755 "$program"
"$program" --version >"$scratch/says" 2>&1 || fail "the program does not run on this machine: $(cat "$scratch/says")"
mkdir -p "$dir"
# In one step, so that a program which runs is never half a file.
cp "$program" "$dir/.coppice.$$"
mv -f "$dir/.coppice.$$" "$dir/coppice"
echo "$(cat "$scratch/says") is $dir/coppice"
case :$PATH: in
*":$dir:"*) ;;
*) echo "put $dir into your PATH to run it by its name" ;;
esac
