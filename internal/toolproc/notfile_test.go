package toolproc_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/toolproc"
	"github.com/coppice-run/coppice/test/notfile"
)

// TestRunFileIsNoFile: what code of a tool makes in the folder of a run, or in its
// place, is refused at once.
func TestRunFileIsNoFile(t *testing.T) {
	artifacts := t.TempDir()
	run := filepath.Join(artifacts, "a", "2026-01-02", "r1")
	require.NoError(t, os.MkdirAll(run, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(run, "good"), []byte("good"), 0o600))
	for _, kind := range notfile.Kinds {
		notfile.Make(t, kind, filepath.Join(run, "odd"))
		notfile.AtOnce(t, func() {
			_, err := toolproc.OpenRunFile(artifacts, "a", "r1", "odd")
			// A socket and a device are links out of the folder here.
			if want := kind == notfile.FIFO; file.IsNotRegular(err) != want || errors.Is(err, fs.ErrNotExist) == want {
				t.Errorf("%s: %v", kind, err)
			}
		})
		// A later day, which holds no folder of that run, hides nothing.
		later := filepath.Join(artifacts, "a", "2026-01-03")
		require.NoError(t, os.MkdirAll(later, 0o700))
		if kind != notfile.Directory {
			notfile.Make(t, kind, filepath.Join(later, "r1"))
		}
		notfile.AtOnce(t, func() {
			f, err := toolproc.OpenRunFile(artifacts, "a", "r1", "good")
			if err != nil {
				t.Errorf("%s: %v", kind, err)
				return
			}
			_ = f.Close()
		})
	}
}
