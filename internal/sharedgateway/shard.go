package sharedgateway

import "strconv"

// DefaultMaxKernels is how many kernels a shared gateway takes by default, and the
// most that it bears: each takes 6 of the 1,023 sockets of the gateway's ZeroMQ
// context, and beyond them all kernels suffer, not the last alone. What is left is
// for kernels on their way in or out.
const DefaultMaxKernels = 150

// place is the name of a shard of a fingerprint in files. That of the first is
// the fingerprint itself.
func place(fingerprint string, shard int) string {
	if shard == 0 {
		return fingerprint
	}
	return fingerprint + "." + strconv.Itoa(shard)
}

func (g Gateway) place() string { return place(g.Fingerprint, g.Shard) }
