package cli

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

// stops turns signals into two contexts. The goroutine that it starts ends with
// close.
type stops struct {
	// soft ends with the first interrupt: the running call is cancelled.
	soft context.Context
	// hard ends with the second, or when the process shall end: everything is.
	hard context.Context

	interrupt context.CancelCauseFunc // ends soft
	terminate context.CancelCauseFunc // ends both
	signals   chan os.Signal
	done      chan struct{}
}

func watchSignals() *stops {
	s := &stops{signals: make(chan os.Signal, 4), done: make(chan struct{})}
	s.hard, s.terminate = context.WithCancelCause(context.Background())
	s.soft, s.interrupt = context.WithCancelCause(s.hard)
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
			if sig == os.Interrupt && s.soft.Err() == nil {
				s.interrupt(errInterrupted)
				continue
			}
			s.terminate(errTerminated)
		}
	}()
	return s
}

// close gives the signals back and joins the goroutine.
func (s *stops) close() {
	signal.Stop(s.signals)
	close(s.signals)
	<-s.done
	s.terminate(nil)
}
