package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// DefaultLimit bounds the data of one event, in bytes.
const DefaultLimit = 8 << 20

// ErrTooLong is returned for an event beyond the limit. The stream cannot be
// read any further.
var ErrTooLong = errors.New("the event is too long")

// Event is one event.
type Event struct {
	// Name is that of the "event" field, "" without one.
	Name string
	// ID is that of the last "id" field of the stream.
	ID string
	// Data is what the "data" fields hold, joined by line feeds.
	Data string
	// Retry is how long the stream asks its reader to wait before it connects
	// again, as the last "retry" field says; 0: nothing was said.
	Retry time.Duration
}

// Reader reads the events of one stream.
type Reader struct {
	r     *bufio.Reader
	limit int
	id    string
	retry time.Duration
	begun bool
	// skip says that the last line ended in a carriage return, so that a line
	// feed that follows belongs to it.
	skip bool
}

// bufferSize is how much is read at once, in bytes.
const bufferSize = 32 << 10

// NewReader reads from r. limit bounds one event in bytes; 0: DefaultLimit.
func NewReader(r io.Reader, limit int) *Reader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Reader{r: bufio.NewReaderSize(r, bufferSize), limit: limit}
}

// Next returns the next event. Comments, which keep a connection alive, are
// passed over. The error is io.EOF at the end of the stream, where an event
// without its empty line is dropped as the standard wants it, ErrTooLong, or
// that of the reader.
func (r *Reader) Next() (Event, error) {
	var (
		e    Event
		data strings.Builder
		some bool
		size int
	)
	for {
		line, err := r.line(r.limit - size)
		if err != nil {
			return Event{}, err
		}
		size += len(line)
		if line == "" {
			if !some {
				e.Name, size = "", 0 // an event without data does not count
				continue
			}
			e.ID, e.Data, e.Retry = r.id, data.String(), r.retry
			return e, nil
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			if some {
				data.WriteByte('\n')
			}
			data.WriteString(value)
			some = true
		case "event":
			e.Name = value
		case "id":
			if !strings.ContainsRune(value, 0) {
				r.id = value
			}
		case "retry":
			if ms, err := strconv.ParseUint(value, 10, 32); err == nil && value[0] != '+' {
				r.retry = time.Duration(ms) * time.Millisecond //nolint:gosec // 32 bits
			}
		}
	}
}

// line reads a line without its end: LF, CR, or both.
func (r *Reader) line(limit int) (string, error) {
	var line []byte
	for {
		if _, err := r.r.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				return "", io.EOF
			}
			return "", fmt.Errorf("read an event: %w", err)
		}
		part, _ := r.r.Peek(r.r.Buffered()) // that much is there
		if r.skip {
			r.skip = false
			if part[0] == '\n' {
				_, _ = r.r.Discard(1)
				continue
			}
		}
		n, used := len(part), len(part)
		if end := bytes.IndexAny(part, "\r\n"); end >= 0 {
			n, used = end, end+1
			r.skip = part[end] == '\r'
		}
		if len(line)+n > limit {
			return "", fmt.Errorf("%w: more than %d bytes", ErrTooLong, r.limit)
		}
		line = append(line, part[:n]...)
		_, _ = r.r.Discard(used)
		if used > n {
			return r.trim(line), nil
		}
	}
}

// trim takes the mark away that a stream may begin with.
func (r *Reader) trim(line []byte) string {
	s := string(line)
	if !r.begun {
		r.begun = true
		s = strings.TrimPrefix(s, "\ufeff")
	}
	return s
}
