package spool

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// headerSize is the length prefix of a record in a segment: 8 bytes, big endian.
const headerSize = 8

// segment is one file of records, written at its end by one goroutine and read
// from its beginning by another.
type segment struct {
	file *os.File
	// named is true where the file could not be unlinked while it is open.
	named bool
	gone  sync.Once

	// written is how many bytes hold complete records; the writer stores it,
	// the reader never reads past it.
	written atomic.Int64
	// full is set once the writer has begun another segment.
	full atomic.Bool
	// pending is how many bytes of records wait in this segment.
	pending atomic.Int64

	// consumed and in belong to the reader.
	consumed int64
	in       *bufio.Reader
}

// newSegment makes an empty file of mode 0600 and takes its name away, so that
// nothing stays behind when the process dies.
func newSegment(dir string) (*segment, error) {
	f, err := os.CreateTemp(dir, "coppice-spool-*")
	if err != nil {
		return nil, err
	}
	seg := &segment{file: f}
	// Windows refuses to remove an open file; discard does it there.
	seg.named = os.Remove(f.Name()) != nil
	seg.in = bufio.NewReaderSize(&segmentReader{seg: seg}, 64<<10)
	return seg, nil
}

// write appends rec. A record that was written in part is overwritten by the
// next one, since written did not move.
func (g *segment) write(rec []byte) error {
	at := g.written.Load()
	frame := make([]byte, headerSize+len(rec))
	binary.BigEndian.PutUint64(frame, uint64(len(rec)))
	copy(frame[headerSize:], rec)
	if _, err := g.file.WriteAt(frame, at); err != nil {
		return err
	}
	g.pending.Add(int64(len(rec)))
	g.written.Store(at + int64(len(frame)))
	return nil
}

// hasMore reports whether a record waits to be read.
func (g *segment) hasMore() bool { return g.consumed < g.written.Load() }

// read returns the next record; hasMore was true.
func (g *segment) read() ([]byte, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(g.in, h[:]); err != nil {
		return nil, err
	}
	rec := make([]byte, binary.BigEndian.Uint64(h[:]))
	if _, err := io.ReadFull(g.in, rec); err != nil {
		return nil, err
	}
	g.consumed += headerSize + int64(len(rec))
	g.pending.Add(-int64(len(rec)))
	return rec, nil
}

// discard closes the file and removes it. Only the first call does something.
// A read or write that runs at the same time fails.
func (g *segment) discard() {
	g.gone.Do(func() {
		_ = g.file.Close()
		if g.named {
			_ = os.Remove(g.file.Name())
		}
		g.pending.Store(0)
	})
}

// segmentReader reads a segment up to the last complete record: what lies
// beyond may be half written.
type segmentReader struct {
	seg *segment
	at  int64
}

// Read implements [io.Reader] for the bufio.Reader of the segment.
func (r *segmentReader) Read(p []byte) (int, error) {
	left := r.seg.written.Load() - r.at
	if left <= 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > left {
		p = p[:left]
	}
	n, err := r.seg.file.ReadAt(p, r.at)
	r.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}
