package gateway

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// handler is the gateway's part of its supervisor. Everything in it belongs to the
// supervisor's goroutine.
type handler struct {
	supervisor.BaseHandler
	o Options

	calls map[string]*call   // by call id, until answered
	byKey map[string][]*call // by child, in order of arrival, until answered
	// starting is since when a child starts; the deadlines of its calls stand
	// still for that long.
	starting map[string]time.Time
	served   map[string]bool // children that were given work, until it is known why their kernel ends
	past     *past
	owners   owners
	due      due
	roomless []*call           // those that wait for the end of kernels, in order
	drains   []supervisor.Work // those who wait for the last call to end
	ending   []ending          // workspaces whose kernels end
}

// call is one Execute that was not answered yet.
type call struct {
	exec     messages.Execute
	work     supervisor.Work
	child    string
	arrived  time.Time
	deadline time.Time // zero: none
	again    bool      // its kernel's start was tried a second time
	// room are the kernels whose end that waits for, see makeRoom.
	room map[string]bool
	// left is what asks for an early end of the call; without a cause nothing does. It
	// matters again when a kernel ends without having begun the call.
	left messages.Interrupt
	// waits is what the call waits for, and how long it has.
	waits waits
	// rung says that the deadline has passed and was acted on.
	rung bool
}

// Handle serves what the supervisor itself does not know.
func (h *handler) Handle(s *supervisor.Supervisor, msg any) error {
	switch m := msg.(type) {
	case supervisor.Work:
		return h.work(s, m)
	case messages.Interrupt:
		h.interrupt(s, m)
	case deadlinesDue:
		h.deadlines(s)
	case goesOn:
		if c, ok := h.calls[m.exec]; ok {
			s.Send(c.child, c.left)
		}
	default:
		return supervisor.Unknown(msg)
	}
	return nil
}

// work serves what is to be answered.
func (h *handler) work(s *supervisor.Supervisor, w supervisor.Work) error {
	switch m := w.Msg.(type) {
	case messages.Execute:
		h.execute(s, w, m)
	case messages.Hibernate:
		h.hibernate(s, w, m.Key)
	case messages.SaveCheckpoint:
		h.hibernate(s, w, m.Key)
	case messages.RestoreCheckpoint:
		h.restore(s, w, m)
	case messages.Reset:
		h.startOver(m.Key.ID())
		s.Restart(m.Key.ID(), supervisor.Exit{Kind: messages.ExitReset})
		w.Settle(true)
	case messages.Fork:
		h.fork(s, w, m)
	case messages.Rewind:
		h.rewind(s, w, m)
	case messages.Close:
		h.close(s, m.Key.ID(), errClosed)
		w.Settle(true)
	case messages.EndWorkspace:
		h.endWorkspace(s, w, m)
	case messages.ReleaseOwner:
		var closed messages.Released
		for _, child := range h.owners.release(m.Owner) {
			h.close(s, child, errClosed)
			if key, ok := messages.ParseSessionKey(child); ok { // not that of a single call
				closed.Sessions = append(closed.Sessions, key)
			}
		}
		w.Settle(closed)
	case messages.Drain:
		h.drains = append(h.drains, w)
		h.closeRoom("", supervisor.ErrDraining, supervisor.Exit{Kind: messages.ExitShutdown})
		s.Drain(supervisor.Exit{Kind: messages.ExitShutdown})
		h.drained()
	case messages.Pin:
		w.Settle(s.Pin(m.Key.ID(), m.Pinned))
	default:
		return supervisor.Unknown(w.Msg)
	}
	return nil
}

// close ends a session and forgets it.
func (h *handler) close(s *supervisor.Supervisor, child string, why error) {
	h.startOver(child)
	closed := supervisor.Exit{Kind: messages.ExitShutdown, Err: why}
	h.closeRoom(child, supervisor.ErrEnded, closed)
	s.End(child, closed)
	delete(h.served, child)
	h.past.drop(child)
	h.owners.forget(child)
}

// errClosed ends the kernel of a session that is closed.
var errClosed = errors.New(messages.SessionClosed)

// drained answers those who wait for the last call to end.
func (h *handler) drained() {
	if len(h.calls) > 0 {
		return
	}
	for _, w := range h.drains {
		w.Settle(true)
	}
	h.drains = nil
}

