package notebook_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

// TestSaveHoldsNoCopyOfTheNotebook: however large a notebook is, an edit of one cell and
// its saves take little memory beside what was read.
func TestSaveHoldsNoCopyOfTheNotebook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nb.ipynb")
	d := build(t, code("x"), code("y"))
	const size = 12 << 20
	require.NoError(t, d.SetOutputs(notebook.At(0), 1, notebook.NewDisplay(notebook.Bundle{"image/png": notebook.ImageValue(make([]byte, size*3/4))}, nil)))
	require.NoError(t, os.WriteFile(path, d.Bytes(), 0o600))
	d = nil
	f, err := notebook.Open(t.Context(), path)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, source := range []string{"a", "b", "c"} {
		_, err := f.SetSource(notebook.At(1), source)
		require.NoError(t, err)
		save(t, f)
	}
	written, err := f.Save(t.Context())
	require.NoError(t, err)
	require.False(t, written)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size/8), "all that was allocated, in bytes")
	require.Contains(t, readFile(t, path), `"c"`)
}

// TestSaveOfWhatIsThere: edits that lead back to what the file holds write nothing,
// whether that was read or written.
func TestSaveOfWhatIsThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nb.ipynb")
	writeFile(t, path, string(build(t, code("x")).Bytes()))
	f, err := notebook.Open(t.Context(), path)
	require.NoError(t, err)
	for _, now := range []string{"x", "y"} {
		set := func(source string) {
			_, err := f.SetSource(notebook.At(0), source)
			require.NoError(t, err)
		}
		if now == "y" {
			set("y")
			save(t, f)
		}
		info, err := os.Stat(path)
		require.NoError(t, err)
		set("other")
		set(now)
		written, err := f.Save(t.Context())
		require.NoError(t, err)
		require.False(t, written, now)
		same, err := os.Stat(path)
		require.NoError(t, err)
		require.True(t, os.SameFile(info, same), now)
		onlyFile(t, filepath.Dir(path), "nb.ipynb")
	}
	// What someone else adds behind it is a change too.
	grown := readFile(t, path) + strings.Repeat(" ", 10)
	writeFile(t, path, grown)
	edit(t, f, "z")
	_, err = f.Save(t.Context())
	require.ErrorIs(t, err, notebook.ErrChanged)
	require.Equal(t, grown, readFile(t, path))
}

// TestWhereNothingCanBeSaved is found out before there is anything to save, and nothing
// is left of the question.
func TestWhereNothingCanBeSaved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nb.ipynb"), build(t, code("x")).Bytes(), 0o600))
	for name, tc := range map[string]struct {
		path []string
		want string
	}{
		"a new file":          {path: []string{"new.ipynb"}},
		"one that is there":   {path: []string{"nb.ipynb"}},
		"no folder":           {path: []string{"none", "new.ipynb"}, want: "no file can be made in the folder"},
		"a file for a folder": {path: []string{"nb.ipynb", "new.ipynb"}, want: "new.ipynb"},
	} {
		path := filepath.Join(append([]string{dir}, tc.path...)...)
		f, err := notebook.NewFile(t.Context(), path, build(t, code("y")))
		if err == nil {
			err = f.CheckSave()
		}
		if tc.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.want, name)
		require.NotContains(t, err.Error(), ".lock", name)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	f, err := notebook.Open(t.Context(), filepath.Join(dir, "nb.ipynb"))
	require.NoError(t, err)
	require.Equal(t, "x", f.Cell(0).Source())
	require.NoError(t, f.CheckSave())
	_, err = f.SetSource(notebook.At(0), "z")
	require.NoError(t, err)
	save(t, f)
}
