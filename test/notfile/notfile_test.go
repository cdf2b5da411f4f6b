package notfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/test/notfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMake puts no regular file there, and replaces what was.
func TestMake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for _, kind := range notfile.Kinds {
		notfile.Make(t, kind, path)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.False(t, info.Mode().IsRegular(), kind)
		require.Equal(t, kind == notfile.Directory, info.IsDir(), kind)
	}
	calls := 0
	notfile.AtOnce(t, func() { calls++ })
	require.Greater(t, calls, 1)
}
