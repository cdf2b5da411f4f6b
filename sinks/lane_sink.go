package sinks

import (
	"context"
	"errors"

	"github.com/coppice-run/coppice/messages"
)

// This file is the sink's side of a lane: what an incarnation of its actor does
// while it is inside.

// drain gives waiting items to the sink, at most so many; no limit if that is
// negative. It returns whether there may be more. The error is the sink's, when
// it failed and the lane goes on with another one.
func (l *lane) drain(ctx context.Context, most int) (more bool, err error) {
	if !l.enter() {
		return false, nil
	}
	defer l.leave()
	if it, ok := l.inHand(); ok {
		if err := l.resume(ctx, it); err != nil {
			return true, err
		}
	}
	for i := 0; i != most && !l.refused; i++ {
		it, ok := l.pop()
		if !ok {
			return false, nil
		}
		if err := l.handle(ctx, it); err != nil {
			return true, err
		}
	}
	return true, nil
}

// resume goes on after an incarnation that ended in the sink, with it in hand.
// It is called from inside.
func (l *lane) resume(ctx context.Context, it item) error {
	if l.refused {
		l.refused = false
		return l.handle(ctx, it)
	}
	if it.b == nil {
		l.done(true)
	}
	if it.b == nil || !it.b.close {
		_ = l.failed(errPanicked) // the supervisor knows already
	}
	if it.b != nil {
		return l.handle(ctx, it)
	}
	return nil
}

// handle lets the sink do one thing. It is called from inside.
func (l *lane) handle(ctx context.Context, it item) error {
	switch {
	case it.b == nil:
		err := l.sink.Consume(ctx, it.e)
		if err != nil && ctx.Err() != nil && !errors.Is(err, ErrConsumerGone) {
			l.refused = true // the actor ends; Terminate offers it again
			return nil
		}
		l.done(err != nil)
		if err != nil {
			return l.failed(err)
		}
		return nil
	case it.b.close:
		l.shut(it.b)
		return nil
	default:
		l.flush(ctx, it.b)
		return nil
	}
}

// flush flushes the sink. The output is that of a result sink. When the sink
// fails and another one takes its place, that one is flushed.
func (l *lane) flush(ctx context.Context, b *barrier) {
	err := l.sink.Flush(ctx)
	if err != nil && l.failed(err) != nil {
		if err = l.sink.Flush(ctx); err != nil {
			_ = l.failed(err)
		}
	}
	var out messages.Output
	if s, ok := l.sink.(*resultSink); ok {
		out = s.fold.Output()
	}
	if gone := l.gone(); gone != nil && err == nil {
		err = gone
	}
	l.done(false)
	b.resolve(out, err)
}

// shut closes the sink. A sink that panics meanwhile is not closed again.
func (l *lane) shut(b *barrier) {
	sink := l.sink
	l.sink = deadSink{}
	l.mu.Lock()
	if l.dead == nil {
		l.dead = ErrClosed
	}
	l.ended = true
	l.mu.Unlock()
	err := sink.Close()
	l.done(false)
	b.resolve(messages.Output{}, err)
}

// failed decides what follows a failure of the sink: another sink, and the
// error is returned for the supervisor to see; or the end of the lane. It is
// called from inside.
func (l *lane) failed(err error) error {
	l.failures++
	final := l.again == nil || l.failures > 1 || errors.Is(err, ErrConsumerGone)
	old := l.sink
	l.sink = deadSink{}
	if !errors.Is(err, errPanicked) {
		_ = old.Close() // it failed: whether it closes well says nothing new
	}
	if final {
		l.die(err)
		return nil
	}
	l.sink = l.again()
	return err
}

// errPanicked stands for the failure of a sink that the supervisor caught.
var errPanicked = errors.New("the sink panicked")

// deadSink stands in for a sink that is gone.
type deadSink struct{}

func (deadSink) Consume(context.Context, messages.Event) error { return nil }
func (deadSink) Flush(context.Context) error                   { return nil }
func (deadSink) Close() error                                  { return nil }
