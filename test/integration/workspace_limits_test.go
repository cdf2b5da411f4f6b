//go:build linux

package integration_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/workspace"
)

// passing is code that passes a limit of its workspace.
type passing struct {
	o     workspace.Options
	code  string
	limit messages.Limit
	// outcomes are those that the call may have.
	outcomes []messages.Outcome
}

// TestTheLimitsOfAWorkspaceHoldForItsSessions has code pass each limit of a workspace:
// its result has the name of the limit, and a session of another workspace goes on
// answering.
func TestTheLimitsOfAWorkspaceHoldForItsSessions(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	cases := map[string]passing{
		"memory": {
			workspace.Options{Total: workspace.Total{Memory: 256 * mib}},
			"import time\nb = [bytearray(b'x') * (32 << 20) for _ in range(32)]\ntime.sleep(600)",
			messages.LimitMemory,
			[]messages.Outcome{messages.OutcomeLost},
		},
		"processes": {
			workspace.Options{Total: workspace.Total{Processes: 100}},
			"import subprocess, time\nall = [subprocess.Popen(['sleep', '600'], start_new_session=True) for _ in range(10_000)]\ntime.sleep(600)",
			messages.LimitProcesses,
			[]messages.Outcome{messages.OutcomeError},
		},
		"refused": { // threads count for the system, which refuses a process before a look has found too many
			workspace.Options{Total: workspace.Total{Processes: 100}},
			"import subprocess, threading\ne = threading.Event()\nfor _ in range(250): threading.Thread(target=e.wait, daemon=True).start()\nall = [subprocess.Popen(['sleep', '600'], start_new_session=True) for _ in range(10_000)]\ntime.sleep(600)",
			messages.LimitProcesses,
			[]messages.Outcome{messages.OutcomeError},
		},
		"daemons": {
			workspace.Options{Total: workspace.Total{Processes: 100}},
			"import os, time\nfor _ in range(200):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n            time.sleep(600)\n        os._exit(0)\n    os.wait()\ntime.sleep(1)",
			messages.LimitProcesses,
			[]messages.Outcome{messages.OutcomeError, messages.OutcomeOK},
		},
		"output": {
			workspace.Options{Total: workspace.Total{Output: mib}},
			"while True: print('x' * 1000)",
			messages.LimitOutput,
			[]messages.Outcome{messages.OutcomeError},
		},
		"disk": {
			workspace.Options{Quota: 16 * mib},
			"import itertools\nfor i in itertools.count(): open(f'f{i}', 'wb').write(bytes(mib := 1 << 20))",
			messages.LimitDisk,
			[]messages.Outcome{messages.OutcomeError},
		},
		"file": {
			workspace.Options{Quota: 16 * mib},
			"with open('f', 'wb', 0) as f:\n    while True: f.write(bytes(1 << 20))",
			messages.LimitDisk,
			[]messages.Outcome{messages.OutcomeError},
		},
	}
	onBoth(t, func(t *testing.T, backend string) {
		host := start(t, coppice.Options{Backend: backends.Named(backend), InterruptGrace: 20 * time.Second})
		_, err := host.Workspace(t.Context(), "neighbour", workspace.Options{})
		require.NoError(t, err)
		beside := host.Session("a", coppice.InWorkspace("neighbour"))
		run(t, beside, cells("n = 1"))
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			if backend == backends.Gateway && !slices.Contains([]string{"memory", "output", "processes"}, name) && os.Getenv("COPPICE_TEST_FULL") == "" {
				continue // a kernel takes a second to start, and the limits are kept to by the same code
			}
			t.Run(name, func(t *testing.T) { //nolint:paralleltest // one after the other on one host
				passes(t, host, beside, name, backend, cases[name])
			})
		}
	})
}

