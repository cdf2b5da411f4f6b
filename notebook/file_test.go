package notebook_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/notebook"
)

func writeFile(t testing.TB, path, data string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// save saves and requires that it was written.
func save(t testing.TB, f *notebook.File) {
	t.Helper()
	written, err := f.Save(t.Context())
	require.NoError(t, err)
	require.True(t, written)
}

// edit appends a cell, so that there is something to save.
func edit(t testing.TB, f *notebook.File, source string) {
	t.Helper()
	_, err := f.Append(code(source))
	require.NoError(t, err)
}

func onlyFile(t testing.TB, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, name, entries[0].Name())
}

func TestSaveOfAnEdit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "nb.ipynb")
	writeFile(t, path, string(corpus(t)["nbformat-4.5"]))
	require.NoError(t, os.Chmod(path, 0o640))
	f, err := notebook.Open(t.Context(), path)
	require.NoError(t, err)
	require.True(t, f.Exists())
	written, err := f.Save(t.Context())
	require.NoError(t, err)
	require.False(t, written, "nothing was edited")
	edit(t, f, "new")
	save(t, f)
	require.Equal(t, string(f.Bytes()), readFile(t, path))
	require.Contains(t, readFile(t, path), `"new"`)
	onlyFile(t, dir, "nb.ipynb")
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	}
	written, err = f.Save(t.Context())
	require.NoError(t, err)
	require.False(t, written, "it is saved already")
	edit(t, f, "again")
	save(t, f)
}

func TestMissingNotebookStartsEmpty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "new.ipynb")
	f, err := notebook.OpenOrNew(t.Context(), path)
	require.NoError(t, err)
	require.False(t, f.Exists())
	require.Zero(t, f.Len())
	save(t, f)
	require.True(t, f.Exists())
	require.Equal(t, string(notebook.New().Bytes()), readFile(t, path))
	onlyFile(t, dir, "new.ipynb")
	again, err := notebook.OpenOrNew(t.Context(), path)
	require.NoError(t, err)
	require.True(t, again.Exists())
}

func TestOpenOrNewReportsABrokenNotebook(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nb.ipynb")
	writeFile(t, path, "{")
	_, err := notebook.OpenOrNew(t.Context(), path)
	require.ErrorIs(t, err, notebook.ErrInvalidJSON)
}

func TestSaveRefusesWhatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	base := string(notebook.New().Bytes())
	for name, tt := range map[string]struct {
		meanwhile func(t *testing.T, path string)
		reason    string
	}{
		"changed": {func(t *testing.T, path string) { writeFile(t, path, base+"\n") }, "its content is not what was read"},
		"cut":     {func(t *testing.T, path string) { writeFile(t, path, base[:10]) }, "its content is not what was read"},
		"removed": {func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }, "it was removed since it was read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "nb.ipynb")
			writeFile(t, path, base)
			f, err := notebook.Open(t.Context(), path)
			require.NoError(t, err)
			edit(t, f, "mine")
			tt.meanwhile(t, path)
			written, err := f.Save(t.Context())
			require.False(t, written)
			require.ErrorIs(t, err, notebook.ErrChanged)
			require.EqualError(t, err, "notebook changed on disk: "+path+": "+tt.reason)
			if name != "removed" {
				require.NotContains(t, readFile(t, path), "mine")
			}
		})
	}
	t.Run("made", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "nb.ipynb")
		f, err := notebook.OpenOrNew(t.Context(), path)
		require.NoError(t, err)
		writeFile(t, path, base)
		_, err = f.Save(t.Context())
		require.ErrorIs(t, err, notebook.ErrChanged)
		require.ErrorContains(t, err, "it was made since it was found missing")
	})
	t.Run("touched", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "nb.ipynb")
		writeFile(t, path, base)
		f, err := notebook.Open(t.Context(), path)
		require.NoError(t, err)
		edit(t, f, "mine")
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
		writeFile(t, path, base)
		save(t, f)
	})
}

