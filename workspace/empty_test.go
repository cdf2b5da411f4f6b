package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/workspace"
)

// TestAWorkspaceBeginsEmpty: a folder that another host has, or of which nothing says whose it is, is
// not gone on with.
func TestAWorkspaceBeginsEmpty(t *testing.T) {
	w := start(t, workspace.SetOptions{})
	defer w.stop(t)
	require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "a"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "a", "secret"), nil, 0o600))
	one := w.open(t, "a", workspace.Options{Quota: 3})
	entries, err := os.ReadDir(one.Folder())
	require.NoError(t, err)
	require.Empty(t, entries)
	require.NoError(t, one.End(t.Context()))
	require.NoDirExists(t, one.Folder())
	require.FileExists(t, filepath.Join(w.dir, "a", "secret"))
	kept := w.open(t, "a", workspace.Options{KeepFolder: true})
	require.FileExists(t, filepath.Join(kept.Folder(), "secret"), "it was asked for")
}
