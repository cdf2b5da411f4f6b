package ndjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// chunk is how much is read at once, in bytes.
const chunk = 64 << 10

// chunks lends buffers to readers that have something to read, so that one that
// waits holds none.
var chunks = sync.Pool{New: func() any { b := make([]byte, chunk); return &b }}

// TooLongError says that a line was skipped because it was too long.
type TooLongError struct {
	// Limit is the longest line that is taken, in bytes.
	Limit int
}

// Error names the limit.
func (e *TooLongError) Error() string {
	return fmt.Sprintf("a line is longer than %d bytes and was skipped", e.Limit)
}

// Reader reads lines.
type Reader struct {
	src   io.Reader
	limit int
	size  int // of the first buffer

	buf      *[]byte // from chunks, or longer; nil when nothing is held
	from, to int     // what of buf is read and not taken
	looked   int     // from here on buf was not searched for a line end
	skipping bool    // the line is too long
}

// NewReader returns a reader of lines of at most limit bytes. It borrows a
// buffer of 64 KiB while it reads.
func NewReader(src io.Reader, limit int) *Reader { return &Reader{src: src, limit: limit, size: chunk} }

// NewSmallReader returns a reader for a source that is waited for all the time
// and says little: its own buffer of 512 bytes grows when it must.
func NewSmallReader(src io.Reader, limit int) *Reader {
	return &Reader{src: src, limit: limit, size: 512}
}

// Next returns the next line without its end, good until the next call. The
// error is a *TooLongError when a line was skipped, io.EOF after the last line,
// io.ErrUnexpectedEOF when that has no end, and else what the source returned;
// after a deadline, Next can be called again.
func (r *Reader) Next() ([]byte, error) {
	for {
		if line, ok := r.take(); ok {
			if r.skipping {
				r.skipping = false
				return nil, &TooLongError{Limit: r.limit}
			}
			return line, nil
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// take cuts a line off what was read.
func (r *Reader) take() ([]byte, bool) {
	if r.buf == nil {
		return nil, false
	}
	i := bytes.IndexByte((*r.buf)[r.looked:r.to], '\n')
	if i < 0 {
		r.looked = r.to
		if r.to-r.from > r.limit || r.skipping {
			r.skipping = true
			r.from, r.to, r.looked = 0, 0, 0
		}
		return nil, false
	}
	line := (*r.buf)[r.from : r.looked+i]
	r.looked += i + 1
	r.from = r.looked
	if len(line) > r.limit {
		r.skipping = true
	}
	return line, true
}

// fill reads more.
func (r *Reader) fill() error {
	if r.buf == nil {
		r.borrow()
	}
	if r.from == r.to {
		r.from, r.to, r.looked = 0, 0, 0
	}
	if r.to == len(*r.buf) {
		r.room()
	}
	n, err := r.src.Read((*r.buf)[r.to:])
	r.to += n
	if n > 0 {
		return nil
	}
	if errors.Is(err, io.EOF) && (r.to > r.from || r.skipping) {
		return io.ErrUnexpectedEOF
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// room makes room behind a line that is not whole: at the front when there is
// any, else in a buffer of twice the size.
func (r *Reader) room() {
	old := r.buf
	if r.from == 0 {
		bigger := make([]byte, 2*len(*old))
		r.buf = &bigger
	}
	copy(*r.buf, (*old)[r.from:r.to])
	if r.buf != old {
		giveBack(old)
	}
	r.looked -= r.from
	r.to -= r.from
	r.from = 0
}

// Release gives the buffer back while nothing is expected. What was read and
// not taken stays.
func (r *Reader) Release() {
	if r.buf != nil && r.from == r.to {
		giveBack(r.buf)
		r.buf = nil
		r.from, r.to, r.looked = 0, 0, 0
	}
}

func (r *Reader) borrow() {
	if r.size == chunk {
		r.buf = chunks.Get().(*[]byte)
		return
	}
	own := make([]byte, r.size)
	r.buf = &own
}

func giveBack(buf *[]byte) {
	if len(*buf) == chunk {
		chunks.Put(buf)
	}
}
