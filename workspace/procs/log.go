package procs

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/eventlog"
)

// log keeps the newest events of a process: those of two generations, of which the
// older one is dropped when the newer one is full.
type log struct {
	o eventlog.Options

	mu      sync.Mutex
	old     *generation          // nil at first; guarded by mu
	now     *generation          // guarded by mu
	last    uint64               // guarded by mu
	readers map[*Reader]struct{} // guarded by mu
	ended   bool                 // guarded by mu
	closed  bool                 // guarded by mu
	bell    chan struct{}        // closed and replaced at each change; guarded by mu
}

// generation is a part of the log.
type generation struct {
	base uint64 // the number of the event before its first one
	log  *eventlog.Log
}

// least is how many bytes of events one generation takes at least: more than the longest
// event has.
const least = 128 << 10

// newLog returns a log that keeps so many bytes.
func newLog(dir string, keep int64) *log {
	l := &log{o: eventlog.Options{Dir: dir, Max: max(keep/2, least)}, readers: map[*Reader]struct{}{}, bell: make(chan struct{})}
	l.now = &generation{log: eventlog.New(l.o)}
	return l
}

// ring tells everyone who waits. l.mu is held.
func (l *log) ring() {
	close(l.bell)
	l.bell = make(chan struct{})
}

// add appends an event. While a reader is there that has not got what would have to be
// dropped for it, it waits, until ctx ends.
func (l *log) add(ctx context.Context, kind EventKind, data []byte) error {
	for {
		wait, err := l.tryAdd(kind, data)
		if wait == nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *log) tryAdd(kind EventKind, data []byte) (wait <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.closed {
		return nil, eventlog.ErrEnded
	}
	e := Event{Seq: l.last + 1, Kind: kind, At: time.Now(), Data: data}
	err = l.now.log.Append(func(uint64) ([]byte, error) { return json.Marshal(e) })
	if errors.Is(err, eventlog.ErrFull) {
		for r := range l.readers {
			if r.took < l.now.base {
				return l.bell, nil
			}
		}
		if l.old != nil {
			err = l.old.log.Close()
		} else {
			err = nil
		}
		l.old, l.now = l.now, &generation{l.last, eventlog.New(l.o)}
		if err == nil {
			err = l.now.log.Append(func(uint64) ([]byte, error) { return json.Marshal(e) })
		}
	}
	if err != nil {
		return nil, err
	}
	l.last++
	l.ring()
	return nil, nil
}

// end appends the last event.
func (l *log) end(exit Exit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.closed {
		return nil
	}
	e := Event{Seq: l.last + 1, Kind: EventEnd, At: time.Now(), Exit: &exit}
	if err := l.now.log.Finish(func(uint64) ([]byte, error) { return json.Marshal(e) }); err != nil {
		return err
	}
	l.last++
	l.ended = true
	l.ring()
	return nil
}

// close removes what is kept; readers get io.EOF.
func (l *log) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	err := l.now.log.Close()
	if l.old != nil {
		err = errors.Join(err, l.old.log.Close())
	}
	l.ring()
	return err
}

// Reader reads the events of a process. While it is open, the process waits for it when
// it is slow. Close it. It belongs to one goroutine.
type Reader struct {
	l    *log
	at   uint64 // the last event that it was given; guarded by l.mu
	took uint64 // the last one that it is done with; guarded by l.mu
}

// latest is the number of the latest event.
func (l *log) latest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// followed reports whether there is a reader.
func (l *log) followed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.readers) > 0
}

// reader returns one for what comes after an event.
func (l *log) reader(after uint64) (*Reader, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after > l.last {
		return nil, ErrAhead
	}
	r := &Reader{l, after, after}
	l.readers[r] = struct{}{}
	return r, nil
}

// Close lets the process go on without the reader. Calls after the first do nothing.
func (r *Reader) Close() {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if _, ok := r.l.readers[r]; ok {
		delete(r.l.readers, r)
		r.l.ring()
	}
}

// batch is how many bytes of events are read at once.
const batch = 64 << 10

// Next returns the next events, at least one; with the call, the reader is done with those
// that it was given before. It waits for one until ctx ends, whose
// cause is the error then, and returns io.EOF after the last, and when the process was
// closed.
func (r *Reader) Next(ctx context.Context) ([]Entry, error) {
	r.done()
	for {
		entries, wait, err := r.read()
		if err != nil || len(entries) > 0 {
			return entries, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (r *Reader) read() ([]Entry, <-chan struct{}, error) {
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed, l.ended && r.at >= l.last:
		return nil, nil, io.EOF
	case r.at >= l.last:
		return nil, l.bell, nil
	}
	g := l.now
	if r.at < l.now.base && l.old != nil {
		g = l.old
	}
	if r.at < g.base { // it came too late for those
		r.at = g.base
		text, err := json.Marshal(Event{Seq: g.base, Kind: EventGap})
		return []Entry{{g.base, text}}, nil, err
	}
	lines, _, err := g.log.Read(r.at-g.base, batch)
	if err != nil {
		return nil, nil, err
	}
	entries := make([]Entry, len(lines))
	for i, line := range lines {
		r.at++
		entries[i] = Entry{r.at, line}
	}
	return entries, nil, nil
}

// done says that the reader has used what it was given.
func (r *Reader) done() {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if r.took < r.at {
		r.took = r.at
		r.l.ring() // a process may have waited for it
	}
}
