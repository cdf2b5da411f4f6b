//go:build linux

package integration_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/starve"
	"github.com/coppice-run/coppice/test/testpython"
)

// frozenVariable makes this test binary a host that is stopped and goes on.
const frozenVariable = "COPPICE_TEST_AS_FROZEN_HOST"

// frozen says what that host runs; its variable holds it.
type frozen struct {
	Backend, Home string
	Idle, Running int
	Heartbeat     time.Duration
	Cells         time.Duration // how long a running cell takes
}

// thawed is what has become of its sessions: nothing, if all is well.
type thawed struct {
	Lost    []string            // results that are not what they should be
	Ended   []string            // exits of kernels while the sessions were in use
	Unclean []messages.Leftover `json:",omitempty"`
}

// TestAFrozenHostLosesNothing stops a host for many heartbeats. Its sessions, idle and
// running, are there when it goes on: none is ended because none could be heard.
func TestAFrozenHostLosesNothing(t *testing.T) {
	if text := os.Getenv(frozenVariable); text != "" {
		var o frozen
		require.NoError(t, json.Unmarshal([]byte(text), &o))
		beFrozen(t, o)
		return
	}
	type form struct {
		frozen
		stops []time.Duration
	}
	forms := map[string]form{
		"runner":  {frozen{Backend: "runner", Idle: 30, Running: 10, Heartbeat: 300 * time.Millisecond, Cells: 3 * time.Second}, []time.Duration{1500 * time.Millisecond, 1200 * time.Millisecond}},
		"gateway": {frozen{Backend: "gateway", Idle: 1, Running: 1, Heartbeat: 300 * time.Millisecond, Cells: 3 * time.Second}, []time.Duration{1500 * time.Millisecond}},
	}
	if full() {
		for name, stop := range map[string]time.Duration{"20 s": 20 * time.Second, "5 min": 5 * time.Minute} {
			forms["runner for "+name] = form{frozen{Backend: "runner", Idle: 200, Running: 50, Cells: stop}, []time.Duration{stop}}
			forms["gateway for "+name] = form{frozen{Backend: "gateway", Idle: 6, Running: 2, Cells: stop}, []time.Duration{stop}}
		}
	}
	for name, f := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.Home = t.TempDir()
			got := f.freeze(t, f.stops...)
			require.Equal(t, thawed{}, got)
		})
	}
}

// freeze runs the host in a process of its own, stops that for a while, once or more,
// and returns what it says of its sessions afterwards.
func (o frozen) freeze(t *testing.T, stops ...time.Duration) thawed {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	mark := messages.NewID()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestAFrozenHostLosesNothing$", "-test.v", "-test.timeout=20m")
	cmd.Env = append(os.Environ(), frozenVariable+"="+string(text), marker+"="+mark, "COPPICE_TEST_PYTHON="+testpython.Path(t))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var got thawed
	told := false
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		said = append(said, line)
		switch {
		case line == "ready":
			for _, d := range stops {
				require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
				pause(t, d)
				require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
				pause(t, 50*time.Millisecond)
			}
		case strings.HasPrefix(line, "{"):
			require.NoError(t, json.Unmarshal([]byte(line), &got))
			told = true
		}
	}
	require.NoError(t, cmd.Wait(), "%s", strings.Join(said, "\n"))
	require.True(t, told, "%s", strings.Join(said, "\n"))
	require.Eventually(t, func() bool { return len(proc.WithEnv(marker, mark)) == 0 }, time.Minute, 50*time.Millisecond,
		"left behind: %v", proc.WithEnv(marker, mark))
	return got
}

