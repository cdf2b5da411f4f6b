package files_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/workspace/files"
)

func open(t *testing.T, o files.Options) (*files.Folder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "folder")
	require.NoError(t, os.Mkdir(dir, 0o700))
	f, err := files.Open(dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f, dir
}

func write(t *testing.T, f *files.Folder, name, text string) files.Info {
	t.Helper()
	info, err := f.WriteBytes(t.Context(), name, []byte(text), files.WriteOptions{})
	require.NoError(t, err)
	return info
}

func paths(list []files.Info) []string {
	all := make([]string, 0, len(list))
	for _, i := range list {
		all = append(all, i.Path)
	}
	return all
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	f, dir := open(t, files.Options{})
	info := write(t, f, "a/b/ü.txt", "hello")
	require.Equal(t, "a/b/ü.txt", info.Path)
	require.Equal(t, files.KindFile, info.Kind)
	require.EqualValues(t, 5, info.Size)
	data, err := f.Read(t.Context(), "./a//b/ü.txt", 5)
	require.NoError(t, err)
	require.Equal(t, "hello", string(data))
	_, err = f.Read(t.Context(), "a/b/ü.txt", 3)
	require.True(t, file.IsTooLarge(err), "%v", err)
	require.ErrorContains(t, err, "holds 5 bytes, and at most 3 bytes are read")
	left, err := filepath.Glob(filepath.Join(dir, "a", "b", ".*"))
	require.NoError(t, err)
	require.Empty(t, left, "no temporary file stays")

	r, err := f.Open("a/b/ü.txt")
	require.NoError(t, err)
	_, err = r.Seek(1, io.SeekStart)
	require.NoError(t, err)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, "ello", string(rest))
}

