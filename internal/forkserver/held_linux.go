package forkserver

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/coppice-run/coppice/internal/ndjson"
)

const (
	// heldRoom is how much is looked at at once, in bytes: what a session can have written
	// that nobody has read fits in.
	heldRoom = 256 << 10
	// heldLine is a line that is longer than any with text: it is not waited for whole,
	// since the session may wait for room to write the rest of it.
	heldLine = 100 << 10
)

// heldReader reads Main in a way that a later process can go on with: what Read returns
// stays in the socket until the next Read, when it was dealt with. It returns whole lines,
// as long as they fit. It belongs to the one goroutine that reads.
type heldReader struct {
	c    *Child
	mark []byte
	// buf is what was seen in the socket, up to seen; given of it was returned, and is
	// taken out of the socket at the next Read from a buffer that has nothing left.
	buf         []byte
	seen, given int
	whole       int // the end of the last line in buf; seen, when none of it has an end
	// stuck is how much of a line was there when a wait for the rest of it was given up.
	stuck int
}

// HeldReader returns a reader of Main from which nothing is lost with the process that
// reads: what it has returned is taken out of the socket when it is read again, and not
// before. Lines that have mark are returned with the bytes that follow them. Where that is not
// known, it is [Child.MainReader].
func (c *Child) HeldReader(mark []byte) io.Reader { return &heldReader{c: c, mark: mark} }

// Read returns what has come.
func (r *heldReader) Read(p []byte) (int, error) {
	if r.given == r.whole {
		if err := r.take(); err != nil {
			return 0, err
		}
		if err := r.look(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.buf[r.given:r.whole])
	r.given += n
	return n, nil
}

// take takes what was returned out of the socket. It is there, and does not wait.
func (r *heldReader) take() error {
	for r.given > 0 {
		n := 0
		var err error
		outer := r.c.raw.Read(func(fd uintptr) bool {
			n, _, err = unix.Recvfrom(int(fd), r.buf[:r.given], unix.MSG_DONTWAIT)
			return true
		})
		switch {
		case outer != nil:
			return outer // a deadline: it is tried again
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("read from the session: %w", os.NewSyscallError("recv", err))
		case n == 0:
			r.given = 0 // the session has ended
		}
		r.given -= n
	}
	r.seen, r.whole, r.stuck = 0, 0, 0
	return nil
}

// look waits for a line, and leaves it where it is.
func (r *heldReader) look() error {
	if r.buf == nil {
		r.buf = make([]byte, heldRoom)
	}
	n := 0
	var err error
	outer := r.c.raw.Read(func(fd uintptr) bool {
		for {
			n, _, err = unix.Recvfrom(int(fd), r.buf, unix.MSG_PEEK|unix.MSG_DONTWAIT)
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case errors.Is(err, unix.EAGAIN):
				return false
			case err != nil || n == 0:
				return true
			}
			if r.whole = ndjson.Whole(r.buf[:n], r.mark); r.whole > 0 {
				return true
			}
			if n < heldLine && n != r.stuck {
				return false // for more of the line, which wakes this up
			}
			r.whole = n // it is taken in parts
			return true
		}
	})
	switch {
	case outer != nil:
		r.stuck = max(n, 0)
		return outer
	case err != nil:
		return fmt.Errorf("read from the session: %w", os.NewSyscallError("recv", err))
	case n == 0:
		return io.EOF
	}
	r.seen, r.given = n, 0
	return nil
}
