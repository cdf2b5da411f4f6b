//go:build linux

package conformance_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/external"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

// eventually asks until the answer is yes, for half a minute.
func eventually(yes func() bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); !yes(); <-tick.C {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// ofServers are the behaviours that a server has a part in, by what it passes on, limits
// or starts; in the full run all of them.
func ofServers() map[string][]step {
	table := maps.Clone(behaviours)
	maps.DeleteFunc(table, func(name string, _ []step) bool {
		return !full && !slices.Contains([]string{
			"functions, classes and imports stay", "stdout and stderr come in the order in which they were written",
			"a cell that no request holds is refused, and costs nothing", "text beyond ASCII", "texts that are not UTF-8", "an exception ends the call and keeps the state",
			"a loop is interrupted", "a subprocess is interrupted", "an interrupt that is swallowed costs the state", "a killed kernel is lost", "os._exit is a loss",
			"a reset gives a new kernel", "a per-call kernel shares nothing", "input is refused", "the environment of a call", "secrets of the host are not there",
			"a session begins in its folder", "the whole of a long value", "sys.exit and quit are no way around a result", "IPython's display, where code imports it",
			"the whole of a long line", "threads print", "a long output is cut, and said to be",
		}, name)
	})
	return table
}

// The same behaviours on servers that somebody else runs, with their default
// settings: they restart kernels that die, limit the rate of output, and do not
// list kernels.
func TestConformanceOfExternalServers(t *testing.T) {
	for _, kind := range external.Kinds(external.JupyterServer) {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := external.Start(t, kind, external.Options{BasePath: "/some/base"})
			host := start(t, backends.Gateway, coppice.Options{},
				"PI_PYTHON_GATEWAY_URL="+server.URL+"/", "PI_PYTHON_GATEWAY_TOKEN="+server.Token, "KERNEL_USERNAME=somebody")
			runAll(t, host, backends.Gateway, ofServers())
			require.NotContains(t, server.Log(), server.Token, "the token is in the server's log")
			var left []proc.Process
			if !eventually(func() bool { left = proc.WithEnv("HOME", server.Dir); return len(left) == 1 }) {
				require.Empty(t, left, "more than the server is left behind")
			}
		})
	}
}

// Cells are timed out at any moment, most of them near their end, on a machine that
// is kept busy, so that interrupts take their time on the way: none reaches the cell
// after. It takes minutes, and is for full runs.
func TestLateInterruptsOnExternalServers(t *testing.T) {
	for _, kind := range external.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			server := external.Start(t, kind, external.Options{})
			host := start(t, backends.Gateway, coppice.Options{},
				"PI_PYTHON_GATEWAY_URL="+server.URL, "PI_PYTHON_GATEWAY_TOKEN="+server.Token, "KERNEL_USERNAME=somebody")
			for range 2 {
				burn := exec.CommandContext(t.Context(), testpython.Path(t), "-c", "while True: pass")
				require.NoError(t, burn.Start())
				defer func() { _, _ = burn.Process.Kill(), burn.Wait() }()
			}
			lateInterrupts(t, host, 200)
		})
	}
}

func lateInterrupts(t *testing.T, host *coppice.Host, rounds int) {
	t.Helper()
	var wg sync.WaitGroup
	var stopped atomic.Int32
	const sessions = 4
	for n := range sessions {
		wg.Go(func() {
			s := host.Session(fmt.Sprintf("late-%d", n), coppice.In(t.TempDir()))
			execute := func(timeout time.Duration, code string) messages.Result {
				r, err := s.Execute(t.Context(), coppice.Request{Timeout: timeout, Cells: []messages.Cell{{Code: code}}})
				if err != nil {
					t.Errorf("round: %v", err)
				}
				return r
			}
			execute(0, "1")
			for i := range rounds / sessions {
				// Where the grace is over before the cell is, its kernel is a new one.
				code := "import time\ntime.sleep(0.1)"
				if i%2 == 0 {
					code = "import subprocess\nsubprocess.run(['sleep', '0.1'])"
				}
				if r := execute(80*time.Millisecond+rand.N(60*time.Millisecond), code); r.Outcome == messages.OutcomeTimeout {
					stopped.Add(1)
				} else if r.Outcome != messages.OutcomeOK {
					t.Errorf("round %d: %s %s", i, r.Outcome, r.Text)
				}
				if r := execute(0, "sum(range(300_000))"); r.Outcome != messages.OutcomeOK {
					t.Errorf("round %d: the cell after: %s %s", i, r.Outcome, r.Text)
				}
			}
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	wg.Wait()
	t.Logf("%d of %d cells were interrupted, and none after them", stopped.Load(), rounds)
}

// The same where the interpreter has Jupyter Server and no Kernel Gateway: then we
// run that.
func TestConformanceOfOurJupyterServer(t *testing.T) {
	t.Parallel()
	conformShortly(t, coppice.Options{Python: testpython.JupyterServerOnly(t)})
}

// Kernels that are spawned are as those that are forked, with which all other tests of
// the backend are done.
func TestConformanceOfSpawnedKernels(t *testing.T) {
	t.Parallel()
	conformShortly(t, coppice.Options{}, "COPPICE_GATEWAY_NO_FORK=1")
}

// conformShortly tests gateways of ours in full, or in short.
func conformShortly(t *testing.T, o coppice.Options, env ...string) {
	t.Helper()
	host := start(t, backends.Gateway, o, env...)
	if full {
		conform(t, host, backends.Gateway)
		return
	}
	s := host.Session("a", coppice.In(t.TempDir()))
	for _, st := range []step{{cells: []string{"x = 41"}}, {cells: []string{"print(x + 1)"}, state: kept, output: "42"}} {
		check(t, "a short one", run(t, s, st), st, backends.Gateway)
	}
}
