//go:build linux

package tools_test

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
	"github.com/coppice-run/coppice/test/toolbox"
)

// hostVariable makes this test binary a host that runs until it is killed: it
// names the folder of tools.
const hostVariable = "COPPICE_TEST_AS_TOOL_HOST"

// TestAKilledHostLeavesNothing kills a host with SIGKILL while its tools are
// idle, busy, and deaf to a request to end, and have started others.
func TestAKilledHostLeavesNothing(t *testing.T) {
	if dir := os.Getenv(hostVariable); dir != "" {
		beHost(t, dir)
		return
	}
	t.Parallel()
	box := toolbox.New(t)
	box.Add(toolbox.Tool{ID: "idle"})
	box.Add(toolbox.Tool{ID: "busy"})
	box.Add(toolbox.Tool{ID: "deaf", Env: "START=deaf"})
	box.Add(toolbox.Tool{ID: "parent", Env: "START=spawn"})
	box.Add(toolbox.Tool{ID: "session", Env: "START=session"})
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestAKilledHostLeavesNothing$", "-test.v")
	cmd.Env = append(os.Environ(), hostVariable+"="+box.Dir, "COPPICE_HOME="+home, "COPPICE_TEST_PYTHON="+testpython.Path(t))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "ready" {
			break
		}
	}
	require.Len(t, left(box), 8)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed, as it should be
	require.Eventually(t, func() bool { return len(left(box)) == 0 }, patience, 20*time.Millisecond, "left behind: %v", left(box))
}

// beHost warms its tools, says that it is ready, and waits for its end.
func beHost(t *testing.T, dir string) {
	ts, err := launcher.Start(t.Context(), launcher.Options{Dir: dir})
	require.NoError(t, err)
	h := host{ts, &toolbox.Box{Dir: dir}, t}
	h.ok("idle", "echo", 1)
	h.ok("deaf", "echo", 1)
	h.ok("parent", "echo", 1)
	h.ok("session", "echo", 1)
	h.begin(messages.NewID(), "busy", "burn", 600) // the folder of a run outlives its host
	h.inFlight("busy", 1)
	_, _ = os.Stdout.WriteString("ready\n")
	select {}
}

// TestAToolThatEndsLeavesNothing: neither in its group nor in other sessions, whether it
// was asked to end, or ended by itself.
func TestAToolThatEndsLeavesNothing(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Env: "START=session"})
	h.ok("x", "echo", 1)
	require.Len(t, left(h.Box), 3)
	was, err := h.Stop(t.Context(), "x")
	require.NoError(t, err)
	require.True(t, was)
	require.Empty(t, left(h.Box), "all of it is gone when Stop returns")
	h.run("x", "exit", 3)
	h.eventually(func() bool { return len(left(h.Box)) == 0 }, "the end of what it had started")
	h.run("x", "kill")
	h.eventually(func() bool { return len(left(h.Box)) == 0 }, "the end of what it had started")
}
