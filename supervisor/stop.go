package supervisor

import (
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// Restart ends the incarnation of key's child, and starts another one: a
// reset. It clears what was held against the child: its failures, and the
// state failed. Work in hand goes to the Handler's Unserved when the child does
// not finish it; work that waits goes to the next incarnation. Calls while a
// restart is under way, or the start after one, do nothing more: a first start may bring back
// what was there before, and begins again. False: the key is not known.
func (s *Supervisor) Restart(key string, exit Exit) bool {
	ch := s.table[key]
	if ch == nil {
		return false
	}
	if exit.Kind == "" {
		exit.Kind = messages.ExitReset
	}
	ch.failures, ch.restarts = nil, 0
	if ch.live == nil && ch.lastExit != nil && ch.lastExit.Kind == messages.ExitHibernated {
		ch.lastExit = &exit
	}
	switch {
	case s.draining != nil || s.ending != nil:
	case ch.live != nil && ch.state == messages.ChildStarting && ch.anew:
	case ch.live != nil:
		ch.reset, ch.after = true, 0
		s.stop(ch, &exit, sequelAgain)
	case ch.state == messages.ChildRestarting:
		ch.reset, ch.after = true, 0
		s.undue(ch)
		s.moved()
		s.kick(ch)
	case ch.static && ch.epoch > 0:
		ch.reset, ch.after = true, 0
		s.again(ch)
	case !ch.static && ch.state == messages.ChildFailed:
		ch.revive = true
		s.setState(ch, messages.ChildWaiting)
		s.kick(ch)
	}
	return true
}

// End ends the child of key and forgets the key. Work that waits goes to the
// Handler's Unserved with ErrEnded; work in hand, with ErrLost, when the child
// does not finish it while it ends. Work that is submitted later gets a new
// child. False: the key is not known.
func (s *Supervisor) End(key string, exit Exit) bool {
	ch := s.table[key]
	if ch == nil {
		return false
	}
	if exit.Kind == "" {
		exit.Kind = messages.ExitShutdown
	}
	s.unserveQueue(ch, ErrEnded, &exit)
	if ch.live == nil {
		s.forget(ch, &exit)
		return true
	}
	s.ungroup(ch)
	s.stop(ch, &exit, sequelForget)
	if s.missed(ch) { // the end may take its time, and has nothing to do with it
		w := ch.work()
		s.release(ch)
		s.unserve(&w, ErrEnded, &exit, false)
	}
	return true
}

// Pin exempts the child of key from what a [strategy.Pin] strategy covers, or
// ends the exemption. False: the key is not known.
func (s *Supervisor) Pin(key string, on bool) bool {
	ch := s.table[key]
	if ch == nil {
		return false
	}
	ch.pinned = on
	s.room = s.room || !on
	return true
}

// Drain takes no new work from now on: what waits and what comes goes to the
// Handler's Unserved with ErrDraining. Work in hand is finished. Every dynamic
// child is ended as soon as it has none. Static children stay until the
// supervisor itself ends.
func (s *Supervisor) Drain(exit Exit) {
	if s.draining != nil || s.ending != nil {
		return
	}
	if exit.Kind == "" {
		exit.Kind = messages.ExitShutdown
	}
	s.draining = &exit
	for ch := s.first; ch != nil; ch = ch.behind {
		s.unserveQueue(ch, ErrDraining, &exit)
		switch {
		case ch.static:
		case ch.live == nil:
			s.forget(ch, &exit)
		default:
			s.retire(ch)
		}
	}
}

// retire ends a dynamic child without work in hand, if the supervisor drains.
func (s *Supervisor) retire(ch *child) bool {
	if s.draining == nil || ch.static {
		return false
	}
	if ch.handT == nil {
		s.stop(ch, s.draining, sequelForget)
	}
	return true
}

// drainBelow drains this supervisor and those below it.
func (s *Supervisor) drainBelow(r *round) {
	s.Drain(strategy.Exitf(messages.ExitShutdown, "the system shuts down"))
	for ch := s.first; ch != nil; ch = ch.behind {
		if below := supervisorOf(ch.live); below != nil {
			r.enter()
			if !below.box.post(ctl{op: ctlDrain, round: r}) {
				r.leave()
			}
		}
	}
	s.settle()
	r.leave()
}

// Terminate ends all children: the dynamic ones at once, then the static ones
// in reverse order, each bounded by its StopTimeout. It returns when they are
// gone or abandoned, and everything that was submitted is settled.
func (s *Supervisor) Terminate(_ *Ctx, exit Exit) {
	c := s.ctx.c
	s.now = s.sys.now()
	s.ending = &exit
	s.kicks, s.waitlist, s.batch, s.room = nil, waitlist{}, nil, false
	s.box.rewire(func() {
		select {
		case s.bell <- struct{}{}:
		default:
		}
	})
	down := &Exit{Kind: messages.ExitShutdown}
	if exit.Failure() {
		down.Err = exit
	} else {
		down.Err = exit.Err
	}
	for ch := s.first; ch != nil; ch = ch.behind {
		ch.group, ch.waiting, ch.queued = groupNone, false, false
		s.unserveQueue(ch, ErrDraining, down)
		switch {
		case ch.live == nil:
			s.forget(ch, down)
		case !ch.static:
			s.stop(ch, down, sequelForget)
		}
	}
	s.settle() // the deadlines of those that end begin now, and not with the first that ends
	hurry, fenced := s.sys.hurry.wait(), c.over()
	for s.readBox(); s.live > 0 && !s.fenced(); s.readBox() {
		s.stopStatic(down)
		select {
		case <-s.bell:
		case <-hurry:
			hurry = nil
			s.now = s.sys.now()
			s.hurryUp(&Exit{Kind: messages.ExitHung, Err: errDeadline})
			s.settle()
		case <-fenced:
		}
	}
	s.close(exit)
}

// stopStatic ends the last static child, once the dynamic ones are gone.
func (s *Supervisor) stopStatic(exit *Exit) {
	for ch := s.last; ch != nil; ch = ch.before {
		if ch.live == nil {
			continue
		}
		if ch.static && ch.next != sequelForget {
			s.stop(ch, exit, sequelForget)
			s.settle()
		}
		return
	}
}

// grace is how long the supervisors below have to give up what is below them,
// when a shutdown has run out of time: half of what this one has.
func (s *Supervisor) grace() time.Duration { return lastGrace >> (s.ctx.c.depth + 1) }

// hurryUp gives up all children but supervisors, which do the same below them.
func (s *Supervisor) hurryUp(exit *Exit) {
	s.hurried = true
	for ch := s.first; ch != nil; ch = ch.behind {
		switch {
		case ch.live == nil:
		case ch.supervises():
			s.stop(ch, exit, sequelForget)
			s.deadline(ch, s.grace())
		default:
			s.abandon(ch, exit, sequelForget)
		}
	}
}

// close is the last thing a supervisor does.
func (s *Supervisor) close(exit Exit) {
	if s.timer != nil {
		s.timer.Stop()
	}
	// There are incarnations left only if the supervisor itself was abandoned.
	// They are in other hands then, and the work that they had was settled.
	for ch := s.first; ch != nil; ch = ch.behind {
		if ch.handT != nil {
			s.release(ch)
		}
	}
	if s.opened {
		s.opened = false
		s.protect(func() error { s.o.Handler.Close(s, exit); return nil })
	}
	s.settle()
	s.sys.unanswered.Add(int64(s.ledger.close(ErrGone)))
	s.box.close()
	s.closed = true
}
