package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-run/coppice/messages"
)

var (
	errGoexit   = errors.New("its goroutine ended under it")
	errPoisoned = errors.New("stopped from outside of its tree")
)

// tell puts msg into the mailbox, or refuses it when the incarnation's time is
// over. Any goroutine may call it.
func (c *incarnation) tell(msg any) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if phase(c.phase.Load()) != phaseLive {
		return false
	}
	c.send(msg)
	return true
}

// give puts work into the mailbox as dispatched by the supervisor.
func (c *incarnation) give(w any) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if phase(c.phase.Load()) == phaseLive {
		c.sys.engine.SendLocal(c.pid, w, c.pid)
	}
}

// stop asks the incarnation to end. Every message that was taken is in the
// mailbox before the request. The incarnation answers with ctlGone. The parent
// calls it.
func (c *incarnation) stop(exit *Exit) {
	if c.enter(phaseStopping, exit) {
		c.send(stopMsg{})
	}
}

// enter moves a live incarnation on and ends its context. False: it was not
// live.
func (c *incarnation) enter(p phase, exit *Exit) bool {
	c.mu.Lock()
	if phase(c.phase.Load()) != phaseLive {
		c.mu.Unlock()
		return false
	}
	c.phase.Store(uint32(p))
	c.exit = exit
	cancel := c.canceller()
	c.mu.Unlock()
	cancel(*exit)
	return true
}

// canceller ends the context, if there is one. The mutex is held.
func (c *incarnation) canceller() context.CancelCauseFunc {
	if c.rare == nil || c.rare.cancel == nil {
		return func(error) {}
	}
	return c.rare.cancel
}

// extra returns the rare part. The mutex is held.
func (c *incarnation) extra() *rare {
	if c.rare == nil {
		c.rare = &rare{}
	}
	return c.rare
}

// over returns a channel that is closed when the incarnation is over.
func (c *incarnation) over() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.extra()
	if r.over == nil {
		r.over = make(chan struct{})
		if c.left {
			close(r.over)
		}
	}
	return r.over
}

// endBySelf ends the incarnation without having been asked to. Own goroutine.
func (c *incarnation) endBySelf(exit *Exit) {
	if c.ended {
		return
	}
	if c.enter(phaseStopping, exit) {
		// Terminate may hang, so the parent must know that it has begun.
		c.parent.post(ctl{op: ctlDying, c: c, exit: exit})
	}
	c.end()
}

// killed is called when the goroutine is being ended below a call, by
// runtime.Goexit. It runs in that goroutine, which dies when it returns.
func (c *incarnation) killed(o op, msg any) {
	exit := &Exit{Kind: messages.ExitKilled, Err: errGoexit, Msg: msgName(o, msg)}
	if a, ok := msg.(ask); ok {
		a.w.Settle(ErrGone)
	}
	if o != opTerminate && !c.ended {
		c.endBySelf(exit)
		return
	}
	if o := c.overseer(); o != nil && !o.finished() {
		// A Handler has ended the goroutine of its supervisor while that
		// terminated. Terminate goes on where it was. If that happens again,
		// this call does not return, and the one below it does the rest.
		_ = c.guarded(opTerminate, nil)
	}
	c.handling.Store(0)
	if why := c.why(); why.Failure() {
		exit = why
	}
	c.gone(exit)
}

// end runs Terminate and reports the end. Own goroutine; once.
func (c *incarnation) end() {
	if c.ended {
		return
	}
	stash := c.stash
	c.stash = nil
	for _, m := range stash {
		c.drop(m.msg, m.dispatched) // may end the goroutine, and with it this loop; Terminate still runs
	}
	c.ended = true
	exit := c.why()
	if c.inited {
		if e := c.guarded(opTerminate, nil); e != nil && !exit.Failure() {
			exit = e
		}
	}
	c.behaviour = nil
	c.gone(c.explained(exit))
}

