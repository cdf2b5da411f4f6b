#!/bin/sh
# Build the release of the commit that is checked out twice, in folders of different names,
# and want the same bytes: release/check.sh SCRATCH. "make dist-check" runs it. FRESH=1
# has the second build compile everything again, which takes minutes more.
set -eu
here=$(pwd)
mkdir -p "$1"
scratch=$(cd "$1" && pwd)
rm -rf "$scratch/one" "$scratch/the other"

for place in one "the other"; do
	git clone -q --local --no-hardlinks "$here" "$scratch/$place"
	# The commit of a working tree need not be that of the repository's HEAD.
	git -C "$scratch/$place" checkout -q --detach "$(git rev-parse HEAD)"
	mkdir -p "$scratch/$place/.cache"
	cp -R "$here/.cache/bin" "$scratch/$place/.cache/bin"
	if [ "$place" != one ] && [ -n "${FRESH:-}" ]; then
		GOCACHE=$scratch/gocache
		export GOCACHE
		rm -rf "$GOCACHE"
	fi
	make -C "$scratch/$place" --no-print-directory dist
done

cd "$scratch/one/dist"
differ=0
for file in coppice* SHA256SUMS; do
	[ -f "$file" ] || continue
	if ! cmp -s "$file" "$scratch/the other/dist/$file"; then
		echo "release/check.sh: $file differs between two builds of one commit" >&2
		differ=1
	fi
done
[ "$differ" = 0 ] || exit 1
echo "two builds, in different folders, are the same bytes:"
cat SHA256SUMS
