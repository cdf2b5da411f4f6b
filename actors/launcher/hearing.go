package launcher

import (
	"context"
	"errors"

	"github.com/coppice-run/coppice/messages"
)

// errOver is what work gets that tells more when the caller hears no more.
var errOver = errors.New("the run is over")

// hearing runs work in a goroutine of its own and calls hear, with what work tells, in
// that of the caller, so that a panic or a runtime.Goexit of hear is the caller's own
// and ends no goroutine of ours. Work waits while hear does; an error of hear ends the
// context of work, and so does a panic. hearing returns, or unwinds, when work has
// returned.
func hearing[E, R any](ctx context.Context, hear func(E) error, work func(ctx context.Context, tell func(E) error) R) R {
	ctx, cancel := context.WithCancel(ctx)
	events, heard := make(chan E), make(chan error)
	over, done := make(chan struct{}), make(chan R, 1)
	tell := func(e E) error {
		select {
		case events <- e:
		case <-over:
			return errOver
		}
		select {
		case err := <-heard:
			return err
		case <-over:
			return errOver
		}
	}
	joined := make(chan struct{})
	go func() { // joined below
		defer close(joined)
		done <- work(ctx, tell)
	}()
	defer func() {
		close(over)
		cancel()
		<-joined
	}()
	for {
		select {
		case r := <-done:
			return r
		case e := <-events:
			err := hear(e)
			heard <- err // before the end of the context: work learns first why
			if err != nil {
				cancel()
				hear = func(E) error { return errOver }
			}
		}
	}
}

// outlet is tell of a stream as the run takes it.
type outlet func(messages.ToolEvent) error

// Emit passes an event on.
func (o outlet) Emit(e messages.ToolEvent) error { return o(e) }
