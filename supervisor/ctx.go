package supervisor

import (
	"context"
	"sync/atomic"
	"time"
)

// Ctx is what a behaviour has of its supervisor. Context, Key, Epoch, Self,
// Now, Tell, Beat, Waited, Stalls, Hold, Note and Finish may be called from any goroutine, at
// any time; the rest from the behaviour's own goroutine only: from Init, Handle
// and Terminate.
type Ctx struct{ c *incarnation }

// Context ends when the incarnation is asked to stop, ends by itself or is
// abandoned, always before Terminate is called; its cause is the [Exit].
// Goroutines of the behaviour live under it.
func (c *Ctx) Context() context.Context {
	own := c.c
	own.mu.Lock()
	defer own.mu.Unlock()
	r := own.extra()
	if r.life == nil {
		r.life, r.cancel = context.WithCancelCause(context.Background())
		if own.phaseNow() != phaseLive {
			r.cancel(*own.exit)
		}
	}
	return r.life
}

// Key is the child's name among its siblings.
func (c *Ctx) Key() string { return c.c.slot.name }

// Epoch counts the incarnations of the child from 1.
func (c *Ctx) Epoch() uint64 { return c.c.epoch }

// Self addresses the child: this incarnation, and those after it.
func (c *Ctx) Self() Ref { return Ref{c.c.slot} }

// Now is the time. Behaviours that take it from here work under a virtual
// clock.
func (c *Ctx) Now() time.Time { return time.Now() }

// Tell sends msg to this incarnation's own mailbox. False means that the
// incarnation is over, or has been asked to stop, and that msg was not taken;
// it is never given to a later incarnation. See [Droppable] for what happens
// to a message that was taken too late.
func (c *Ctx) Tell(msg any) bool { return c.c.tell(msg) }

// After tells msg to this incarnation when d has passed, once. The timer ends
// with the incarnation. A message that was sent when stop is called still
// comes.
func (c *Ctx) After(d time.Duration, msg any) (stop func()) { return c.c.after(d, msg) }

// Watch tells this incarnation why the one that lives at who now has ended:
// build makes the message, in this incarnation's goroutine. It comes once, at
// once with [ErrNoProcess] if no actor lives there, and not at all after stop.
func (c *Ctx) Watch(who Ref, build func(Exit) any) (stop func()) {
	self := c.c
	other := who.live()
	if other == nil {
		self.tell(built{build, noProcess})
		return func() {}
	}
	var stopped atomic.Bool
	w := other.watch(func(e Exit) {
		if !stopped.Load() {
			self.tell(built{build, e})
		}
	})
	if w == nil {
		self.tell(built{build, noProcess})
		return func() {}
	}
	return func() {
		stopped.Store(true)
		other.unwatch(w)
	}
}

// Up says that the child is ready for work, with Spec.ManualUp. Calls after the
// first do nothing.
func (c *Ctx) Up() {
	if c.c.phaseNow() == phaseLive {
		c.c.reportUp()
	}
}

// Well says that the child does what it is for: its earlier failures are forgotten, so
// that strategies which count them start over.
func (c *Ctx) Well() {
	if c.c.phaseNow() == phaseLive {
		c.c.parent.post(ctl{op: ctlWell, c: c.c})
	}
}

// Beat says that the behaviour and what it owns are alive. [strategy.Heartbeat]
// stops a child that has beaten once and then stays silent.
func (c *Ctx) Beat() {
	c.c.beat.Store(int64(c.c.sys.now()))
	if w := c.c.waits.Load(); w != nil {
		w.atBeat.Store(w.total.Load())
	}
}

// Waited says that what the behaviour owns has waited for a processor for d more: it
// had no chance to give a sign of life, or to end. That time is not held against it, by
// [strategy.Heartbeat] and by Spec.StopTimeout. A negative d takes back what was said
// in doubt.
func (c *Ctx) Waited(d time.Duration) { c.c.addWaited(d) }

// Stalls tells when this process stood still. It is one for the whole system.
func (c *Ctx) Stalls() Stalls { return c.c.sys.stalls }

// Hold says whether the behaviour waits for others now, such as a consumer without
// credit: a call that does not return is then not a hang.
func (c *Ctx) Hold(on bool) { c.c.held.Store(on) }

// Note replaces the facts that snapshots show of the child. They are kept
// until the next incarnation.
func (c *Ctx) Note(f Facts) { c.c.facts.Store(&f) }

// Explain adds text to the reason of the exit, for lifecycle events, snapshots and
// whoever watches: what became of the state that ends with the incarnation. It takes the
// place of what was said before. Only Terminate may call it.
func (c *Ctx) Explain(text string) {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	c.c.extra().explained = text
}

// Over is closed when [System.Shutdown] is about to return. What a behaviour
// still tries in Terminate, after it was abandoned, has to end then.
func (c *Ctx) Over() <-chan struct{} { return c.c.sys.done }

// Finish answers w, and tells the supervisor that the child is free again. Work
// that a supervisor dispatched has to be finished in the end: until then nothing
// else is dispatched to the child. The result is that of [Work.Settle]; it is
// false, and nothing happens, when this incarnation was abandoned.
func (c *Ctx) Finish(w Work, answer any) bool {
	if c.c.phaseNow() == phaseOver {
		return false
	}
	// The supervisor hears of it first: when the answer is out, whoever waited for it
	// finds the child free.
	if w.seq != 0 {
		c.c.parent.post(ctl{op: ctlFinished, c: c.c, t: w.t})
	}
	return w.Settle(answer)
}

// Return gives back w, which was dispatched to this incarnation: nothing of it
// was done, because what would do it is gone already. The behaviour has to end
// in the same call of Handle, with an error or with ErrDone; w then goes to the
// next incarnation, before everything else that waits.
func (c *Ctx) Return(w Work) {
	if w.seq != 0 {
		c.c.giveBack(w.seq)
	}
}

// Previous returns why the incarnation before this one ended; false: this is
// the first.
func (c *Ctx) Previous() (Exit, bool) {
	if c.c.prev == nil {
		return Exit{}, false
	}
	return *c.c.prev, true
}

// Served reports whether an incarnation before this one had work to do.
func (c *Ctx) Served() bool { return c.c.served }
