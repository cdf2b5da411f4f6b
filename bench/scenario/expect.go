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
	if takes := expected[s.Name]; takes != nil {
		seconds = takes(expectation{start: start, load: load, n: n, rate: o.Rate, kernels: kernels, pretended: pretended})
	}
	return time.Duration(seconds * float64(time.Second))
}

// expectation is what the time of a scenario depends on, in seconds and sessions.
type expectation struct {
	start, load, n, rate float64
	kernels, pretended   bool
}

// of is the first figure, or the second with real kernels.
func (e expectation) of(runner, kernels float64) float64 {
	if e.kernels {
		return kernels
	}
	return runner
}

// expected is how long scenarios take of which starting the sessions and then loading
// them is not all.
var expected = map[string]func(e expectation) float64{
	create.Name: func(e expectation) float64 { return e.load + e.of(1, 4) },
	evict.Name:  func(e expectation) float64 { return e.load + e.of(1, 4) },
	ready.Name:  func(e expectation) float64 { return e.n/e.rate + e.of(1, 6) },
	execute.Name: func(e expectation) float64 {
		return e.start + e.load + min(e.load/3, 3) + min(e.load/2, fullSpeed.Seconds())
	},
	idle.Name: func(e expectation) float64 { return e.start + e.load + e.n/3000 },
	churn.Name: func(e expectation) float64 {
		if e.pretended {
			return e.n / 20_000
		}
		return e.of(.5+e.n/400, 3+.5*e.n)
	},
	burst.Name:     func(e expectation) float64 { return e.start },
	interrupt.Name: func(e expectation) float64 { return e.start + e.load + e.n/4 },
	fork.Name:      func(e expectation) float64 { return .5 + e.n/50 },
	hostCalls.Name: func(e expectation) float64 {
		return e.start + e.load + e.n*callsInCell/5500 + e.of(0, e.n*callsInCell/1000)
	},
	flood.Name: func(e expectation) float64 { return e.of(1+64*e.load/110, 3+64*e.load/50) },
	rungs.Name: func(e expectation) float64 { return 3 + e.n/8 },
	// The last agents make their calls after the last one has come.
	mixed.Name: func(e expectation) float64 { return e.load + e.of(6, 14) },
	soak.Name:  func(e expectation) float64 { return e.load + e.of(6, 14) },
}