// Savers that take turns on one file lose nothing: each either writes or is
// told that the file changed.
func TestConcurrentSavesLoseNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "nb.ipynb")
	writeFile(t, path, string(notebook.New().Bytes()))
	const savers, each = 4, 5
	var wg sync.WaitGroup
	for s := range savers {
		wg.Go(func() {
			for i := range each {
				source := strings.Repeat("x", s+1) + strings.Repeat("y", i)
				for !saveOnce(t, path, source) {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	f, err := notebook.Open(t.Context(), path)
	require.NoError(t, err)
	require.Equal(t, savers*each, f.Len())
	seen := make(map[string]bool)
	for _, s := range sources(f.Document) {
		seen[s] = true
	}
	require.Len(t, seen, savers*each)
	onlyFile(t, dir, "nb.ipynb")
}

// saveOnce reads, appends and saves, and reports whether it was not in
// somebody's way.
func saveOnce(t *testing.T, path, source string) bool {
	f, err := notebook.Open(t.Context(), path)
	if err == nil {
		_, err = f.Append(code(source))
	}
	if err != nil {
		t.Errorf("open and edit: %v", err)
		return true
	}
	written, err := f.Save(t.Context())
	if err != nil && !isChanged(err) {
		t.Errorf("save: %v", err)
		return true
	}
	return written
}

func isChanged(err error) bool {
	return strings.Contains(err.Error(), notebook.ErrChanged.Error())
}

func TestSaveWaitsForTheLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nb.ipynb")
	f, err := notebook.OpenOrNew(t.Context(), path)
	require.NoError(t, err)
	held := flock.New(f.LockPath())
	require.NoError(t, held.Lock())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = f.Save(ctx)
	require.ErrorIs(t, err, notebook.ErrLocked)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoFileExists(t, path)
	done := make(chan error, 1)
	go func() { // ends when the lock below is released; joined by the receive
		_, err := f.Save(t.Context())
		done <- err
	}()
	require.NoError(t, held.Unlock())
	require.NoError(t, <-done)
	require.FileExists(t, path)
}

// A save that fails at the last step leaves the notebook as it was and no
// temporary file.
func TestFailedRenameLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "nb.ipynb")
	f, err := notebook.OpenOrNew(t.Context(), path)
	require.NoError(t, err)
	f.BeforeRename(func() { require.NoError(t, os.Mkdir(path, 0o700)) })
	_, err = f.Save(t.Context())
	require.Error(t, err)
	require.False(t, f.Exists())
	onlyFile(t, dir, "nb.ipynb")
}

func TestSaveKeepsASymbolicLink(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	for _, exists := range []bool{true, false} {
		dir, other := t.TempDir(), t.TempDir()
		target, link := filepath.Join(other, "real.ipynb"), filepath.Join(dir, "nb.ipynb")
		require.NoError(t, os.Symlink(target, link))
		if exists {
			writeFile(t, target, string(notebook.New().Bytes()))
		}
		f, err := notebook.OpenOrNew(t.Context(), link)
		require.NoError(t, err)
		edit(t, f, "x")
		save(t, f)
		require.Contains(t, readFile(t, target), `"x"`)
		to, err := os.Readlink(link)
		require.NoError(t, err)
		require.Equal(t, target, to)
		onlyFile(t, dir, "nb.ipynb")
		onlyFile(t, other, "real.ipynb")
	}
}

func TestLinkLoop(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege on Windows")
	}
	path := filepath.Join(t.TempDir(), "nb.ipynb")
	require.NoError(t, os.Symlink(path, path))
	_, err := notebook.OpenOrNew(t.Context(), path)
	require.Error(t, err)
}

func TestNewFileWritesACopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a.ipynb"), filepath.Join(dir, "b.ipynb")
	writeFile(t, from, string(corpus(t)["nbformat-4.5"]))
	f, err := notebook.Open(t.Context(), from)
	require.NoError(t, err)
	out, err := notebook.NewFile(t.Context(), to, f.Document)
	require.NoError(t, err)
	require.False(t, out.Exists())
	save(t, out)
	require.Equal(t, readFile(t, from), readFile(t, to), "nothing was edited")

	t.Run("what is there is replaced once", func(t *testing.T) {
		writeFile(t, to, "no notebook")
		out, err := notebook.NewFile(t.Context(), to, f.Document)
		require.NoError(t, err)
		require.True(t, out.Exists())
		save(t, out)
		require.Equal(t, readFile(t, from), readFile(t, to))
		written, err := out.Save(t.Context())
		require.NoError(t, err)
		require.False(t, written)
	})
	t.Run("but not what somebody wrote meanwhile", func(t *testing.T) {
		out, err := notebook.NewFile(t.Context(), to, f.Document)
		require.NoError(t, err)
		writeFile(t, to, "newer")
		_, err = out.Save(t.Context())
		require.ErrorIs(t, err, notebook.ErrChanged)
		require.Equal(t, "newer", readFile(t, to))
	})
	t.Run("a folder is refused", func(t *testing.T) {
		_, err := notebook.NewFile(t.Context(), dir, f.Document)
		require.Error(t, err)
	})
}
