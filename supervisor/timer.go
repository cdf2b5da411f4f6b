package supervisor

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// A child has at most one deadline at a time: while it starts, while it ends,
// or until its delayed restart. One timer per supervisor serves them all, and
// the tick of the strategy.

// deadline sets the child's deadline to d from now.
func (s *Supervisor) deadline(ch *child, d time.Duration) {
	ch.due, ch.dueFrom = s.now+instant(d), s.now
	if ch.index < 0 {
		heap.Push(&s.due, ch)
	} else {
		heap.Fix(&s.due, int(ch.index))
	}
}

// undue takes the child's deadline away.
func (s *Supervisor) undue(ch *child) {
	if ch.index >= 0 {
		heap.Remove(&s.due, int(ch.index))
	}
	ch.due = 0
}

// arm sets the timer to what comes first. The turn's last act.
func (s *Supervisor) arm() {
	next := instant(0)
	if s.o.Strategy != nil && s.ending == nil && len(s.table) > 0 {
		if s.nextTick <= s.now && s.armed == 0 {
			s.skipTicks() // there was nothing to tick for
		}
		next = s.nextTick
	}
	if len(s.due) > 0 && (next == 0 || s.due[0].due < next) {
		next = s.due[0].due
	}
	if next == s.armed || next == 0 {
		return // a timer that fires for nothing does no harm
	}
	s.armed = next
	d := time.Duration(max(next-s.now, 0))
	if s.timer == nil {
		s.timer = time.AfterFunc(d, func() { s.box.post(ctl{op: ctlTimer}) })
		return
	}
	s.timer.Reset(d)
}

// onTimer serves what is due.
func (s *Supervisor) onTimer() {
	s.armed = 0
	if s.nextTick <= s.now {
		s.skipTicks()
		s.leaveWaitlist()
		shown, ends := s.excused, s.endings
		s.decide(s.tick(), nil)
		s.sys.postpone(max(0, s.excused-shown-(s.endings-ends)))
	}
	for len(s.due) > 0 && s.due[0].due <= s.now {
		ch := s.due[0]
		s.undue(ch)
		if !s.postpone(ch) {
			s.expired(ch)
		}
	}
}

// skipTicks moves the next tick to the first that is still to come.
func (s *Supervisor) skipTicks() {
	every := instant(s.o.Tick)
	s.nextTick += ((s.now-s.nextTick)/every + 1) * every
}

// expired is what the end of a deadline means.
func (s *Supervisor) expired(ch *child) {
	switch {
	case ch.live == nil: // its delay is over
		s.moved()
		s.kick(ch)
	case ch.state == messages.ChildStarting:
		limit := ch.spec.startTimeout(ch.supervises())
		s.onFail(ch, &Exit{Kind: messages.ExitFailed, Err: fmt.Errorf("%w (%v)", ErrStartTimeout, limit)})
	default:
		exit := strategy.Exitf(messages.ExitHung, "did not end within %v", ch.spec.stopTimeout(ch.supervises()))
		if s.hurried {
			exit.Err = errDeadline
		}
		s.abandon(ch, &exit, ch.next)
	}
}