func TestReplacingKeepsThePermissionsAndTheOtherLinks(t *testing.T) {
	f, dir := open(t, files.Options{})
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("kept"), 0o600))
	require.NoError(t, os.Link(outside, filepath.Join(dir, "linked")))
	require.NoError(t, os.Chmod(outside, 0o751))
	write(t, f, "linked", "new")
	data, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "kept", string(data))
	info, err := f.Stat("linked")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o751), info.Mode)

	info, err = f.WriteBytes(t.Context(), "script", nil, files.WriteOptions{Mode: 0o4700})
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode, "no set-user-id bit")
	_, err = f.WriteBytes(t.Context(), "script", nil, files.WriteOptions{New: true})
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = f.WriteBytes(t.Context(), "none/script", nil, files.WriteOptions{NoParents: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

type failing struct{ after io.Reader }

var errPlanted = errors.New("planted")

func (f failing) Read(p []byte) (int, error) {
	n, err := f.after.Read(p)
	if err == io.EOF {
		err = errPlanted
	}
	return n, err
}

func TestAWriteThatFailsLeavesWhatWasThere(t *testing.T) {
	f, _ := open(t, files.Options{Quota: 1 << 20})
	write(t, f, "a", "before")
	_, err := f.Write(t.Context(), "a", failing{strings.NewReader("after")}, files.WriteOptions{})
	require.ErrorIs(t, err, errPlanted)
	_, err = f.Write(t.Context(), "b", failing{strings.NewReader("after")}, files.WriteOptions{})
	require.ErrorIs(t, err, errPlanted)
	list, more, err := f.List(t.Context(), ".", files.ListOptions{})
	require.NoError(t, err)
	require.False(t, more)
	require.Equal(t, []string{"a"}, paths(list))
	data, err := f.Read(t.Context(), "a", 100)
	require.NoError(t, err)
	require.Equal(t, "before", string(data))
}

func TestTheListIsOfADepthAndInOrder(t *testing.T) {
	f, dir := open(t, files.Options{})
	for _, name := range []string{"b/2", "b/1/x", "a", "c"} {
		write(t, f, name, "")
	}
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "out")))
	for _, c := range []struct {
		name  string
		depth int
		most  int
		want  string
		more  bool
	}{
		{".", 0, 0, "a b c out", false},
		{"", 2, 0, "a b b/1 b/2 c out", false},
		{".", -1, 0, "a b b/1 b/1/x b/2 c out", false},
		{"b", 1, 0, "b/1 b/2", false},
		{".", -1, 3, "a b b/1", true},
	} {
		list, more, err := f.List(t.Context(), c.name, files.ListOptions{Depth: c.depth, Most: c.most})
		require.NoError(t, err)
		require.Equal(t, c.want, strings.Join(paths(list), " "), "%+v", c)
		require.Equal(t, c.more, more)
	}
	out, err := f.Stat("out")
	require.NoError(t, err)
	require.Equal(t, files.KindLink, out.Kind)
	require.Equal(t, "/etc", out.Target)
	_, _, err = f.List(t.Context(), "a", files.ListOptions{})
	require.ErrorIs(t, err, files.ErrNotDir)
	_, _, err = f.List(t.Context(), "none", files.ListOptions{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	failed, ok := errors.AsType[*files.Error](err)
	require.True(t, ok)
	require.Equal(t, "none", failed.Path)
	require.Equal(t, "list", failed.Op)
	require.NotContains(t, err.Error(), dir)
}

func TestMakingMovingAndRemoving(t *testing.T) {
	f, _ := open(t, files.Options{})
	info, err := f.MakeDir("d/e", 0o700)
	require.NoError(t, err)
	require.Equal(t, files.KindDirectory, info.Kind)
	_, err = f.MakeDir("d/e", 0)
	require.NoError(t, err, "it is there")
	write(t, f, "d/f", "1")
	write(t, f, "g", "2")
	_, err = f.MakeDir("d/f/x", 0)
	require.ErrorIs(t, err, files.ErrNotDir)

	_, err = f.Move("d/f", "g", files.MoveOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = f.Move("d/f", "d/e", files.MoveOptions{Replace: true})
	require.ErrorIs(t, err, fs.ErrExist, "a directory is not replaced")
	info, err = f.Move("d/f", "g", files.MoveOptions{Replace: true})
	require.NoError(t, err)
	require.Equal(t, "g", info.Path)
	_, err = f.Move("g", "h", files.MoveOptions{})
	require.NoError(t, err)
	_, err = f.Move("none", "h2", files.MoveOptions{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = f.Move("d", "d/e/d", files.MoveOptions{})
	require.ErrorIs(t, err, files.ErrPath, "into itself")

	write(t, f, "d/e/x", "")
	require.ErrorIs(t, f.Remove("d", false), files.ErrNotEmpty)
	require.NoError(t, f.Remove("d", true))
	require.ErrorIs(t, f.Remove("d", true), fs.ErrNotExist)
	require.NoError(t, f.Remove("h", false))
}

func TestTheQuotaHoldsForAllWritesTogether(t *testing.T) {
	f, dir := open(t, files.Options{Quota: 1000})
	write(t, f, "a", strings.Repeat("x", 600))
	_, err := f.WriteBytes(t.Context(), "b", make([]byte, 401), files.WriteOptions{})
	require.ErrorIs(t, err, files.ErrQuota)
	write(t, f, "b", strings.Repeat("x", 400))
	write(t, f, "b", strings.Repeat("y", 400)) // what it replaces counts no more
	require.NoError(t, f.Remove("a", false))

	var wait sync.WaitGroup
	results := make([]error, 10)
	for i := range results {
		wait.Go(func() {
			_, results[i] = f.WriteBytes(t.Context(), fmt.Sprint("c", i), make([]byte, 100), files.WriteOptions{})
		})
	}
	wait.Wait()
	stored := 0
	for _, err := range results {
		if err == nil {
			stored++
			continue
		}
		require.ErrorIs(t, err, files.ErrQuota)
	}
	require.Equal(t, 6, stored, "what fits is stored, and no more")
	n, err := f.Usage(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1000, n)

	// What others put there counts too.
	other, otherDir := open(t, files.Options{Quota: 1000})
	require.NoError(t, os.WriteFile(filepath.Join(otherDir, "big"), make([]byte, 990), 0o600))
	_, err = other.WriteBytes(t.Context(), "b", make([]byte, 11), files.WriteOptions{})
	require.ErrorIs(t, err, files.ErrQuota)
	_ = dir
}

func TestAClosedFolderRefuses(t *testing.T) {
	f, _ := open(t, files.Options{})
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	_, err := f.Stat(".")
	require.ErrorIs(t, err, files.ErrClosed)
	_, err = f.Write(t.Context(), "a", bytes.NewReader(nil), files.WriteOptions{})
	require.ErrorIs(t, err, files.ErrClosed)
	require.ErrorIs(t, f.Watch(t.Context(), ".", false, nil, nil), files.ErrClosed)
}
