package supervisor

import "context"

// Begin asks an actor: it sends a [Work] whose Msg is msg, and which the actor
// has to settle. The Reply waits for the answer; its Wait also returns, with
// [ErrGone], when the actor ends without one, or fails while it handles the
// question.
//
// Begin fails with [ErrNoProcess] when no actor lives at to.
func Begin[T any](to Ref, msg any) (Work, Reply[T], error) {
	w, r := NewWork[T](msg)
	c := to.live()
	if c == nil || !c.tell(ask{w}) {
		w.Settle(ErrNoProcess)
		return w, r, ErrNoProcess
	}
	r.asked = c
	return w, r, nil
}

// Ask asks an actor and waits for the answer:
//
//	n, err := supervisor.Ask[int](ctx, ref, count{})
//
// where the actor gets a [Work] whose Msg is count{}, and calls its Settle(n). It
// returns [ErrNoProcess] or [ErrGone] at once when there is no actor or it ends, and
// the cause of ctx when that ends first: the work is then settled, so that the actor
// can see that its answer is not needed. Ask blocks: an actor must not ask in its
// Init, Handle or Terminate.
func Ask[T any](ctx context.Context, to Ref, msg any) (T, error) {
	w, r, err := Begin[T](to, msg)
	if err != nil {
		var zero T
		return zero, err
	}
	v, err := r.Wait(ctx)
	if err != nil {
		w.Settle(err)
	}
	return v, err
}
