package jupyter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
)

// How long a kernel that has a processor, and whose server has one, is waited for.
var (
	// startedWait is how long an interrupt waits for the code to begin.
	startedWait = interruptPatience(500 * time.Millisecond)
	// interruptWait bounds the wait for the reply to an interrupt_request.
	interruptWait = interruptPatience(2 * time.Second)
	// absorbWait is how long a kernel that answers on shell may leave the control
	// channel unanswered.
	absorbWait = interruptPatience(time.Second)
)

func interruptPatience(d time.Duration) opportunity.Budget {
	return opportunity.Budget{Opportunity: d, Ceiling: interruptCeilings * d}
}

const (
	// absorbMost bounds each step of the wait for an interrupt to have landed.
	absorbMost = 30 * time.Second
	// lateFor is how long after an interrupt an unexpected KeyboardInterrupt may still
	// be its work, doubtFor the same when the server never answered the request.
	lateFor, doubtFor = 15 * time.Second, 2 * time.Minute
)

// Interrupt asks the running execution to stop, as Ctrl-C would, also one that
// Execute gave up on. It returns when the request was delivered, or when ctx
// ends: then it may be on its way. Without a running execution it does nothing.
//
// It never hits the next execution, which does not begin before the server has
// answered and the kernel has dealt with what was sent to it; see absorb. No one
// can know that of a server that never answers, nor of one that answers and
// sends the signal later. An execution that such a signal ends says so:
// [ExecuteReply.Stray].
//
// The server sends a signal. When the server cannot be made to, the kernel is
// asked on its control channel. Afterwards a request on shell wakes the event
// loop: a kernel that waits in "await" notices the signal only then.
//
// Code may catch the interrupt, and one long call of C code ends first. Call
// Interrupt again, or Delete.
func (k *Kernel) Interrupt(ctx context.Context) error {
	k.mu.Lock()
	x := k.exec
	k.mu.Unlock()
	if x == nil {
		return k.Err()
	}
	if err := k.enter(ctx); err != nil {
		return err
	}
	// A signal that comes before the code begins is ignored by the kernel, and
	// the code would run on.
	if err := k.waitStarted(ctx, x); err != nil {
		k.leave()
		return err
	}
	delivered := make(chan error, 1)
	k.mu.Lock()
	if k.exec != x || k.lost != nil { // it has ended; another may not have begun
		k.mu.Unlock()
		k.leave()
		return k.Err()
	}
	x.interrupted, k.stirred, k.interruptedAt = true, true, time.Now()
	// It is seen through whatever becomes of ctx: a request that is on its way
	// cannot be called back, so the gate stays closed until it has landed.
	k.interrupts.Go(func() {
		defer k.leave()
		delivered <- k.interrupt()
	})
	k.mu.Unlock()
	select {
	case err := <-delivered:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitStarted returns nil when x began or ended, or did not tell for a while.
func (k *Kernel) waitStarted(ctx context.Context, x *execution) error {
	select { // as nearly always
	case <-x.started:
		return nil
	default:
	}
	bound, done := opportunity.Within(ctx, startedWait, k.client.kernels())
	defer done()
	select {
	case <-x.started:
	case <-x.ended:
	case <-bound.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// interrupt delivers one interrupt to the kernel. Its caller has the gate. It is
// bounded by [Options.RequestTimeout], by interruptWait, and by the kernel's life.
func (k *Kernel) interrupt() error {
	err := k.client.InterruptKernel(k.life, k.id)
	if errors.Is(err, ErrNotFound) {
		lost := &LostError{Reason: "its server does not know it any more", Err: err}
		k.lose(lost)
		return lost
	}
	k.mu.Lock()
	k.interruptedAt = time.Now()
	if u := (*UnreachableError)(nil); errors.As(err, &u) && u.Sent {
		k.doubt = true // it may still carry the request out at any time
	}
	k.mu.Unlock()
	if err != nil {
		if ierr := k.interruptByMessage(k.life); ierr != nil {
			return fmt.Errorf("interrupt: %w (and on the control channel: %w)", err, ierr)
		}
	}
	// The answer is not waited for.
	id := k.newID()
	k.mu.Lock()
	k.owed.ask(id)
	k.mu.Unlock()
	f, err := k.message(chanShell, typeInfoRequest, id, nil, noContent{})
	if err != nil {
		return err
	}
	return k.send(k.life, f)
}

// interruptByMessage asks the kernel itself to interrupt what it runs.
func (k *Kernel) interruptByMessage(ctx context.Context) error {
	ctx, done := opportunity.Within(ctx, interruptWait, k.client.kernels())
	defer done()
	answers := make(chan answer, 2)
	id, err := k.ask(ctx, chanControl, typeInterruptRequest, answers)
	if err != nil {
		return err
	}
	defer k.forget(id)
	return k.awaitReply(ctx, answers)
}

// absorb lets an interrupt that was sent since the last execution began land
// before the next one does. Its caller has the gate, so the server has answered.
// A server may have passed the interrupt on as a message of its own: the answer on
// the control channel comes after that was read. And a signal may wait for the
// kernel's main thread: that answers on shell, or swallows the request with the
// signal, and is idle after either. A kernel that does neither is given up only by
// who waits, or after absorbMost: it may be one that gets no processor, and would not
// run the next code any sooner.
func (k *Kernel) absorb(ctx context.Context) error {
	k.mu.Lock()
	stirred, doubt := k.stirred, k.doubt
	k.mu.Unlock()
	if !stirred {
		return nil
	}
	if doubt {
		_, _ = k.client.Get(ctx, k.id) // a server that answers again has read what came before
	}
	for _, channel := range []string{chanControl, chanShell} {
		if err := k.roundTrip(ctx, channel); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stirred = false
	return nil
}

// roundTrip waits until the kernel has dealt with a request, for a while. The
// error is the kernel's end, or that of ctx.
func (k *Kernel) roundTrip(ctx context.Context, channel string) error {
	c, cancel := context.WithTimeout(ctx, absorbMost)
	defer cancel()
	err := k.bounce(c, channel)
	switch {
	case err == nil:
		return nil
	case k.Err() != nil:
		return k.Err()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// bounce waits until the kernel has dealt with a request. Not every kernel serves
// the control channel: it is done too when it has dealt with one on shell that came
// later, and some time has passed.
func (k *Kernel) bounce(ctx context.Context, channel string) error {
	answers, others := make(chan answer, 2), make(chan answer, 2)
	id, err := k.ask(ctx, channel, typeInfoRequest, answers)
	if err != nil {
		return err
	}
	defer k.forget(id)
	if channel != chanShell {
		if id, err = k.ask(ctx, chanShell, typeInfoRequest, others); err != nil {
			return err
		}
		defer k.forget(id)
	}
	select {
	case <-answers:
		return nil
	case <-others:
	case <-k.Done():
		return k.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	enough, done := opportunity.Within(ctx, absorbWait, k.client.kernels())
	defer done()
	select {
	case <-answers:
	case <-k.Done():
		return k.Err()
	case <-enough.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// late says that x ended as if it had been interrupted, that it was not, and that an
// interrupt of an execution before it may have come late. x is over.
func (k *Kernel) late(x *execution, e *messages.ErrorDetails) bool {
	if x.interrupted || x.lost != nil || (e == nil && !x.noReply) {
		return false
	}
	if e != nil && e.Name != "KeyboardInterrupt" && e.Name != "CancelledError" {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	within := lateFor
	if k.doubt {
		within = doubtFor
	}
	return !k.interruptedAt.IsZero() && x.endedAt.Sub(k.interruptedAt) < within
}

// unbegun says that the code of x, which got no reply, has certainly not begun:
// the kernel is one that tells when it begins, and nothing can be missing.
func (k *Kernel) unbegun(x *execution) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.announces && !x.silent && !x.running && x.noReply && x.idle &&
		x.breaks == 0 && x.gaps == 0 && x.dropped == 0 && !x.rateLimited
}

// strayText is what the output says of an execution that a late interrupt may have
// ended.
const strayText = "this cell was not interrupted on purpose: an interrupt of the cell before it may have come late; what it had done by then is done"
