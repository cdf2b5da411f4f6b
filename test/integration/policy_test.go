//go:build linux

package integration_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// onBoth runs f with either backend.
func onBoth(t *testing.T, f func(t *testing.T, backend string)) {
	t.Helper()
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			f(t, backend)
		})
	}
}

// onBackends is onBoth in the full run. Else f runs on the runner alone: what it holds is
// the host's doing, and a Jupyter kernel costs a second of processor time.
func onBackends(t *testing.T, f func(t *testing.T, backend string)) {
	t.Helper()
	if full() {
		onBoth(t, f)
		return
	}
	t.Run(backends.Runner, func(t *testing.T) { f(t, backends.Runner) })
}

// dieIf is a program that kills its interpreter when the file of that name is
// not there yet, and makes it before.
func dieIf(file string) string {
	return fmt.Sprintf("import os, signal\nseen = os.path.exists(%s)\nopen(%s, 'a').write('ran\\n')\nif not seen: os.kill(os.getpid(), signal.SIGKILL)\n'survived'", quote(file), quote(file))
}

func TestReplayRunsALostCallOnceMore(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, backend string) {
		host := start(t, coppice.Options{Backend: backends.Named(backend), Replay: coppice.ReplayOnce})
		s := session(host, "a")
		run(t, s, cells("x = 1"))
		r := run(t, s, cells("y = 2", dieIf(filepath.Join(t.TempDir(), "mark"))))
		require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
		require.Equal(t, messages.StateFresh, r.State)
		require.Contains(t, r.Reason, "a second time")
		require.Contains(t, r.Text, "survived")
		require.Contains(t, run(t, s, cells("'x' in globals(), y")).Text, "(False, 2)", "the whole call is run again, and nothing before it")

		r = run(t, s, cells("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
		require.Equal(t, messages.OutcomeLost, r.Outcome, "not for ever")
		require.Equal(t, messages.StateLost, r.State)
	})
}

func TestAKernelThatHasGrownIsReplacedWhenItIsIdle(t *testing.T) {
	t.Parallel()
	onBackends(t, func(t *testing.T, backend string) {
		host := start(t, coppice.Options{Backend: backends.Named(backend), MaxRSS: 400 << 20, Heartbeat: time.Second})
		s, slim := session(host, "a"), session(host, "slim")
		run(t, slim, cells("x = 1"))
		r := run(t, s, cells("import time; b = bytearray(600 << 20); b[::4096] = b'x' * len(b[::4096]); time.sleep(3)", "len(b)"))
		require.Equal(t, messages.OutcomeOK, r.Outcome, "a busy one is left alone")
		require.Eventually(t, func() bool { return kernels(t, host)[s.Key().ID()] == 0 }, 3*time.Minute, 100*time.Millisecond)
		r = run(t, s, cells("'b' in globals()"))
		require.Equal(t, messages.StateFresh, r.State)
		require.Contains(t, r.Text, "over the limit of 400 MiB", "the next result says why")
		require.Contains(t, r.Text, "False")
		require.Equal(t, messages.StateKept, run(t, slim, cells("x")).State)
	})
}

func TestACallOfItsOwnKernelLeavesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, backend string) {
		host := start(t, coppice.Options{Backend: backends.Named(backend)})
		s := session(host, "a")
		run(t, s, cells("x = 1"))
		once := cells("'x' in globals()", "x = 2")
		once.Mode = messages.ModePerCall
		r := run(t, s, once)
		require.Equal(t, messages.StateFresh, r.State)
		require.Contains(t, r.Cells[0].Output, "False")
		require.Contains(t, run(t, s, cells("x")).Text, "1", "the session's own kernel is not touched")

		ctx, cancel := context.WithCancel(t.Context())
		ran := filepath.Join(t.TempDir(), "ran")
		slow := cells(fmt.Sprintf("open(%q, 'w').close(); import time; time.sleep(600)", ran))
		slow.Mode = messages.ModePerCall
		done := make(chan messages.Result, 1)
		go func() {
			r, _ := s.Execute(ctx, slow)
			done <- r
		}()
		require.Eventually(t, func() bool { _, err := os.Stat(ran); return err == nil }, 3*time.Minute, 20*time.Millisecond)
		require.Eventually(t, func() bool { return len(kernels(t, host)) == 2 }, time.Minute, 20*time.Millisecond, "the first of its kind has ended")
		cancel()
		require.Equal(t, messages.OutcomeCancelled, (<-done).Outcome)
		require.Eventually(t, func() bool { return len(kernels(t, host)) == 1 }, 3*time.Minute, 20*time.Millisecond, "also when its caller leaves")
	})
}

