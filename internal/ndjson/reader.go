package ndjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
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
	mark     []byte  // what lines begin with that bytes can follow; nil: none can
	line     int     // how long the line is whose bytes are waited for, with its end; 0: none are
	owed     int     // how many bytes follow it
}

// Mark has the reader take the bytes that follow a line which has mark and ends with their
// number: Next returns both, with the end of the line between them. They are fewer where
// mark comes before their end.
func (r *Reader) Mark(mark []byte) *Reader {
	r.mark = mark
	return r
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
	if r.line > 0 {
		return r.bytes()
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
	if r.owed = owed(line, r.mark); r.owed > 0 && !r.skipping {
		r.line = len(line) + 1
		return r.bytes()
	}
	r.from = r.looked
	if len(line) > r.limit {
		r.skipping = true
	}
	return line, true
}

// bytes cuts off a line with the bytes that follow it.
func (r *Reader) bytes() ([]byte, bool) {
	size, ok := r.line+r.owed, r.to-r.from >= r.line+r.owed
	if i := bytes.Index((*r.buf)[r.from+r.line:min(r.to, r.from+size)], r.mark); i >= 0 {
		size, ok = r.line+i, true
	}
	if !ok {
		return nil, false
	}
	whole := (*r.buf)[r.from : r.from+size]
	r.from += size
	r.looked = r.from
	r.line, r.owed = 0, 0
	return whole, true
}

// Waiting returns what has come of a line of which not all bytes have, nil for none. When
// the source has ended it is all there is of it.
func (r *Reader) Waiting() []byte {
	if r.line == 0 {
		return nil
	}
	return (*r.buf)[r.from:r.to]
}

// Parted reports whether some of the bytes have come that follow a line, and not all.
func (r *Reader) Parted() bool { return r.line > 0 && r.to-r.from > r.line }

// owed returns how many bytes follow a line.
func owed(line, mark []byte) int {
	const longest = 5 // digits
	if mark == nil || len(line) == 0 || line[len(line)-1] != '}' {
		return 0
	}
	end := len(line) - 1
	at := end
	for at > 0 && end-at <= longest && '0' <= line[at-1] && line[at-1] <= '9' {
		at--
	}
	if at == end || !bytes.HasSuffix(line[:at], []byte(`,"raw":`)) || !bytes.Contains(line, mark) {
		return 0
	}
	n, err := strconv.Atoi(string(line[at:end]))
	if err != nil || n > MaxRaw {
		return 0
	}
	return n
}

// Whole returns how much of what has come are whole lines, with the bytes that follow them
// when they have mark.
func Whole(come, mark []byte) int {
	whole := 0
	for {
		i := bytes.IndexByte(come[whole:], '\n')
		if i < 0 {
			return whole
		}
		line := whole + i + 1
		end := line + owed(come[whole:line-1], mark)
		if end > line {
			if i := bytes.Index(come[line:min(end, len(come))], mark); i >= 0 {
				end = line + i
			}
		}
		if end > len(come) {
			return whole
		}
		whole = end
	}
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
