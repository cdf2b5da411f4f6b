// Package sse reads server-sent events: the text/event-stream of the HTML
// standard. It is line-safe: however the bytes are cut on their way, an event
// comes whole or not at all.
//
// A [Reader] belongs to one goroutine.
package sse

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// DefaultLimit bounds the data of one event, in bytes.
const DefaultLimit = 8 << 20

// ErrTooLong is returned for an event beyond the limit. The stream cannot be
// read any further.
var ErrTooLong = errors.New("the event is too long")

// Event is one event.
type Event struct {
	// Name is that of the "event" field, "" when there was none.
	Name string
	// ID is that of the last "id" field of the stream.
	ID string
	// Data is what the "data" fields hold, joined by line feeds.
	Data string
}

// Reader reads the events of one stream.
type Reader struct {
	r     *bufio.Reader
	limit int
	id    string
	begun bool
	// skip says that the last line ended in a carriage return, so that a line
	// feed that follows belongs to it.
	skip bool
}

// NewReader reads from r. limit bounds one event in bytes; 0: DefaultLimit.
func NewReader(r io.Reader, limit int) *Reader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Reader{r: bufio.NewReader(r), limit: limit}
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
				e.Name, size = "", 0 // an event without data is none
				continue
			}
			e.ID, e.Data = r.id, data.String()
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
		}
	}
}

// line reads a line without its end: LF, CR, or both.
func (r *Reader) line(limit int) (string, error) {
	var line []byte
	for {
		c, err := r.r.ReadByte()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return "", io.EOF
			}
			return "", fmt.Errorf("read an event: %w", err)
		}
		if r.skip {
			r.skip = false
			if c == '\n' {
				continue
			}
		}
		switch c {
		case '\r':
			r.skip = true
			return r.trim(line), nil
		case '\n':
			return r.trim(line), nil
		}
		if len(line) >= limit {
			return "", fmt.Errorf("%w: more than %d bytes", ErrTooLong, r.limit)
		}
		line = append(line, c)
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
