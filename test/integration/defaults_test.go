//go:build linux

package integration_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// plain makes a host with nothing but what a test machine needs.
func plain(t *testing.T, o coppice.Options) *coppice.Host {
	t.Helper()
	o.Python, o.Home, o.Env = testpython.Path(t), t.TempDir(), os.Environ()
	if o.Backend == nil {
		o.Backend = coppice.Runner(coppice.RunnerOptions{})
	}
	host, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // that of the test has ended
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
	})
	return host
}

// TestFiftyConversations is what the defaults are for: fifty agents at once, each in
// two turns, and none of them loses what the first has left.
func TestFiftyConversations(t *testing.T) {
	t.Parallel()
	host := plain(t, coppice.Options{})
	for turn := range 2 {
		var wg sync.WaitGroup
		results := make([]messages.Result, 50)
		errs := make([]error, 50)
		for i := range 50 {
			wg.Go(func() {
				code := fmt.Sprintf("x = %d", i)
				if turn == 1 {
					code = "x + 1"
				}
				results[i], errs[i] = host.Session(fmt.Sprintf("agent-%d", i)).Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: code}}})
			})
		}
		wg.Wait()
		for i, r := range results {
			require.NoError(t, errs[i])
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			if turn == 1 {
				require.Equal(t, messages.StateKept, r.State)
				require.Equal(t, fmt.Sprint(i+1), r.Text)
			}
		}
	}
}

// TestASessionWithoutAPlaceWaits as long as its own call allows, and no longer.
func TestASessionWithoutAPlaceWaits(t *testing.T) {
	t.Parallel()
	host := plain(t, coppice.Options{MaxSessions: 1, InterruptGrace: 20 * time.Second})
	busy := host.Session("busy")
	running := make(chan messages.Result, 1)
	go func() {
		r, _ := busy.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "import time; time.sleep(600)"}}})
		running <- r
	}()
	require.Eventually(t, func() bool { return kernels(t, host)[busy.Key().ID()] != 0 }, time.Minute, 5*time.Millisecond)

	r, err := host.Session("impatient").Execute(t.Context(), coppice.Request{Timeout: time.Second, Cells: []messages.Cell{{Code: "1"}}})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeTimeout, r.Outcome)
	require.Empty(t, r.State, "nothing of it ran")
	require.Contains(t, r.Text, "the code was not run")

	waits := make(chan messages.Result, 1)
	go func() {
		r, _ := host.Session("patient").Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "6 * 7"}}})
		waits <- r
	}()
	require.Eventually(t, func() bool {
		tree, err := host.Snapshot(t.Context())
		require.NoError(t, err)
		return waitingFor(tree, host.Session("patient").Key().ID())
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, busy.Interrupt())
	require.Equal(t, messages.OutcomeCancelled, (<-running).Outcome)
	r = <-waits
	require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
	require.Equal(t, "42", r.Text)
}

// waitingFor reports whether a session of the tree is there without a kernel yet.
func waitingFor(n messages.Node, id string) bool {
	if n.Name == id && n.PID == 0 {
		return true
	}
	for _, c := range n.Children {
		if waitingFor(c, id) {
			return true
		}
	}
	return false
}
