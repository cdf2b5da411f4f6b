package sinks

import (
	"context"
	"errors"

	"github.com/coppice-run/coppice/messages"
)

// This file is the sink's side of a subscription: what an incarnation of its actor does
// while it is inside.

// drain gives waiting items to the sink, at most so many; no limit if that is
// negative. It returns whether there may be more. The error is the sink's, when
// it failed and the subscription goes on with another one.
func (sub *subscription) drain(ctx context.Context, most int) (more bool, err error) {
	if !sub.enter() {
		return false, nil
	}
	defer sub.leave()
	if it, ok := sub.inHand(); ok {
		if err := sub.resume(ctx, it); err != nil {
			return true, err
		}
	}
	for i := 0; i != most && !sub.refused; i++ {
		it, ok := sub.pop()
		if !ok {
			return false, nil
		}
		if err := sub.handle(ctx, it); err != nil {
			return true, err
		}
	}
	return true, nil
}

// resume goes on after an incarnation that ended in the sink, with it in hand.
// It is called from inside.
func (sub *subscription) resume(ctx context.Context, it item) error {
	if sub.refused {
		sub.refused = false
		return sub.handle(ctx, it)
	}
	if it.b == nil {
		sub.done(true)
	}
	if it.b == nil || !it.b.close {
		_ = sub.failed(errPanicked) // the supervisor knows already
	}
	if it.b != nil {
		return sub.handle(ctx, it)
	}
	return nil
}

// handle lets the sink do one thing. It is called from inside.
func (sub *subscription) handle(ctx context.Context, it item) error {
	switch {
	case it.b == nil:
		err := sub.sink.Consume(ctx, it.e)
		if err != nil && ctx.Err() != nil && !errors.Is(err, ErrConsumerGone) {
			sub.refused = true // the actor ends; Terminate offers it again
			return nil
		}
		sub.done(err != nil)
		if err != nil {
			return sub.failed(err)
		}
		return nil
	case it.b.close:
		sub.shut(it.b)
		return nil
	default:
		sub.flush(ctx, it.b)
		return nil
	}
}

// flush flushes the sink. The output is that of a result sink. When the sink
// fails and another one takes its place, that one is flushed.
func (sub *subscription) flush(ctx context.Context, b *barrier) {
	err := sub.sink.Flush(ctx)
	if err != nil && sub.failed(err) != nil {
		if err = sub.sink.Flush(ctx); err != nil {
			_ = sub.failed(err)
		}
	}
	var out messages.Output
	if s, ok := sub.sink.(*resultSink); ok {
		out = s.fold.Output()
	}
	if gone := sub.gone(); gone != nil && err == nil {
		err = gone
	}
	sub.done(false)
	b.resolve(out, err)
}

// shut closes the sink. A sink that panics in Close is not closed again.
func (sub *subscription) shut(b *barrier) {
	sink := sub.sink
	sub.sink = deadSink{}
	sub.mu.Lock()
	if sub.dead == nil {
		sub.dead = ErrClosed
	}
	sub.ended = true
	sub.mu.Unlock()
	err := sink.Close()
	if err != nil && sub.unclosed != nil {
		sub.unclosed(err)
	}
	sub.done(false)
	b.resolve(messages.Output{}, err)
}

// failed decides what follows a failure of the sink: another sink, and the
// error is returned for the supervisor to see; or the end of the subscription. It is
// called from inside.
func (sub *subscription) failed(err error) error {
	sub.failures++
	final := sub.again == nil || sub.failures > 1 || errors.Is(err, ErrConsumerGone)
	old := sub.sink
	sub.sink = deadSink{}
	if !errors.Is(err, errPanicked) {
		_ = old.Close() // it failed: whether it closes well says nothing new
	}
	if final {
		sub.die(err)
		return nil
	}
	sub.sink = sub.again()
	return err
}

// errPanicked stands for the failure of a sink that the supervisor caught.
var errPanicked = errors.New("the sink panicked")

// deadSink stands in for a sink that is gone.
type deadSink struct{}

func (deadSink) Consume(context.Context, messages.Event) error { return nil }
func (deadSink) Flush(context.Context) error                   { return nil }
func (deadSink) Close() error                                  { return nil }
