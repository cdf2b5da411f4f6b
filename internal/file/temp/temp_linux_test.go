package temp_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/file/temp"
)

// roleEnv makes this program one that makes a folder and waits to be killed.
const roleEnv = "COPPICE_TEST_TEMP"

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) != "" {
		dir, err := temp.Make("artifacts")
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, dir)
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	os.Exit(m.Run())
}

// TestWhatAKilledProcessLeft is removed by the next that looks, and nothing else is.
func TestWhatAKilledProcessLeft(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	mine, err := temp.Make("artifacts")
	require.NoError(t, err)
	info, err := os.Stat(mine)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var theirs string
	_, err = fmt.Fscan(out, &theirs)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(theirs, "0.txt"), nil, 0o600))
	require.Empty(t, temp.Abandoned(), "it lives")

	// Names that prove nothing: of another namespace, without a maker, a link.
	f := strings.Split(filepath.Base(theirs), "-")
	f[4] += "1"
	others := []string{"coppice-artifacts-12345", strings.Join(f, "-"), "coppice-artifacts-x-y-z-1"}
	for _, name := range others {
		require.NoError(t, os.Mkdir(filepath.Join(base, name), 0o700))
	}
	link := theirs + "7"
	require.NoError(t, os.Symlink(mine, link))

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed, as it should be
	_ = in.Close() // Wait has closed it
	require.Equal(t, []string{theirs}, temp.Abandoned())
	over, cancel := context.WithCancel(t.Context())
	cancel()
	gone, err := temp.Clean(over)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, gone)
	gone, err = temp.Clean(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{theirs}, gone)
	require.NoDirExists(t, theirs)
	for _, name := range others {
		require.DirExists(t, filepath.Join(base, name))
	}
	require.DirExists(t, mine)
	require.Empty(t, temp.Abandoned())
}
