package file_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/test/notfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kinds are what an error calls the things that are not files.
var kinds = map[notfile.Kind]file.Kind{
	notfile.FIFO: file.FIFO, notfile.Device: file.Device, notfile.Socket: file.Socket, notfile.Directory: file.Directory,
}

// TestNotRegular: whatever is not a regular file is refused at once and by its name,
// through every way of opening.
func TestNotRegular(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	for _, kind := range notfile.Kinds {
		path := filepath.Join(dir, strings.ReplaceAll(string(kind), " ", "-"))
		notfile.Make(t, kind, path)
		for name, open := range map[string]func() (*os.File, error){
			"Open":     func() (*os.File, error) { return file.Open(path) },
			"OpenFile": func() (*os.File, error) { return file.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600) },
			"OpenIn":   func() (*os.File, error) { return file.OpenIn(root, filepath.Base(path)) },
			"Read": func() (*os.File, error) {
				data, err := file.Read(t.Context(), path, 10)
				require.Empty(t, data)
				return nil, err
			},
			// The file is replaced between the first check and the opening.
			"replaced": func() (*os.File, error) {
				return file.OpenWith(path, func() (fs.FileInfo, error) { return nil, errors.New("not looked") },
					func() (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|file.NonBlock, 0) })
			},
		} {
			if kind == notfile.Socket && name == "replaced" || name == "OpenIn" && (kind == notfile.Socket || kind == notfile.Device) {
				continue // the system itself opens no socket; and these are links out of the folder
			}
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				notfile.AtOnce(t, func() {
					f, err := open()
					if f != nil {
						_ = f.Close()
					}
					var told *file.NotRegularError
					if !errors.As(err, &told) || told.Kind != kinds[kind] || !file.IsNotRegular(err) || file.IsTooLarge(err) {
						t.Errorf("%v", err)
						return
					}
					var where *fs.PathError
					if !errors.As(err, &where) || filepath.Base(where.Path) != filepath.Base(path) || !strings.Contains(err.Error(), "is "+string(kind)+", not a regular file; ") {
						t.Errorf("%v", err)
					}
				})
			})
		}
	}
}

// TestOpenRoot opens directories alone, and does not wait for another end.
func TestOpenRoot(t *testing.T) {
	dir := t.TempDir()
	root, err := file.OpenRoot(dir)
	require.NoError(t, err)
	require.NoError(t, root.Close())
	for _, kind := range notfile.Kinds {
		path := filepath.Join(dir, "x")
		notfile.Make(t, kind, path)
		if kind == notfile.Directory {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		}
		notfile.AtOnce(t, func() {
			_, err := file.OpenRoot(path)
			var where *fs.PathError
			if !errors.As(err, &where) || where.Path != path {
				t.Errorf("%s: %v", kind, err)
			}
		})
	}
	_, err = file.OpenRoot("")
	require.Error(t, err, "not the root of the system")
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(path, link))
	for name, tc := range map[string]struct {
		size int
		most int64
		told string
	}{
		"empty":           {0, 10, ""},
		"empty, no room":  {0, 0, ""},
		"less":            {9, 10, ""},
		"as much":         {10, 10, ""},
		"more":            {11, 10, "holds 11 bytes, and at most 10 bytes are read"},
		"much, as much":   {3<<20 + 1, 3<<20 + 1, ""},
		"much, more":      {3<<20 + 1, 3 << 20, "holds 3145729 bytes, and at most 3 MiB are read"},
		"much, much more": {12 << 20, 3 << 20, "holds 12 MiB, and at most 3 MiB are read"},
	} {
		t.Run(name, func(t *testing.T) {
			want := strings.Repeat("x", tc.size)
			require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
			for _, p := range []string{path, link} {
				got, err := file.Read(t.Context(), p, tc.most)
				if tc.told == "" {
					require.NoError(t, err)
					require.Len(t, got, len(want))
					require.Equal(t, 0, strings.Compare(want, string(got)))
					continue
				}
				require.ErrorContains(t, err, p+": "+tc.told)
				var told *file.TooLargeError
				require.ErrorAs(t, err, &told)
				require.Equal(t, file.TooLargeError{Size: int64(tc.size), Max: tc.most}, *told)
				require.False(t, file.IsNotRegular(err))
			}
		})
	}
	_, err := file.Read(t.Context(), filepath.Join(dir, "none"), 10)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "open "+filepath.Join(dir, "none"))
}

// TestSparse: a file of a terabyte that takes no room on the disk takes none in
// memory either.
func TestSparse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 1<<40))
	_, err := file.Read(t.Context(), path, 512<<20)
	require.ErrorContains(t, err, "holds 1024 GiB, and at most 512 MiB are read")
}

// TestGrows: a file that grows while it is read is read up to the bound, and what
// begins large enough is read as it ends.
func TestGrows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("begin"), 0o600))
	f, err := file.Open(path)
	require.NoError(t, err)
	defer f.Close()
	to, err := file.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer to.Close()
	in := file.NewReader(t.Context(), f, 1000)
	var got int
	buf := make([]byte, 100)
	for range 1000 { // each piece that is read is followed by more
		var n int
		n, err = in.Read(buf)
		got += n
		if err != nil {
			break
		}
		_, err := to.WriteString(strings.Repeat("y", 200))
		require.NoError(t, err)
	}
	require.Equal(t, 1000, got)
	require.True(t, file.IsTooLarge(err), err)
	holds, statErr := f.Stat()
	require.NoError(t, statErr)
	require.ErrorContains(t, err, fmt.Sprintf("holds %d bytes, and at most 1000 bytes are read", holds.Size()))

	_, err = f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	data, err := file.ReadAll(t.Context(), f, info.Size())
	require.NoError(t, err)
	require.Len(t, data, int(info.Size()))
}

// TestEnds: reading ends with its context, which says why.
func TestEnds(t *testing.T) {
	t.Parallel()
	why := errors.New("the client has left")
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, make([]byte, 5<<20), 0o600))
	f, err := file.Open(path)
	require.NoError(t, err)
	defer f.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	in := file.NewReader(ctx, f, 1<<30)
	n, err := in.Read(make([]byte, 4<<20))
	require.NoError(t, err)
	require.LessOrEqual(t, n, 1<<20, "a piece is small, so that the context is looked at")
	cancel(why)
	_, err = in.Read(make([]byte, 1))
	require.ErrorIs(t, err, why)
	_, err = file.Read(ctx, path, 1<<30)
	require.ErrorIs(t, err, why)
	require.ErrorContains(t, err, "read "+path)
}
