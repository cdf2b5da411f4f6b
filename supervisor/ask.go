package supervisor

import "context"

// Begin asks an actor: build makes the message around the Work that the actor
// has to settle, and Begin sends it. The Reply waits for the answer; its Wait
// also returns, with [ErrGone], when the actor ends without one, or fails while
// it handles the message.
//
// Begin fails with [ErrNoProcess] when nobody lives at to.
func Begin[T any](to Ref, build func(Work) any) (Work, Reply[T], error) {
	w, r := NewWork[T](nil)
	c := to.live()
	if c == nil || !c.tell(ask{w: w, msg: build(w)}) {
		w.Settle(ErrNoProcess)
		return w, r, ErrNoProcess
	}
	r.asked = c
	return w, r, nil
}

// Ask asks an actor and waits for the answer:
//
//	n, err := supervisor.Ask[int](ctx, ref, func(w supervisor.Work) any { return count{w} })
//
// where the actor calls count.w.Settle(n). It returns [ErrNoProcess] or
// [ErrGone] at once when there is no actor or it ends, and the cause of ctx
// when that ends first: the work is then settled, so that the actor can see
// that nobody waits. Ask blocks: an actor must not ask in its Init, Handle or
// Terminate.
func Ask[T any](ctx context.Context, to Ref, build func(Work) any) (T, error) {
	w, r, err := Begin[T](to, build)
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
