package file

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/coppice-run/coppice/internal/deadline"
)

// Read reads a regular file of at most most bytes as a whole.
func Read(ctx context.Context, path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return ReadAll(ctx, f, most)
}

// ReadAll reads what an open file holds from where it stands, at most most bytes. It
// does not close the file. When ctx ends, so does a read that waits, where the system
// can do that: of a FIFO, not of a regular file.
func ReadAll(ctx context.Context, f *os.File, most int64) ([]byte, error) {
	var room int64
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		if room = info.Size(); room > most {
			return nil, tooLarge(f.Name(), room, most)
		}
	}
	defer deadline.Free(ctx, f.SetReadDeadline)()
	in := NewReader(ctx, f, most)
	data := make([]byte, 0, room+1) // the byte more is where its end shows
	for {
		n, err := in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		case len(data) == cap(data):
			data = append(data, 0)[:len(data)]
		}
	}
}

// piece is how much one read takes at most, in bytes.
const piece = 1 << 20

// NewReader returns a reader of an open file which ends with ctx, and fails with a
// *TooLargeError once it has given most bytes and there are more.
func NewReader(ctx context.Context, f *os.File, most int64) io.Reader {
	return &reader{ctx: ctx, in: f, left: most, most: most}
}

type reader struct {
	ctx        context.Context
	in         *os.File
	left, most int64
}

// Read is that of an io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, r.ended()
	}
	// One byte more than is left shows whether there are more.
	p = p[:min(int64(len(p)), piece, r.left+1)]
	n, err := r.in.Read(p)
	if int64(n) > r.left {
		n = int(r.left)
		r.left = 0
		return n, tooLarge(r.in.Name(), r.size(), r.most)
	}
	r.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) && r.ctx.Err() != nil {
		err = r.ended()
	}
	return n, err
}

func (r *reader) ended() error {
	return &fs.PathError{Op: "read", Path: r.in.Name(), Err: context.Cause(r.ctx)}
}

// size is what the file holds, 0 when the system does not tell: one that grew may have
// been cut since, and what is no regular file has none.
func (r *reader) size() int64 {
	if info, err := r.in.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > r.most {
		return info.Size()
	}
	return 0
}

func tooLarge(path string, size, most int64) error {
	return &fs.PathError{Op: "read", Path: path, Err: &TooLargeError{Size: size, Max: most}}
}
