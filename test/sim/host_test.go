package sim_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// This file is what a host does: it submits, cancels, asks, and shuts down.

// forEver is longer than anything takes. Who waits longer waits for nothing.
const forEver = 48 * time.Hour

func sessionKey(name string) messages.SessionKey {
	return messages.SessionKey{Session: name, Cwd: "/w"}
}

// submit makes a call without waiting for it. Calls of one key must be
// submitted by one goroutine: their order is the order of submit.
func (w *world) submit(session string, cells []messages.Cell, change func(*messages.Execute), pause time.Duration) *call {
	w.mu.Lock()
	c := &call{seq: len(w.order) + 1, submitted: w.now()}
	c.exec = messages.Execute{ID: fmt.Sprintf("c%d", c.seq), Key: sessionKey(session), Cells: cells}
	if change != nil {
		change(&c.exec)
	}
	if c.exec.Timeout > 0 {
		c.exec.Deadline = time.Now().Add(c.exec.Timeout)
		c.deadline = c.submitted + c.exec.Timeout
	}
	name := c.exec.Key.ID()
	if c.exec.Mode == messages.ModePerCall {
		name = c.exec.Key.CallID(c.exec.ID)
	}
	c.place = w.place(name)
	c.waits, c.ends = c.place.waits, c.place.ends
	c.out = &outlet{w: w, c: c, pause: pause, text: map[int]*strings.Builder{}}
	c.exec.Out = c.out
	c.late = w.draining
	w.calls[c.exec.ID] = c
	w.order = append(w.order, c)
	c.place.note(w, "submit", c.describe(), 0)
	w.mu.Unlock()

	_, reply, err := supervisor.Begin[messages.Result](w.ref(), c.exec)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refused(c, err)
		return c
	}
	w.waiters.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), forEver)
		defer cancel()
		r, err := reply.Wait(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			w.refused(c, err)
			return
		}
		w.judge(c, r)
	})
	return c
}

func (c *call) describe() string {
	s := c.exec.ID
	for _, cell := range c.exec.Cells {
		s += " {" + cell.Code + "}"
	}
	if c.exec.Timeout > 0 {
		s += " timeout " + c.exec.Timeout.String()
	}
	if c.exec.Reset {
		s += " reset"
	}
	return s
}

// refused: a host gets an error in place of a result only from a tree that has
// ended. The lock is held.
func (w *world) refused(c *call, err error) {
	c.answered, c.at = true, w.now()
	c.result.Outcome = messages.OutcomeNotStarted
	c.place.note(w, "refused: "+err.Error(), c.exec.ID, 0)
	if w.closing < 0 {
		w.breach(1, c.place, "%s got no result: %v", c.exec.ID, err)
	}
	if len(c.ran) > 0 {
		w.breach(9, c.place, "%s was refused and ran", c.exec.ID)
	}
}

// cancel is what a host does when a caller leaves.
func (w *world) cancel(c *call) {
	w.mu.Lock()
	if c.answered || c.cancelled != 0 {
		w.mu.Unlock()
		return
	}
	c.cancelled = w.now()
	c.place.note(w, "cancel", c.exec.ID, 0)
	w.mu.Unlock()
	w.ref().Tell(messages.Interrupt{Key: c.exec.Key, Exec: c.exec.ID, Cause: messages.CauseCancelled})
}

// interrupt stops whatever runs in a session.
func (w *world) interrupt(session string) {
	w.mark(session, "interrupt whatever runs")
	w.ref().Tell(messages.Interrupt{Key: sessionKey(session), Cause: messages.CauseCancelled})
}

// mark notes that somebody asks for the end of what runs in a session.
func (w *world) mark(session, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.place(sessionKey(session).ID())
	p.stopped = w.now()
	p.note(w, what, "", 0)
}

// ask asks a question without waiting; then is called with the lock held.
// Questions and calls of one goroutine reach the tree in their order.
func (w *world) ask(msg any, then func(bool)) {
	_, reply, err := supervisor.Begin[any](w.ref(), msg)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if err != nil {
		w.unanswered(msg, err)
		return
	}
	w.waiters.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), forEver)
		defer cancel()
		answer, err := reply.Wait(ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			w.unanswered(msg, err)
			return
		}
		w.answered++
		if then != nil {
			yes, _ := answer.(bool)
			then(yes)
		}
	})
}

// unanswered: only a tree that has ended may leave a question open, and says
// so. The lock is held.
func (w *world) unanswered(msg any, err error) {
	w.answered++
	if w.closing < 0 {
		w.breach(11, nil, "no answer to %T: %v", msg, err)
	}
}

