package own_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/file/own"
)

// roleEnv makes this program one that takes a folder, puts a file there, and waits to be killed.
const roleEnv = "COPPICE_TEST_OWN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(roleEnv); dir != "" {
		f, err := own.Take(dir, "ws", false, nil)
		if err == nil {
			err = fill(f)
		}
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, f.Path())
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	os.Exit(m.Run())
}

func fill(f *own.Folder) error {
	if err := os.MkdirAll(f.Path(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.Path(), "secret"), []byte("x"), 0o600)
}

// another is a process that has the folder of ws; kill kills it.
func another(t *testing.T, dir string) (path string, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+dir)
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = fmt.Fscan(out, &path)
	require.NoError(t, err)
	return path, func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed, as it should be
	}
}

func takeIn(t *testing.T, dir string, keep bool, needed own.Needed) *own.Folder {
	t.Helper()
	f, err := own.Take(dir, "ws", keep, needed)
	require.NoError(t, err)
	return f
}

func inNeed(string, string) bool { return true }

// TestNobodyFindsWhatAKilledProcessLeft, whether it is removed by who comes next, by Clean, or has
// to stay; while it lives, what it has is in nobody's way and nobody's to remove.
func TestNobodyFindsWhatAKilledProcessLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "workspaces")
	theirs, kill := another(t, dir)
	require.Equal(t, filepath.Join(dir, "ws"), theirs)
	left, err := own.Leftovers(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	gone, err := own.Clean(t.Context(), dir, nil)
	require.NoError(t, err)
	require.Empty(t, gone)
	beside := takeIn(t, dir, false, nil)
	require.NotEqual(t, theirs, beside.Path())
	require.NoError(t, fill(beside))
	require.NoError(t, beside.Release(true))
	require.NoDirExists(t, beside.Path())
	require.FileExists(t, filepath.Join(theirs, "secret"))

	kill()
	left, err = own.Leftovers(dir)
	require.NoError(t, err)
	require.Equal(t, []own.Left{{Name: "ws", Folder: theirs, Dead: true}}, left)
	gone, err = own.Clean(t.Context(), dir, inNeed)
	require.NoError(t, err)
	require.Empty(t, gone, "a session on disk needs it")
	other := takeIn(t, dir, false, inNeed)
	require.NotEqual(t, theirs, other.Path())
	require.NoError(t, other.Release(true))
	asked := takeIn(t, dir, true, inNeed)
	require.Equal(t, theirs, asked.Path())
	require.NoError(t, asked.Release(false))
	require.FileExists(t, filepath.Join(theirs, "secret"), "nothing was done with it")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = own.Clean(over, dir, nil)
	require.ErrorIs(t, err, context.Canceled)

	next := takeIn(t, dir, false, nil)
	require.Equal(t, theirs, next.Path())
	require.NoDirExists(t, theirs, "it begins with nothing")
	require.NoError(t, next.Release(false))

	theirs, kill = another(t, dir)
	kill()
	gone, err = own.Clean(t.Context(), dir, nil)
	require.NoError(t, err)
	require.Equal(t, []string{theirs}, gone)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "no marks are left")
}

// TestWhatIsKept is found by the next one of its name; what nothing is known of only by who asks.
func TestWhatIsKept(t *testing.T) {
	dir := t.TempDir()
	strange := filepath.Join(dir, "ws")
	require.NoError(t, os.Mkdir(strange, 0o700))
	left, err := own.Leftovers(dir)
	require.NoError(t, err)
	require.Equal(t, []own.Left{{Name: "ws", Folder: strange}}, left)
	gone, err := own.Clean(t.Context(), dir, nil)
	require.NoError(t, err)
	require.Empty(t, gone)
	other := takeIn(t, dir, false, nil)
	require.NotEqual(t, strange, other.Path())
	require.NoError(t, other.Release(true))

	kept := takeIn(t, dir, true, nil)
	require.Equal(t, strange, kept.Path())
	require.NoError(t, fill(kept))
	require.NoError(t, kept.Release(true))
	require.NoError(t, kept.Release(false), "it is over")
	left, err = own.Leftovers(dir)
	require.NoError(t, err)
	require.Empty(t, left, "it is where it should be")
	found := takeIn(t, dir, false, nil)
	require.Equal(t, strange, found.Path())
	require.FileExists(t, filepath.Join(strange, "secret"))
	require.NoError(t, found.Release(true))
	require.NoDirExists(t, strange)
	require.NoError(t, (*own.Folder)(nil).Release(true))
}
