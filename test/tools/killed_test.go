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
	"github.com/coppice-run/coppice/test/testpython"
	"github.com/coppice-run/coppice/test/toolbox"
)

// hostVariable makes this test binary a host that runs until it is killed: it
// names the folder of tools.
const hostVariable = "COPPICE_TEST_AS_TOOL_HOST"

// TestAKilledHostLeavesNothing kills a host with SIGKILL while its tools are
// idle, busy, and deaf to a request to end.
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
	require.Len(t, left(box), 3)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed, as it should be
	require.Eventually(t, func() bool { return len(left(box)) == 0 }, patience, 20*time.Millisecond, "left behind: %v", left(box))
}

// beHost warms three tools, says that it is ready, and waits for its end.
func beHost(t *testing.T, dir string) {
	ts, err := launcher.Start(t.Context(), launcher.Options{Dir: dir})
	require.NoError(t, err)
	h := host{ts, &toolbox.Box{Dir: dir}, t}
	h.ok("idle", "echo", 1)
	h.ok("deaf", "echo", 1)
	h.begin("r", "busy", "burn", 600)
	h.inFlight("busy", 1)
	_, _ = os.Stdout.WriteString("ready\n")
	select {}
}