func (w *world) reset(session string) {
	w.mark(session, "reset")
	w.ask(messages.Reset{Key: sessionKey(session)}, nil)
}

func (w *world) close(session string) {
	w.mark(session, "close")
	forget := func(bool) {
		p := w.place(sessionKey(session).ID())
		p.prior, p.closedAt = 0, w.now()
	}
	w.mu.Lock()
	forget(true)
	w.mu.Unlock()
	w.ask(messages.Close{Key: sessionKey(session)}, forget)
}

// release is what a host does when an owner leaves. It closes sessions that
// nobody else uses; which those are is not known here, so that all of them may
// have been closed.
func (w *world) release(owner string) {
	forget := func(bool) {
		for _, p := range w.places {
			p.prior, p.closedAt, p.stopped = 0, w.now(), w.now()
		}
	}
	w.mu.Lock()
	forget(true)
	w.mu.Unlock()
	w.ask(messages.ReleaseOwner{Owner: owner}, forget)
}

// drain asks for the end of all work.
func (w *world) drain() {
	w.mu.Lock()
	w.draining = true
	w.mu.Unlock()
	w.ask(messages.Drain{}, func(bool) { w.drained = w.now() })
}

func (w *world) pin(session string, on bool) {
	w.mu.Lock()
	p := w.place(sessionKey(session).ID())
	p.pins++
	asked, serial := w.now(), p.pins
	if on {
		p.note(w, "pin", "", 0)
	} else {
		p.note(w, "unpin", "", 0)
		p.unpinned = asked
	}
	w.mu.Unlock()
	w.ask(messages.Pin{Key: sessionKey(session), Pinned: on}, func(ok bool) {
		if on && ok && p.pins == serial && p.ended < asked { // otherwise it may be another kernel's pin
			p.pinned, p.pinnedAt, p.unpinned = true, w.now(), -1
		}
	})
}

// crash kills the interpreter of a session.
func (w *world) crash(session string) { w.hurt(session, (*interp).die) }

// freeze has it answer nothing any more, while its process lives.
func (w *world) freeze(session string) {
	w.hurt(session, func(i *interp) {
		i.silent = true
		i.at.note(w, "frozen", "", i.id)
	})
}

func (w *world) hurt(session string, how func(*interp)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := w.place(sessionKey(session).ID()).live; i != nil {
		how(i)
	}
}

// poke makes the actor of a session fail.
func (w *world) poke(session string, how poke) {
	if w.system.Ref("sim", sessionKey(session).ID()).Tell(how) {
		w.mark(session, string(how))
	}
}

// shutdown ends the tree and looks at what is left.
func (w *world) shutdown() {
	w.mu.Lock()
	w.closing = w.now()
	w.mu.Unlock()
	w.thaw()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	report := w.system.Shutdown(ctx)
	w.waiters.Wait()
	if w.o.faults.late > 0 {
		<-time.After(longestEnd) // until the last one has ended
		report.Leftovers = slices.DeleteFunc(report.Leftovers, func(l messages.Leftover) bool { return l.Exit.Kind == messages.ExitHung })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !report.Clean() {
		w.breach(11, nil, "shutdown left %+v", report.Leftovers)
	}
	if bugs := w.system.Bugs(); len(bugs) > 0 {
		w.breach(11, nil, "bugs: %v", bugs)
	}
	if w.asked != w.answered {
		w.breach(11, nil, "%d of %d questions were answered", w.answered, w.asked)
	}
	w.final()
}

// snapshot looks at the tree, and counts what takes a place.
func (w *world) snapshot() {
	node, err := w.system.Snapshot(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || len(node.Children) != 1 || node.Children[0].Detail != "" {
		w.breach(11, nil, "no snapshot: %v %+v", err, node)
		return
	}
	live := 0
	owned := map[string]int{}
	for _, n := range node.Children[0].Children {
		switch n.State {
		case messages.ChildWaiting, messages.ChildFailed, messages.ChildGone:
		default:
			live++
			owned[n.Owner]++
		}
	}
	for owner, n := range owned {
		if w.o.perOwner > 0 && owner != "" && n > w.o.perOwner {
			w.breach(6, nil, "%s has %d kernels, %d are allowed", owner, n, w.o.perOwner)
		}
	}
	if live += len(node.Children[0].Abandoned); live > w.o.capacity {
		w.breach(6, nil, "the snapshot shows %d kernels, %d are allowed", live, w.o.capacity)
	}
}