// execute admits one call.
func (h *handler) execute(s *supervisor.Supervisor, w supervisor.Work, exec messages.Execute) {
	if exec.Reset && exec.Mode != messages.ModePerCall && h.resetting(s, exec.Key.ID()) {
		w.Settle(messages.NotStarted(exec, h.o.Name, messages.RefusedResetting, "another call resets the session, and its new kernel is not ready yet; wait for that call, or make this one without a reset"))
		return
	}
	c := &call{exec: exec, work: w, child: exec.Key.ID(), arrived: s.Now(), deadline: exec.Deadline}
	if exec.Mode == messages.ModePerCall {
		c.child = exec.Key.CallID(exec.ID)
		c.work.Last = true
	}
	if exec.Reset && !c.work.Last {
		h.startOver(c.child)
	}
	c.work.Fresh, c.work.Owner = exec.Reset, exec.Owner
	if exec.Owner != "" && !c.work.Last {
		h.owners.add(c.child, exec.Owner)
	}
	h.calls[exec.ID] = c
	h.byKey[c.child] = append(h.byKey[c.child], c)
	h.arm(s, c)
	child, ok := s.Child(c.child)
	c.waits = waits{reach: messages.ReachPlace, since: c.arrived}
	if ok {
		c.waits.reach = reachOf(child.State)
	}
	if exec.Reset && ok && child.State == messages.ChildFailed {
		s.Restart(c.child, supervisor.Exit{Kind: messages.ExitReset}) // a reset forgives
	}
	if !h.behind(c) {
		s.Submit(c.child, c.work)
	}
}

// resetting reports whether the call that is next at a child has asked for a reset, and
// no kernel has begun it yet.
func (h *handler) resetting(s *supervisor.Supervisor, child string) bool {
	calls := h.byKey[child]
	for len(calls) > 0 && calls[0].work.Settled() { // whoever has its answer may reset again
		calls = calls[1:]
	}
	if len(calls) == 0 || !calls[0].exec.Reset {
		return false
	}
	c, ok := s.Child(child)
	return ok && c.State != messages.ChildBusy
}

// Spec makes the kernel of a key that has none.
func (h *handler) Spec(_ *supervisor.Supervisor, child string, w supervisor.Work) (supervisor.Spec, error) {
	exec, ok := w.Msg.(messages.Execute)
	if !ok {
		return supervisor.Spec{}, supervisor.Unknown(w.Msg)
	}
	spec := KernelSpec{Key: exec.Key, Once: exec.Mode == messages.ModePerCall, Owner: exec.Owner}
	if exec.Mode != messages.ModePerCall {
		spec.Past, spec.Served = h.past.get(child), h.owners.of(child).served
	}
	return supervisor.Spec{
		Key: child, Kind: KindKernel, Owner: exec.Owner, ManualUp: true,
		StartTimeout: h.o.StartTimeout, StopTimeout: h.o.StopTimeout,
		New: func() supervisor.Behaviour { return h.o.NewKernel(spec) },
	}, nil
}

// interrupt ends a call early: one that waits leaves the queue and is answered
// here, one that runs is its kernel's to end.
func (h *handler) interrupt(s *supervisor.Supervisor, m messages.Interrupt) {
	c, ok := h.calls[m.Exec]
	if !ok {
		s.Send(m.Key.ID(), m) // no id: whatever runs for the key
		return
	}
	if c.left.Cause == "" {
		c.left = m
		c.left.Cause = cmp.Or(m.Cause, messages.CauseCancelled)
	}
	if !h.withdraw(s, c) {
		s.Send(c.child, m)
	}
}

// goesOn is the gateway's message to itself: a kernel has been given a call that an earlier
// host had begun, and that is to end early.
type goesOn struct{ exec string }

// withdraw answers a call that waits and is to end early. One that an earlier host has begun
// has run: how far is its kernel's to say, so that this is told when it has it.
func (h *handler) withdraw(s *supervisor.Supervisor, c *call) bool {
	if c.left.Cause == "" || c.exec.Resumed {
		return false
	}
	if h.leaveRoom(s, c) {
		return true
	}
	r := h.withdrawn(s, c) // what it waits for changes with it
	if !s.Withdraw(c.child, c.work) {
		return false
	}
	if c.work.Last { // its kernel starts for nothing
		s.End(c.child, supervisor.Exit{Kind: messages.ExitShutdown})
	}
	h.answer(c, r)
	return true
}

