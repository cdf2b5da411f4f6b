package sse

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Append appends an event to dst: a name and an id, which may be "", and its data.
// Each line of the data, after whatever end, is a field of its own. A name or id
// ends where its first line does: what follows would be a field of somebody else's
// making.
func Append(dst []byte, name, id string, data []byte) []byte {
	dst = field(dst, "event: ", name)
	dst = field(dst, "id: ", id)
	for {
		end := bytes.IndexAny(data, "\r\n")
		if end < 0 {
			break
		}
		dst = append(append(append(dst, "data: "...), data[:end]...), '\n')
		if data[end] == '\r' && end+1 < len(data) && data[end+1] == '\n' {
			end++
		}
		data = data[end+1:]
	}
	return append(append(append(dst, "data: "...), data...), "\n\n"...)
}

func field(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	if end := strings.IndexAny(value, "\r\n"); end >= 0 {
		value = value[:end]
	}
	return append(append(append(dst, name...), value...), '\n')
}

// Writer writes a stream as the answer to a request. Any goroutine may use it
// until the handler of the request returns.
type Writer struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration

	mu   sync.Mutex
	line []byte // guarded by mu
}

// NewWriter returns the writer of an answer, of which nothing has been written.
// patience bounds how long a reader may take for one write; 0: what the server
// allows.
func NewWriter(w http.ResponseWriter, patience time.Duration) *Writer {
	return &Writer{w: w, control: http.NewResponseController(w), patience: patience}
}

// Start writes the header and a first comment, so that the reader knows that it
// was heard. The error is that of the connection.
func (w *Writer) Start() error {
	header := w.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // a proxy passes events on at once
	return w.Comment("here")
}

// Event writes an event, as [Append] does, at once.
func (w *Writer) Event(name, id string, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = Append(w.line[:0], name, id, data)
	return w.write()
}

// Comment writes one line that readers pass over, such as a sign of life.
func (w *Writer) Comment(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = append(field(w.line[:0], ": ", text), '\n')
	return w.write()
}

// End leaves the connection as it was, for the next request.
func (w *Writer) End() {
	if w.patience > 0 {
		_ = w.control.SetWriteDeadline(time.Time{}) // then there is no connection
	}
}

// write sends the line. The caller holds mu.
func (w *Writer) write() error {
	if w.patience > 0 {
		if err := w.control.SetWriteDeadline(time.Now().Add(w.patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
	}
	if _, err := w.w.Write(w.line); err != nil {
		return err
	}
	return w.control.Flush()
}
