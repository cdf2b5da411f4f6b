package sinks

import (
	"context"
	"io"
	"strings"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/result"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

// ConsoleOptions say how a [Console] writes. The zero value of each field is its
// default.
type ConsoleOptions struct {
	// Err takes stderr and tracebacks. nil: the console's writer does.
	Err io.Writer
	// Colour lets colours of the output pass. It should be set for a terminal
	// only.
	Colour bool
	// Prefix begins every line, such as the session's name. "": nothing does.
	Prefix string
	// Brand names the MIME type of status events, which are not written. "":
	// coppice.
	Brand string
}

// Console writes what a call prints as it comes, for people. Control sequences
// that could change the terminal are removed. Displays are written as the text
// that a result would hold.
type Console struct {
	o        ConsoleOptions
	out, err *consoleWriter
}

// consoleWriter is one stream of a console.
type consoleWriter struct {
	w       io.Writer
	prefix  string
	filters [2]sanitise.Filter // of the code's stdout and stderr
	begun   bool               // the cursor is not at the start of a line
	buf     []byte
}

// NewConsole returns a sink that writes to w, one Write for each event. It does
// not close w. A write to a reader that has left ends it with [ErrConsumerGone].
func NewConsole(w io.Writer, o ConsoleOptions) *Console {
	c := &Console{o: o, out: newConsoleWriter(w, o)}
	c.err = c.out
	if o.Err != nil {
		c.err = newConsoleWriter(o.Err, o)
	}
	return c
}

func newConsoleWriter(w io.Writer, o ConsoleOptions) *consoleWriter {
	return &consoleWriter{w: w, prefix: o.Prefix, filters: [2]sanitise.Filter{{Colour: o.Colour}, {Colour: o.Colour}}}
}

// Consume writes what e shows.
func (c *Console) Consume(_ context.Context, e messages.Event) error {
	switch e := e.(type) {
	case messages.Stream:
		if e.Name == messages.StderrStream {
			return c.err.print(1, e.Text)
		}
		return c.out.print(0, e.Text)
	case messages.Display:
		return c.out.block(c.bundle(e.Data), false)
	case messages.ExecuteResult:
		return c.out.block(c.bundle(e.Data), false)
	case messages.Error:
		return c.err.block(result.Traceback(e.ErrorDetails), c.o.Colour)
	case messages.Notice:
		return c.err.block(e.Text, false)
	case messages.InputRequest:
		return c.out.print(0, e.Prompt)
	case messages.Status:
		if e.Status == messages.CellComplete || e.Status == messages.CellError {
			return c.endCell()
		}
	case messages.ClearOutput, messages.Final:
	}
	return nil
}

func (c *Console) bundle(b messages.Bundle) string { return result.BundleText(b, c.o.Brand) }

// endCell ends the cell's streams and the lines they stand in.
func (c *Console) endCell() error {
	err := c.out.end()
	if c.err != c.out {
		if e := c.err.end(); err == nil {
			err = e
		}
	}
	return err
}

// Flush does nothing: nothing is held back.
func (c *Console) Flush(context.Context) error { return nil }

// Close ends the streams: colours that were left on are reset.
func (c *Console) Close() error { return c.endCell() }

// print writes text of one of the code's streams.
func (w *consoleWriter) print(stream int, text string) error {
	w.buf = w.lines(w.buf[:0], string(w.filters[stream].Append(nil, text)))
	return w.send()
}

// block writes text that begins and ends a line.
func (w *consoleWriter) block(text string, colour bool) error {
	if text == "" {
		return nil
	}
	f := sanitise.Filter{Colour: colour}
	body := strings.TrimSuffix(string(f.Close(f.Append(nil, text))), "\n") + "\n"
	w.buf = w.buf[:0]
	if w.begun {
		w.buf = w.lines(w.buf, "\n")
	}
	w.buf = w.lines(w.buf, body)
	return w.send()
}

// end ends the streams and the line.
func (w *consoleWriter) end() error {
	w.buf = w.buf[:0]
	for i := range w.filters {
		w.buf = w.lines(w.buf, string(w.filters[i].Close(nil)))
	}
	if w.begun {
		w.buf = w.lines(w.buf, "\n")
	}
	return w.send()
}

func (w *consoleWriter) send() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := write(w.w, w.buf)
	if cap(w.buf) > keepLine {
		w.buf = nil
	}
	return err
}

// lines appends text to dst with the prefix at the start of each line, also of
// one that is written over after a carriage return. A control sequence alone
// does not begin a line.
func (w *consoleWriter) lines(dst []byte, text string) []byte {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\n':
			if !w.begun {
				dst = append(dst, w.prefix...)
			}
			w.begun = false
			dst = append(dst, c)
		case '\r':
			dst = append(dst, c)
			if w.begun {
				dst = append(dst, w.prefix...)
			}
		case '\x1b': // the filter lets whole sequences pass: ESC [ … final
			end := i + 2
			for end < len(text)-1 && (text[end] < 0x40 || text[end] > 0x7e) {
				end++
			}
			dst = append(dst, text[i:end+1]...)
			i = end
		default:
			if !w.begun {
				dst = append(dst, w.prefix...)
				w.begun = true
			}
			end := i + 1
			for end < len(text) && text[end] != '\n' && text[end] != '\r' && text[end] != '\x1b' {
				end++
			}
			dst = append(dst, text[i:end]...)
			i = end - 1
		}
	}
	return dst
}

var _ Sink = (*Console)(nil)
