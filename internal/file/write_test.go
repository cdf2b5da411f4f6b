package file_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/test/notfile"
)

func content(t require.TestingT, path string) string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// names are what is in a folder.
func names(t require.TestingT, dir string) []string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestWriteModes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	like := func(mode os.FileMode) os.FileInfo {
		p := filepath.Join(t.TempDir(), "like")
		require.NoError(t, os.WriteFile(p, nil, 0o600))
		require.NoError(t, os.Chmod(p, mode))
		info, err := os.Stat(p)
		require.NoError(t, err)
		return info
	}
	for name, tc := range map[string]struct {
		o    file.WriteOptions
		want os.FileMode
	}{
		"default":             {file.WriteOptions{}, 0o600},
		"durable":             {file.WriteOptions{Durable: true}, 0o600},
		"given":               {file.WriteOptions{Mode: 0o640}, 0o640},
		"like":                {file.WriteOptions{Like: like(0o604)}, 0o604},
		"like, not the umask": {file.WriteOptions{Like: like(0o666), Mode: 0o600}, 0o666},
		"no type":             {file.WriteOptions{Mode: os.ModeDir | 0o600}, 0o600},
	} {
		require.NoError(t, file.Write(path, []byte(name), tc.o), name)
		require.Equal(t, name, content(t, path))
		info, err := os.Stat(path)
		require.NoError(t, err)
		if runtime.GOOS != "windows" {
			require.Equal(t, tc.want, info.Mode(), name)
		}
		require.Equal(t, []string{"f"}, names(t, dir))
	}
}

// TestWriteReplaces: what is at the path is replaced, and not written to, followed or
// waited for; only a directory is not.
func TestWriteReplaces(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	path := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(other, []byte("other"), 0o600))
	require.NoError(t, os.Symlink(other, path))
	require.NoError(t, file.Write(path, []byte("new"), file.WriteOptions{}))
	require.Equal(t, "other", content(t, other))
	require.Equal(t, "new", content(t, path))
	hard := filepath.Join(dir, "hard")
	require.NoError(t, os.Link(path, hard))
	require.NoError(t, file.Write(path, []byte("newer"), file.WriteOptions{}))
	require.Equal(t, "new", content(t, hard))
	require.NoError(t, os.Remove(hard))
	for _, kind := range notfile.Kinds {
		notfile.Make(t, kind, path)
		notfile.AtOnce(t, func() {
			if err := file.Write(path, []byte("newest"), file.WriteOptions{}); (err != nil) != (kind == notfile.Directory) {
				t.Errorf("%s: %v", kind, err)
			}
		})
		require.Equal(t, []string{"f"}, names(t, dir), "nothing is left beside it")
	}
	err := file.Write(path, nil, file.WriteOptions{})
	require.ErrorContains(t, err, "write "+path+": ")
	err = file.Write(filepath.Join(dir, "none", "f"), nil, file.WriteOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestWriteLongNames: a name that the system just takes can be written to.
func TestWriteLongNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{strings.Repeat("x", 255), strings.Repeat("ü", 127), strings.Repeat("x", 99) + "üx"} {
		path := filepath.Join(dir, name)
		require.NoError(t, file.Write(path, []byte("x"), file.WriteOptions{Before: func() error {
			left, err := filepath.Glob(filepath.Join(dir, file.Unfinished))
			require.NoError(t, err)
			require.Len(t, left, 1, "it is found by its pattern")
			require.Equal(t, strings.ToValidUTF8(left[0], ""), left[0])
			return nil
		}}))
		require.NoError(t, os.Remove(path))
	}
}

// TestWriteWhole: whatever is written and however it fails, the file holds what was
// written last, whole, and what killed programs left beside it neither harms nor grows.
func TestWriteWhole(t *testing.T) {
	t.Parallel()
	errBefore := errors.New("not now")
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "write")
		require.NoError(t, err)
		defer func() { _ = os.RemoveAll(dir) }()
		path := filepath.Join(dir, "f")
		var want *string
		left := 0
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				data := strings.Repeat(rapid.StringN(1, 3, 4).Draw(t, "text"), rapid.IntRange(0, 5000).Draw(t, "times"))
				o := file.WriteOptions{Durable: rapid.Bool().Draw(t, "durable")}
				if rapid.Bool().Draw(t, "kept from it") {
					o.Before = func() error { return errBefore }
					require.ErrorIs(t, file.Write(path, []byte(data), o), errBefore)
					return
				}
				o.Before = func() error { // until here a reader finds the old one
					if want == nil {
						require.NoFileExists(t, path)
					} else {
						require.Equal(t, *want, content(t, path))
					}
					return nil
				}
				require.NoError(t, file.Write(path, []byte(data), o))
				want = &data
			},
			"a killed program": func(t *rapid.T) {
				left++
				name := fmt.Sprintf(".f.%016x.tmp", left)
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o400))
			},
			"somebody removes it": func(t *rapid.T) {
				_ = os.Remove(path)
				want = nil
			},
			"": func(t *rapid.T) {
				count := left
				if want != nil {
					require.Equal(t, *want, content(t, path))
					count++
				}
				require.Len(t, names(t, dir), count)
			},
		})
	})
}

// TestWritePanics: a panic of the caller's leaves nothing beside the file either.
func TestWritePanics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, file.Write(path, []byte("old"), file.WriteOptions{}))
	require.Panics(t, func() {
		_ = file.Write(path, []byte("new"), file.WriteOptions{Before: func() error { panic("broken") }})
	})
	require.Equal(t, []string{"f"}, names(t, dir))
	require.Equal(t, "old", content(t, path))
}