// explained is an exit with what Terminate has added to its reason.
func (c *incarnation) explained(exit *Exit) *Exit {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.rare == nil || c.rare.explained == "" {
		return exit
	}
	more := *exit
	if more.Err == nil {
		more.Err = errors.New(c.rare.explained)
	} else {
		more.Err = fmt.Errorf("%w; %s", more.Err, c.rare.explained)
	}
	return &more
}

// why is the reason of the end.
func (c *incarnation) why() *Exit {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.exit
}

// gone is the incarnation's last word. Own goroutine.
func (c *incarnation) gone(exit *Exit) {
	c.mu.Lock()
	abandoned := c.abandoned
	over := phase(c.phase.Load()) == phaseOver
	c.phase.Store(uint32(phaseOver))
	c.mu.Unlock()
	if over {
		if abandoned {
			c.sys.zombieEnded(c)
			c.parent.post(ctl{op: ctlBack, c: c})
		}
		return
	}
	c.leave(exit)
	c.sys.stopped.Add(1)
	c.parent.post(ctl{op: ctlGone, c: c, exit: exit})
}

// abandon gives the incarnation up: it counts as over from now on, whatever its
// goroutine does. When that comes back, it runs the Terminate that is owed and
// reports to no one. False: the incarnation is over already; its last
// word is in the parent's box. The parent calls it, or whoever abandons the
// parent.
func (c *incarnation) abandon(exit *Exit) bool {
	c.mu.Lock()
	p := phase(c.phase.Load())
	if p == phaseOver {
		c.mu.Unlock()
		return false
	}
	c.phase.Store(uint32(phaseOver))
	c.abandoned = true
	if p == phaseLive {
		c.exit = exit
	}
	cancel := c.canceller()
	c.sys.addZombie(c, exit)
	c.mu.Unlock()
	cancel(*exit)
	if p == phaseLive {
		c.send(stopMsg{})
	}
	c.leave(exit)
	return true
}

// leave takes the incarnation out of everything that points to it, and tells
// whoever watches. It runs once, by whoever made the phase phaseOver.
func (c *incarnation) leave(exit *Exit) {
	c.slot.live.CompareAndSwap(c, nil)
	c.sys.engine.Registry.Remove(c.pid)
	c.sys.incarnations.Add(-1)
	c.mu.Lock()
	var r rare
	if c.rare != nil {
		r = *c.rare
		c.rare.timers, c.rare.watchers = nil, nil
	}
	c.left = true
	c.mu.Unlock()
	for t := range r.timers {
		t.Stop()
	}
	if r.over != nil {
		close(r.over)
	}
	for _, w := range r.watchers {
		w.fn(*exit)
	}
	c.emitDropped()
}

// emitDropped tells the watchers how many messages the incarnation has dropped.
func (c *incarnation) emitDropped() {
	if !c.sys.events.watched() {
		return
	}
	if n := c.dropped.Swap(0); n > 0 {
		c.sys.events.emit(messages.Dropped{At: time.Now(), Path: c.slot.path, Epoch: c.epoch, Count: int(n), What: "messages"})
	}
}

// watch registers fn to be called with the exit, once. Nil: the incarnation is
// over.
func (c *incarnation) watch(fn func(Exit)) *watcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	if phase(c.phase.Load()) == phaseOver {
		return nil
	}
	w := &watcher{fn}
	r := c.extra()
	r.watchers = append(r.watchers, w)
	return w
}

func (c *incarnation) unwatch(w *watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.rare; r != nil {
		r.watchers = slices.DeleteFunc(r.watchers, func(o *watcher) bool { return o == w })
	}
}

// after tells msg to the incarnation when d has passed.
func (c *incarnation) after(d time.Duration, msg any) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if phase(c.phase.Load()) != phaseLive {
		return func() {}
	}
	r := c.extra()
	var t *time.Timer
	forget := func() {
		c.mu.Lock() // also waits until t is set
		defer c.mu.Unlock()
		delete(r.timers, t)
	}
	t = time.AfterFunc(d, func() {
		forget()
		c.tell(msg)
	})
	if r.timers == nil {
		r.timers = make(map[*time.Timer]struct{})
	}
	r.timers[t] = struct{}{}
	return func() {
		t.Stop()
		forget()
	}
}
