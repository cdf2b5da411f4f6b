package forkserver

import (
	"errors"
	"fmt"
	"os"
)

// Lifeline is what ends sessions with their host: a pipe whose write end is open in this
// process alone, so that only its end, however that comes, closes it. Who is handed a
// copy of the write end keeps the sessions from ending with this process. Any goroutine
// may use it.
type Lifeline struct{ r, w *os.File }

// NewLifeline returns one for [Options.Lifeline]. It is closed when no session has it
// any more.
func NewLifeline() (*Lifeline, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the lifeline: %w", err)
	}
	return &Lifeline{r: r, w: w}, nil
}

// File is the write end; it stays the lifeline's. Nothing is ever written to it.
func (l *Lifeline) File() *os.File { return l.w }

// Close ends the sessions that have the lifeline, unless somebody has a copy of File.
func (l *Lifeline) Close() error { return errors.Join(l.w.Close(), l.r.Close()) }
