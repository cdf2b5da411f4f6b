package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatGoesIsNotCopied: what has gone since the folder was listed fails no copy.
func TestWhatGoesIsNotCopied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	from, err := Open(dir, Options{})
	require.NoError(t, err)
	to, err := Open(t.TempDir(), Options{})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, from.Close())
		require.NoError(t, to.Close())
	}()
	listed := map[string]fs.FileInfo{}
	for _, name := range []string{"file", "dir"} {
		listed[name], err = os.Lstat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	c := copying{ctx: t.Context(), from: from, to: to}
	require.NoError(t, c.file(from.root, to.root, listed["file"]))
	require.NoError(t, c.link(from.root, to.root, "link"))
	_, err = c.below(from.root, to.root, listed["dir"], "dir")
	require.NoError(t, err)
	left, err := os.ReadDir(to.dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
