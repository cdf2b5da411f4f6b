//go:build unix

package files_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/workspace/files"
)

// TestCopyToWhileAFileIsWritten leaves out what is not there yet, and nothing of people's.
func TestCopyToWhileAFileIsWritten(t *testing.T) {
	t.Parallel()
	at, other := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(at, ".mine.tmp"), nil, 0o600))
	from, err := files.Open(at, files.Options{})
	require.NoError(t, err)
	to, err := files.Open(other, files.Options{})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, from.Close())
		require.NoError(t, to.Close())
	}()
	in, feed := io.Pipe()
	written := make(chan error)
	go func() { // ends with the pipe
		_, err := from.Write(t.Context(), "late", in, files.WriteOptions{})
		written <- err
	}()
	_, err = feed.Write([]byte("the first part"))
	require.NoError(t, err)
	require.NoError(t, from.CopyTo(t.Context(), to))
	require.NoError(t, feed.Close())
	require.NoError(t, <-written)
	left, err := os.ReadDir(other)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.Equal(t, ".mine.tmp", left[0].Name())
}

// TestCopyTo: another folder has all that is in this one, and is apart from it.
func TestCopyTo(t *testing.T) {
	t.Parallel()
	at, other := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	require.NoError(t, os.MkdirAll(filepath.Join(at, "a", "b"), 0o700))
	require.NoError(t, os.Mkdir(other, 0o700))
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o600))
		require.NoError(t, os.Chmod(filepath.Join(at, name), mode))
		require.NoError(t, os.Chtimes(filepath.Join(at, name), then, then))
	}
	write("run.sh", "echo", 0o755)
	write("a/b/deep", "deep", 0o600)
	write("a/empty", "", 0o644)
	require.NoError(t, os.Symlink("b/deep", filepath.Join(at, "a", "near")))
	require.NoError(t, os.Symlink(filepath.Join(at, "run.sh"), filepath.Join(at, "full")))
	require.NoError(t, os.Symlink(at, filepath.Join(at, "self")))
	require.NoError(t, os.Symlink(at+"-not", filepath.Join(at, "sibling")))
	require.NoError(t, os.Symlink("/etc/hosts", filepath.Join(at, "out")))
	require.NoError(t, os.Chmod(filepath.Join(at, "a", "b"), 0o500))
	t.Cleanup(func() {
		_ = os.Chmod(filepath.Join(at, "a", "b"), 0o700)
		_ = os.Chmod(filepath.Join(other, "a", "b"), 0o700)
	})
	open := func(dir string, o files.Options) *files.Folder {
		t.Helper()
		f, err := files.Open(dir, o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		return f
	}
	from, to := open(at, files.Options{}), open(other, files.Options{})
	require.NoError(t, from.CopyTo(t.Context(), to))

	for name, want := range map[string]string{"run.sh": "echo", "a/b/deep": "deep", "a/empty": "", "a/near": "deep", "full": "echo"} {
		data, err := os.ReadFile(filepath.Join(other, name))
		require.NoError(t, err, name)
		require.Equal(t, want, string(data), name)
	}
	for name, want := range map[string]string{"a/near": "b/deep", "full": filepath.Join(other, "run.sh"), "self": other, "sibling": at + "-not", "out": "/etc/hosts"} {
		target, err := os.Readlink(filepath.Join(other, name))
		require.NoError(t, err, name)
		require.Equal(t, want, target, name)
	}
	i, err := os.Stat(filepath.Join(other, "run.sh"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), i.Mode().Perm())
	require.True(t, i.ModTime().Equal(then), i.ModTime())
	i, err = os.Stat(filepath.Join(other, "a", "b"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o500), i.Mode().Perm())

	require.NoError(t, os.WriteFile(filepath.Join(other, "run.sh"), []byte("changed"), 0o600))
	data, err := os.ReadFile(filepath.Join(at, "run.sh"))
	require.NoError(t, err)
	require.Equal(t, "echo", string(data))

	small := open(t.TempDir(), files.Options{Quota: 3})
	require.ErrorIs(t, from.CopyTo(t.Context(), small), files.ErrQuota)
}

// TestCopyToNamesWhatIsNoFile, and does not wait for its other end.
func TestCopyToNamesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	from, err := files.Open(t.TempDir(), files.Options{})
	require.NoError(t, err)
	to, err := files.Open(t.TempDir(), files.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, from.Close())
		require.NoError(t, to.Close())
	})
	_, err = from.MakeDir("sub", 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Mkfifo(filepath.Join(from.Dir(), "sub", "pipe"), 0o600))
	err = from.CopyTo(t.Context(), to)
	require.True(t, file.IsNotRegular(err), err)
	require.ErrorContains(t, err, "sub/pipe")
}
