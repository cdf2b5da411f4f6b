//go:build linux

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

// sleepy starts a host that keeps sessions on disk, in a home of its own.
func sleepy(t *testing.T, home string, change func(*coppice.Options)) *coppice.Host {
	t.Helper()
	o := coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Home: home, Hibernate: hibernate.Lossy}
	if change != nil {
		change(&o)
	}
	return start(t, o)
}

func asleep(t *testing.T, h *coppice.Host) []string {
	t.Helper()
	list, err := h.Hibernated(t.Context())
	require.NoError(t, err)
	var names []string
	for _, a := range list {
		names = append(names, a.Key.Session)
	}
	return names
}

func refusedSleep(t *testing.T, err error, reason messages.HibernateReason) *messages.HibernateRefused {
	t.Helper()
	refused, ok := errors.AsType[*messages.HibernateRefused](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, reason, refused.Reason, refused.Problem)
	return refused
}

// TestHibernate: a session that was kept on disk comes back with what is told, in this
// host and in the next one, and is told as restored once.
func TestHibernate(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	host := sleepy(t, home, nil)
	s := session(host, "s")
	_, err := s.Hibernate(t.Context())
	require.Contains(t, refusedSleep(t, err, messages.HibernateNoKernel).Problem, "run a cell first")
	run(t, s, cells("import socket, functools\nn = 1\ndef up():\n    global n\n    n += 1\n    return n\n@functools.lru_cache\ndef c(x): return x\nsock = socket.socket()\nbig = bytearray(1 << 20)"))
	pid := kernels(t, host)[s.Key().ID()]
	report, err := s.Hibernate(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"big", "functools", "n", "socket", "up"}, report.Kept)
	require.Equal(t, []messages.LostName{{Name: "sock", Type: "socket.socket", Reason: "a connection ends with its process"}}, report.Lost)
	require.Equal(t, []messages.ChangedName{{Name: "c", Type: "functools._lru_cache_wrapper", Change: "its cache is empty"}}, report.Changed)
	require.Greater(t, report.Bytes, int64(1<<20))
	require.Positive(t, report.Took)
	require.Equal(t, []string{"s"}, asleep(t, host))
	require.Eventually(t, func() bool { return kernels(t, host)[s.Key().ID()] == 0 }, time.Minute, 5*time.Millisecond)

	r := run(t, s, cells("up(), c(4), len(big), 'sock' in globals()"))
	require.Equal(t, messages.StateRestored, r.State)
	require.NotNil(t, r.Restored)
	require.Equal(t, report.Memory, r.Restored.Memory)
	require.Contains(t, r.Text, "(2, 4, 1048576, False)")
	require.Contains(t, r.Text, "The session was restored from disk: kept are big, functools, n, socket, up; changed: c (its cache is empty); lost: sock (socket.socket: a connection ends with its process).")
	require.NotEqual(t, pid, kernels(t, host)[s.Key().ID()])
	require.Empty(t, asleep(t, host), "it is the kernel's now")
	r = run(t, s, cells("up()"))
	require.Equal(t, messages.StateKept, r.State)
	require.Nil(t, r.Restored)

	// The host ends in order: the next one has the session.
	require.Empty(t, host.Shutdown(t.Context()).Leftovers)
	next := sleepy(t, home, nil)
	require.Equal(t, []string{"s"}, asleep(t, next))
	r = run(t, session(next, "s"), cells("up()"))
	require.Equal(t, messages.StateRestored, r.State)
	require.Contains(t, r.Text, "4")
	require.Empty(t, r.Restored.Lost, "sock was lost the first time")

	// A kernel that dies has nothing on disk: the state is lost, and not an older one.
	require.Equal(t, messages.OutcomeLost, run(t, session(next, "s"), cells("import os; os._exit(3)")).Outcome)
	r = run(t, session(next, "s"), cells("'up' in globals()"))
	require.Equal(t, messages.StateFresh, r.State)
	require.Contains(t, r.Text, "False")
}

