//go:build linux

package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

// sharedVariable makes this test binary a program that uses the shared gateway
// of the home in it: it starts or finds it, or runs a session in it for ever.
const (
	sharedVariable  = "COPPICE_TEST_SHARED_HOME"
	sharedForEver   = "COPPICE_TEST_SHARED_FOR_EVER"
	sharedGatewayPy = "gateway.py"
)

// full says that the long form of a test is wanted.
func full() bool { return os.Getenv("COPPICE_TEST_FULL") == "1" }

// sharing is a home with shared gateways. At the end of the test they are
// stopped, and no process may be left.
type sharing struct {
	home, mark string
	python     string // "": that of the tests
}

func share(t *testing.T) sharing {
	t.Helper()
	s := sharing{home: t.TempDir(), mark: messages.NewID()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := jupyter.StopShared(ctx, filepath.Join(s.home, ".coppice"))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(proc.WithEnv(marker, s.mark)) == 0 }, time.Minute, 50*time.Millisecond,
			"left behind: %v", proc.WithEnv(marker, s.mark))
	})
	return s
}

func (s sharing) options(t *testing.T) coppice.Options {
	python := s.python
	if python == "" {
		python = testpython.Path(t)
	}
	return coppice.Options{
		Backend: coppice.Gateway(coppice.GatewayOptions{Shared: true, WarmKernels: -1}), Home: s.home, Python: python, Env: append(os.Environ(), marker+"="+s.mark), KeepSessions: true, MaxSessions: 10, StartTimeout: 2 * time.Minute,
	}
}

func (s sharing) host(t *testing.T, change func(*coppice.Options)) *coppice.Host {
	t.Helper()
	o := s.options(t)
	if change != nil {
		change(&o)
	}
	host, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { s.end(t, host) })
	return host
}

func (s sharing) end(t *testing.T, host *coppice.Host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.True(t, host.Shutdown(ctx).Clean())
}

// gateways returns the processes of gateways.
func (s sharing) gateways() []proc.Process {
	var found []proc.Process
	for _, p := range proc.WithEnv(marker, s.mark) {
		if strings.Contains(p.Command, sharedGatewayPy) {
			found = append(found, p)
		}
	}
	return found
}

// program starts this test binary as a program of its own.
func (s sharing) program(t *testing.T, test string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), sharedVariable+"="+s.home, marker+"="+s.mark, "COPPICE_TEST_PYTHON="+testpython.Path(t)), env...)
	return cmd
}

// TestASessionOutlivesItsHost resumes a session in a second host, finds the token
// nowhere but in gateway.json, and leaves nothing after a stop.
func TestASessionOutlivesItsHost(t *testing.T) {
	t.Parallel()
	t.Run("jupyter_kernel_gateway", func(t *testing.T) {
		t.Parallel()
		testOutlives(t, "")
	})
	if !full() {
		return
	}
	t.Run("jupyter_server alone", func(t *testing.T) {
		t.Parallel()
		testOutlives(t, testpython.JupyterServerOnly(t))
	})
}

func testOutlives(t *testing.T, python string) {
	t.Helper()
	s := share(t)
	s.python = python
	dir := t.TempDir()
	session := func(host *coppice.Host, name string) *coppice.Session { return host.Session(name, coppice.In(dir)) }
	first := s.host(t, nil)
	require.Equal(t, messages.StateFresh, run(t, session(first, "a"), cells("import os; os.environ['MINE'] = 'kept'; x = 41")).State)
	once := cells("x = 1")
	once.Mode = messages.ModePerCall
	require.Equal(t, messages.OutcomeOK, run(t, session(first, "a"), once).Outcome)
	require.Equal(t, messages.OutcomeOK, run(t, session(first, "closed"), cells("1")).Outcome)
	require.NoError(t, session(first, "closed").Close(t.Context()))
	s.end(t, first)

	second := s.host(t, nil)
	r := run(t, session(second, "a"), cells("import os; print(os.environ['MINE'], x + 1)"))
	require.Equal(t, "kept 42", r.Text)
	require.Equal(t, messages.StateKept, r.State)
	require.Equal(t, messages.StateFresh, run(t, session(second, "closed"), cells("1")).State)
	require.Len(t, s.gateways(), 1)
	reset := cells("'x' in globals()")
	reset.Reset = true
	require.True(t, strings.HasPrefix(run(t, session(second, "a"), reset).Text, "False"))
	s.end(t, second)

	found, err := jupyter.LookShared(t.Context(), filepath.Join(s.home, ".coppice"))
	require.NoError(t, err)
	require.Equal(t, 2, found[0].Sessions)
	s.noToken(t)
	_, err = jupyter.StopShared(t.Context(), filepath.Join(s.home, ".coppice"))
	require.NoError(t, err)
	require.Empty(t, proc.WithEnv(marker, s.mark))
}

