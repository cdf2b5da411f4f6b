package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/term"
	"github.com/coppice-run/coppice/messages"
)

// Answers is who answers the questions of code: the lines of standard input when
// they were asked for, a person at a terminal, or no one. A file "-" is standard
// input already.
func (c *Console) Answers(asked bool, file string) coppice.InputHandler {
	f, ok := c.In.(*os.File)
	terminal := ok && term.IsTerminal(f) && c.Err.Terminal
	switch {
	case file == "-" || !asked && !terminal:
		return nil
	case asked && !terminal:
		lines := newLineReader(c.In)
		return func(ctx context.Context, _ messages.InputRequest) (string, error) { return lines.read(ctx, nil) }
	}
	p := &person{console: c, terminal: f, lines: newLineReader(c.In)}
	return p.answer
}

// person answers questions at a terminal.
type person struct {
	console  *Console
	terminal *os.File
	lines    *lineReader
}

// answer asks. What is typed is not shown when the code asks for a password.
func (p *person) answer(ctx context.Context, q messages.InputRequest) (string, error) {
	return p.lines.read(ctx, func() (func(), error) {
		// What was typed for an earlier question, after that was over, is no
		// answer to this one.
		p.lines.drop()
		show := func() {}
		if q.Password {
			var err error
			if show, err = term.HideInput(p.terminal); err != nil {
				return nil, fmt.Errorf("a password would be shown on this terminal; pipe it in with --stdin: %w", err)
			}
		}
		answered := p.console.Err.ask(q.Prompt)
		return func() {
			show()
			if q.Password || ctx.Err() != nil {
				p.console.Err.Print("\n") // the one that was typed was not shown, or there was none
			}
			answered()
		}, nil
	})
}

// lineReader reads lines, one when it is asked for and none ahead. Any goroutine
// may use it.
//
// A read cannot be cancelled. Who gives up leaves it behind for the next one to
// take over; its goroutine ends with that line, at the latest with the process.
type lineReader struct {
	in      *bufio.Reader
	turn    chan struct{} // holds a token while someone waits for a line
	pending chan lineRead // the read that is under way, nil for none; belongs to whose turn it is
}

// lineRead is what came of a read.
type lineRead struct {
	text string
	err  error
}

func newLineReader(in io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReader(in), turn: make(chan struct{}, 1)}
}

// read returns the next line without its end. begin, if not nil, is called when
// it is the caller's turn, and what it returns when the turn is over.
func (l *lineReader) read(ctx context.Context, begin func() (end func(), err error)) (string, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if begin != nil {
		end, err := begin()
		if err != nil {
			return "", err
		}
		defer end()
	}
	if l.pending == nil {
		pending := make(chan lineRead, 1)
		l.pending = pending
		go func() {
			text, err := l.in.ReadString('\n')
			pending <- lineRead{text, err}
		}()
	}
	select {
	case r := <-l.pending:
		l.pending = nil
		if r.err != nil && (r.text == "" || !errors.Is(r.err, io.EOF)) {
			return "", r.err
		}
		return strings.TrimRight(r.text, "\r\n"), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// drop forgets a line that came when no one waited for it any more. It is for
// the begin of read.
func (l *lineReader) drop() {
	select {
	case <-l.pending:
		l.pending = nil
	default:
	}
}
