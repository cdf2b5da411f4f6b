//go:build linux

package runner_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
)

// crowd is how many sessions live at once in these tests. COPPICE_TEST_FULL=1 asks
// for 500.
func crowd() int {
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		return 500
	}
	return 60
}

// startCrowd starts sessions, a few at a time, each with a variable of its own.
func startCrowd(f *forks, n int) ([]kernel.Interpreter, error) {
	b := runner.New(runner.Options{Server: f.server})
	all, errs := make([]kernel.Interpreter, n), make([]error, n)
	slots := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for at := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if all[at], errs[at] = b.Start(context.Background(), kernel.StartOptions{}); errs[at] == nil {
				_, errs[at] = all[at].Execute(context.Background(), kernel.CellRequest{Code: fmt.Sprintf("x = %d", at)}, func(context.Context, messages.Event) error { return nil })
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// playCrowd is a host with many live sessions that waits to be killed.
func playCrowd() int {
	f := startServer(runner.ServerOptions{Python: python()})
	if _, err := startCrowd(f, crowd()); err != nil {
		_, _ = fmt.Fprintln(os.Stdout, err)
		return 1
	}
	_, _ = fmt.Fprintln(os.Stdout, "ready")
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	<-c
	return 0
}

// A host with many live sessions is killed: nothing is left of it.
func TestKilledHostOfACrowd(t *testing.T) {
	mark := messages.NewID()
	exe, err := os.Executable()
	require.NoError(t, err)
	host := exec.Command(exe)
	host.Env = append(os.Environ(), roleEnv+"=crowd", "PI_TEST_MARK="+mark)
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	said, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", said)
	before := len(proc.WithEnv("PI_TEST_MARK", mark))
	require.Greater(t, before, crowd())
	require.NoError(t, host.Process.Kill())
	killed := time.Now()
	_ = host.Wait() // it says that it was killed
	require.Eventually(t, func() bool { return len(proc.WithEnv("PI_TEST_MARK", mark)) == 0 }, patience, 20*time.Millisecond)
	t.Logf("%d processes were gone %v after the host was killed", before, time.Since(killed).Round(time.Millisecond))
}

// The fork server of many live sessions is killed: all of them answer.
func TestKilledForkServerOfACrowd(t *testing.T) {
	f := startServer(runner.ServerOptions{})
	t.Cleanup(func() { _ = f.stop() }) // it was killed
	all, err := startCrowd(f, crowd())
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(<-f.pids, syscall.SIGKILL))
	require.Error(t, <-f.ended)
	f.ended <- nil // for the cleanup
	begin := time.Now()
	for at, i := range all {
		require.Equal(t, "=> "+strconv.Itoa(at), ok(t, i, "x").text())
	}
	t.Logf("%d sessions answered in %v without their fork server", len(all), time.Since(begin).Round(time.Millisecond))
	var wg sync.WaitGroup
	for _, i := range all {
		wg.Go(func() { closeSession(t, i) })
	}
	wg.Wait()
}
