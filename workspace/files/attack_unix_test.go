//go:build unix

package files_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/test/pathattack"
	"github.com/coppice-run/coppice/workspace/files"
)

// operation is one that takes a path.
type operation struct {
	name string
	do   func(*testing.T, *files.Folder, string) error
}

var operations = []operation{
	{"read", func(t *testing.T, f *files.Folder, p string) error {
		data, err := f.Read(t.Context(), p, 1<<20)
		require.Empty(t, data)
		return err
	}},
	{"write", func(t *testing.T, f *files.Folder, p string) error {
		_, err := f.WriteBytes(t.Context(), p, []byte("attacked"), files.WriteOptions{})
		return err
	}},
	{"list", func(t *testing.T, f *files.Folder, p string) error {
		list, _, err := f.List(t.Context(), p, files.ListOptions{Depth: -1})
		require.Empty(t, list)
		return err
	}},
	{"watch", func(t *testing.T, f *files.Folder, p string) error {
		return f.Watch(t.Context(), p, true, nil, func(files.Change) error { return nil })
	}},
	{"make", func(_ *testing.T, f *files.Folder, p string) error { _, err := f.MakeDir(p, 0); return err }},
	{"stat", func(_ *testing.T, f *files.Folder, p string) error { _, err := f.Stat(p); return err }},
	{"move from", func(_ *testing.T, f *files.Folder, p string) error {
		_, err := f.Move(p, "got", files.MoveOptions{Replace: true})
		return err
	}},
	{"move to", func(_ *testing.T, f *files.Folder, p string) error {
		_, err := f.Move("inside", p, files.MoveOptions{Replace: true})
		return err
	}},
	{"remove", func(_ *testing.T, f *files.Folder, p string) error { return f.Remove(p, true) }},
}

// hostile makes a folder in which everything is there that the attacks name.
func hostile(t *testing.T) (*files.Folder, string, string) {
	t.Helper()
	f, dir := open(t, files.Options{})
	return f, dir, pathattack.Make(t, dir)
}

func TestAttacksByPathAreRefused(t *testing.T) {
	f, dir, outside := hostile(t)
	before := picture(t, filepath.Dir(dir))
	tried := 0
	for _, a := range pathattack.Attacks {
		for i, op := range operations[:a.Refused] {
			tried++
			require.Equal(t, pathattack.Operations[i], op.name)
			name := fmt.Sprintf("%s %.60q", op.name, a.Path)
			err := op.do(t, f, a.Path)
			require.Error(t, err, name)
			failed, ok := errors.AsType[*files.Error](err)
			require.True(t, ok, "%s: %T", name, err)
			require.Equal(t, a.Path, failed.Path)
			if a.Want != nil {
				require.ErrorIs(t, err, a.Want, name)
			} else {
				require.True(t, refusal(err), "%s: %v", name, err)
			}
			require.NotContains(t, err.Error(), outside, name)
		}
	}
	require.GreaterOrEqual(t, tried, 200)
	require.Equal(t, before, picture(t, filepath.Dir(dir)), "nothing has changed, inside or outside")

	// Names that only look like a way out are names.
	for _, name := range []string{"．．/x", "%2e%2e/x", "..%2fx", "...", "..x", "~", "~root/x", "$HOME/x", "a;b", "-rf", "\u202e/x", "…"} {
		_, err := f.WriteBytes(t.Context(), name, []byte("x"), files.WriteOptions{})
		require.NoError(t, err, name)
		_, err = os.Stat(filepath.Join(dir, name))
		require.NoError(t, err, "%s is inside", name)
	}
}

func refusal(err error) bool {
	for _, e := range []error{files.ErrOutside, files.ErrNotDir, files.ErrLink, files.ErrPath, fs.ErrExist} {
		if errors.Is(err, e) {
			return true
		}
	}
	return file.IsNotRegular(err)
}

// picture is everything below a folder: names, kinds, permissions, contents.
func picture(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		i, err := d.Info()
		require.NoError(t, err)
		line := fmt.Sprint(path, i.Mode())
		if i.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			line += string(data)
		}
		all = append(all, line)
		return nil
	}))
	return all
}

// TestRacesLeadNowhere: code in the folder puts a link that leads out in the place of a
// directory, and a FIFO in the place of a file, again and again, while every operation
// is tried.
func TestRacesLeadNowhere(t *testing.T) {
	f, dir, outside := hostile(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.Mkdir(at("flip"), 0o700))
	require.NoError(t, os.WriteFile(at("flip/secret"), []byte("inside"), 0o600))
	require.NoError(t, os.Symlink(outside, at("evil")))
	require.NoError(t, os.WriteFile(at("plain"), []byte("inside"), 0o600))
	require.NoError(t, syscall.Mkfifo(at("pipe"), 0o600))
	before := picture(t, outside)

	stop := make(chan struct{})
	var flips sync.WaitGroup
	flips.Go(func() {
		for {
			for _, pair := range [][2]string{{"flip", "evil"}, {"plain", "pipe"}} {
				_ = os.Rename(at(pair[0]), at("spare"))
				_ = os.Rename(at(pair[1]), at(pair[0]))
				_ = os.Rename(at("spare"), at(pair[1]))
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	const rounds = 60
	reads := 0
	for i := 0; i < rounds || reads == 0; i++ { // on a busy machine neither may have a turn for long
		for _, name := range []string{"flip/secret", "plain"} {
			if data, err := f.Read(t.Context(), name, 100); err == nil {
				reads++
				require.NotEqual(t, "secret", string(data))
			}
		}
		list, _, _ := f.List(t.Context(), "flip", files.ListOptions{})
		for _, l := range list {
			require.NotEqual(t, "secret-only-outside", l.Path)
		}
		_, _ = f.WriteBytes(t.Context(), "flip/secret", []byte("inside"), files.WriteOptions{})
		_, _ = f.WriteBytes(t.Context(), "plain", []byte("inside"), files.WriteOptions{})
		_, _ = f.MakeDir(fmt.Sprint("flip/made", i), 0)
		_, _ = f.Move("inside", fmt.Sprint("flip/moved", i), files.MoveOptions{})
		_, _ = f.Move(fmt.Sprint("flip/moved", i), "inside", files.MoveOptions{})
		_ = f.Remove("flip/secret", true)
		_ = f.Remove(fmt.Sprint("flip/made", i), true)
	}
	close(stop)
	flips.Wait()
	require.Equal(t, before, picture(t, outside))
	require.Positive(t, reads, "the race was one")
}
