//go:build linux

package starve_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/starve"
)

const (
	burnerVariable = "COPPICE_TEST_BURNER"
	role           = "COPPICE_TEST_STARVES"
)

func TestMain(m *testing.M) {
	if os.Getenv(role) != "" { // it is killed while it has burners
		if _, err := starve.Burn(3); err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString("ready\n")
		select {}
	}
	goleak.VerifyTestMain(m)
}

// burning is how many children of a process burn.
func burning(pid int) (n int) {
	for _, p := range proc.WithEnv(burnerVariable, "1") {
		if p.Parent == pid {
			n++
		}
	}
	return n
}

func TestBurnersEnd(t *testing.T) {
	b, err := starve.Burn(2)
	require.NoError(t, err)
	require.Equal(t, 2, burning(os.Getpid()))
	require.NoError(t, b.Stop())
	require.Zero(t, burning(os.Getpid()))
	require.NoError(t, b.Stop())
}

func TestBurnersOfAKilledProgramEnd(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	mark := messages.NewID()
	cmd.Env = append(os.Environ(), role+"="+mark)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var burners []int
	for _, p := range proc.WithEnv(burnerVariable, "1") {
		if p.Parent == cmd.Process.Pid {
			burners = append(burners, p.PID)
		}
	}
	require.Len(t, burners, 3)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(burners, proc.Alive)
	}, time.Minute, 10*time.Millisecond)
}

func TestNoted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "postponed")
	sum, err := starve.Noted(path)
	require.NoError(t, err)
	require.Zero(t, sum)
	require.NoError(t, os.WriteFile(path, []byte("3\n0\n39\n"), 0o600))
	sum, err = starve.Noted(path)
	require.NoError(t, err)
	require.EqualValues(t, 42, sum)
	t.Setenv(starve.Variable, path)
	starve.Note()
	sum, err = starve.Noted(path)
	require.NoError(t, err)
	require.EqualValues(t, 42, sum, "nothing was put off here")
}
