package lines_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/internal/file/lines"
	"github.com/coppice-run/coppice/test/notfile"
)

func read(t require.TestingT, path string) string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func TestWhatIsThereStays(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ before, want string }{
		"nothing":    {"", "new\n"},
		"lines":      {"a\nb\n", "a\nb\nnew\n"},
		"half a one": {"a\nhal", "a\nhal\nnew\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "folder", "log")
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte(tc.before), 0o600))
			f, err := lines.Open(lines.Options{Path: path})
			require.NoError(t, err)
			require.NoError(t, f.Append([]byte("new\n")))
			require.Equal(t, tc.want, read(t, path))
			require.NoError(t, f.Close())
			require.NoError(t, f.Close())
			require.ErrorIs(t, f.Append([]byte("late\n")), lines.ErrClosed)
			require.Equal(t, tc.want, read(t, path))
		})
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder", "log")
	f, err := lines.Open(lines.Options{Path: path})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for path, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
	_, err = lines.Open(lines.Options{})
	require.ErrorContains(t, err, "no path")
	_, err = lines.Open(lines.Options{Path: filepath.Dir(path)})
	require.Error(t, err, "a folder")
}

// TestNoFile: a line goes to a regular file, and opening another does not wait for a
// reader.
func TestNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for _, kind := range notfile.Kinds {
		notfile.Make(t, kind, path)
		notfile.AtOnce(t, func() {
			if _, err := lines.Open(lines.Options{Path: path}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("%s: %v", kind, err)
			}
		})
	}
}

// TestBound: whatever is appended, no file is larger than the bound unless it is
// one line, and what is kept is the end of all lines, in order.
func TestBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "lines")
		require.NoError(t, err)
		defer func() { _ = os.RemoveAll(dir) }()
		path, keep := filepath.Join(dir, "log"), rapid.IntRange(1, 3).Draw(t, "keep")
		const most = 20
		var all string
		for i, sizes := range rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 30), 0, 8), 1, 3).Draw(t, "runs") {
			f, err := lines.Open(lines.Options{Path: path, MaxBytes: most, Keep: keep})
			require.NoError(t, err)
			for j, size := range sizes {
				line := fmt.Sprintf("%d.%d%s\n", i, j, strings.Repeat("x", size))
				require.NoError(t, f.Append([]byte(line)))
				all += line
			}
			require.NoError(t, f.Close())
		}
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.LessOrEqual(t, len(entries), keep+1)
		var kept string
		for i := range slices.Backward(entries) {
			name := path
			if i > 0 {
				name = fmt.Sprintf("%s.%d", path, i)
			}
			data := read(t, name)
			require.True(t, len(data) <= most || strings.Count(data, "\n") == 1, data)
			kept += data
		}
		require.True(t, strings.HasSuffix(all, kept))
		if len(entries) <= keep {
			require.Equal(t, all, kept, "nothing had to be removed")
		}
	})
}

// TestTriesAgain: a file that cannot be moved costs the line that wanted it, not
// those that come after.
func TestTriesAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	f, err := lines.Open(lines.Options{Path: path, MaxBytes: 4, Keep: 1})
	require.NoError(t, err)
	require.NoError(t, f.Append([]byte("one\n")))
	require.NoError(t, os.MkdirAll(filepath.Join(path+".1", "in the way"), 0o700))
	require.ErrorContains(t, f.Append([]byte("two\n")), "move "+path)
	require.Equal(t, "one\n", read(t, path))
	require.NoError(t, os.RemoveAll(path+".1"))
	require.NoError(t, f.Append([]byte("three\n")))
	require.Equal(t, "one\n", read(t, path+".1"))
	require.Equal(t, "three\n", read(t, path))
	require.NoError(t, f.Close())
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	f, err := lines.Open(lines.Options{Path: path})
	require.NoError(t, err)
	const writers, each = 8, 50
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				if err := f.Append(fmt.Appendf(nil, "%d %d\n", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, f.Close())
	next := make([]int, writers)
	for line := range strings.Lines(read(t, path)) {
		var w, i int
		_, err := fmt.Sscanf(line, "%d %d\n", &w, &i)
		require.NoError(t, err)
		require.Equal(t, next[w], i, "the lines of one writer are in order")
		next[w]++
	}
	for _, n := range next {
		require.Equal(t, each, n)
	}
}
