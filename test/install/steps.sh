# What the scripts beside this one share: a step is shown with its output and its time, and
# stops everything when it is not what it should be.

said=$(mktemp)
# Nothing is left that a step has begun.
trap 'kill $(jobs -p) 2>/dev/null || true; rm -f "$said"' EXIT

# Bounds a wait, in seconds: a machine with much to do takes long.
patience=600

# step WANT COMMAND runs a command in this shell. It must succeed, and say WANT.
step() { told 0 "$@"; }

# refused WANT COMMAND is a step that must fail.
refused() { told 1 "$@"; }

told() {
	local fails=$1 want=$2 command=$3 status=0 begin=${EPOCHREALTIME/[.,]/} took
	printf '\n$ %s\n' "$command"
	eval "$command" >"$said" 2>&1 </dev/null || status=$?
	took=$((${EPOCHREALTIME/[.,]/} - begin))
	# Of what a package manager says, the end is enough.
	tail -n 12 "$said"
	printf '(%d.%02d s)\n' $((took / 1000000)) $((took / 10000 % 100))
	if [ $((status != 0)) != "$fails" ]; then
		cat "$said" >&2
		echo "install: this ended with $status: $command" >&2
		exit 1
	fi
	if [ -n "$want" ] && ! grep -qF -e "$want" "$said"; then
		echo "install: this did not say \"$want\": $command" >&2
		exit 1
	fi
}

# until_it COMMAND waits for a command to succeed.
until_it() {
	local end=$((SECONDS + patience))
	until eval "$1" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || {
			echo "install: this did not come to be: $1" >&2
			exit 1
		}
		sleep 0.2
	done
}