// pause lets time pass in which a process stands still.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// beFrozen is the host: its sessions each have a number, some run a cell that takes its
// time and then shows it, and all show it again afterwards.
func beFrozen(t *testing.T, o frozen) {
	host, err := coppice.Start(t.Context(), coppice.Options{
		Python: testpython.Path(t), Home: o.Home, Backend: backends.Named(o.Backend), StartTimeout: 3 * time.Minute,
		MaxSessions: o.Idle + o.Running, Heartbeat: o.Heartbeat, IdleTTL: -1, Timeout: 20 * time.Minute,
	})
	require.NoError(t, err)
	var got thawed
	number := func(i int) *coppice.Session { return session(host, i) }
	begun := func(i int) string { return filepath.Join(o.Home, fmt.Sprint("begun-", i)) }
	check := func(what string, i int, r messages.Result, err error) {
		if err != nil || r.Outcome != messages.OutcomeOK || r.State == messages.StateLost || !strings.Contains(r.Text, fmt.Sprintf("<%d>", i)) {
			got.Lost = append(got.Lost, fmt.Sprintf("%s %d: %v %s, %s: %s %s", what, i, err, r.Outcome, r.State, r.Reason, r.Text))
		}
	}
	type ended struct {
		i   int
		r   messages.Result
		err error
	}
	running := make(chan ended, o.Running)
	for i := range o.Idle + o.Running {
		run(t, number(i), cells(fmt.Sprintf("x = %d", i)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	for i := range o.Running {
		go func() {
			r, err := number(i).Execute(ctx, cells(fmt.Sprintf("open(%q, 'w').close(); import time; time.sleep(%v); print(f'<{x}>')", begun(i), o.Cells.Seconds())))
			running <- ended{i, r, err}
		}()
	}
	stop := host.Watch(func(e messages.Lifecycle) {
		if c, ok := e.(messages.ChildChanged); ok && c.Exit != nil && c.Kind == "kernel" && c.Exit.Kind != messages.ExitShutdown {
			_, _ = fmt.Fprintln(os.Stdout, "exit of", c.Path, c.Exit) // into what is shown when the test fails
		}
	})
	for i := range o.Running { // what only begins when the host goes on proves less
		require.Eventually(t, func() bool { _, err := os.Stat(begun(i)); return err == nil }, 3*time.Minute, 5*time.Millisecond)
	}
	_, _ = os.Stdout.WriteString("ready\n")
	for range o.Running {
		e := <-running
		check("running", e.i, e.r, e.err)
	}
	for i := range o.Idle + o.Running {
		r, err := number(i).Execute(ctx, cells("print(f'<{x}>')"))
		check("idle", i, r, err)
	}
	tree, err := host.Snapshot(ctx)
	require.NoError(t, err)
	for i := range o.Idle + o.Running {
		if n := find(tree, number(i).Key().ID()); n.Restarts > 0 || n.Epoch != 1 {
			got.Ended = append(got.Ended, fmt.Sprintf("%d was started again: %+v", i, n.LastExit))
		}
	}
	stop()
	got.Unclean = host.Shutdown(ctx).Leftovers
	text, err := json.Marshal(got)
	require.NoError(t, err)
	_, _ = os.Stdout.WriteString(string(text) + "\n")
}

// hold has a thread of an idle session take the interpreter's lock for ever, with all
// signals blocked: native code does that.
const hold = `
import ctypes, signal, threading
def hold():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(100000)
threading.Timer(.2, hold).start()
`

// A kernel that hangs is ended, on an idle machine and on one with much to do, and its
// session is told.
func TestAHungKernelIsEndedOnABusyMachine(t *testing.T) {
	t.Parallel()
	load := map[string]int{"idle": 0, "busy": runtime.NumCPU()}
	if full() {
		load["busy"] = 6
	}
	for _, backend := range []string{"runner", "gateway"} {
		for name, busy := range load {
			if name == "busy" && !full() { // it takes ten seconds of both processors, and half a minute on the gateway
				continue
			}
			t.Run(backend+" "+name, func(t *testing.T) {
				host := start(t, coppice.Options{Backend: backends.Named(backend), Heartbeat: time.Second})
				starve.With(t, busy)
				stopped, holding := session(host, "stopped"), session(host, "holding")
				pid, err := strconv.Atoi(strings.TrimSpace(run(t, stopped, cells("import os; print(os.getpid())")).Text))
				require.NoError(t, err)
				require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
				require.Equal(t, messages.OutcomeOK, run(t, holding, cells(hold)).Outcome)
				begin := time.Now()
				for _, s := range []*coppice.Session{stopped, holding} {
					require.Eventually(t, func() bool {
						tree, err := host.Snapshot(t.Context())
						return err == nil && find(tree, s.Key().ID()).LastExit != nil
					}, time.Minute, 50*time.Millisecond, "%v", s.Key())
					r := run(t, s, cells("1"))
					require.Equal(t, messages.StateFresh, r.State)
					require.Contains(t, r.Reason, "heartbeat")
				}
				t.Log(time.Since(begin))
			})
		}
	}
}
