package supervisor

import (
	"fmt"
	"slices"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// spawn starts the next incarnation.
func (s *Supervisor) spawn(ch *child) {
	if s.fenced() {
		return
	}
	ch.epoch++
	ch.startedAt, ch.upAt, ch.doneEpoch, ch.served = s.now, 0, 0, false
	ch.next, ch.after, ch.failure, ch.revive, ch.specified = sequelOpen, 0, nil, false, false
	ch.asked = nil
	ch.astray = false
	c := &incarnation{
		sys: s.sys, parent: &s.box, slot: ch.slot, spec: ch.spec, entry: ch,
		epoch: ch.epoch, served: ch.ever, prev: ch.lastExit, depth: s.ctx.c.depth + 1,
	}
	ch.live = c
	s.live++
	s.to(ch, messages.ChildStarting, nil)
	s.deadline(ch, ch.spec.startTimeout(false))
	c.spawn()
}

// onUp hears that the child is ready.
func (s *Supervisor) onUp(ch *child) {
	if ch.up() || ch.next != sequelOpen || ch.state != messages.ChildStarting {
		return // it was too late, and ends
	}
	ch.upAt, ch.lastDone = s.now, s.now
	s.undue(ch)
	s.to(ch, messages.ChildIdle, nil)
	s.moved()
	s.decide(strategy.Up{Key: ch.spec.Key}, nil)
	s.kick(ch)
}

// stop asks the incarnation to end; then follows next. When it has been asked
// before, the first exit stays, and what follows changes.
func (s *Supervisor) stop(ch *child, exit *Exit, next sequel) {
	asked := ch.next != sequelOpen
	ch.next = next
	if !asked {
		ch.asked = exit
	}
	s.toEnding(ch, exit)
	if !asked {
		s.endings++
		s.endBy(ch)
		ch.live.stop(exit)
	}
}

// toEnding says whether another incarnation follows the one that ends.
func (s *Supervisor) toEnding(ch *child, exit *Exit) {
	if ch.next == sequelAgain {
		s.to(ch, messages.ChildRestarting, exit)
	} else {
		s.to(ch, messages.ChildStopping, exit)
	}
}

// abandon gives the incarnation up; then follows next.
func (s *Supervisor) abandon(ch *child, exit *Exit, next sequel) {
	ch.next = next
	c := ch.live
	s.endings++
	s.toEnding(ch, exit)
	if !c.abandonTree(exit) {
		return // it has just ended; its last word is in the box
	}
	ch.astray = true
	s.strayed(ch, c, exit)
	if len(s.strays) > s.o.MaxAbandoned && s.ending == nil {
		s.fail(strategy.Exitf(messages.ExitEscalated, "%d abandoned children do not return", len(s.strays)))
	}
	s.onGone(ch, exit)
}

// onFail hears that the incarnation failed and is suspended.
func (s *Supervisor) onFail(ch *child, exit *Exit) {
	if ch.next != sequelOpen || ch.group == groupStop {
		return // it is about to end anyway
	}
	s.undue(ch)
	verb, next, grouped := s.judge(ch, exit, ch.inLast(ch.live.begun()))
	switch {
	case grouped || ch.next != sequelOpen:
	case next == sequelOpen:
		s.resume(ch)
	case verb == strategy.VerbAbandon:
		s.abandon(ch, exit, next)
	default:
		s.stop(ch, exit, next)
	}
}

// judge counts a failure and asks the strategy about it. It returns what
// follows the incarnation; sequelOpen if it may go on. Grouped says that a
// group restart has taken the child over. A child that has failed in its last
// work is not restarted, because it will not be asked again.
func (s *Supervisor) judge(ch *child, exit *Exit, last bool) (verb strategy.Verb, next sequel, grouped bool) {
	s.count(ch)
	ch.failure = exit
	s.to(ch, messages.ChildSuspended, exit)
	d, grouped := s.decide(strategy.Fail{Key: ch.spec.Key, Exit: *exit}, ch)
	switch {
	case d.Verb == strategy.VerbRestart && !last:
		ch.after = d.After
		return d.Verb, sequelAgain, grouped
	case d.Verb == strategy.VerbResume:
		return d.Verb, sequelOpen, grouped
	default:
		return d.Verb, ch.afterFailure(&d), grouped
	}
}

// resume lets a suspended incarnation go on.
func (s *Supervisor) resume(ch *child) {
	ch.failure = nil
	switch {
	case !ch.up():
		s.to(ch, messages.ChildStarting, nil)
		s.deadline(ch, ch.spec.startTimeout(ch.supervises()))
	case ch.handT != nil:
		s.to(ch, messages.ChildBusy, nil)
	default:
		s.to(ch, messages.ChildIdle, nil)
		s.kick(ch)
	}
	ch.live.send(resumeMsg{})
}

// onDying hears that the incarnation ends by itself: its Terminate runs.
func (s *Supervisor) onDying(ch *child) {
	if ch.next != sequelOpen {
		return
	}
	s.to(ch, messages.ChildStopping, nil)
	s.endBy(ch)
}

// onGone hears that the incarnation is over.
func (s *Supervisor) onGone(ch *child, exit *Exit) {
	begun := ch.live.begun()
	last := ch.inLast(begun)
	ch.live = nil
	s.live--
	s.undue(ch)
	s.moved()
	s.room = true
	ch.lastExit = exit
	if exit.Kind == messages.ExitHibernated && ch.asked != nil && ch.asked.Kind != messages.ExitEvicted {
		ch.lastExit = ch.asked
	}
	s.settleHand(ch, begun, exit)
	if begun != 0 {
		ch.ever, ch.barren = true, 0
	} else if ch.queue.len() > 0 {
		ch.barren++
	}
	ch.bySelf = ch.next == sequelOpen
	if ch.bySelf {
		switch {
		case ch.group == groupStop && slices.Contains(s.batch.start, ch):
			ch.next = sequelAgain
		case ch.group == groupStop:
			ch.next = sequelForget
		case exit.Failure():
			// Its goroutine was ended under it, or it was abandoned: it cannot
			// wait for the decision, or go on.
			_, next, grouped := s.judge(ch, exit, last)
			if grouped {
				return
			}
			if ch.next = next; next == sequelOpen {
				ch.next = ch.afterFailure(&strategy.Directive{})
			}
		case !ch.up():
			ch.next = sequelRefuse
		default:
			ch.next = sequelForget
		}
	}
	s.sequel(ch, exit)
}

// settleHand decides what becomes of the work that was in hand. Work that the
// incarnation had not begun is not lost: it waits again, before the rest. When its key was
// ended, End has refused it before.
func (s *Supervisor) settleHand(ch *child, begun uint64, exit *Exit) {
	if ch.handT == nil {
		return
	}
	w := ch.work()
	s.release(ch)
	if w.seq == begun {
		s.unserve(&w, ErrLost, exit, true)
	} else {
		ch.queue.pushFront(w)
	}
}

// sequel does what follows the end of an incarnation.
func (s *Supervisor) sequel(ch *child, exit *Exit) {
	next := ch.next
	ch.next = sequelOpen
	if s.ending != nil || s.draining != nil && !ch.static {
		s.unserveQueue(ch, ErrDraining, exit)
		s.forget(ch, exit)
		return
	}
	switch next {
	case sequelAgain:
		s.again(ch)
	case sequelFail:
		s.unserveQueue(ch, ErrExhausted, ch.final)
		s.to(ch, messages.ChildFailed, ch.final)
		s.ungroup(ch)
		s.notStarted(ch, exit)
		s.decide(strategy.Gone{Key: ch.spec.Key, Exit: *ch.final, BySelf: ch.bySelf}, nil)
	case sequelRefuse:
		s.unserveQueue(ch, ErrStartFailed, exit)
		s.end(ch, exit)
	default:
		ch.queue.trim()
		if ch.static || ch.queue.len() == 0 {
			s.end(ch, exit)
			return
		}
		if ch.barren > maxBarren {
			// It comes up and ends again and again without touching the work.
			s.unserveQueue(ch, ErrStartFailed, exit)
			s.end(ch, exit)
			return
		}
		s.setState(ch, messages.ChildWaiting)
		s.kick(ch)
	}
}

// maxBarren is how many incarnations in a row may end without having begun the
// work that waits.
const maxBarren = 3

// again starts the next incarnation in the same place, when its time has come;
// in a new place, if there is one, when the last one was abandoned.
func (s *Supervisor) again(ch *child) {
	ch.totalRestarts++
	ch.anew = ch.reset
	if ch.reset {
		ch.reset, ch.restarts = false, 0
	} else {
		ch.restarts++
	}
	if ch.astray && !ch.static && ch.group == groupNone {
		// Its place is not free before the abandoned one is back, so that it
		// has to ask for another one. Waiting for the end was delay enough.
		ch.revive = true
		s.setState(ch, messages.ChildWaiting)
		s.kick(ch)
		return
	}
	s.to(ch, messages.ChildRestarting, nil)
	switch {
	case ch.group != groupNone:
		s.moved()
	case ch.after > 0:
		s.deadline(ch, ch.after)
	default:
		s.kick(ch)
	}
}

// end is the end of a child that nothing is planned for: the strategy may
// bring it back, otherwise it is forgotten.
func (s *Supervisor) end(ch *child, exit *Exit) {
	s.setState(ch, messages.ChildGone)
	d, grouped := s.decide(strategy.Gone{Key: ch.spec.Key, Exit: *exit, BySelf: ch.bySelf}, ch)
	switch {
	case grouped:
	case d.Verb == strategy.VerbRestart:
		ch.after = d.After
		s.again(ch)
	default:
		s.unserveQueue(ch, ErrEnded, exit) // no later incarnation of a static child could take it
		s.forget(ch, exit)
		s.notStarted(ch, exit)
	}
}

// notStarted makes the supervisor fail when one of its static children does not
// come up while the supervisor itself starts.
func (s *Supervisor) notStarted(ch *child, exit *Exit) {
	if s.initial && ch.static && !ch.up() {
		s.fail(fmt.Errorf("start %s: %w", ch.slot.path, *exit))
	}
}

// forget ends what is left of a child. The entry of a static child stays.
func (s *Supervisor) forget(ch *child, exit *Exit) {
	s.undue(ch)
	s.unwait(ch)
	s.ungroup(ch)
	s.to(ch, messages.ChildGone, exit)
	if !ch.static {
		s.remove(ch)
	}
	s.room = true
}