// passes has code pass a limit of a workspace of its own.
func passes(t *testing.T, host *coppice.Host, beside *coppice.Session, name, backend string, tt passing) {
	t.Helper()
	w, err := host.Workspace(t.Context(), name, tt.o)
	require.NoError(t, err)
	inside := host.Session("a", coppice.InWorkspace(name))
	run(t, inside, cells("n = 1"))
	results := make(chan messages.Result, 1)
	go func() { // ends with the call
		r, _ := inside.Execute(t.Context(), cells(tt.code)) // the result says it, too
		results <- r
	}()
	slowest, calls := time.Duration(0), 0
	var r messages.Result
	for over := false; !over; {
		select {
		case r = <-results:
			over = true
		case <-time.After(20 * time.Millisecond): // one call after the other would take the processors from what is looked at
			begin := time.Now()
			told := run(t, beside, cells("n"))
			require.Equal(t, messages.OutcomeOK, told.Outcome, told.Text)
			slowest = max(slowest, time.Since(begin))
			calls++
		}
	}
	require.True(t, slices.Contains(tt.outcomes, r.Outcome), "%s: %s", r.Outcome, r.Text)
	require.NotNil(t, r.Exceeded, r.Text)
	require.Equal(t, tt.limit, r.Exceeded.Limit)
	if r.Outcome != messages.OutcomeOK {
		require.Contains(t, r.Text, "ResourceLimitExceeded: "+string(tt.limit)+": ")
	}
	require.Less(t, len(r.Text), 100<<10)
	t.Logf("LIMIT %s on the %s: %s; %d calls of a neighbour meanwhile, the slowest %v", name, backend, r.Exceeded, calls, slowest.Round(time.Millisecond))
	// The workspace goes on.
	if tt.o.Quota > 0 {
		require.Equal(t, messages.OutcomeOK, run(t, inside, cells("import glob, os\nfor f in glob.glob('f*'): os.remove(f)")).Outcome)
	}
	require.Contains(t, run(t, inside, cells("1 + 1")).Text, "2")
	require.NoError(t, w.End(t.Context()))
}

// TestALimitOfProcessorsWantsAControlGroup is refused where there is none, and says so.
func TestALimitOfProcessorsWantsAControlGroup(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: backends.Named(backends.Runner)})
	w, err := host.Workspace(t.Context(), "half", workspace.Options{Total: workspace.Total{Processors: 0.5}})
	if err != nil {
		require.ErrorContains(t, err, "a limit of processors needs a control group")
		return
	}
	require.Equal(t, "a control group of the workspace", w.Info().Kept)
	require.Equal(t, fmt.Sprint(0.5), fmt.Sprint(w.Total().Processors))
}

// TestOpenFilesOfAWorkspace: code of either backend that opens more files than it may is told by
// the limit's name, and goes on when it has closed them.
func TestOpenFilesOfAWorkspace(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, backend string) {
		host := start(t, coppice.Options{Backend: backends.Named(backend)})
		_, err := host.Workspace(t.Context(), "few", workspace.Options{Limits: coppice.Limits{Files: 50}})
		require.NoError(t, err)
		s := host.Session("a", coppice.InWorkspace("few"))
		r, err := s.Execute(t.Context(), cells("all = []\nfor _ in range(40): all.append(open('/dev/null'))\nlen(all)"))
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
		r, _ = s.Execute(t.Context(), cells("while True: all.append(open('/dev/null'))")) // the result says it, too
		if backend == backends.Gateway && r.Outcome == messages.OutcomeLost {
			// ZeroMQ ends a process that has no descriptor left for a connection. The server makes room
			// for those that come, but a loop that opens files in that moment may be faster.
			require.Contains(t, r.Text, "its process died")
			r = run(t, s, cells("'all' in globals()"))
			require.Equal(t, messages.StateFresh, r.State, r.Text)
			require.Contains(t, r.Text, "False")
			return
		}
		require.Equal(t, messages.OutcomeError, r.Outcome, r.Text)
		require.NotNil(t, r.Exceeded, r.Text)
		require.Equal(t, messages.LimitFiles, r.Exceeded.Limit, r.Text)
		t.Logf("LIMIT files on the %s: %s", backend, r.Exceeded)
		r = run(t, s, cells("for f in all: f.close()\nimport subprocess\nsubprocess.run(['true']).returncode"))
		require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
		require.Contains(t, r.Text, "0")
	})
}
