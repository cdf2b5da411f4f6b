package artifact

import (
	"bufio"
	"fmt"
	"os"
	"sync"
)

// bufferSize is how much is gathered before the file is written to.
const bufferSize = 32 << 10

// Writer writes one artifact. Write, Flush and Close may not be called at the
// same time; the other methods may be called by any goroutine.
type Writer struct {
	store *Store
	id    int
	file  *os.File
	buf   *bufio.Writer
	total int64 // written by the caller
	kept  int64 // of it, in the file
	err   error // the first error; nothing is written after it
	once  sync.Once
}

func newWriter(s *Store, id int, f *os.File) *Writer {
	return &Writer{store: s, id: id, file: f, buf: bufio.NewWriterSize(f, bufferSize)}
}

// ID is the artifact's number, URI its name.
func (w *Writer) ID() int { return w.id }

// URI is the artifact's name: artifact://N.
func (w *Writer) URI() string { return URI(w.id) }

// Path is the artifact's file.
func (w *Writer) Path() string { return w.file.Name() }

// Kept returns how many bytes were written, and how many of them the file has: fewer
// when the cap cut it, or after an error. It may not be called while Write is.
func (w *Writer) Kept() (kept, written int64) { return w.kept, w.total }

// Write adds p. What goes past the cap is counted and not kept; that is not an
// error. After an error, which is returned again by every later call, the file
// holds the beginning of the output.
func (w *Writer) Write(p []byte) (int, error) {
	part, err := w.room(len(p))
	if err != nil {
		return 0, err
	}
	n, err := w.buf.Write(p[:part])
	return w.wrote(n, len(p), err)
}

// WriteString is Write for a string.
func (w *Writer) WriteString(s string) (int, error) {
	part, err := w.room(len(s))
	if err != nil {
		return 0, err
	}
	n, err := w.buf.WriteString(s[:part])
	return w.wrote(n, len(s), err)
}

// room counts n bytes and returns how many of them are to be kept.
func (w *Writer) room(n int) (int, error) {
	w.total += int64(n)
	if w.err != nil {
		return 0, w.err
	}
	if limit := w.store.o.MaxBytes; limit > 0 {
		return int(max(min(int64(n), limit-w.kept), 0)), nil
	}
	return n, nil
}

// wrote counts what was kept of size bytes.
func (w *Writer) wrote(kept, size int, err error) (int, error) {
	w.kept += int64(kept)
	if err != nil {
		w.fail(err)
		return kept, w.err
	}
	return size, nil
}

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = fmt.Errorf("write artifact %d: %w", w.id, err)
	}
}

// Flush brings what was written into the file, where readers see it.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	if err := w.buf.Flush(); err != nil {
		w.fail(err)
	}
	return w.err
}

// Close ends the artifact. If the cap cut it, a last line is added that says
// so. Calls after the first do nothing.
func (w *Writer) Close() error {
	w.once.Do(func() {
		if w.err == nil && w.kept < w.total {
			_, err := fmt.Fprintf(w.buf, "\n[artifact cut: the first %d of %d bytes were kept]\n", w.kept, w.total)
			if err != nil {
				w.fail(err)
			}
		}
		_ = w.Flush() // remembered
		if err := w.file.Close(); err != nil {
			w.fail(err)
		}
		w.store.closed(w.id)
	})
	return w.err
}