// noToken looks for the gateway's token in all that was written and in the
// command lines of all processes.
func (s sharing) noToken(t *testing.T) {
	t.Helper()
	record := filepath.Join(s.home, ".coppice", "agent", "python-gateway", "gateway.json")
	data, err := os.ReadFile(record)
	require.NoError(t, err)
	var r struct{ Gateways []struct{ Token, Dir string } }
	require.NoError(t, json.Unmarshal(data, &r))
	require.Len(t, r.Gateways, 1)
	require.Len(t, r.Gateways[0].Token, 64)
	for _, root := range []string{s.home, r.Gateways[0].Dir} {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := d.Info()
			require.NoError(t, err)
			if path != s.home && strings.HasPrefix(path, filepath.Dir(record)) {
				require.Zero(t, info.Mode().Perm()&0o077, "%s is open to others", path)
			}
			if !info.Mode().IsRegular() || path == record {
				return nil
			}
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NotContains(t, string(data), r.Gateways[0].Token, path)
			return nil
		}))
	}
	for _, p := range proc.WithEnv(marker, s.mark) {
		require.NotContains(t, p.Command, r.Gateways[0].Token)
	}
}

// TestAStoppedGatewayLosesNothing stops the gateway with SIGSTOP for longer than
// kernels may be silent, then kills it.
func TestAStoppedGatewayLosesNothing(t *testing.T) {
	t.Parallel()
	s := share(t)
	host := s.host(t, func(o *coppice.Options) { o.KeepSessions = false; o.Heartbeat = time.Second })
	sessions, pause := 2, 4*time.Second
	if full() {
		sessions, pause = 8, 20*time.Second
	}
	for i := range sessions {
		require.Equal(t, messages.OutcomeOK, run(t, session(host, i), cells("x = 6")).Outcome)
	}
	gateways := s.gateways()
	require.Len(t, gateways, 1)
	require.NoError(t, syscall.Kill(gateways[0].PID, syscall.SIGSTOP))
	<-time.After(pause)
	require.NoError(t, syscall.Kill(gateways[0].PID, syscall.SIGCONT))
	for i := range sessions {
		r := run(t, session(host, i), cells("x * 7"))
		require.Equal(t, "42", r.Text, "%+v", r)
		require.Equal(t, messages.StateKept, r.State)
	}

	type told struct {
		messages.Result
		at time.Time
	}
	results := make(chan told, sessions)
	for i := range sessions {
		go func() {
			r, _ := session(host, i).Execute(context.Background(), cells("import time; time.sleep(600)")) // the result tells
			results <- told{r, time.Now()}
		}()
	}
	require.Eventually(t, func() bool {
		tree, err := host.Snapshot(t.Context())
		busy := 0
		for i := range sessions {
			if err == nil && find(tree, session(host, i).Key().ID()).State == messages.ChildBusy {
				busy++
			}
		}
		return busy == sessions
	}, time.Minute, 20*time.Millisecond)
	begin := time.Now()
	require.NoError(t, syscall.Kill(gateways[0].PID, syscall.SIGKILL))
	times := make([]time.Duration, sessions)
	for i := range times {
		r := <-results
		require.Equal(t, messages.OutcomeLost, r.Outcome)
		times[i] = r.at.Sub(begin).Round(time.Millisecond)
	}
	t.Logf("from the kill to each of %d cells that were told: %v", sessions, times)
	require.Less(t, slices.Max(times), time.Minute, "nobody waits for the end of the cells")
	for i := range sessions {
		r := run(t, session(host, i), cells("'x' in globals()"))
		require.True(t, strings.HasPrefix(r.Text, "False"), "%+v", r)
		require.Equal(t, messages.StateFresh, r.State)
		t.Logf("session %d: the next call was answered %v after the kill, state %s", i, time.Since(begin).Round(time.Millisecond), r.State)
	}
}

// TestAKilledHostLeavesNoUnclaimedKernel kills a host whose sessions are not kept:
// the shared gateway ends their kernels, and itself when it is idle.
func TestAKilledHostLeavesNoUnclaimedKernel(t *testing.T) {
	if home := os.Getenv(sharedForEver); home != "" {
		s := sharing{home: home, mark: os.Getenv(marker)}
		o := s.options(t)
		o.KeepSessions, o.Backend = false, coppice.Gateway(coppice.GatewayOptions{Shared: true, Idle: time.Second, WarmKernels: 1})
		host, err := coppice.Start(t.Context(), o)
		require.NoError(t, err)
		run(t, session(host, "a"), cells("1"))
		_, _ = os.Stdout.WriteString("ready\n")
		select {}
	}
	t.Parallel()
	s := share(t)
	cmd := s.program(t, "TestAKilledHostLeavesNoUnclaimedKernel", sharedForEver+"="+s.home)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
	}
	require.GreaterOrEqual(t, len(proc.WithEnv(marker, s.mark)), 3, "host, gateway, kernel")
	begin := time.Now()
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed, as it should be
	require.Eventually(t, func() bool { return len(proc.WithEnv(marker, s.mark)) == 0 }, 3*time.Minute, 50*time.Millisecond,
		"left behind: %v", proc.WithEnv(marker, s.mark))
	t.Logf("all was gone after %v", time.Since(begin))
	found, err := jupyter.LookShared(t.Context(), filepath.Join(s.home, ".coppice"))
	require.NoError(t, err)
	require.Empty(t, found, "the record is gone too")
}
