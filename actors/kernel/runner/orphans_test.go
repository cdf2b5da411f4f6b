//go:build linux

package runner_test

import (
	"context"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// Sessions that die together after their fork server are all told of. What that takes
// does not grow with them: see batches of package forkserver.
func TestOrphansThatDieTogetherAreTold(t *testing.T) {
	f := startServer(runner.ServerOptions{Spares: -1})
	t.Cleanup(func() { _ = f.stop() }) // it was killed
	all, err := startCrowd(f, crowd())
	require.NoError(t, err)
	for _, i := range all { // a member of the group is killed, and waited for
		require.NoError(t, run(t, i, "import subprocess\np = subprocess.Popen(['sleep', '600'])").err)
	}
	require.NoError(t, syscall.Kill(<-f.pids, syscall.SIGKILL))
	require.Error(t, <-f.ended)
	f.ended <- nil // for the cleanup

	for _, i := range all {
		require.NoError(t, syscall.Kill(i.Info().PID, syscall.SIGKILL))
	}
	begin := time.Now()
	for _, i := range all {
		select {
		case <-i.Done():
		case <-time.After(patience):
			require.FailNow(t, "an end was not told")
		}
	}
	t.Logf("the ends of %d sessions were told within %v", len(all), time.Since(begin).Round(time.Millisecond))
	for _, i := range all {
		closeSession(t, i)
	}
}

// A fork server that is stopped by a signal is ended by whoever needs it first.
func TestAForkServerThatIsStoppedHoldsNothingUp(t *testing.T) {
	f := startServer(runner.ServerOptions{})
	b := runner.New(runner.Options{Server: f.server})
	var all []kernel.Interpreter
	for range 4 {
		i, err := b.Start(t.Context(), kernel.StartOptions{})
		require.NoError(t, err)
		all = append(all, i)
	}
	server := <-f.pids
	require.NoError(t, syscall.Kill(server, syscall.SIGSTOP))

	chance := opportunity.Begin(opportunity.Processes(self(t)), nil)
	got := run(t, all[0], "import os\nos._exit(3)")
	var lost *kernel.LostError
	require.ErrorAs(t, got.err, &lost)
	require.Less(t, chance.Opportunity(), 6*time.Second, "a session that ends does not wait for its parent")
	for _, i := range all[1:] {
		require.Equal(t, "=> 2", ok(t, i, "1 + 1").text(), "the others live on")
	}

	chance = opportunity.Begin(opportunity.Processes(self(t)), nil)
	var wg sync.WaitGroup
	for _, i := range all {
		wg.Go(func() { closeSession(t, i) })
	}
	wg.Wait()
	require.ErrorContains(t, <-f.ended, "stopped by a signal")
	f.ended <- nil
	require.NoError(t, f.stop())
	require.Less(t, chance.Opportunity(), 10*time.Second)
}

// self names this process, so that what it waited for a processor can be left out of a time.
func self(t *testing.T) process.Identity {
	t.Helper()
	id, err := process.Identify(os.Getpid())
	require.NoError(t, err)
	return id
}

// One that no one needs is noticed by its heartbeat.
func TestAForkServerThatIsStoppedIsNoticed(t *testing.T) {
	f := startServer(runner.ServerOptions{Spares: -1})
	i, err := runner.New(runner.Options{Server: f.server}).Start(t.Context(), kernel.StartOptions{})
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(<-f.pids, syscall.SIGSTOP))
	select {
	case err := <-f.ended:
		require.ErrorContains(t, err, "did not answer")
	case <-time.After(patience):
		require.FailNow(t, "the fork server was not ended")
	}
	f.ended <- nil
	require.Equal(t, "=> 2", ok(t, i, "1 + 1").text(), "its session lives on")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, i.Close(ctx))
	require.NoError(t, f.stop())
}
