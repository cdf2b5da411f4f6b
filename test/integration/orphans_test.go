//go:build linux

package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

// escapes starts programs in every way that leaves its process group or its parent:
// %[1]s is what they sleep for, by which they are found.
const escapes = `
sleep %[1]s &
nohup sleep %[1]s >/dev/null 2>&1 &
setsid sleep %[1]s >/dev/null 2>&1 &
(setsid sleep %[1]s >/dev/null 2>&1 &)
(setsid sh -c '(env -i setsid sleep %[1]s >/dev/null 2>&1 &)' &)
env -i setsid setsid nohup sleep %[1]s >/dev/null 2>&1 &
`

// cellEscapes does the same from a cell, and what only Python does.
const cellEscapes = `
import os, subprocess, time
subprocess.Popen(["sleep", "%[1]s"], start_new_session=True)
subprocess.Popen(["sleep", "%[1]s"], start_new_session=True, env={})
subprocess.Popen(["/bin/sh", "-c", %[2]q])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.execvp("sleep", ["sleep", "%[1]s"])
    os._exit(0)
`

// How many programs a cell and a command start so.
const cellStarts, commandStarts = 9, 6

// seconds is a time that nothing else sleeps for.
func seconds() string { return strconv.Itoa(1_000_000 + rand.IntN(1_000_000_000)) } //nolint:gosec // it only has to differ

// sleepers returns the programs that sleep for mark: of what starts one, some have it among
// their arguments, too, and some are two processes for a moment.
func sleepers(mark string) []proc.Process {
	return slices.DeleteFunc(proc.WithArgument(mark), func(p proc.Process) bool { return !strings.HasPrefix(p.Command, "sleep ") })
}

// escape has each of some sessions and commands start programs that leave.
func escape(t *testing.T, host *coppice.Host, sessions, commands int, mark string) {
	t.Helper()
	shell := fmt.Sprintf(escapes, mark)
	for n := range sessions {
		r := run(t, session(host, n), cells(fmt.Sprintf(cellEscapes, mark, shell)))
		require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
	}
	for range commands {
		go func() { _, _ = host.Command(context.Background(), coppice.Command{Script: shell + "wait"}) }() // ends with the host
	}
	require.Eventually(t, func() bool { return len(sleepers(mark)) == sessions*cellStarts+commands*commandStarts }, time.Minute, 20*time.Millisecond,
		"they started: %v", proc.WithArgument(mark))
}

// TestNothingThatEscapesOutlivesItsHost starts what leaves its group, its session and
// its parent, from cells of each backend and from commands, and ends the host.
func TestNothingThatEscapesOutlivesItsHost(t *testing.T) {
	if role := os.Getenv(hostVariable); strings.HasPrefix(role, "escapes ") {
		beHostOfEscapes(t, strings.Fields(role))
		return
	}
	for _, backend := range []string{backends.Runner, backends.Gateway, "landlock"} {
		for _, killed := range []bool{true, false} {
			if backend == backends.Gateway && !killed && !full() { // that end is the host's own doing, as it is on the runner
				continue
			}
			t.Run(fmt.Sprintf("%s, killed %v", backend, killed), func(t *testing.T) {
				t.Parallel()
				self, err := os.Executable()
				require.NoError(t, err)
				mark := seconds()
				cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestNothingThatEscapesOutlivesItsHost$", "-test.v")
				cmd.Env = append(os.Environ(), hostVariable+"=escapes "+backend+" "+mark+" "+t.TempDir(), "COPPICE_TEST_PYTHON="+testpython.Path(t))
				out, err := cmd.StdoutPipe()
				require.NoError(t, err)
				in, err := cmd.StdinPipe()
				require.NoError(t, err)
				require.NoError(t, cmd.Start())
				said := ""
				for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
					said += lines.Text() + "\n"
				}
				require.NotEmpty(t, proc.WithArgument(mark), said)
				if killed {
					require.NoError(t, cmd.Process.Kill())
				} else {
					require.NoError(t, in.Close())
				}
				_ = cmd.Wait() // it was killed, as it should be
				if !killed {
					require.Empty(t, proc.WithArgument(mark), "a host that ends in order waits for that")
				}
				require.Eventually(t, func() bool { return len(proc.WithArgument(mark)) == 0 }, time.Minute, 20*time.Millisecond,
					"left behind: %v", proc.WithArgument(mark))
			})
		}
	}
}

func beHostOfEscapes(t *testing.T, role []string) {
	o := coppice.Options{Python: testpython.Path(t), Home: role[3], Bash: true, StartTimeout: 2 * time.Minute}
	sessions := 2
	switch role[1] {
	case "landlock":
		o.Backend, o.Isolation = backends.Named(backends.Runner), coppice.Isolation{Level: "landlock"}
	default:
		o.Backend = backends.Named(role[1])
		if role[1] == backends.Gateway && !full() {
			sessions = 1
		}
	}
	host, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	escape(t, host, sessions, 2, role[2])
	_, _ = os.Stdout.WriteString("ready\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	report := host.Shutdown(ctx)
	require.True(t, report.Clean(), "%+v", report)
}
