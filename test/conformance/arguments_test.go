//go:build linux

package conformance_test

import (
	"testing"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/test/backends"
)

// Code that reads its arguments finds none: those of the kernel's own process are not for it.
func TestCodeHasNoArguments(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			held(t, backend)
			s := plain(t, backend).Session("arguments", coppice.In(t.TempDir()))
			st := step{cells: []string{"import argparse, sys\np = argparse.ArgumentParser()\np.add_argument('--n', type=int, default=3)\np.parse_args().n, sys.argv"}, output: "(3, [''])"}
			check(t, "arguments", run(t, s, st), st, backend)
		})
	}
}
