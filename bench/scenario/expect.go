package scenario

import (
	"time"

	"github.com/coppice-run/coppice/test/backends"
)

// Expect is how long Run takes on an idle machine with two processors, about: by
// it a suite knows what is left, and when a round must have hung. o has been
// through Check.
func (s Scenario) Expect(o Setup) time.Duration {
	n, load := float64(o.Sessions), o.Duration.Seconds()
	kernels, pretended := o.Backend == backends.Gateway, o.Backend == Fake
	// To start and to end sessions: a host of thousands works longer for each.
	start := .5 + .005*n + 7e-7*n*n
	switch {
	case kernels:
		start = 2.5 + .3*n
	case pretended:
		start = .1 + 1e-4*n
	}
	seconds := start + load
	switch s.Name {
	case create.Name, evict.Name:
		if seconds = 1 + load; kernels {
			seconds = 4 + load
		}
	case ready.Name:
		if seconds = 1 + n/o.Rate; kernels {
			seconds = 6 + n/o.Rate
		}
	case execute.Name:
		seconds += min(load/3, 3) + min(load/2, fullSpeed.Seconds())
	case idle.Name:
		seconds += n / 3000
	case churn.Name:
		switch {
		case kernels:
			seconds = 3 + .5*n
		case pretended:
			seconds = n / 20_000
		default:
			seconds = .5 + n/400
		}
	case burst.Name:
		seconds = start
	case interrupt.Name:
		seconds += n / 4
	case fork.Name:
		seconds = .5 + n/50
	case hostCalls.Name:
		if seconds += n * callsInCell / 5500; kernels {
			seconds += n * callsInCell / 1000
		}
	case flood.Name:
		if seconds = 1 + 64*load/110; kernels {
			seconds = 3 + 64*load/50
		}
	case mixed.Name, soak.Name:
		// The last agents make their calls after the last one has come.
		seconds = load + 6
		if kernels {
			seconds += 8
		}
	}
	return time.Duration(seconds * float64(time.Second))
}
