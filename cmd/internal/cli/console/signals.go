package console

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// Why a command ends early.
var (
	errInterrupted = errors.New("interrupted")
	errTerminated  = errors.New("terminated")
	errReaderGone  = errors.New("nobody reads the output")
)

// Stops turns signals into two contexts. The goroutine that it starts ends with
// Close.
type Stops struct {
	// Soft ends with the first interrupt: the running call is cancelled.
	Soft context.Context
	// Hard ends with the second, or when the process shall end: everything is.
	Hard context.Context

	interrupt context.CancelCauseFunc // ends Soft
	terminate context.CancelCauseFunc // ends both
	signals   chan os.Signal
	done      chan struct{}
}

// WatchSignals makes the signals of the process those of this console: its Hard ends
// with them, and a reader of standard output who leaves counts as an interrupt. It is
// called once, before a command runs; Close ends it.
func (c *Console) WatchSignals() *Stops {
	s := &Stops{signals: make(chan os.Signal, 4), done: make(chan struct{})}
	s.Hard, s.terminate = context.WithCancelCause(context.Background())
	s.Soft, s.interrupt = context.WithCancelCause(s.Hard)
	watched := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		watched = append(watched, syscall.SIGHUP)
	}
	signal.Notify(s.signals, watched...)
	// With a handler for SIGPIPE a write to a closed pipe is an error like any
	// other; without one it ends the process, and its kernels with it.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	go func() {
		defer close(s.done)
		defer signal.Stop(pipes)
		for sig := range s.signals {
			if (sig == os.Interrupt || c.gentle.Load()) && s.Soft.Err() == nil {
				s.interrupt(errInterrupted)
				continue
			}
			s.terminate(errTerminated)
		}
	}()
	c.Hard = s.Hard
	c.Out.OnBroken = func() { s.interrupt(errReaderGone) }
	return s
}

// Close gives the signals back and joins the goroutine.
func (s *Stops) Close() {
	signal.Stop(s.signals)
	close(s.signals)
	<-s.done
	s.terminate(nil)
}
