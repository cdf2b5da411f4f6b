//go:build linux

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
	"github.com/coppice-run/coppice/workspace"
)

func notRestored(t *testing.T, err error, reason messages.RestoreReason) (problem string) {
	t.Helper()
	refused, ok := errors.AsType[*messages.RestoreRefused](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, reason, refused.Reason, refused.Problem)
	return refused.Problem
}

func saved(t *testing.T, h *coppice.Host) []string {
	t.Helper()
	list, err := h.SavedCheckpoints(t.Context())
	require.NoError(t, err)
	names := make([]string, 0, len(list))
	for _, s := range list {
		names = append(names, s.Key.Name)
	}
	return names
}

// TestSavedCheckpoint: what was kept under a name comes back in the session, in another one,
// in another folder, and in a later host, with what is told; the session goes on.
func TestSavedCheckpoint(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	host := sleepy(t, home, func(o *coppice.Options) { o.Hibernate = hibernate.Lossless })
	s, ctx := session(host, "s"), t.Context()
	_, err := s.SaveCheckpoint(ctx, "one", coppice.SaveOptions{})
	require.Contains(t, refusedSleep(t, err, messages.HibernateNoKernel).Problem, "run a cell first")
	run(t, s, cells("import socket, functools\nn = 1\ndef up():\n    global n\n    n += 1\n    return n\n@functools.lru_cache\ndef c(x): return x\nsock = socket.socket()\nclass A: pass\na = [A()]; b = {'a': a}"))
	pid := kernels(t, host)[s.Key().ID()]
	_, err = s.SaveCheckpoint(ctx, "one", coppice.SaveOptions{})
	require.Equal(t, "sock", refusedSleep(t, err, messages.HibernateLossy).Lost[0].Name)
	require.ErrorContains(t, err, `the checkpoint "one" was not made: it would lose sock`)
	require.Empty(t, saved(t, host))
	report, err := s.SaveCheckpoint(ctx, "one", coppice.SaveOptions{Lossy: true})
	require.NoError(t, err)
	require.Equal(t, []string{"A", "a", "b", "functools", "n", "socket", "up"}, report.Kept)
	require.Equal(t, []messages.LostName{{Name: "sock", Type: "socket.socket", Reason: "a connection ends with its process"}}, report.Lost)
	require.Equal(t, []messages.ChangedName{{Name: "c", Type: "functools._lru_cache_wrapper", Change: "its cache is empty"}}, report.Changed)
	require.Positive(t, report.Bytes)
	_, err = s.SaveCheckpoint(ctx, "one", coppice.SaveOptions{Lossy: true})
	require.Error(t, refusedSleep(t, err, messages.HibernateExists))
	require.Empty(t, asleep(t, host), "a checkpoint is no session on disk")

	// The session goes on, with the socket.
	r := run(t, s, cells("up(), sock.fileno() >= 0"))
	require.Equal(t, messages.StateKept, r.State)
	require.Contains(t, r.Text, "(2, True)")
	require.Equal(t, pid, kernels(t, host)[s.Key().ID()])

	back := func(h *coppice.Host, s *coppice.Session, was ...string) {
		t.Helper()
		restored, err := s.RestoreCheckpoint(ctx, "one", coppice.RestoreOptions{})
		require.NoError(t, err)
		require.Equal(t, report.Memory, restored.Memory)
		r := run(t, s, cells("up(), c(4), 'sock' in globals(), b['a'] is a, type(a[0]) is A"))
		require.Equal(t, messages.StateRestored, r.State, "never kept")
		require.Equal(t, &restored, r.Restored)
		require.Contains(t, r.Text, "(2, 4, False, True, True)")
		require.Contains(t, r.Text, "lost: sock (socket.socket: a connection ends with its process)")
		require.Equal(t, messages.StateKept, run(t, s, cells("n")).State)
		require.Equal(t, []string{"one"}, saved(t, h), "it stays")
		require.Equal(t, was, restored.Notes)
	}
	back(host, s)
	require.NotEqual(t, pid, kernels(t, host)[s.Key().ID()])
	back(host, s)
	other := session(host, "other")
	back(host, other)                               // one that had no kernel
	run(t, session(host, "full"), cells("n = 'x'")) // and one that had
	back(host, session(host, "full"))
	require.Contains(t, run(t, session(host, "full"), cells("n")).Text, "2")
	dir := t.TempDir()
	away := host.Session("away", coppice.In(dir))
	back(host, away, "it was kept in "+s.Key().Cwd+" and is now in "+dir+": paths that variables hold are as they were")
	require.Contains(t, run(t, away, cells("import os; os.getcwd()")).Text, dir)

	// It is no one's state but by its name: a reset and the session's end leave it.
	require.NoError(t, s.Reset(ctx))
	require.Contains(t, run(t, s, cells("'n' in globals()")).Text, "False")
	require.NoError(t, s.Close(ctx))
	back(host, s)

	// One that sleeps is restored without its own state, which does not come back.
	run(t, other, cells("sock = None; later = 1"))
	_, err = other.Hibernate(ctx)
	require.NoError(t, err)
	gone(t, host, other)
	back(host, other)
	require.Contains(t, run(t, other, cells("'later' in globals()")).Text, "False")
	require.Empty(t, asleep(t, host))
	require.Empty(t, host.Shutdown(ctx).Leftovers)

	next := sleepy(t, home, func(o *coppice.Options) { o.Hibernate = hibernate.Lossless })
	list, err := next.SavedCheckpoints(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, s.Key(), list[0].Session)
	require.Equal(t, report.Memory, list[0].Memory)
	require.True(t, list[0].Open)
	require.WithinRange(t, list[0].Made, time.Now().Add(-time.Hour), time.Now())
	back(next, session(next, "anew"))
	one := messages.CheckpointKey{Name: "one"}
	require.NoError(t, next.DropCheckpoint(ctx, one, ""))
	require.ErrorIs(t, next.DropCheckpoint(ctx, one, ""), coppice.ErrNoCheckpoint)
	_, err = session(next, "anew").RestoreCheckpoint(ctx, "one", coppice.RestoreOptions{})
	notRestored(t, err, messages.RestoreUnknown)
	require.ErrorIs(t, err, coppice.ErrNoCheckpoint)
	require.Equal(t, messages.StateKept, run(t, session(next, "anew"), cells("n")).State)
}

