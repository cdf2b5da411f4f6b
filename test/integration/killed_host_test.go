//go:build linux

package integration_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/testpython"
)

// hostVariable makes this test binary a host that runs until it is killed.
const hostVariable = "COPPICE_TEST_AS_HOST"

// TestAKilledHostLeavesNothing kills a host with SIGKILL while its kernels are
// idle, busy in Python, and busy in native code that no Python thread can end.
func TestAKilledHostLeavesNothing(t *testing.T) {
	if os.Getenv(hostVariable) != "" {
		beHost(t)
		return
	}
	t.Parallel()
	mark := messages.NewID()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestAKilledHostLeavesNothing$", "-test.v")
	cmd.Env = append(os.Environ(), hostVariable+"="+t.TempDir(), marker+"="+mark, "COPPICE_TEST_PYTHON="+testpython.Path(t))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "ready" {
			break
		}
	}
	require.Greater(t, len(proc.WithEnv(marker, mark)), 3, "the host, its gateway and three kernels")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed, as it should be
	require.Eventually(t, func() bool { return len(proc.WithEnv(marker, mark)) == 0 }, time.Minute, 50*time.Millisecond,
		"left behind: %v", proc.WithEnv(marker, mark))
}

// beHost runs three sessions, says that it is ready, and waits for its end.
func beHost(t *testing.T) {
	host, err := coppice.Start(t.Context(), coppice.Options{
		Python: testpython.Path(t), Home: os.Getenv(hostVariable), StartTimeout: 2 * time.Minute, Backend: backends.Named(backend()),
	})
	require.NoError(t, err)
	for name, code := range map[string]string{"idle": "", "python": "while True: pass", "native": "sum(range(10**11))"} {
		s := session(host, name)
		run(t, s, cells("1"))
		if code != "" {
			go func() { _, _ = s.Execute(context.Background(), cells(code)) }() // ends with this process
		}
	}
	require.Eventually(t, func() bool {
		tree, err := host.Snapshot(t.Context())
		return err == nil && find(tree, session(host, "python").Key().ID()).State == messages.ChildBusy &&
			find(tree, session(host, "native").Key().ID()).State == messages.ChildBusy
	}, time.Minute, 50*time.Millisecond)
	_, _ = os.Stdout.WriteString("ready\n")
	select {}
}