// TestWhatForgets: a session that starts over does not get what was kept of it.
func TestWhatForgetsAHibernatedSession(t *testing.T) {
	t.Parallel()
	host := sleepy(t, t.TempDir(), nil)
	// What is closed at rest is forgotten at once, and a later session of the name has no past.
	over := []string{"", messages.SessionClosed}
	fresh := map[string][]string{"reset": {"the session was reset"}, "reset at rest": {"the session was reset"}, "close": over, "the owner's end": over, "a call's reset": {""}}
	for name, forget := range map[string]func(s *coppice.Session) error{
		"reset": func(s *coppice.Session) error { return s.Reset(t.Context()) },
		"reset at rest": func(s *coppice.Session) error {
			gone(t, host, s)
			return s.Reset(t.Context())
		},
		"close": func(s *coppice.Session) error { return s.Close(t.Context()) },
		"a call's reset": func(s *coppice.Session) error {
			r := cells("1")
			r.Reset = true
			require.Equal(t, "the session was reset", run(t, s, r).Reason)
			return nil
		},
		"the owner's end": func(*coppice.Session) error { return host.ReleaseOwner(t.Context(), "leaves") },
	} {
		s := session(host, name)
		r := cells("x = 1")
		r.Owner = "leaves"
		run(t, s, r)
		_, err := s.Hibernate(t.Context())
		require.NoError(t, err, name)
		require.NoError(t, forget(s), name)
		require.NotContains(t, asleep(t, host), name)
		got := run(t, s, cells("'x' in globals()"))
		require.NotEqual(t, messages.StateRestored, got.State, name)
		require.Contains(t, got.Text, "False", name)
		require.Contains(t, fresh[name], got.Reason, name)
	}
	// One that another owner uses, too, stays.
	s := session(host, "shared")
	for _, owner := range []string{"leaves", "stays"} {
		r := cells("x = 1")
		r.Owner = owner
		run(t, s, r)
	}
	_, err := s.Hibernate(t.Context())
	require.NoError(t, err)
	require.NoError(t, host.ReleaseOwner(t.Context(), "leaves"))
	r := cells("x")
	r.Owner = "stranger"
	got, err := s.Execute(t.Context(), r)
	require.Error(t, err)
	require.Contains(t, got.Text, "belongs to another owner")
	r.Owner = "stays"
	require.Eventually(t, func() bool {
		got, err = s.Execute(t.Context(), r)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, messages.StateRestored, got.State)
}

// TestAHibernatedSessionIsOfThoseWhoUseIt, however often it was on disk since, and of
// everyone when it has served a call without an owner.
func TestAHibernatedSessionIsOfThoseWhoUseIt(t *testing.T) {
	t.Parallel()
	host := sleepy(t, t.TempDir(), nil)
	as := func(s *coppice.Session, owner, code string) (messages.Result, error) {
		r := cells(code)
		r.Owner = owner
		return s.Execute(t.Context(), r)
	}
	sleep := func(s *coppice.Session) {
		t.Helper()
		_, err := s.Hibernate(t.Context())
		require.NoError(t, err)
		gone(t, host, s)
	}
	restored := func(s *coppice.Session, owner string) {
		t.Helper()
		r, err := as(s, owner, "x")
		require.NoError(t, err)
		require.Equal(t, messages.StateRestored, r.State)
	}
	refused := func(s *coppice.Session, owner string) {
		t.Helper()
		r, err := as(s, owner, "x")
		require.Error(t, err)
		require.Contains(t, r.Text, "belongs to another owner")
		gone(t, host, s)
	}

	both := session(host, "both")
	for _, owner := range []string{"a", "b"} {
		_, err := as(both, owner, "x = 1")
		require.NoError(t, err)
	}
	for _, owner := range []string{"a", "a", "b"} {
		sleep(both)
		refused(both, "stranger")
		refused(both, "")
		restored(both, owner)
	}
	sleep(both)
	require.NoError(t, host.ReleaseOwner(t.Context(), "a"))
	refused(both, "a")
	restored(both, "b")
	sleep(both)
	require.NoError(t, host.ReleaseOwner(t.Context(), "b"))
	require.NotContains(t, asleep(t, host), "both", "no owner is left")

	open := session(host, "open")
	for _, owner := range []string{"a", ""} {
		_, err := as(open, owner, "x = 1")
		require.NoError(t, err)
	}
	for _, owner := range []string{"", "a", "stranger"} {
		sleep(open)
		restored(open, owner)
	}

	// One that woke for an owner is that of the others, too, when that one leaves.
	shared := session(host, "shared")
	for _, owner := range []string{"a", "b"} {
		_, err := as(shared, owner, "x = 1")
		require.NoError(t, err)
	}
	sleep(shared)
	restored(shared, "a")
	require.NoError(t, host.ReleaseOwner(t.Context(), "a"))
	r, err := as(shared, "b", "x")
	require.NoError(t, err)
	require.Equal(t, messages.StateKept, r.State)
}

// gone waits until a session has no kernel.
func gone(t *testing.T, h *coppice.Host, s *coppice.Session) {
	t.Helper()
	require.Eventually(t, func() bool { _, there := kernels(t, h)[s.Key().ID()]; return !there }, time.Minute, 5*time.Millisecond)
}

// TestLossless: a session that would lose something is not kept, and goes on.
func TestLosslessHibernation(t *testing.T) {
	t.Parallel()
	host := sleepy(t, t.TempDir(), func(o *coppice.Options) {
		o.Hibernate, o.IdleTTL = hibernate.Lossless, time.Second
	})
	lossy, well := session(host, "lossy"), session(host, "well")
	run(t, lossy, cells("g = (i for i in range(3)); next(g)"))
	pid := kernels(t, host)[lossy.Key().ID()]
	_, err := lossy.Hibernate(t.Context())
	refused := refusedSleep(t, err, messages.HibernateLossy)
	require.Equal(t, []messages.LostName{{Name: "g", Type: "generator", Reason: "a generator cannot be kept where it stands"}}, refused.Lost)
	run(t, well, cells("x = 1"))
	require.Eventually(t, func() bool { return len(asleep(t, host)) == 1 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, messages.StateRestored, run(t, well, cells("x")).State)
	r := run(t, lossy, cells("next(g)"))
	require.Equal(t, messages.StateKept, r.State)
	require.Contains(t, r.Text, "1")
	require.Equal(t, pid, kernels(t, host)[lossy.Key().ID()])
}

// TestEvictedSessionsAreKept: for one more session than there is room for, the least
// recently used one goes to disk.
func TestEvictedSessionsAreKept(t *testing.T) {
	t.Parallel()
	host := sleepy(t, t.TempDir(), func(o *coppice.Options) { o.MaxSessions = 2 })
	for i := range 5 {
		run(t, session(host, i), cells(fmt.Sprintf("x = %d", i)))
	}
	for range 2 {
		for i := range 5 {
			r := run(t, session(host, i), cells("x"))
			require.Equal(t, messages.StateRestored, r.State)
			require.Contains(t, r.Text, fmt.Sprint(i))
			require.Equal(t, []string{"x"}, r.Restored.Kept)
		}
	}
}

// TestFailedRestore: what cannot be restored stays where it is, nothing runs in its
// place, and a reset begins without it.
func TestFailedRestore(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	host := sleepy(t, home, nil)
	s := session(host, "s")
	run(t, s, cells("x = 1"))
	_, err := s.Hibernate(t.Context())
	require.NoError(t, err)
	records, err := filepath.Glob(filepath.Join(home, ".coppice", "hibernated", "records", "*", "*.rec"))
	require.NoError(t, err)
	require.Len(t, records, 1)
	whole, err := os.ReadFile(records[0])
	require.NoError(t, err)
	whole[len(whole)/2] ^= 1
	require.NoError(t, os.WriteFile(records[0], whole, 0o600))
	for range 2 {
		r, err := s.Execute(t.Context(), cells("print('ran')"))
		require.Error(t, err)
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
		require.Contains(t, r.Text, "its record was changed, or sealed with the key of another host")
		require.Contains(t, r.Text, "reset the session to start over without it")
		require.NotContains(t, r.Text, "ran\n")
	}
	whole[len(whole)/2] ^= 1
	require.NoError(t, os.WriteFile(records[0], whole, 0o600))
	var r messages.Result
	require.Eventually(t, func() bool {
		r, err = s.Execute(t.Context(), cells("x"))
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, messages.StateRestored, r.State)
	_, err = s.Hibernate(t.Context())
	require.NoError(t, err)
	records, err = filepath.Glob(filepath.Join(home, ".coppice", "hibernated", "records", "*", "*.rec"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(records[0], []byte("nonsense"), 0o600))
	req := cells("'x' in globals()")
	req.Reset = true
	require.Contains(t, run(t, s, req).Text, "False")
}

// TestHibernationIsAskedForWhileCallsCome: whatever comes meanwhile runs once, and with
// the state of what ran before.
func TestHibernationIsAskedForWhileCallsCome(t *testing.T) {
	t.Parallel()
	host := sleepy(t, t.TempDir(), nil)
	s := session(host, "s")
	run(t, s, cells("n = 0"))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_, err := s.Hibernate(ctx)
			if refused, ok := errors.AsType[*messages.HibernateRefused](err); err != nil && ctx.Err() == nil && (!ok || refused.Reason != messages.HibernateBusy && refused.Reason != messages.HibernateNoKernel) {
				t.Error(err)
			}
		}
	})
	restored := 0
	for i := range 40 {
		r := run(t, s, cells("n += 1; n"))
		require.Contains(t, []messages.State{messages.StateKept, messages.StateRestored}, r.State)
		require.Equal(t, fmt.Sprint(i+1), strings.SplitN(r.Text, "\n", 2)[0])
		if r.State == messages.StateRestored {
			restored++
		}
	}
	cancel()
	wg.Wait()
	require.Positive(t, restored)
}

// TestNoHibernation: without the option nothing is kept, and a backend that cannot is
// refused.
func TestNoHibernation(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	host := sleepy(t, home, func(o *coppice.Options) { o.Hibernate = "" })
	s := session(host, "s")
	run(t, s, cells("x = 1"))
	_, err := s.Hibernate(t.Context())
	require.Contains(t, refusedSleep(t, err, messages.HibernateOff).Problem, "Options.Hibernate")
	require.Empty(t, asleep(t, host))
	require.NoFileExists(t, filepath.Join(home, ".coppice", "hibernate.key"))
	_, err = coppice.Start(t.Context(), coppice.Options{Backend: coppice.Gateway(coppice.GatewayOptions{URL: "http://127.0.0.1:9"}), Home: home, Hibernate: hibernate.Lossy})
	require.ErrorIs(t, err, coppice.ErrOptions)
	require.ErrorContains(t, err, "use the runner backend")
	_, err = coppice.Start(t.Context(), coppice.Options{Home: home, Hibernate: "sometimes"})
	require.ErrorContains(t, err, `the hibernation "sometimes" is not one of never, lossless, lossy`)
}
