//go:build linux

package integration_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

func refusedFor(t *testing.T, err error, reason messages.ForkReason) {
	t.Helper()
	refused, ok := errors.AsType[*messages.ForkRefused](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, reason, refused.Reason, refused.Problem)
}

func TestForksOfALiveSession(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), MaxSessions: 12})
	s := session(host, "origin")
	_, err := s.Fork(t.Context(), coppice.ForkOptions{Copies: 1})
	refusedFor(t, err, messages.ForkNoKernel)

	run(t, s, cells("import threading, os\nlock = threading.Lock()\nsquare = lambda x: x * x\nseen = ['origin']"))
	forks, err := s.Fork(t.Context(), coppice.ForkOptions{Copies: 5, Owner: "tenant"})
	require.NoError(t, err)
	require.Len(t, forks, 5)
	all := append([]*coppice.Session{s}, forks...)
	var wg sync.WaitGroup
	for i, f := range all {
		wg.Go(func() {
			r, err := f.Execute(t.Context(), cells(fmt.Sprintf("seen.append(%d); lock.acquire(); seen, square(%d)", i, i)))
			if err != nil || r.Text != fmt.Sprintf("(['origin', %d], %d)", i, i*i) || r.State != messages.StateKept {
				t.Errorf("%v %+v", err, r)
			}
		})
	}
	wg.Wait()
	pids := map[int]bool{}
	for _, pid := range kernels(t, host) {
		pids[pid] = true
	}
	require.Len(t, pids, 6, "each is a kernel of its own in the tree")

	// A copy dies alone, and its session gets a new kernel.
	dead := kernels(t, host)[forks[0].Key().ID()]
	require.NoError(t, syscall.Kill(dead, syscall.SIGKILL))
	require.Eventually(t, func() bool { return kernels(t, host)[forks[0].Key().ID()] != dead }, time.Minute, 10*time.Millisecond)
	r := run(t, forks[0], cells("'seen' in globals()"))
	require.Equal(t, messages.StateFresh, r.State)
	require.Contains(t, r.Text, "False")
	require.Equal(t, "['origin', 0]", run(t, s, cells("seen")).Text)

	// Copies of copies; and what outlives its original.
	named, err := forks[0].Fork(t.Context(), coppice.ForkOptions{Names: []string{"by name"}})
	require.NoError(t, err)
	require.Equal(t, "by name", named[0].Key().Session)
	_, err = forks[1].Fork(t.Context(), coppice.ForkOptions{Names: []string{"by name"}})
	require.ErrorContains(t, err, "there is a session")
	_, err = forks[1].Fork(t.Context(), coppice.ForkOptions{Names: []string{"x", "x"}})
	require.ErrorContains(t, err, `the name "x" is taken`)
	_, err = forks[1].Fork(t.Context(), coppice.ForkOptions{Copies: 3, Names: []string{"x"}})
	require.ErrorContains(t, err, "1 names for 3 copies")
	require.NoError(t, named[0].Close(t.Context()))
	again, err := forks[1].Fork(t.Context(), coppice.ForkOptions{Copies: 1})
	require.NoError(t, err)
	require.NoError(t, forks[1].Close(t.Context()))
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, "['origin', 2]", run(t, again[0], cells("seen")).Text)

	require.NoError(t, host.ReleaseOwner(t.Context(), "tenant"))
	require.Eventually(t, func() bool { return len(kernels(t, host)) == 1 }, time.Minute, 10*time.Millisecond)
}

func TestForksThatAreRefused(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), MaxSessions: 3})
	s := session(host, "one")
	run(t, s, cells("import threading, time"))

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan messages.Result, 1)
	running := make(chan struct{}, 1)
	go func() {
		for e, err := range s.Stream(ctx, cells("print('go', flush=True)\ntime.sleep(100)")) {
			switch e := e.(type) {
			case messages.Stream:
				running <- struct{}{}
			case messages.Final:
				ended <- e.Result
			}
			if err != nil {
				return
			}
		}
	}()
	<-running
	_, err := s.Fork(t.Context(), coppice.ForkOptions{Copies: 1})
	refusedFor(t, err, messages.ForkBusy)
	_, err = s.Checkpoint(t.Context())
	refusedFor(t, err, messages.ForkBusy)
	cancel()
	<-ended

	_, err = s.Fork(t.Context(), coppice.ForkOptions{Copies: 3})
	refusedFor(t, err, messages.ForkTooMany)
	_, err = s.Fork(t.Context(), coppice.ForkOptions{Copies: -1})
	refusedFor(t, err, messages.ForkTooMany)
	run(t, s, cells("stop = threading.Event()\nt = threading.Thread(target=stop.wait)\nt.start()"))
	_, err = s.Fork(t.Context(), coppice.ForkOptions{Copies: 1})
	refusedFor(t, err, messages.ForkThreads)
	run(t, s, cells("stop.set(); t.join()"))
	_, err = s.Fork(t.Context(), coppice.ForkOptions{Copies: 1})
	require.NoError(t, err, "a refusal leaves the session as it was")
}

func TestCheckpoints(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), MaxSessions: 4})
	s := session(host, "one")
	run(t, s, cells("x = 1\ngen = (i for i in range(10))\nnext(gen)"))
	c, err := s.Checkpoint(t.Context())
	require.NoError(t, err)
	run(t, s, cells("x = 2\nnext(gen)\nnext(gen)"))
	own, all := c.Memory()
	require.Positive(t, own)
	require.Greater(t, all, own)
	require.Len(t, kernels(t, host), 1, "a checkpoint is no session")

	for range 2 { // a checkpoint is used again and again
		require.NoError(t, s.Rewind(t.Context(), c))
		r := run(t, s, cells("x, next(gen)"))
		require.Equal(t, "(1, 1)", r.Text)
		require.Equal(t, messages.StateKept, r.State)
	}
	// A session whose kernel has died, and one that never was.
	require.Equal(t, messages.OutcomeLost, run(t, s, cells("import os; os._exit(1)")).Outcome)
	require.NoError(t, s.Rewind(t.Context(), c))
	require.Equal(t, "1", run(t, s, cells("x")).Text)
	other := session(host, "other")
	require.NoError(t, other.Rewind(t.Context(), c))
	require.Equal(t, "1", run(t, other, cells("x")).Text)

	// A reset means a new kernel, also when a copy waits to become one.
	require.NoError(t, other.Close(t.Context()))
	require.NoError(t, other.Rewind(t.Context(), c))
	require.NoError(t, other.Reset(t.Context()))
	require.Contains(t, run(t, other, cells("'x' in globals()")).Text, "False")

	c.Drop()
	c.Drop()
	refusedFor(t, s.Rewind(t.Context(), c), messages.ForkUnknown)
	own, all = c.Memory()
	require.Zero(t, own+all)
	require.Equal(t, "1", run(t, s, cells("x")).Text)

	_, err = s.Checkpoint(t.Context()) // ends with the host
	require.NoError(t, err)
}

func TestTheGatewayBackendCannotCopy(t *testing.T) {
	t.Parallel()
	s := session(on(t, backends.Gateway), t.Name())
	_, err := s.Fork(t.Context(), coppice.ForkOptions{Copies: 1})
	refusedFor(t, err, messages.ForkUnsupported)
	_, err = s.Checkpoint(t.Context())
	refusedFor(t, err, messages.ForkUnsupported)
}
