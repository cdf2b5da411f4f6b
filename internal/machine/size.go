package machine

import "strconv"

// Size writes a number of bytes for people: whole MiB, and whole GiB from 10 on.
func Size(n uint64) string {
	const mib, gib = 1 << 20, 1 << 30
	if n >= 10*gib {
		return strconv.FormatUint(n/gib, 10) + " GiB"
	}
	return strconv.FormatUint(n/mib, 10) + " MiB"
}
