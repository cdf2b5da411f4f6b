// Package backends names the backends that tests and benchmarks run on, and makes
// them by name: a table test has a row for each.
//
// It has no state; any goroutine may call it.
package backends

import (
	"cmp"

	"github.com/coppice-run/coppice"
)

// Names of the backends, as results have them.
const (
	Gateway = "gateway"
	Runner  = "runner"
)

// All returns the names of the backends.
func All() []string { return []string{Runner, Gateway} }

// Named is the backend with a name and its default options, but for kernels that wait
// for sessions: a test that counts kernels made them all. "auto" and "" take the first
// that is available. Named panics at a name that it does not know.
func Named(name string) coppice.Backend {
	return With(name, coppice.GatewayOptions{}, coppice.RunnerOptions{})
}

// With is Named with options, of which it takes those of the backend.
func With(name string, g coppice.GatewayOptions, r coppice.RunnerOptions) coppice.Backend {
	g.WarmKernels = cmp.Or(g.WarmKernels, -1)
	b, err := coppice.BackendNamed(name, g, r)
	if err != nil {
		panic(err)
	}
	return b
}
