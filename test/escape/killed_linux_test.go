package escape_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/procs"
)

// hostVariable makes this test binary a host that runs until it is killed.
const hostVariable = "COPPICE_ESCAPE_AS_HOST"

// daemons starts programs that leave their group, their session and their parent, some
// of them twice; %[1]s is what they sleep for, by which they are found.
const daemons = `setsid sleep %[1]s >/dev/null 2>&1 &
(setsid sh -c '(env -i setsid sleep %[1]s >/dev/null 2>&1 &)' &)
`

// cellDaemons does the same from a cell, and by forks alone.
const cellDaemons = `import os, subprocess
subprocess.Popen(["sleep", "%[1]s"], start_new_session=True, env={})
subprocess.Popen(["/bin/sh", "-c", %[2]q]).wait()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        os.execvp("sleep", ["sleep", "%[1]s"])
    os._exit(0)
`

// eachStarts is how many programs there are in a workspace: of its cell, of its process
// and of its terminal, which are shells that become one themselves.
const eachStarts = 4 + 3 + 3

// TestAKilledHostOfWorkspaces kills a host with SIGKILL that has workspaces with
// sessions, processes, terminals, and daemons of all of them. On Linux nothing is left
// on any rung: each stands below an owner.
func TestAKilledHostOfWorkspaces(t *testing.T) {
	if role := strings.Fields(os.Getenv(hostVariable)); len(role) > 0 {
		beHostOfWorkspaces(t, role[0], role[1], role[2], coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Python: python(t)})
		return
	}
	count := 3
	if full {
		count = 50
	}
	for _, rung := range rungs[:position(kernel.IsolationGVisor)] { // whose programs are seen from outside
		if why := environment.LacksRung(rung); why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", rung, os.Geteuid(), why)
			continue
		}
		t.Run(rung, func(t *testing.T) { //nolint:paralleltest // it counts what is left after a time
			killsHost(t, "TestAKilledHostOfWorkspaces", rung, count)
		})
	}
}

// TestAKilledHostOfGateways does the same to one whose workspaces have gateways of their own.
func TestAKilledHostOfGateways(t *testing.T) {
	if role := strings.Fields(os.Getenv(hostVariable)); len(role) > 0 {
		path, packages := kernelsOn(t, role[0])
		beHostOfWorkspaces(t, role[0], role[1], role[2], coppice.Options{
			Backend: coppice.Gateway(coppice.GatewayOptions{WarmKernels: -1}), Python: path, Isolation: coppice.Isolation{Read: packages},
		})
		return
	}
	count := 2
	if full {
		count = 50
	}
	for _, rung := range []string{kernel.IsolationOff, kernel.IsolationSeccomp, kernel.IsolationUser, kernel.IsolationBubblewrap} {
		if rung == kernel.IsolationSeccomp && !full && lacks(t, kernel.IsolationUser) == nil { // then two others are enough
			continue
		}
		if why := lacks(t, rung); why != nil {
			t.Logf("RUNG gateway %s as uid %d: not here: %v", rung, os.Geteuid(), why)
			continue
		}
		t.Run(rung, func(t *testing.T) { //nolint:paralleltest // it counts what is left after a time
			killsHost(t, "TestAKilledHostOfGateways", rung, count)
		})
	}
}

// killsHost has a test be the host of so many workspaces on a rung, and kills it.
func killsHost(t *testing.T, name, rung string, count int) {
	t.Helper()
	mark := strconv.Itoa(1_000_000 + rand.IntN(1_000_000_000)) //nolint:gosec // it only has to differ
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$", "-test.v")
	temp, err := os.MkdirTemp("/tmp", "e") //nolint:usetesting // short, and others pass: what it leaves there goes with it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(temp)) })
	require.NoError(t, os.Chmod(temp, 0o755)) //nolint:gosec // as said
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, fmt.Sprintf("%s=%s %d %s", hostVariable, rung, count, mark))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := ""
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		said += lines.Text() + "\n"
	}
	before := 0
	for end := time.Now().Add(30 * time.Second); before != count*eachStarts && time.Now().Before(end); { // one that becomes another program just now has no arguments
		before = len(proc.WithArgument(mark))
	}
	require.NoError(t, cmd.Process.Kill())
	killed := time.Now()
	_ = cmd.Wait() // it was killed, as it should be
	require.Equal(t, count*eachStarts, before, "%s", said)
	late, counted, ended := 0, false, time.Duration(0)
	require.Eventually(t, func() bool {
		after := time.Since(killed) >= 2*time.Second
		left := len(proc.WithArgument(mark)) // which takes its time on a busy machine
		ended = time.Since(killed)
		if after && !counted {
			late, counted = left, true
		}
		return left == 0
	}, 3*time.Minute, 10*time.Millisecond, "left behind: %v", proc.WithArgument(mark))
	t.Logf("RUNG %s as uid %d: host with %d workspaces killed: %d processes of theirs, %d left after 2 s, the last gone after %v", rung, os.Geteuid(), count, before, late, ended.Round(time.Millisecond))
}

// beHostOfWorkspaces fills workspaces, says that it is ready, and waits for its end.
func beHostOfWorkspaces(t *testing.T, rung, number, mark string, o coppice.Options) {
	count, err := strconv.Atoi(number)
	require.NoError(t, err)
	dir := shared(t)
	packages := o.Isolation.Read
	o.Home, o.MaxSessions, o.Isolation = dir, count+1, coppice.Isolation{}
	h, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	for n := range count {
		name := fmt.Sprint("w", n)
		w, err := h.Workspace(t.Context(), name, workspace.Options{Isolation: coppice.Isolation{Level: rung, Read: packages}})
		require.NoError(t, err)
		shell := fmt.Sprintf(daemons, mark)
		r := call(t, h.Session("s", coppice.InWorkspace(name)), fmt.Sprintf(cellDaemons, mark, shell))
		require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
		for _, terminal := range []*procs.Size{nil, {}} {
			_, err := w.Start(t.Context(), workspace.ProcessOptions{Args: []string{"/bin/sh", "-c", shell + "exec sleep " + mark}, Terminal: terminal})
			require.NoError(t, err)
		}
	}
	if rung != kernel.IsolationGVisor {
		require.Eventually(t, func() bool { return len(proc.WithArgument(mark)) == count*eachStarts }, time.Minute, 20*time.Millisecond, "they started")
	}
	_, _ = os.Stdout.WriteString("ready\n")
	select {}
}
