package supervisor

import (
	"errors"

	"github.com/coppice-run/coppice/messages"
)

var lastWork = &Exit{Kind: messages.ExitShutdown, Err: errors.New("its last work is done")}

// Submit hands w to the child of key. Each child has at most one work in hand;
// the rest waits here, in the order of Submit. A key that has no child gets
// one, if the strategy agrees. The supervisor sees to it that w is settled: by
// the child, by the Handler's Unserved, or at the latest when the supervisor
// ends.
func (s *Supervisor) Submit(key string, w Work) {
	if w.t == nil {
		w.t = &ticket{done: make(chan struct{})}
	}
	if w.Settled() {
		return
	}
	if s.fenced() {
		w.Settle(ErrGone)
		return
	}
	ch := s.table[key]
	if ch == nil {
		ch = s.unknown(key)
	}
	s.seq++
	w.seq, w.at = s.seq, &ch.slot.place
	switch {
	case !s.ledger.add(w.t):
		w.Settle(ErrGone)
	case s.draining != nil || s.ending != nil:
		s.unserve(&w, ErrDraining, nil, false)
	case ch.queue.len() >= s.o.MaxQueue && ch.queue.drop() >= s.o.MaxQueue:
		s.unserve(&w, ErrOverloaded, nil, false)
	case ch.state == messages.ChildIdle && !w.Fresh && ch.queue.len() == 0 && !ch.queued:
		s.hand(ch, w) // the common case needs no queue
	default:
		ch.queue.push(w)
		s.kick(ch)
	}
}

// unknown makes an entry for a key that has none. One that takes no work has
// a place without an entry.
//
//go:noinline
func (s *Supervisor) unknown(key string) *child {
	if s.draining != nil || s.ending != nil {
		return &child{slot: &slot{place: place{name: key}}}
	}
	return s.add(&Spec{Key: key}, false)
}

// Withdraw takes w, which waits for the child of key, out of the queue without
// disturbing the order of the rest. It is the caller's again. Work that was
// dispatched to an incarnation which ends and has not begun it waits, too. False: it
// was begun, or may still be, or is not known.
func (s *Supervisor) Withdraw(key string, w Work) bool {
	ch := s.table[key]
	switch {
	case ch == nil:
		return false
	case ch.handT != nil && ch.handT == w.t && s.missed(ch):
		s.release(ch)
	case !ch.queue.remove(w):
		return false
	}
	s.kick(ch) // a key that waits for capacity may have nothing to wait for now
	return true
}

// missed reports whether the child has work in hand that its incarnation will never
// begin: it was asked to end first.
func (s *Supervisor) missed(ch *child) bool {
	return ch.handT != nil && ch.live != nil && ch.live.phaseNow() != phaseLive && ch.live.begun() != ch.work().seq
}

// Running returns the work that the child of key has in hand.
func (s *Supervisor) Running(key string) (Work, bool) {
	ch := s.table[key]
	if ch == nil || ch.handT == nil {
		return Work{}, false
	}
	return ch.work(), true
}

// Waiting returns the work that waits for the child of key, oldest first.
func (s *Supervisor) Waiting(key string) []Work {
	ch := s.table[key]
	if ch == nil {
		return nil
	}
	return ch.queue.all()
}

// Send tells msg to the child of key: [Ref.Tell].
func (s *Supervisor) Send(key string, msg any) bool { return s.Ref(key).Tell(msg) }

// dispatch gives the next work to an idle child.
func (s *Supervisor) dispatch(ch *child) {
	if s.retire(ch) {
		return
	}
	ch.queue.trim()
	if ch.queue.len() == 0 {
		s.to(ch, messages.ChildIdle, nil)
		s.room = true // it can be evicted now
		return
	}
	if ch.queue.peek().Fresh && ch.served {
		ch.reset = true
		s.stop(ch, &Exit{Kind: messages.ExitReset}, sequelAgain)
		return
	}
	s.hand(ch, ch.queue.pop())
}

// hand puts w into the hand of an idle child.
func (s *Supervisor) hand(ch *child, w Work) {
	ch.inHand, ch.handT = w, w.t
	ch.served, ch.busySince = true, s.now
	s.sys.dispatched()
	s.to(ch, messages.ChildBusy, nil)
	// A refusal means that the incarnation has just ended: the work then is in
	// hand without having been begun, and goes to the next incarnation.
	ch.live.give(ch.inHand)
}

// onFinished hears that the work in hand was finished.
func (s *Supervisor) onFinished(ch *child, t *ticket) {
	if ch.handT != t {
		return
	}
	last := ch.work().Last
	s.release(ch)
	ch.done++
	ch.doneEpoch++
	ch.restarts, ch.barren = 0, 0
	ch.lastDone = s.now
	if ch.state != messages.ChildBusy {
		return // it failed or ends: what becomes of it is decided there
	}
	s.setState(ch, messages.ChildIdle)
	if last {
		s.stop(ch, lastWork, sequelForget)
		return
	}
	s.step(ch)
}

// release takes the work out of the child's hand.
func (s *Supervisor) release(ch *child) {
	ch.inHand, ch.handT, ch.busySince = nil, nil, 0
	s.sys.finished()
}

// unserve lets the Handler decide about work that no child will answer.
//
//go:noinline
func (s *Supervisor) unserve(w *Work, kind error, exit *Exit, dispatched bool) {
	if w.Settled() {
		return
	}
	s.sys.unserved()
	e := &ServiceError{Key: w.Key(), Kind: kind, Dispatched: dispatched}
	if exit != nil {
		e.Exit = *exit
	}
	s.notes = append(s.notes, note{w: *w, err: e})
}

// unserveQueue does so for everything that waits for a child.
func (s *Supervisor) unserveQueue(ch *child, kind error, exit *Exit) {
	for ch.queue.len() > 0 {
		w := ch.queue.pop()
		s.unserve(&w, kind, exit, false)
	}
}
