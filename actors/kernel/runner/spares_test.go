//go:build linux

package runner_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/internal/process"
)

// Spares are bounded, replaced when they are taken, sessions like others, and gone
// with their server.
func TestSpares(t *testing.T) {
	t.Parallel()
	const spares = 3
	f := startServer(runner.ServerOptions{Spares: spares})
	pid := <-f.pids
	server, err := process.Identify(pid)
	require.NoError(t, err)
	waiting := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return f.server.Spares() == n }, patience, time.Millisecond)
	}
	children := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			found, err := process.Descendants(server)
			return err == nil && len(found) == n
		}, patience, time.Millisecond)
	}
	waiting(spares)
	children(spares)

	i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{Env: map[string]string{"COPPICE_S": "one"}})
	j := sessionOn(t, f, runner.Options{}, kernel.StartOptions{Env: map[string]string{"COPPICE_S": "two"}})
	require.Equal(t, "=> 'one'", ok(t, i, "import os\nos.environ['COPPICE_S']").text())
	require.Equal(t, "=> ('two', False)", ok(t, j, "import os\nos.environ['COPPICE_S'], 'i' in globals()").text())
	require.NotEqual(t, ok(t, i, "import random\nrandom.random()").text(), ok(t, j, "import random\nrandom.random()").text())
	waiting(spares)
	children(spares + 2)

	// One that dies while it waits is not handed out.
	found, err := process.Descendants(server)
	require.NoError(t, err)
	taken := map[int]bool{i.Info().PID: true, j.Info().PID: true}
	for _, id := range found {
		if !taken[id.PID] {
			kill(t, id.PID)
		}
	}
	children(2)
	k := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
	require.Equal(t, "=> 2", ok(t, k, "1+1").text())
	waiting(spares)
	for _, i := range []*runner.Interpreter{i, j, k} {
		closeSession(t, i)
	}
	require.NoError(t, f.stop())
	require.Zero(t, f.server.Spares())
	require.False(t, process.Alive(server))
}

// While memory is low there are no spares; sessions are made all the same.
func TestSparesAndMemory(t *testing.T) {
	t.Parallel()
	var low atomic.Bool
	f := startServer(runner.ServerOptions{LowMemory: low.Load})
	t.Cleanup(func() { require.NoError(t, f.stop()) })
	spares := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return f.server.Spares() == n }, patience, time.Millisecond)
	}
	spares(2)
	low.Store(true)
	i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
	spares(0)
	j := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
	require.Equal(t, "=> 2", ok(t, i, "1+1").text())
	require.Equal(t, "=> 2", ok(t, j, "1+1").text())
	low.Store(false)
	spares(2)
}

func TestNoSpares(t *testing.T) {
	t.Parallel()
	f := startServer(runner.ServerOptions{Spares: -1})
	t.Cleanup(func() { require.NoError(t, f.stop()) })
	pid := <-f.pids
	server, err := process.Identify(pid)
	require.NoError(t, err)
	i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
	j := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
	require.Equal(t, "=> 2", ok(t, i, "1+1").text())
	require.Equal(t, "=> 2", ok(t, j, "1+1").text())
	found, err := process.Descendants(server)
	require.NoError(t, err)
	require.Len(t, found, 2, "the two sessions")
	require.Zero(t, f.server.Spares())
}
