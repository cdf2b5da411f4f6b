package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/coppice-run/coppice/internal/file"
)

// Reader is an open file. Close it. It is for one goroutine at a time.
type Reader struct {
	f    *os.File
	info Info
}

// Info describes the file as it was when it was opened.
func (r *Reader) Info() Info { return r.info }

// Read reads on.
func (r *Reader) Read(p []byte) (int, error) { return r.f.Read(p) }

// Seek moves to where the next Read begins, as io.Seeker says.
func (r *Reader) Seek(offset int64, whence int) (int64, error) { return r.f.Seek(offset, whence) }

// Close lets go of the file.
func (r *Reader) Close() error { return r.f.Close() }

// Open opens a regular file for reading. A symbolic link that stays inside is followed.
func (f *Folder) Open(name string) (*Reader, error) {
	at, err := named(name)
	if err != nil {
		return nil, fail("read", name, err)
	}
	opened, err := file.OpenIn(f.root, at)
	if file.IsNotRegular(err) {
		if dir, ok := notRegular(err); ok && dir.Kind == file.Directory {
			err = ErrIsDir
		}
	}
	if err != nil {
		return nil, fail("read", name, err)
	}
	i, err := opened.Stat()
	if err != nil {
		_ = opened.Close() // nothing was done with it
		return nil, fail("read", name, err)
	}
	return &Reader{opened, describe(at, i)}, nil
}

// Read returns what a file holds, which may be at most most bytes; else the error is a
// *file.TooLargeError. For large files use Open.
func (f *Folder) Read(ctx context.Context, name string, most int64) ([]byte, error) {
	r, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(file.NewReader(ctx, r.f, most))
	if err == nil {
		err = r.Close()
	} else {
		_ = r.Close() // why it could not be read is what matters
	}
	if err != nil {
		return nil, fail("read", name, err)
	}
	return data, nil
}

// Attributes returns the user's extended attributes of a regular file whose names begin with
// prefix; none where the file system has none. What cannot be opened has none, nor has what is
// no file.
func (f *Folder) Attributes(name, prefix string) (map[string]string, error) {
	r, err := f.Open(name)
	if errors.Is(err, ErrIsDir) || errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrPath) || file.IsNotRegular(err) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was only read
	found, err := file.Attributes(r.f, prefix)
	return found, fail("read", name, err)
}

var _ io.ReadSeekCloser = (*Reader)(nil)

// bits are the permission bits that a file can be given; others would give rights away.
const bits = fs.FileMode(0o777)
