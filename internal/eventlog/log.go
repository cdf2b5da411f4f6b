package eventlog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// The defaults of Options.
const (
	DefaultMemory = 64 << 10
	DefaultMax    = 256 << 20
)

// stride is how many entries lie between two places in the file that the index
// knows.
const stride = 64

// The errors of a log.
var (
	// ErrFull: the log has taken all that it may.
	ErrFull = errors.New("the event log is full")
	// ErrEnded: the log takes nothing more, or is closed.
	ErrEnded = errors.New("the event log has ended")
	// ErrAhead: a reader asks for what comes after an entry that is not there.
	ErrAhead = errors.New("the cursor is ahead of the event log")
)

// Options make a Log. The zero value of a field is its default.
type Options struct {
	// Dir is where the file is made, when one is needed. "": the system's folder
	// for temporary files.
	Dir string
	// Memory is how many bytes of entries stay in memory. 0: 64 KiB.
	Memory int
	// Max is how many bytes of entries the log takes. 0: 256 MiB.
	Max int64
}

// Log is one log. Make it with New.
type Log struct {
	o Options

	mu     sync.Mutex
	recent [][]byte      // the newest entries; guarded by mu
	held   int           // their bytes; guarded by mu
	last   uint64        // how many entries there are; guarded by mu
	total  int64         // their bytes; guarded by mu
	file   *os.File      // the entries before recent, a line each; nil until needed; guarded by mu
	index  []int64       // where entries 1, 1+stride, … begin in the file; guarded by mu
	size   int64         // of the file; guarded by mu
	broken error         // why the file could not be written; guarded by mu
	ended  bool          // guarded by mu
	closed bool          // guarded by mu
	bell   chan struct{} // closed and replaced at each change; guarded by mu
}

// New returns a log.
func New(o Options) *Log {
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	if o.Max <= 0 {
		o.Max = DefaultMax
	}
	return &Log{o: o, bell: make(chan struct{})}
}

// Append adds an entry, which holds no end of a line, and is the log's from then
// on. make gets the entry's number. It returns ErrFull, ErrEnded, an error of
// make, or one of the file; then nothing was added.
func (l *Log) Append(make func(n uint64) ([]byte, error)) error { return l.add(make, false) }

// Finish adds the last entry, also to a full log, and ends the log.
func (l *Log) Finish(make func(n uint64) ([]byte, error)) error { return l.add(make, true) }

func (l *Log) add(make func(n uint64) ([]byte, error), last bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.closed {
		return ErrEnded
	}
	entry, err := make(l.last + 1)
	if err != nil {
		return err
	}
	if bytes.IndexByte(entry, '\n') >= 0 {
		return errors.New("an entry of the event log holds the end of a line")
	}
	if !last {
		if l.total+int64(len(entry)) > l.o.Max {
			return ErrFull
		}
		if l.broken != nil {
			return l.broken
		}
	}
	l.recent = append(l.recent, entry)
	l.held += len(entry)
	l.last++
	l.total += int64(len(entry))
	l.ended = last
	if l.held > l.o.Memory && l.broken == nil {
		l.broken = l.spill() // the entries stay in memory then, and no more are taken
	}
	l.ring()
	return nil
}

// spill moves the older half of what is in memory to the file. l.mu is held.
func (l *Log) spill() error {
	if l.file == nil {
		f, err := os.CreateTemp(l.o.Dir, "coppice-events-*") // with mode 0600
		if err != nil {
			return fmt.Errorf("make a file for events: %w", err)
		}
		l.file = f
	}
	var out []byte
	n, held, at, index := 0, l.held, l.size, l.index
	number := l.last - uint64(len(l.recent)) // of the entry before the first one in memory
	for n < len(l.recent) && held > l.o.Memory/2 {
		if number%stride == 0 {
			index = append(index, at)
		}
		entry := l.recent[n]
		out = append(append(out, entry...), '\n')
		at += int64(len(entry)) + 1
		held -= len(entry)
		number++
		n++
	}
	if _, err := l.file.WriteAt(out, l.size); err != nil {
		return fmt.Errorf("write events to %s: %w", l.file.Name(), err)
	}
	l.recent = slices.Clone(l.recent[n:]) // readers may still be at the old ones, which stay as they are
	l.held, l.size, l.index = held, at, index
	return nil
}

// ring tells everybody who waits. l.mu is held.
func (l *Log) ring() {
	close(l.bell)
	l.bell = make(chan struct{})
}

// Read returns entries from the one after the given number on: at least one if
// there is any, and others while they are at most so many bytes together. ended
// says that the log has ended and that nothing follows. The entries must not be
// changed. The error is ErrAhead, ErrEnded when the log is closed, or one of the
// file.
func (l *Log) Read(after uint64, most int) (entries [][]byte, ended bool, err error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, true, ErrEnded
	}
	if after > l.last {
		l.mu.Unlock()
		return nil, false, ErrAhead
	}
	first := l.last - uint64(len(l.recent)) // how many are in the file
	if after >= first {
		entries = limit(l.recent[after-first:], most)
		ended = l.ended && after+uint64(len(entries)) == l.last
		l.mu.Unlock()
		return entries, ended, nil
	}
	file, from, size := l.file, l.index[after/stride], l.size
	l.mu.Unlock()
	entries, err = read(io.NewSectionReader(file, from, size-from), after%stride, most)
	if errors.Is(err, os.ErrClosed) {
		return nil, true, ErrEnded
	}
	return entries, false, err
}

// limit is the first entries, at least one of them.
func limit(all [][]byte, most int) [][]byte {
	for i, e := range all {
		if most -= len(e); most < 0 && i > 0 {
			return all[:i:i]
		}
	}
	return slices.Clip(all)
}

// read reads lines after some that are left out.
func read(from io.Reader, skip uint64, most int) ([][]byte, error) {
	in := bufio.NewReaderSize(from, 64<<10)
	var entries [][]byte
	for {
		line, err := in.ReadBytes('\n')
		switch {
		case err == io.EOF && len(line) == 0 && len(entries) > 0:
			return entries, nil
		case err != nil:
			return nil, fmt.Errorf("read events: %w", err)
		case skip > 0:
			skip--
			continue
		}
		line = line[:len(line)-1]
		if most -= len(line); most < 0 && len(entries) > 0 {
			return entries, nil
		}
		entries = append(entries, line)
	}
}

// Wait returns when there is an entry after the given number, when the log has
// ended, or with the cause of ctx.
func (l *Log) Wait(ctx context.Context, after uint64) error {
	for {
		l.mu.Lock()
		there, bell := l.last > after || l.ended || l.closed, l.bell
		l.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-bell:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Size returns how many entries there are, their bytes, and how many of those
// are in the file.
func (l *Log) Size() (entries uint64, bytes, filed int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.total, l.size
}

// Close ends the log and removes its file. Readers who are at it get ErrEnded.
// Calls after the first do nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed, l.recent = true, nil
	l.ring()
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.file.Close(), os.Remove(l.file.Name()))
	if err != nil {
		return fmt.Errorf("remove the file of events: %w", err)
	}
	return nil
}
