package jupyter

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// witnessAfter is how long a ping waits before the server is asked too.
const witnessAfter = 500 * time.Millisecond

// Running reports whether code runs: Execute may go on to hand over output when
// that has ended.
func (k *Kernel) Running() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.exec != nil
}

// awaitReply returns nil when the reply has come.
func (k *Kernel) awaitReply(ctx context.Context, answers <-chan answer) error {
	for {
		select {
		case a := <-answers:
			if !a.idle {
				return nil
			}
		case <-k.Done():
			return k.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Input answers the input request that the running execution waits for;
// [ErrNoInput] when it waits for none. Each request is answered once.
func (k *Kernel) Input(ctx context.Context, value string) error {
	k.mu.Lock()
	var request *header
	x := k.exec
	if x != nil {
		request, x.input = x.input, nil
	}
	lost := k.lost
	k.mu.Unlock()
	switch {
	case lost != nil:
		return lost
	case request == nil:
		return ErrNoInput
	}
	f, err := k.message(chanStdin, typeInputReply, k.newID(), request, inputContent{Value: value})
	if err != nil {
		return fmt.Errorf("encode the input: %w", err)
	}
	// A connection that breaks as soon as this is sent is followed by one that begins with it:
	// it has to be known by then. A kernel throws away what it did not ask for, so it may get
	// this twice.
	k.mu.Lock()
	links := x.breaks
	if !x.replied && x.input == nil {
		x.answered = &f
	}
	k.mu.Unlock()
	if err = k.send(ctx, f); err == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case x.answered != &f: // it was not waiting any more
	case x.breaks != links:
		return nil // the next connection has begun with it
	default:
		x.answered, x.input = nil, request
	}
	return err
}

// Ping returns nil when the kernel has answered on its control channel, which
// it does while it runs code, but not while one call of C code keeps the
// interpreter to itself.
//
// After half a second of silence the server is asked as well. The kernel is
// lost when the server says that it is gone; otherwise Ping goes on waiting
// until ctx ends, at most [Options.RequestTimeout], and then returns a
// [*SilentError], unless anything else of the kernel has come in the meantime.
func (k *Kernel) Ping(ctx context.Context) error { return k.ping(ctx, false) }

// Answers is Ping for a kernel that does nothing else: only an answer counts. Of
// one that was busy a moment ago, and is frozen since, messages may come late.
func (k *Kernel) Answers(ctx context.Context) error { return k.ping(ctx, true) }

func (k *Kernel) ping(ctx context.Context, strict bool) error {
	ctx, done := opportunity.Within(ctx, patience(k.client.opts.RequestTimeout), k.client.kernels())
	defer done()
	answers := make(chan answer, 2)
	k.mu.Lock()
	heard, links := k.heard, k.stats.Reconnects
	k.mu.Unlock()
	id, err := k.ask(ctx, chanControl, typeInfoRequest, answers)
	if err != nil {
		return err
	}
	defer k.forget(id)

	first, stop := context.WithTimeout(ctx, witnessAfter)
	err = k.awaitReply(first, answers)
	stop()
	if err == nil || k.Err() != nil {
		return err
	}
	if lost := k.client.gone(ctx, k.id); lost != nil {
		k.lose(lost)
		return k.Err()
	}
	model, _ := k.client.Get(ctx, k.id) // without an answer, the state is unknown
	if err := k.awaitReply(ctx, answers); err != nil {
		if k.Err() != nil {
			return k.Err()
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.heard != heard && !strict { // busy with other things, or behind a connection that breaks
			return nil
		}
		return &SilentError{State: model.ExecutionState, Away: k.away || k.stats.Reconnects != links, Err: err}
	}
	return nil
}
