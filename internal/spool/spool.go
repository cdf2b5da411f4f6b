package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Defaults of [Options].
const (
	DefaultMemory  = 8 << 20
	DefaultSegment = 64 << 20
)

// recordOverhead is what a record in memory costs beside its bytes: its slice
// header, and what the allocator rounds up. Without it, a flood of one-byte
// records would take many times the bound.
const recordOverhead = 48

// ErrClosed is returned by Put after CloseWrite or Close, and by Get after
// Close.
var ErrClosed = errors.New("spool: closed")

// Options are the bounds of a [Spool]. The zero value is legal.
type Options struct {
	// Memory is how many bytes of records stay in memory, 48 bytes for each
	// record included; 0 means [DefaultMemory]. A record that is larger goes to
	// disk.
	Memory int64
	// Dir is where spilled records go; "" means [os.TempDir]. It must exist
	// when the first record is spilled.
	Dir string
	// Segment is the size in bytes at which a new file is begun; 0 means
	// [DefaultSegment].
	Segment int64
}

// Stats says what a spool holds and what went through it.
type Stats struct {
	// Records and Bytes were put in so far, PendingRecords and PendingBytes of
	// them are still in the spool.
	Records, PendingRecords int64
	Bytes, PendingBytes     int64
	// SpilledRecords and SpilledBytes of them went to disk.
	SpilledRecords, SpilledBytes int64
	// FailedRecords were refused by Put because the disk failed.
	FailedRecords int64
}

// Spool is the queue; see the package documentation. [New] makes one.
type Spool struct {
	opts Options

	// notify has room for one token, which means: look again. Put, CloseWrite
	// and Close leave it, Get takes it.
	notify chan struct{}

	// tail is the segment that Put writes to. Only the goroutine that calls Put
	// touches it.
	tail *segment
	// head is the segment that Get reads from. Only the goroutine that calls
	// Get touches it.
	head *segment

	mu       sync.Mutex
	memory   ring       // guarded by mu; older than everything in segments
	inMemory int64      // guarded by mu: bytes in memory, overhead included
	onDisk   int64      // guarded by mu: records written to segments and not yet read
	segments []*segment // guarded by mu: begun and not given up, oldest first
	spilling bool       // guarded by mu: Put is at the disk, so the end is not reached
	ended    bool       // guarded by mu
	closed   bool       // guarded by mu
	stats    Stats      // guarded by mu
}

// New returns an empty spool. It touches the disk only when a record is
// spilled.
func New(o Options) *Spool {
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	if o.Segment <= 0 {
		o.Segment = DefaultSegment
	}
	return &Spool{opts: o, notify: make(chan struct{}, 1)}
}

// Put appends rec and keeps it: the caller must not change it afterwards. It
// does not wait for Get. The error is [ErrClosed], or what the disk said: then
// rec is not in the spool, everything before it is, and the next Put may
// succeed.
func (s *Spool) Put(rec []byte) error {
	n := int64(len(rec))
	s.mu.Lock()
	if s.ended || s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	// Memory is read before the disk, so a record may only go to memory while
	// nothing older is on disk.
	if s.onDisk == 0 && s.inMemory+n+recordOverhead <= s.opts.Memory {
		s.memory.push(rec)
		s.inMemory += n + recordOverhead
		s.stats.Records++
		s.stats.Bytes += n
		s.mu.Unlock()
		s.wake()
		return nil
	}
	s.spilling = true
	s.mu.Unlock()

	err := s.spill(rec)

	defer s.wake()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spilling = false
	if s.closed {
		return ErrClosed
	}
	if err != nil {
		s.stats.FailedRecords++
		return fmt.Errorf("spill %d bytes: %w", n, err)
	}
	s.onDisk++
	s.stats.Records++
	s.stats.Bytes += n
	s.stats.SpilledRecords++
	s.stats.SpilledBytes += n
	return nil
}

// spill writes rec to the tail segment and begins a new one when it is full.
func (s *Spool) spill(rec []byte) error {
	if s.tail == nil || s.tail.written.Load() >= s.opts.Segment {
		seg, err := newSegment(s.opts.Dir)
		if err != nil {
			return err
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			seg.discard()
			return ErrClosed
		}
		if s.tail != nil {
			s.tail.full.Store(true)
		}
		s.segments = append(s.segments, seg)
		s.mu.Unlock()
		s.tail = seg
	}
	return s.tail.write(rec)
}

// Get returns the oldest record and takes it out. It waits for one until ctx
// ends and then returns ctx's cause. After CloseWrite it returns [io.EOF] when
// everything was taken; after Close it returns [ErrClosed]. Any other error
// comes from the disk, and the spool is of no more use.
func (s *Spool) Get(ctx context.Context) ([]byte, error) {
	for {
		s.mu.Lock()
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, ErrClosed
		case s.memory.len() > 0:
			rec := s.memory.pop()
			s.inMemory -= int64(len(rec)) + recordOverhead
			s.mu.Unlock()
			return rec, nil
		case s.onDisk > 0:
			s.mu.Unlock()
			return s.readBack()
		case s.ended && !s.spilling:
			s.mu.Unlock()
			return nil, io.EOF
		}
		s.mu.Unlock()
		select {
		case <-s.notify:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// readBack reads the oldest record from disk; the caller has seen that there
// is one.
func (s *Spool) readBack() ([]byte, error) {
	for {
		if s.head == nil {
			s.mu.Lock()
			if s.closed {
				s.mu.Unlock()
				return nil, ErrClosed
			}
			s.head = s.segments[0]
			s.mu.Unlock()
		}
		// full must be read before the bytes are: once it is set, written does
		// not grow any more.
		full := s.head.full.Load()
		if s.head.hasMore() {
			break
		}
		if !full {
			return nil, errors.New("spool: a spilled record is missing")
		}
		s.giveUpHead()
	}
	rec, err := s.head.read()
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return nil, ErrClosed
		}
		return nil, fmt.Errorf("read back a spilled record: %w", err)
	}
	s.mu.Lock()
	if !s.closed {
		s.onDisk--
	}
	s.mu.Unlock()
	if s.head.full.Load() && !s.head.hasMore() {
		s.giveUpHead()
	}
	return rec, nil
}

// giveUpHead returns the space of the segment that was read to its end.
func (s *Spool) giveUpHead() {
	seg := s.head
	s.head = nil
	s.mu.Lock()
	if !s.closed {
		s.segments = s.segments[1:]
	}
	s.mu.Unlock()
	seg.discard()
}

// CloseWrite says that no more records come. It may be called more than once.
func (s *Spool) CloseWrite() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wake()
}

// Close gives up what is in the spool, with its files. It may be called more
// than once, and while Put and Get run: they return [ErrClosed].
func (s *Spool) Close() {
	s.mu.Lock()
	s.closed = true
	segments := s.segments
	s.segments = nil
	s.memory = ring{}
	s.inMemory = 0
	s.onDisk = 0
	s.mu.Unlock()
	s.wake()
	for _, seg := range segments {
		seg.discard()
	}
}

// Stats returns the counts of this moment.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.PendingRecords = int64(s.memory.len()) + s.onDisk
	st.PendingBytes = s.inMemory - recordOverhead*int64(s.memory.len())
	for _, seg := range s.segments {
		st.PendingBytes += seg.pending.Load()
	}
	return st
}

// wake leaves a token for Get.
func (s *Spool) wake() {
	select {
	case s.notify <- struct{}{}:
	default:
	}
}
