//go:build linux

package conformance_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// hibernations are what a session makes before it goes to disk, and what it finds when it
// was restored.
var hibernations = map[string]struct {
	before, after string
	want          string // what after shows
	lost          []string
	changed       []string
}{
	"values and what they share":        {before: "a = [1]; b = {'a': a}", after: "b['a'].append(2); a", want: "[1, 2]"},
	"a function that writes globals":    {before: "n = 1\ndef up():\n    global n\n    n += 1\n    return n\nup()", after: "up(), n", want: "(3, 3)"},
	"a class and its instance":          {before: "class A:\n    def f(self): return self.x\na = A(); a.x = 4", after: "a.f(), type(a) is A", want: "(4, True)"},
	"the directory and the environment": {before: "import os\nos.environ['KEPT'] = 'yes'\nos.makedirs('sub', exist_ok=True); os.chdir('sub')", after: "os.environ['KEPT'], os.path.basename(os.getcwd())", want: "('yes', 'sub')"},
	"random numbers go on":              {before: "import random\nrandom.seed(4); first = random.random()\nstate = random.getstate(); second = random.random(); random.setstate(state)", after: "random.random() == second", want: "True"},
	"a connection is lost":              {before: "import socket\nsock = socket.socket(); x = 4", after: "'sock' in globals(), x", want: "(False, 4)", lost: []string{"sock"}},
	"a generator is lost":               {before: "g = (i for i in range(3)); next(g); x = 4", after: "'g' in globals(), x", want: "(False, 4)", lost: []string{"g"}},
	"a cache is empty":                  {before: "import functools\n@functools.lru_cache\ndef c(x): return x\nc(1)", after: "c(1), c.cache_info().misses", want: "(1, 1)", changed: []string{"c"}},
	"a thread is lost":                  {before: "import threading, time\nt = threading.Thread(target=time.sleep, args=(3600,), name='mine', daemon=True); t.start(); x = 4", after: "'t' in globals(), x", want: "(False, 4)", lost: []string{"t", "thread mine"}},
	"two names of one lost thing":       {before: "import threading\nlock = threading.Lock(); also = {'deep': lock}; x = 4", after: "sorted(n for n in ('lock', 'also', 'x') if n in globals())", want: "['x']", lost: []string{"also", "lock"}},
}

// TestHibernation: what a backend keeps of a session on disk is what it says, each time.
func TestHibernation(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			hibernation(t, backend)
		})
	}
}

func hibernation(t *testing.T, backend string) {
	t.Helper()
	host := start(t, backend, coppice.Options{Hibernate: hibernate.Lossy, MaxSessions: len(hibernations) + 1})
	for n, name := range slices.Sorted(maps.Keys(hibernations)) {
		row := hibernations[name]
		if backend == backends.Gateway && n%3 != 0 && !full { // what is kept of values is the same code; each takes three kernels
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held(t, backend)
			s := host.Session(name, coppice.In(t.TempDir()))
			run(t, s, step{cells: []string{row.before}})
			report, err := s.Hibernate(t.Context())
			require.NoError(t, err)
			names := func(m messages.Memory) (lost, changed []string) {
				for _, l := range m.Lost {
					require.NotEmpty(t, l.Reason)
					lost = append(lost, l.Name)
				}
				for _, c := range m.Changed {
					changed = append(changed, c.Name)
				}
				return lost, changed
			}
			lost, changed := names(report.Memory)
			require.Equal(t, row.lost, lost)
			require.Equal(t, row.changed, changed)
			r, err := s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: row.after}}})
			require.NoError(t, err)
			require.Equal(t, messages.StateRestored, r.State)
			require.Equal(t, report.Memory, r.Restored.Memory)
			require.Equal(t, row.want, r.Cells[0].Output)

			// Once more: what was told is told once, and what came back is kept again.
			again, err := s.Hibernate(t.Context())
			require.NoError(t, err)
			lost, _ = names(again.Memory)
			require.Empty(t, lost)
			r, err = s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "40 + 2"}}})
			require.NoError(t, err)
			require.Equal(t, messages.StateRestored, r.State)
			require.NoError(t, s.Close(t.Context()))
		})
	}
}
