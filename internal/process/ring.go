package process

import (
	"bytes"
	"strings"
	"sync"
)

// DefaultRingSize is how much output a [Ring] keeps, in bytes.
const DefaultRingSize = 64 << 10

// RingOptions says what a [Ring] keeps.
type RingOptions struct {
	// Size is how many of the last bytes are kept. Zero is DefaultRingSize.
	Size int
	// Tee is called with everything written, before it is kept, from the
	// goroutine that reads the child's output. It must not keep p, and while it
	// blocks the child's output is not read.
	Tee func(p []byte)
}

// Ring keeps the last output of a child. It never blocks a writer and never
// grows. Any goroutine may read and write it.
type Ring struct {
	tee func(p []byte)

	mu    sync.Mutex
	buf   []byte // guarded by mu; byte number i of the output is at i % len(buf)
	total int64  // guarded by mu; bytes ever written
}

// NewRing makes a ring.
func NewRing(o RingOptions) *Ring {
	if o.Size <= 0 {
		o.Size = DefaultRingSize
	}
	return &Ring{tee: o.Tee, buf: make([]byte, o.Size)}
}

// Write keeps p, or its end when p is longer than the ring. It never fails.
func (r *Ring) Write(p []byte) (int, error) {
	if r.tee != nil {
		r.tee(p)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n, size := len(p), len(r.buf)
	r.total += int64(n)
	p = p[max(0, n-size):]
	at := int((r.total - int64(len(p))) % int64(size))
	copy(r.buf, p[copy(r.buf[at:], p):])
	return n, nil
}

// Written returns the number of bytes ever written.
func (r *Ring) Written() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// String returns what is kept, from the first whole line on when the beginning
// was overwritten.
func (r *Ring) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.kept())
}

// kept returns the kept bytes in order, without a line that lost its beginning
// unless that is all there is.
func (r *Ring) kept() []byte {
	size := int64(len(r.buf))
	if r.total <= size {
		return r.buf[:r.total]
	}
	next := r.total % size
	b := append(append(make([]byte, 0, size), r.buf[next:]...), r.buf[:next]...)
	if i := bytes.IndexByte(b, '\n'); i >= 0 && i+1 < len(b) {
		b = b[i+1:]
	}
	return b
}

// Tail returns the last n lines that are kept, without their line ends, the
// unfinished last line included. Fewer are returned when there are no more.
func (r *Ring) Tail(n int) []string {
	s := strings.TrimSuffix(r.String(), "\n")
	if s == "" || n <= 0 {
		return nil
	}
	lines := strings.Split(s, "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}
