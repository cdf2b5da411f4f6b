package console

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/coppice-run/coppice/cmd/internal/term"
)

// Output is a standard stream of ours. Any goroutine may write to it. When its
// reader goes away it swallows what follows, so that nothing complains of it.
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
}

// Write writes p and never fails. When the reader has gone away the command is
// stopped; another failure, such as a full disk, is told at its end: the code of
// a cell may have more to do than to print.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	if o.broken {
		o.mu.Unlock()
		return len(p), nil
	}
	n, err := o.W.Write(p)
	if err == nil {
		o.mu.Unlock()
		return n, nil
	}
	if !readerGone(err) {
		if o.failed == nil {
			o.failed = err
		}
		o.mu.Unlock()
		return len(p), nil
	}
	o.broken = true
	o.mu.Unlock()
	if o.OnBroken != nil {
		o.OnBroken()
	}
	return len(p), nil
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

// Print writes text; that it could not is told at the end, see Failure.
func (o *Output) Print(text string) {
	if text != "" {
		_, _ = io.WriteString(o, text)
	}
}

// repaint writes over the line of a terminal, unless a question stands there.
func (o *Output) repaint(text string) {
	o.mu.Lock()
	asking := o.asking > 0
	if !asking && !o.broken {
		_, _ = io.WriteString(o.W, text)
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
		_, _ = io.WriteString(o.W, "\r\x1b[K"+prompt)
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