// Unserved answers work that will not reach a kernel, or whose kernel's actor
// ended with it in hand.
func (h *handler) Unserved(s *supervisor.Supervisor, w supervisor.Work, why *supervisor.ServiceError) {
	exec, ok := w.Msg.(messages.Execute)
	if !ok {
		w.Settle(why)
		return
	}
	c, ok := h.calls[exec.ID]
	switch {
	case !ok:
	case c.left.Cause != "" && !why.Dispatched && !c.exec.Resumed: // it was to end before its kernel did
		h.answer(c, h.withdrawn(s, c))
	case !h.makeRoom(s, c, why):
		h.answer(c, h.unserved(c, why))
	}
}

// answer settles a call and forgets it.
func (h *handler) answer(c *call, r messages.Result) {
	c.work.Settle(r)
	h.forget(c)
}

func (h *handler) forget(c *call) {
	delete(h.calls, c.exec.ID)
	defer h.drained()
	list := slices.DeleteFunc(h.byKey[c.child], func(other *call) bool { return other == c })
	if len(list) == 0 {
		delete(h.byKey, c.child)
		return
	}
	h.byKey[c.child] = list
}

// Changed follows the life of the kernels.
func (h *handler) Changed(s *supervisor.Supervisor, e messages.ChildChanged) {
	if e.Kind != KindKernel {
		return
	}
	child := e.Key
	for _, c := range h.byKey[child] {
		if len(c.room) == 0 { // else it waits for other kernels than its own
			c.waits.moved(reachOf(e.To), s.Now())
		}
	}
	h.sweep(s, child)
	if since, ok := h.starting[child]; ok && e.To != messages.ChildStarting {
		delete(h.starting, child)
		h.extend(s, child, since)
	}
	switch e.To {
	case messages.ChildStopping, messages.ChildIdle, messages.ChildBusy, messages.ChildSuspended: // its process is there
	default:
		h.tryAgain(s, child)
	}
	switch {
	case e.To == messages.ChildStarting:
		h.starting[child] = s.Now()
	case e.To == messages.ChildBusy:
		if w, ok := s.Running(child); ok {
			_, call := w.Msg.(messages.Execute)
			h.served[child] = h.served[child] || call
			h.stopResumed(s, w)
		}
	case e.Exit != nil && h.served[child]:
		// The first reason counts: what follows may be the failure of a kernel
		// that was to replace it, and comes too late for one that is made then.
		h.past.put(child, *e.Exit)
		delete(h.served, child)
	case e.To == messages.ChildGone:
		delete(h.served, child)
	}
	if e.To == messages.ChildGone {
		h.kernelGone(child)
		h.owners.ended(child, len(h.byKey[child]) > 0)
	}
}

// stopResumed has a call end early that an earlier host had begun, and that its kernel is
// just given.
func (h *handler) stopResumed(s *supervisor.Supervisor, w supervisor.Work) {
	exec, ok := w.Msg.(messages.Execute)
	if !ok || !exec.Resumed {
		return
	}
	if c, ok := h.calls[exec.ID]; ok && c.left.Cause != "" {
		s.Ctx().Tell(goesOn{exec.ID}) // after it has the call
	}
}

// Close answers those who wait for the end of the last call: all have ended.
func (h *handler) Close(_ *supervisor.Supervisor, exit supervisor.Exit) {
	h.closeRoom("", supervisor.ErrDraining, exit)
	for _, w := range h.drains {
		w.Settle(true)
	}
	for _, e := range h.ending {
		e.work.Settle(true)
	}
}

// sweep forgets the calls of a child that its kernel has answered, and ends
// those that are to end early and wait again, because a kernel that they were
// given to has ended without having begun them.
func (h *handler) sweep(s *supervisor.Supervisor, child string) {
	for i := 0; i < len(h.byKey[child]); { // both functions take the call out of it, and the next one comes to its place
		if c := h.byKey[child][i]; c.work.Settled() {
			h.forget(c)
		} else if !h.withdraw(s, c) {
			i++
		}
	}
}

// extend moves the deadlines of a child's calls by the time that they spent
// waiting for its start.
func (h *handler) extend(s *supervisor.Supervisor, child string, since time.Time) {
	for _, c := range h.byKey[child] {
		if c.deadline.IsZero() {
			continue
		}
		from := since
		if c.arrived.After(from) {
			from = c.arrived
		}
		c.deadline = c.deadline.Add(s.Now().Sub(from))
		h.arm(s, c)
	}
}
