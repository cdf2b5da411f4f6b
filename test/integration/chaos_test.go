//go:build linux

package integration_test

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

func TestTheFifthSessionEvictsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: backends.Named(quick()), MaxSessions: 4})
	for _, name := range []string{"a", "b", "c", "d"} {
		run(t, session(host, name), cells("who = '"+name+"'"))
	}
	require.NoError(t, session(host, "b").Pin(t.Context(), true))
	run(t, session(host, "a"), cells("who")) // b is the oldest, but pinned; c is next
	run(t, session(host, "e"), cells("1"))
	pids := kernels(t, host)
	require.Len(t, pids, 4)
	require.NotContains(t, pids, session(host, "c").Key().ID())

	r := run(t, session(host, "c"), cells("'who' in globals()"))
	require.Equal(t, messages.StateFresh, r.State)
	require.Contains(t, r.Cells[0].Output, "False")
	require.Contains(t, r.Text, "evicted")
	for _, name := range []string{"a", "b"} {
		r := run(t, session(host, name), cells("who"))
		require.Equal(t, messages.StateKept, r.State)
		require.Contains(t, r.Text, name)
	}
}

func TestABusySessionOutlivesItsTTL(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: backends.Named(quick()), IdleTTL: time.Second})
	s := session(host, "a")
	r := run(t, s, cells("import time; x = 1; time.sleep(3)"))
	require.Equal(t, messages.OutcomeOK, r.Outcome)
	require.Eventually(t, func() bool { return len(kernels(t, host)) == 0 }, time.Minute, 100*time.Millisecond, "the idle session was not evicted")
	r = run(t, s, cells("'x' in globals()"))
	require.Equal(t, messages.StateFresh, r.State)
}

func TestAFrozenKernelIsReplacedOnceAndThenFailsForGood(t *testing.T) {
	t.Parallel()
	for _, backend := range backends.All() {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			frozenTwice(t, start(t, coppice.Options{Backend: backends.Named(backend), Heartbeat: 2 * time.Second}))
		})
	}
}

func frozenTwice(t *testing.T, host *coppice.Host) {
	t.Helper()
	s := session(host, "a")
	run(t, s, cells("x = 1"))

	last := 0
	freeze := func() messages.Result {
		var pid int
		require.Eventually(t, func() bool {
			pid = kernels(t, host)[s.Key().ID()]
			return pid != 0 && pid != last
		}, time.Minute, 50*time.Millisecond, "no new kernel")
		last = pid
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
		return run(t, s, cells("x"))
	}
	r := freeze()
	require.Equal(t, messages.OutcomeLost, r.Outcome, r.Text)
	require.Equal(t, messages.StateLost, r.State)
	require.Contains(t, r.Reason, "heartbeat")

	r = freeze()
	require.Equal(t, messages.OutcomeLost, r.Outcome, r.Text)

	r = run(t, s, cells("x"))
	require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
	require.Contains(t, r.Text, "heartbeat")
	require.Contains(t, r.Text, "reset")

	req := cells("'x' in globals()")
	req.Reset = true
	r = run(t, s, req)
	require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
	require.Equal(t, messages.StateFresh, r.State)
}

func TestAGatewayThatIsKilledUnderLoadComesBack(t *testing.T) {
	t.Parallel()
	sessions := 2
	if full() {
		sessions = 4
	}
	host := start(t, coppice.Options{Backend: backends.Named(backends.Gateway), MaxSessions: sessions})
	var ready, wg sync.WaitGroup
	results := make([]messages.Result, sessions)
	for n := range results {
		ready.Add(1)
		wg.Go(func() {
			s := session(host, n)
			run(t, s, cells("x = 1"))
			ready.Done()
			results[n] = run(t, s, cells("import time; time.sleep(600)"))
		})
	}
	ready.Wait()
	var tree messages.Node
	require.Eventually(t, func() bool {
		var err error
		tree, err = host.Snapshot(t.Context())
		busy := 0
		for _, n := range find(tree, "gateway").Children {
			if n.State == messages.ChildBusy {
				busy++
			}
		}
		return err == nil && busy == len(results)
	}, time.Minute, 10*time.Millisecond, "the long cells do not run")
	pid := find(tree, "kernel-gateway").PID
	require.NotZero(t, pid)
	begin := time.Now()
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	wg.Wait()
	require.Less(t, time.Since(begin), time.Minute, "nobody waits for the end of the cells")
	for n, r := range results {
		require.Equal(t, messages.OutcomeLost, r.Outcome, "session %d: %s", n, r.Text)
	}
	for n := range results {
		var r messages.Result
		require.Eventually(t, func() bool {
			r = run(t, session(host, n), cells("'x' in globals()"))
			return r.Outcome == messages.OutcomeOK
		}, time.Minute, 200*time.Millisecond, "the gateway did not come back: %s", r.Text)
		require.Equal(t, messages.StateFresh, r.State)
		require.Contains(t, r.Cells[0].Output, "False", r.Text)
	}
}

func find(n messages.Node, name string) messages.Node {
	if n.Name == name {
		return n
	}
	for _, c := range n.Children {
		if f := find(c, name); f.Name == name {
			return f
		}
	}
	return messages.Node{}
}
