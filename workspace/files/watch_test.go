package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/workspace/files"
)

// watching runs a watch, and returns where its changes come, and how it ends.
func watching(ctx context.Context, t *testing.T, f *files.Folder, name string, recursive bool) (<-chan files.Change, <-chan error) {
	t.Helper()
	changes, ended, ready := make(chan files.Change, 4096), make(chan error, 1), make(chan struct{})
	go func() {
		ended <- f.Watch(ctx, name, recursive, func() { close(ready) }, func(c files.Change) error {
			changes <- c
			return nil
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		require.NoError(t, err)
	}
	return changes, ended
}

// until waits for a change, and fails when the watch ends before.
func until(t *testing.T, changes <-chan files.Change, ended <-chan error, want files.Change) {
	t.Helper()
	for {
		select {
		case c := <-changes:
			if c == want {
				return
			}
		case err := <-ended:
			require.Failf(t, "the watch ended", "%v before %v", err, want)
		case <-t.Context().Done():
			require.Failf(t, "no change", "%v", want)
		}
	}
}

func TestChangesAreTold(t *testing.T) {
	f, dir := open(t, files.Options{})
	write(t, f, "d/old", "")
	ctx, cancel := context.WithCancelCause(t.Context())
	changes, ended := watching(ctx, t, f, ".", true)

	write(t, f, "a", "1")
	until(t, changes, ended, files.Change{Op: files.ChangeMade, Path: "a"})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "d", "old"), []byte("x"), 0o600))
	until(t, changes, ended, files.Change{Op: files.ChangeWritten, Path: "d/old"})
	// A tree that comes at once: what is in it is told too.
	write(t, f, "n/m/deep", "")
	until(t, changes, ended, files.Change{Op: files.ChangeMade, Path: "n/m/deep"})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "n", "m", "deep"), []byte("x"), 0o600))
	until(t, changes, ended, files.Change{Op: files.ChangeWritten, Path: "n/m/deep"})
	// A directory that is moved is watched under its new name.
	_, err := f.Move("n", "p", files.MoveOptions{})
	require.NoError(t, err)
	until(t, changes, ended, files.Change{Op: files.ChangeMovedAway, Path: "n"})
	until(t, changes, ended, files.Change{Op: files.ChangeMade, Path: "p/m/deep"})
	require.NoError(t, f.Remove("p", true))
	until(t, changes, ended, files.Change{Op: files.ChangeRemoved, Path: "p"})

	planted := errors.New("planted")
	cancel(planted)
	require.ErrorIs(t, <-ended, planted)
}

func TestAWatchEndsWithItsDirectoryAndItsFolder(t *testing.T) {
	f, _ := open(t, files.Options{})
	write(t, f, "d/x", "")
	changes, ended := watching(t.Context(), t, f, "d", false)
	require.NoError(t, f.Remove("d", true))
	until(t, changes, ended, files.Change{Op: files.ChangeRemoved, Path: "d"})
	require.NoError(t, <-ended)

	_, ended = watching(t.Context(), t, f, ".", false)
	require.NoError(t, f.Close())
	require.ErrorIs(t, <-ended, files.ErrClosed)
}

func TestAWatchIsOfNotTooManyDirectories(t *testing.T) {
	f, _ := open(t, files.Options{})
	for i := range 300 {
		_, err := f.MakeDir(fmt.Sprint("d", i), 0)
		require.NoError(t, err)
	}
	err := f.Watch(t.Context(), ".", true, nil, func(files.Change) error { return nil })
	require.ErrorContains(t, err, "256")
	_, ended := watching(t.Context(), t, f, ".", false)
	require.NoError(t, f.Close())
	require.ErrorIs(t, <-ended, files.ErrClosed)
}