// One agent fills its quota; another one is served all the same, and who asks
// for more than the host holds is told at once, or waits, as the host chose.
func TestCapacityIsShared(t *testing.T) {
	t.Parallel()
	onBackends(t, func(t *testing.T, backend string) {
		host := start(t, coppice.Options{Backend: backends.Named(backend), MaxSessions: 3, MaxPerOwner: 2, MaxWaiting: -1})
		var wg sync.WaitGroup
		defer wg.Wait()
		hold := func(name, owner string) *coppice.Session {
			s := session(host, name)
			r := cells("import time; time.sleep(600)")
			r.Owner = owner
			wg.Go(func() { _, _ = s.Execute(t.Context(), r) })
			require.Eventually(t, func() bool { return kernels(t, host)[s.Key().ID()] != 0 }, 3*time.Minute, 20*time.Millisecond)
			return s
		}
		busy := []*coppice.Session{hold("a1", "ann"), hold("a2", "ann")}
		more := cells("1")
		more.Owner = "ann"
		r := run(t, session(host, "a3"), more)
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
		require.Contains(t, r.Reason, "2 of 2 places for ann")
		busy = append(busy, hold("b1", "bob"))
		r = run(t, session(host, "b2"), cells("1"))
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
		require.Contains(t, r.Reason, "overloaded")
		for _, s := range busy {
			require.NoError(t, s.Interrupt())
		}
	})
}

func TestConcurrentResetsMakeOneKernel(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, backend string) {
		var mu sync.Mutex
		starts := 0
		host := start(t, coppice.Options{Backend: backends.Named(backend), OnEvent: func(e messages.Lifecycle) {
			if c, ok := e.(messages.ChildChanged); ok && c.Kind == "kernel" && c.To == messages.ChildStarting {
				mu.Lock()
				defer mu.Unlock()
				starts++
			}
		}})
		s := session(host, "a")
		var wg sync.WaitGroup
		for range 20 { // the first use, by many at once
			wg.Go(func() { run(t, s, cells("x = 1")) })
		}
		wg.Wait()
		for range 20 {
			wg.Go(func() { require.NoError(t, s.Reset(t.Context())) })
		}
		wg.Wait()
		r := run(t, s, cells("'x' in globals()"))
		require.Equal(t, messages.StateFresh, r.State)
		require.Contains(t, r.Text, "False")
		mu.Lock()
		defer mu.Unlock()
		require.LessOrEqual(t, starts, 4, "resets that come while a kernel starts are one")
	})
}

// A kernel that dies while nobody looks is replaced before the next call runs.
func TestADeadKernelIsReplacedBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, backend string) {
		host := on(t, backend)
		s := session(host, t.Name())
		run(t, s, cells("x = 1"))
		pid := kernels(t, host)[s.Key().ID()]
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		r := run(t, s, cells("'x' in globals()"))
		if r.Outcome == messages.OutcomeLost { // it was sent before the death was seen
			require.Equal(t, messages.StateLost, r.State)
			r = run(t, s, cells("'x' in globals()"))
		}
		require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
		require.Equal(t, messages.StateFresh, r.State)
		require.Contains(t, r.Text, "False")
	})
}
