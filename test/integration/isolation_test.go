//go:build linux

package integration_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

func TestEscapesThatAreTried(t *testing.T) {
	t.Parallel()
	levels := []string{kernel.IsolationOff, "", kernel.IsolationLandlock, kernel.IsolationSeccomp}
	if _, err := exec.LookPath("bwrap"); err == nil {
		levels = append(levels, kernel.IsolationBubblewrap)
	}
	for _, level := range levels {
		for _, noFork := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s fork=%v", level, !noFork), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				o := coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{NoFork: noFork}), Isolation: coppice.Isolation{Level: level, Write: []string{dir}}}
				host := start(t, o)
				forks, why, err := host.Forks(t.Context())
				require.NoError(t, err)
				require.Equal(t, !noFork, forks)
				require.Equal(t, noFork, why != "")
				escapes, err := environment.TryToEscape(t.Context(), host.Dir(), func(_ context.Context, code string) (environment.Escaped, error) {
					r := run(t, host.Session("escape", coppice.In(dir)), cells(code))
					require.Len(t, r.JSON, 1, r.Text)
					level, _ := host.Isolation()
					return environment.Escaped{JSON: r.JSON[0], Level: level}, nil
				})
				require.NoError(t, err)
				require.Len(t, escapes, len(environment.Walls()))
				for _, e := range escapes {
					t.Logf("%+v", e)
					if e.Promised {
						require.True(t, e.Prevented, "%+v", e)
					}
				}
				if level == kernel.IsolationOff {
					require.False(t, escapes[2].Prevented, "the attempt is a real one: %+v", escapes[2])
				}

				s := host.Session("s", coppice.In(dir))
				r := run(t, s, cells(`import os, tempfile, subprocess, json, multiprocessing
open('mine', 'w').write('x')
with tempfile.TemporaryFile() as f: f.write(b'x')
lock = multiprocessing.Lock()
subprocess.run(['sh', '-c', 'echo y >> mine; cat mine; rm mine'], check=True)
open(os.devnull, 'w').write('x')
import sqlite3, ssl, asyncio
await asyncio.sleep(0)
print(len(os.urandom(4)))`))
				require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
				require.Equal(t, "xy\n4", r.Text)
				require.NoFileExists(t, filepath.Join(dir, "mine"))
			})
		}
	}
}

func TestAnIsolatedSessionElsewhere(t *testing.T) {
	t.Parallel()
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	host := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Isolation: coppice.Isolation{Level: kernel.IsolationLandlock, Write: []string{t.TempDir()}}})
	r := run(t, host.Session("s", coppice.In(home)), cells("1"))
	require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
	require.Contains(t, r.Reason, "the isolation keeps sessions out of "+home)

	_, err = coppice.Start(t.Context(), coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Home: t.TempDir(), Isolation: coppice.Isolation{Level: "tight"}})
	require.ErrorIs(t, err, coppice.ErrOptions)
	require.ErrorContains(t, err, `"tight"`)
}

func TestResourceLimits(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{
		Backend: coppice.Runner(coppice.RunnerOptions{}), MaxSessions: 8, InterruptGrace: 5 * time.Second,
		Limits: coppice.Limits{Memory: 128 << 20, CPU: time.Second, Runtime: 2 * time.Minute, Files: 50, Processes: 4},
	})
	controllers, why, err := host.ControlGroups(t.Context())
	require.NoError(t, err)
	require.Equal(t, len(controllers) < 2, why != "", "%v %s", controllers, why) // memory and pids
	tight := coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Home: t.TempDir()}
	for _, none := range []float64{-1, math.NaN()} {
		tight.Limits.Processors = none
		_, err = coppice.Start(t.Context(), tight)
		require.ErrorIs(t, err, coppice.ErrOptions)
	}
	if len(controllers) == 0 {
		tight.Limits.Processors = 0.5
		_, err = coppice.Start(t.Context(), tight)
		require.ErrorIs(t, err, coppice.ErrOptions)
		require.ErrorContains(t, err, "a limit of processors needs a control group: ")
	}
	for name, code := range map[messages.Limit]string{
		messages.LimitMemory:    "import sys\nprint('words', file=sys.stderr)\nx = bytearray(1 << 30)",
		messages.LimitCPU:       "for _ in iter(int, 1): pass",
		messages.LimitFiles:     "fs = [open('/dev/null') for _ in range(100)]",
		messages.LimitProcesses: "import subprocess, time\nps = [subprocess.Popen(['sleep', '100']) for _ in range(8)]\ntime.sleep(100)",
	} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			s := session(host, name)
			run(t, s, cells("y = 1"))
			r := run(t, s, cells(code))
			require.Equal(t, messages.OutcomeError, r.Outcome, r.Text)
			require.NotNil(t, r.Exceeded, r.Text)
			require.Equal(t, name, r.Exceeded.Limit)
			require.EqualError(t, r.Exceeded, "ResourceLimitExceeded: "+string(name))
			require.Equal(t, "ResourceLimitExceeded", r.Cells[0].Error.Name)
			require.Contains(t, r.Text, "ResourceLimitExceeded: "+string(name)+": ")
			if name == messages.LimitMemory {
				require.Equal(t, "words\n", r.Exceeded.Stderr)
			}
			r = run(t, s, cells("y"))
			require.Equal(t, "1", r.Text, "the session is kept")
			require.Nil(t, r.Exceeded)
		})
	}
	if !full() { // it takes five seconds of a processor
		return
	}
	t.Run("cpu that native code uses", func(t *testing.T) {
		t.Parallel()
		s := session(host, "native")
		r := run(t, s, cells("sum(range(10**12))"))
		require.Equal(t, messages.OutcomeLost, r.Outcome, r.Text)
		require.NotNil(t, r.Exceeded)
		require.Equal(t, messages.LimitCPU, r.Exceeded.Limit)
		require.Contains(t, r.Text, "ResourceLimitExceeded: cpu")
	})
}

func TestTheRuntimeLimit(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{backends.Runner, backends.Gateway} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			host := start(t, coppice.Options{Backend: backends.Named(backend), InterruptGrace: 20 * time.Second, Limits: coppice.Limits{Runtime: time.Second}})
			s := session(host, "one")
			r := run(t, s, cells("x = 1", "import time\ntime.sleep(100)", "x = 2"))
			require.Equal(t, messages.OutcomeTimeout, r.Outcome, r.Text)
			require.NotEqual(t, messages.StateLost, r.State)
			require.NotNil(t, r.Exceeded)
			require.Equal(t, messages.LimitRuntime, r.Exceeded.Limit)
			require.Contains(t, r.Text, "[ResourceLimitExceeded: runtime]")
			require.Equal(t, messages.CellPending, r.Cells[2].Status)
			require.Equal(t, "1", run(t, s, cells("x")).Text)
		})
	}
}
