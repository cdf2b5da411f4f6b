package toolnew_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/toolnew"
	"github.com/coppice-run/coppice/internal/toolspec"
)

func TestANewToolIsCoherent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tools")
	folder, err := toolnew.Write(dir, "my-new-tool")
	require.NoError(t, err)
	e := toolspec.Read(t.Context(), folder)
	require.NoError(t, e.Err)
	require.Equal(t, "My new tool", e.Tool.Name)
	wrong, warnings := e.Tool.Coherent(folder)
	require.Empty(t, wrong)
	require.Empty(t, warnings)
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NotRegexp(t, `@[A-Z]+@`, string(data), path)
		}
		return err
	}))
	_, err = toolnew.Write(dir, "my-new-tool")
	require.ErrorIs(t, err, fs.ErrExist)
}

func TestIDsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "A", "a--b", "-a", "a-", "../a", "a/b", "a b", "1a", "a_b"} {
		_, err := toolnew.Write(t.TempDir(), id)
		require.ErrorContains(t, err, "is not in kebab-case", id)
	}
}
