package procs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/creack/pty"

	"github.com/coppice-run/coppice/internal/deadline"
)

// Write writes to the input of the process, and returns how much of it was taken. It
// waits until the process takes it, or ctx ends.
func (p *Process) Write(ctx context.Context, data []byte) (int, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.mu.Lock()
	f := p.input
	p.mu.Unlock()
	if f == nil {
		return 0, p.without(ErrNoInput)
	}
	stop := deadline.Free(ctx, f.SetWriteDeadline) // where there is none, the write ends with the process
	n, err := f.Write(data)
	stop()
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded):
		return n, context.Cause(ctx)
	default:
		return n, p.without(fmt.Errorf("%w: %w", ErrNoInput, err))
	}
}

// without is why something cannot be done: that the process has ended, if it has.
func (p *Process) without(err error) error {
	if _, over := p.Exit(); over {
		return ErrOver
	}
	return err
}

// CloseInput ends the input of the process; a terminal gets what Ctrl-D is there.
func (p *Process) CloseInput(ctx context.Context) error {
	if p.Terminal() {
		_, err := p.Write(ctx, []byte{4})
		return err
	}
	p.mu.Lock()
	f := p.input
	p.input = nil
	p.mu.Unlock()
	if f == nil {
		return p.without(ErrNoInput)
	}
	if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close the input of the process: %w", err)
	}
	return nil
}

// Resize gives its terminal another size; 0 of either: 80 by 24.
func (p *Process) Resize(s Size) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal == nil {
		return p.without(ErrNoTerminal)
	}
	return p.size(s)
}

func (p *Process) size(s Size) error {
	if s.Columns == 0 || s.Rows == 0 {
		s = Size{80, 24}
	}
	if err := pty.Setsize(p.terminal, &pty.Winsize{Cols: s.Columns, Rows: s.Rows}); err != nil {
		return fmt.Errorf("set the size of the terminal: %w", err)
	}
	return nil
}

// Signal sends a signal to the process and its group: INT, TERM, KILL, HUP, QUIT, USR1,
// USR2, STOP, CONT, WINCH, with or without SIG before it. The error matches ErrSignal or ErrOver.
func (p *Process) Signal(name string) error {
	s, ok := signals[strings.TrimPrefix(strings.ToUpper(name), "SIG")]
	if !ok {
		return fmt.Errorf("%w: %.40q", ErrSignal, name)
	}
	if p.signal != nil && s != syscall.SIGKILL {
		select {
		case <-p.p.Done():
			return ErrOver
		default:
			return p.signal(p.life, int(s))
		}
	}
	err := p.p.SignalGroup(s)
	if errors.Is(err, os.ErrProcessDone) {
		return ErrOver
	}
	return err
}