// TestARefusedCheckpoint leaves the session with all that it has, and the checkpoint.
func TestARefusedCheckpoint(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	host := sleepy(t, home, nil)
	ctx := t.Context()
	as := func(s *coppice.Session, owner, code string) messages.Result {
		t.Helper()
		r := cells(code)
		r.Owner = owner
		return run(t, s, r)
	}
	mine, yours := session(host, "mine"), session(host, "yours")
	as(mine, "me", "x = 'secret'")
	as(yours, "you", "y = 1")
	_, err := mine.SaveCheckpoint(ctx, "m", coppice.SaveOptions{Owner: "me"})
	require.NoError(t, err)
	for _, owner := range []string{"you", ""} {
		_, err = yours.RestoreCheckpoint(ctx, "m", coppice.RestoreOptions{Owner: owner})
		require.Equal(t, "it belongs to another owner", notRestored(t, err, messages.RestoreOwner))
		require.ErrorContains(t, err, `the checkpoint "m" was not restored`)
		var record *store.RefusedError
		require.ErrorAs(t, err, &record)
	}
	_, err = yours.SaveCheckpoint(ctx, "m", coppice.SaveOptions{Owner: "you", Replace: true})
	require.Error(t, refusedSleep(t, err, messages.HibernateOwner))
	err = host.DropCheckpoint(ctx, messages.CheckpointKey{Name: "m"}, "you")
	notRestored(t, err, messages.RestoreOwner)

	// Something runs.
	before := run(t, mine, cells("import os; os.getpid()"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = mine.Execute(ctx, cells("import time; time.sleep(600)"))
	}()
	require.Eventually(t, func() bool {
		info, ok, err := host.Find(ctx, mine.Key())
		return err == nil && ok && info.State == messages.ChildBusy
	}, time.Minute, 5*time.Millisecond)
	_, err = mine.RestoreCheckpoint(ctx, "m", coppice.RestoreOptions{Owner: "me"})
	require.Contains(t, notRestored(t, err, messages.RestoreBusy), "a call runs")
	_, err = mine.SaveCheckpoint(ctx, "busy", coppice.SaveOptions{})
	require.Error(t, refusedSleep(t, err, messages.HibernateBusy))
	require.NoError(t, mine.Interrupt())
	<-done
	require.Equal(t, before.Text, run(t, mine, cells("os.getpid()")).Text)

	// Its record is broken: nothing is loaded, and a session that has something goes on.
	records, err := filepath.Glob(filepath.Join(home, ".coppice", "hibernated", "records", "*", "*.rec"))
	require.NoError(t, err)
	require.Len(t, records, 1)
	whole, err := os.ReadFile(records[0])
	require.NoError(t, err)
	for _, at := range []int{0, len(whole) / 2, len(whole) - 1} {
		broken := append([]byte{}, whole...)
		broken[at] ^= 1
		require.NoError(t, os.WriteFile(records[0], broken, 0o600))
		_, err = yours.RestoreCheckpoint(ctx, "m", coppice.RestoreOptions{Owner: "me"})
		notRestored(t, err, messages.RestoreBroken)
	}
	require.NoError(t, os.WriteFile(records[0], whole[:len(whole)-9], 0o600))
	_, err = yours.RestoreCheckpoint(ctx, "m", coppice.RestoreOptions{Owner: "me"})
	require.Contains(t, notRestored(t, err, messages.RestoreBroken), "cut off")
	require.Equal(t, messages.StateKept, as(yours, "you", "y").State)
	require.NoError(t, os.WriteFile(records[0], whole, 0o600))
	_, err = yours.RestoreCheckpoint(ctx, "m", coppice.RestoreOptions{Owner: "me"})
	require.NoError(t, err)
	require.Contains(t, as(yours, "me", "x, 'y' in globals()").Text, "('secret', False)")

	// What it was restored into is of its owner when it goes to disk, and of those who call.
	_, err = yours.Hibernate(ctx)
	require.NoError(t, err)
	list, err := host.Hibernated(ctx)
	require.NoError(t, err)
	require.Contains(t, list[0].Owners, "me")
	require.NoError(t, host.ReleaseOwner(ctx, "me"))
	require.Empty(t, saved(t, host), "its only owner has left")

	for _, name := range []string{"", "..", "a/b", "a b", "-x"} {
		var wrong *coppice.RequestError
		_, err = mine.SaveCheckpoint(ctx, name, coppice.SaveOptions{})
		require.ErrorAs(t, err, &wrong, name)
		_, err = mine.RestoreCheckpoint(ctx, name, coppice.RestoreOptions{})
		require.ErrorAs(t, err, &wrong, name)
	}
}

// TestCheckpointsOfAWorkspace are its own, and end with it.
func TestCheckpointsOfAWorkspace(t *testing.T) {
	t.Parallel()
	host := sleepy(t, t.TempDir(), nil)
	ctx := t.Context()
	w, err := host.Workspace(ctx, "w", workspace.Options{Owner: "me"})
	require.NoError(t, err)
	in := host.Session("s", coppice.InWorkspace("w"))
	run(t, in, cells("x = 1"))
	_, err = in.SaveCheckpoint(ctx, "c", coppice.SaveOptions{})
	require.NoError(t, err)
	_, err = session(host, "s").RestoreCheckpoint(ctx, "c", coppice.RestoreOptions{Owner: "me"})
	notRestored(t, err, messages.RestoreUnknown)
	also := host.Session("also", coppice.InWorkspace("w"))
	_, err = also.RestoreCheckpoint(ctx, "c", coppice.RestoreOptions{})
	require.NoError(t, err, "for the owner of the workspace")
	require.Contains(t, run(t, also, cells("x")).Text, "1")
	list, err := host.SavedCheckpoints(ctx)
	require.NoError(t, err)
	require.Equal(t, messages.CheckpointKey{Name: "c", Workspace: "w"}, list[0].Key)
	require.Equal(t, []string{"me"}, list[0].Owners)
	require.NoError(t, w.End(ctx))
	require.Eventually(t, func() bool { return len(saved(t, host)) == 0 }, time.Minute, 10*time.Millisecond)
}

// TestCheckpointsAreRestoredWhileCallsCome: each call runs once, with the state that its result
// says: that of the call before, or that of the checkpoint.
func TestCheckpointsAreRestoredWhileCallsCome(t *testing.T) {
	t.Parallel()
	host := sleepy(t, t.TempDir(), nil)
	s := session(host, "s")
	run(t, s, cells("n = 100"))
	_, err := s.SaveCheckpoint(t.Context(), "hundred", coppice.SaveOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			restored, err := s.RestoreCheckpoint(ctx, "hundred", coppice.RestoreOptions{})
			refused, ok := errors.AsType[*messages.RestoreRefused](err)
			switch {
			case ctx.Err() != nil:
			case err != nil && (!ok || refused.Reason != messages.RestoreBusy && refused.Reason != messages.RestoreStarting):
				t.Error(err)
			case err == nil && !slices.Equal(restored.Kept, []string{"n"}):
				t.Error(restored)
			}
		}
	})
	n, restored := 100, 0
	for i := 0; i < 25 || restored == 0; i++ {
		r := run(t, s, cells("n += 1; n"))
		switch r.State {
		case messages.StateRestored:
			n = 101
			restored++
		case messages.StateKept:
			n++
		default:
			require.Fail(t, "neither kept nor restored", "%+v", r)
		}
		require.Equal(t, fmt.Sprint(n), strings.SplitN(r.Text, "\n", 2)[0])
	}
	cancel()
	done.Wait()
}

// TestNoCheckpoints: a host that keeps nothing on disk, and a backend that cannot, say so.
func TestNoCheckpoints(t *testing.T) {
	t.Parallel()
	host := sleepy(t, t.TempDir(), func(o *coppice.Options) { o.Hibernate = "" })
	s, ctx := session(host, "s"), t.Context()
	run(t, s, cells("x = 1"))
	_, err := s.SaveCheckpoint(ctx, "c", coppice.SaveOptions{})
	require.Contains(t, refusedSleep(t, err, messages.HibernateOff).Problem, "Options.Hibernate")
	_, err = s.RestoreCheckpoint(ctx, "c", coppice.RestoreOptions{})
	require.Contains(t, notRestored(t, err, messages.RestoreOff), "Options.Hibernate")
	require.Empty(t, saved(t, host))
	require.ErrorIs(t, host.DropCheckpoint(ctx, messages.CheckpointKey{Name: "c"}, ""), coppice.ErrNoCheckpoint)
	require.Equal(t, messages.StateKept, run(t, s, cells("x")).State)
}
