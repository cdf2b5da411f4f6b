//go:build unix

package file_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/file"
)

func TestBelow(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	root := filepath.Join(top, "root")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(top, "other"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "text"), nil, 0o600))
	for name, to := range map[string]string{"in": "a/b", "out": "../other", "far": filepath.Join(top, "other"), "gone": "../nothing", "loop": "loop"} {
		require.NoError(t, os.Symlink(to, filepath.Join(root, name)))
	}
	for dir, want := range map[string]bool{
		"": true, "a": true, "a/b": true, "in": true, "a/../a": true,
		"text": false, "nothing": false, "..": false, "../other": false, "../nothing": false, "../root2": false,
		"out": false, "far": false, "gone": false, "loop": false, "a/../../other": false,
	} {
		require.Equal(t, want, file.Below(root, filepath.Join(root, dir)), dir)
	}
	require.False(t, file.Below(filepath.Join(top, "nothing"), filepath.Join(top, "nothing")))
	require.False(t, file.Below(root, "/"))
}
