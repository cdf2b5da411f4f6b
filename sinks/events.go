package sinks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"github.com/coppice-run/coppice/messages"
)

// Events writes each event as one line of JSON, in the form of
// [messages.AppendEvent]: "seq", "cell" and "type" first, then the event's own
// members. It is what `coppice run --events` prints. A host that wants the
// result as the last line gives it a messages.Final.
type Events struct {
	w   io.Writer
	buf []byte
}

// NewEvents returns a sink that writes to w, one Write for each event. It does
// not close w.
func NewEvents(w io.Writer) *Events { return &Events{w: w} }

// Consume writes e.
func (s *Events) Consume(_ context.Context, e messages.Event) error {
	line, err := messages.AppendEvent(s.buf[:0], e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if cap(line) <= keepLine {
		s.buf = line
	}
	return write(s.w, line)
}

// keepLine is the largest buffer that a writing sink keeps between events.
const keepLine = 64 << 10

// Flush does nothing: nothing is held back.
func (s *Events) Flush(context.Context) error { return nil }

// Close does nothing.
func (s *Events) Close() error { return nil }

// write writes p whole. When the reading end is closed, the error is
// [ErrConsumerGone].
func write(w io.Writer, p []byte) error {
	n, err := w.Write(p)
	switch {
	case err == nil && n < len(p):
		return io.ErrShortWrite
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe), errors.Is(err, fs.ErrClosed), errors.Is(err, errNoData):
		return fmt.Errorf("%w: %w", ErrConsumerGone, err)
	default:
		return fmt.Errorf("write output: %w", err)
	}
}

var _ Sink = (*Events)(nil)
