//go:build unix

package notebook_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

// saveVar makes this test a program that saves the notebook it names until it is killed.
const saveVar = "NOTEBOOK_TEST_SAVE"

// TestSaveAfterAKilledOne: what a program leaves that is killed while it saves, a lock
// and half a notebook under hidden names, keeps no one out, and the next save removes it.
func TestSaveAfterAKilledOne(t *testing.T) {
	if path := os.Getenv(saveVar); path != "" {
		f, err := notebook.Open(t.Context(), path)
		for i := 0; err == nil; i++ {
			_, err = f.SetSource(notebook.At(0), strings.Repeat(string(rune('a'+i%26)), 1<<20))
			if err == nil {
				_, err = f.Save(t.Context())
			}
		}
		os.Exit(3)
	}
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "nb.ipynb")
	writeFile(t, path, string(build(t, code("x")).Bytes()))
	other := filepath.Join(dir, ".other.ipynb.0123456789abcdef.tmp")
	mine := filepath.Join(dir, ".nb.ipynb.backup.tmp")
	writeFile(t, other, "of another notebook")
	writeFile(t, mine, "of another program")
	left := 0
	for i := range 10 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSaveAfterAKilledOne$")
		cmd.Env = append(os.Environ(), saveVar+"="+path)
		first, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool {
			now, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) {
				return false
			}
			names, _ := os.ReadDir(dir)
			return !os.SameFile(first, now) && len(names) > 3 // in the middle of a save
		}, 3*time.Minute, time.Duration(i+1)*100*time.Microsecond)
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		require.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
		names, err := os.ReadDir(dir)
		require.NoError(t, err)
		left += len(names) - 3

		f, err := notebook.Open(t.Context(), path)
		require.NoError(t, err)
		edit(t, f, "y")
		save(t, f)
		names, err = os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, names, 3, "%v", names)
	}
	require.Positive(t, left, "at least one was killed while it saved")
	require.FileExists(t, other)
	require.FileExists(t, mine)
}
