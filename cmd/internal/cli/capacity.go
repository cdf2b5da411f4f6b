package cli

import (
	"cmp"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
)

// capacityUsage says of the flag --max-sessions what it is.
const capacityUsage = "how many kernels may live at once (default: what the free memory allows, 64 at least, and at most 500 or 150 Jupyter kernels)"

// leastSessions is how many sessions a server holds that was not told how many, however little
// memory is free when it starts: most are idle, and take little.
const leastSessions = 64

// capacity is how many sessions a server is to hold that was told most, 0 for nothing: 0 for what
// its host makes of the free memory, where that is enough for any backend that it may have.
func capacity(most int, backend string) int {
	var may []coppice.Backend
	if backend != "gateway" {
		may = append(may, coppice.Runner(coppice.RunnerOptions{}))
	}
	if backend != "runner" {
		may = append(may, coppice.Gateway(coppice.GatewayOptions{}))
	}
	return capacityOf(most, may)
}

func capacityOf(most int, may []coppice.Backend) int {
	if most != 0 {
		return most
	}
	for _, b := range may {
		if sized, ok := b.(kernel.Sizer); ok && sized.Sessions(kernel.Site{}) < leastSessions {
			return leastSessions
		}
	}
	return 0
}

// maxWaiting is how many new sessions may wait for a place at a server of so many, 0 for what the
// machine allows.
func maxWaiting(sessions int) int { return 16 * cmp.Or(sessions, leastSessions) }
