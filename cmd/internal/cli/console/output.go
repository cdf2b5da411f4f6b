package console

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/cmd/internal/term"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

// Output is a standard stream of ours. Any goroutine may write to it. When its
// reader goes away it swallows what follows, so that nothing complains of it.
//
// On a terminal it is the one place that decides which bytes reach that: of what a
// command writes, whether its own words or a name, a prompt, an error or a file from
// outside, only what [sanitise.Terminal] lets pass. Elsewhere it writes bytes as they
// are.
type Output struct {
	// W is the stream itself, for what draws on a whole terminal.
	W io.Writer
	// Terminal says that W is a terminal, Width how many columns it has; 0: unknown.
	Terminal bool
	Width    int
	// OnBroken is called once, when the reader has gone away. It is set before
	// the first write.
	OnBroken func()

	mu     sync.Mutex
	broken bool  // guarded by mu
	failed error // the first failure besides a reader that left; guarded by mu
	asking int   // questions that wait for a person here; guarded by mu
	// stream is what Write has in hand, on a terminal; guarded by mu.
	stream sanitise.Terminal
}

// Write writes p and never fails. When the reader has gone away the command is
// stopped; another failure, such as a full disk, is reported at its end: the code of
// a cell may have more to do than to print.
func (o *Output) Write(p []byte) (int, error) {
	o.write(func() []byte {
		if !o.Terminal {
			return p
		}
		return o.stream.Append(nil, string(p))
	})
	return len(p), nil
}

// write writes what bytes returns, which is called with mu held.
func (o *Output) write(bytes func() []byte) {
	if o.put(bytes) && o.OnBroken != nil {
		o.OnBroken()
	}
}

// put is write, and reports whether the reader turns out to have left.
func (o *Output) put(bytes func() []byte) (left bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken {
		return false
	}
	_, err := o.W.Write(bytes())
	switch {
	case err == nil:
	case readerGone(err):
		o.broken = true
	case o.failed == nil:
		o.failed = err
	}
	return o.broken
}

// Failure returns why something could not be written, nil when all was.
func (o *Output) Failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// ReaderGone reports whether the reader has gone away, also when nothing was
// written since.
func (o *Output) ReaderGone() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, ok := o.W.(*os.File)
	return o.broken || ok && term.ReaderGone(f)
}

// Print writes a text that is whole; a failure is reported at the end, see Failure.
func (o *Output) Print(text string) {
	if text != "" {
		o.write(func() []byte { return []byte(o.shown(text)) })
	}
}

// shown is what of a text is written.
func (o *Output) shown(text string) string {
	if o.Terminal {
		return sanitise.ForTerminal(text)
	}
	return text
}

// Draw writes a part of a drawing of package render. On a terminal its carriage
// returns and backspaces work, as the code that printed them meant, and a colour may
// go on with the next part.
func (o *Output) Draw(part string) {
	if !o.Terminal {
		o.Print(part)
		return
	}
	if part != "" {
		o.write(func() []byte { return (&sanitise.Terminal{Returns: true}).Append(nil, part) })
	}
}

// Repaint writes lines over the last ones of a terminal, of which there are drawn.
func (o *Output) Repaint(lines []string, drawn int) {
	shown := make([]string, len(lines))
	for i, l := range lines {
		shown[i] = o.shown(l)
	}
	o.write(func() []byte { return []byte(render.Repaint(shown, drawn)) })
}

// The line of a terminal that is painted over: its beginning, and what erases the rest
// of what stood there.
const (
	lineStart = "\r"
	lineErase = "\x1b[K"
)

// repaint writes over the line of a terminal, unless a question stands there. "" only
// removes what stood there.
func (o *Output) repaint(text string) {
	o.mu.Lock()
	asking := o.asking > 0
	if !asking && !o.broken {
		_, _ = io.WriteString(o.W, lineStart+o.shown(text)+lineErase)
	}
	o.mu.Unlock()
}

// ask puts a question in place of what is repainted. Nothing is repainted until
// answered is called.
func (o *Output) ask(prompt string) (answered func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asking++
	if !o.broken {
		_, _ = io.WriteString(o.W, lineStart+lineErase+o.shown(prompt))
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.asking--
	}
}

// Lines writes lines, each with an end.
func (o *Output) Lines(lines ...string) {
	for _, l := range lines {
		o.Print(l + "\n")
	}
}

func readerGone(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed)
}
