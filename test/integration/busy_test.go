//go:build linux

package integration_test

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/starve"
)

// crowd is how many sessions of a backend there are on a busy machine.
type crowd struct{ idle, loops, rounds, burners int }

// Loops that are interrupted on a machine with too much to do keep what their sessions
// have, again and again, and so do the sessions beside them.
func TestLoopsThatAreInterruptedKeepTheirState(t *testing.T) { // not beside others: it takes the machine
	forms := map[string]crowd{backends.Runner: {idle: 10, loops: 4, rounds: 1, burners: runtime.NumCPU()}}
	if os.Getenv(starve.Variable) != "" {
		forms[backends.Gateway] = crowd{idle: 1, loops: 2, rounds: 1}
	}
	if full() { // on the gateway, too, of which TestAKernelWithoutAProcessorKeepsItsState has the short form
		forms = map[string]crowd{
			backends.Runner:  {idle: 200, loops: 50, rounds: 10, burners: 32},
			backends.Gateway: {idle: 4, loops: 4, rounds: 10, burners: 32},
		}
	}
	for _, backend := range slices.Sorted(maps.Keys(forms)) { // one after the other: each has its load
		t.Run(backend, func(t *testing.T) {
			forms[backend].loop(t, start(t, coppice.Options{
				Backend: backends.Named(backend), MaxSessions: forms[backend].idle + forms[backend].loops, IdleTTL: -1,
			}))
		})
	}
}

func (c crowd) loop(t *testing.T, host *coppice.Host) {
	t.Helper()
	all := c.idle + c.loops
	each(t, all, func(i int) string {
		return wrong(session(host, i).Execute(t.Context(), cells(fmt.Sprintf("x = %d", i))))
	})
	starve.With(t, c.burners)
	var mu sync.Mutex
	var late []time.Duration // how long an interrupt took
	for round := range c.rounds {
		each(t, c.loops, func(i int) string {
			request := cells("while True: pass")
			request.Timeout = time.Second
			r, err := session(host, i).Execute(t.Context(), request)
			mu.Lock()
			late = append(late, r.Duration-request.Timeout)
			mu.Unlock()
			if err != nil || r.Outcome != messages.OutcomeTimeout || r.State != messages.StateKept {
				return fmt.Sprintf("round %d, after %v: %v: %s, %s: %s", round, r.Duration, err, r.Outcome, r.State, r.Reason)
			}
			return ""
		})
	}
	each(t, all, func(i int) string {
		r, err := session(host, i).Execute(t.Context(), cells("x"))
		if err == nil && r.State == messages.StateKept && len(r.Cells) == 1 && r.Cells[0].Output == fmt.Sprint(i) {
			return ""
		}
		return wrong(r, err) + fmt.Sprintf(" state %s: %s", r.State, r.Text)
	})
	tree, err := host.Snapshot(t.Context())
	require.NoError(t, err)
	slices.Sort(late)
	t.Logf("%d sessions idle, %d loops, %d rounds beside %d burners: interrupts took %v in the middle, %v at most of 99 in 100, %v at most; %+v",
		c.idle, c.loops, c.rounds, c.burners, part(late, 50), part(late, 99), part(late, 100), tree.Busy)
}

// part is the time that so many in a hundred do not exceed.
func part(sorted []time.Duration, percent int) time.Duration {
	return sorted[max(0, len(sorted)*percent/100-1)].Round(time.Millisecond)
}

// each does something in n sessions at once and fails with what was wrong.
func each(t *testing.T, n int, do func(i int) (wrong string)) {
	t.Helper()
	all := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if why := do(i); why != "" {
				all[i] = fmt.Sprintf("session %d: %s", i, why)
			}
		})
	}
	wg.Wait()
	require.Empty(t, slices.DeleteFunc(all, func(s string) bool { return s == "" }))
}

// wrong is what is wrong with a call that must be well, "" for nothing.
func wrong(r messages.Result, err error) string {
	if err == nil && r.Outcome == messages.OutcomeOK {
		return ""
	}
	return fmt.Sprintf("%v: %s: %s", err, r.Outcome, r.Reason)
}

// A gateway of the host's own comes up on a busy machine, however long that takes, and
// the first call gets its answer: no start of it is ended.
func TestAGatewayStartsOnABusyMachine(t *testing.T) { // not beside others
	burners := 0 // in the short form what other tests do, and the load of make test-starved, keep the machine busy
	if full() {
		burners = 40
	}
	starve.With(t, burners)
	begin := time.Now()
	host := start(t, coppice.Options{Backend: backends.Named(backends.Gateway)})
	var mu sync.Mutex
	var exits []string
	stop := host.Watch(func(e messages.Lifecycle) {
		c, ok := e.(messages.ChildChanged)
		if !ok || c.Exit == nil || c.Key != "kernel-gateway" && c.Kind != "kernel" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		exits = append(exits, fmt.Sprint(c.Path, " ", c.Exit))
	})
	r := run(t, session(host, "first"), cells("6 * 7"))
	took := time.Since(begin)
	stop()
	require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
	require.Equal(t, "42", r.Cells[0].Output)
	mu.Lock()
	defer mu.Unlock()
	require.Empty(t, exits)
	tree, err := host.Snapshot(t.Context())
	require.NoError(t, err)
	server := find(tree, "kernel-gateway")
	require.Zero(t, server.Restarts)
	t.Logf("beside %d burners the gateway was up after %v, the first answer was there after %v; %+v",
		burners, server.Since.Sub(begin).Round(time.Millisecond), took.Round(time.Millisecond), tree.Busy)
}
