package machine

import "strconv"

// Size writes a number of bytes for people, in MiB or GiB.
func Size(n uint64) string {
	const mib = 1 << 20
	if n >= 10<<30 {
		return strconv.FormatUint(n>>30, 10) + " GiB"
	}
	return strconv.FormatUint(n/mib, 10) + " MiB"
}
