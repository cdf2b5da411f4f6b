package cli

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/coppice-run/coppice/cmd/internal/term"
)

// output is a standard stream of ours. Any goroutine may write to it. When its
// reader goes away it swallows what follows, so that nothing complains of it.
type output struct {
	w        io.Writer
	terminal bool
	width    int // columns of the terminal, 0 when it is none
	// onBroken is called once, when the reader has gone away. It is set before
	// the first write.
	onBroken func()

	mu     sync.Mutex
	broken bool  // guarded by mu
	failed error // the first failure besides a reader that left; guarded by mu
	asking int   // questions that wait for a person here; guarded by mu
}

// Write writes p and never fails. When the reader has gone away the command is
// stopped; another failure, such as a full disk, is told at its end: the code of
// a cell may have more to do than to print.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	if o.broken {
		o.mu.Unlock()
		return len(p), nil
	}
	n, err := o.w.Write(p)
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
	if o.onBroken != nil {
		o.onBroken()
	}
	return len(p), nil
}

// failure returns why something could not be written, nil when all was.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// ReaderGone reports whether the reader has gone away, also when nothing was
// written since.
func (o *output) ReaderGone() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, ok := o.w.(*os.File)
	return o.broken || ok && term.ReaderGone(f)
}

// print writes text; that it could not is told at the end, see failure.
func (o *output) print(text string) {
	if text != "" {
		_, _ = io.WriteString(o, text)
	}
}

// repaint writes over the line of a terminal, unless a question stands there.
func (o *output) repaint(text string) {
	o.mu.Lock()
	asking := o.asking > 0
	if !asking && !o.broken {
		_, _ = io.WriteString(o.w, text)
	}
	o.mu.Unlock()
}

// ask puts a question in place of what is repainted. Nothing is repainted until
// answered is called.
func (o *output) ask(prompt string) (answered func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asking++
	if !o.broken {
		_, _ = io.WriteString(o.w, "\r\x1b[K"+prompt)
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.asking--
	}
}

func (o *output) lines(lines ...string) {
	for _, l := range lines {
		o.print(l + "\n")
	}
}

func readerGone(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed)
}
