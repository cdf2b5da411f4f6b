package supervisor

import (
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// tick makes a Tick. When this process has stood still since the last one, what the
// children waited is counted again from here.
func (s *Supervisor) tick() strategy.Tick {
	last := s.stalls.Last()
	if last.After(s.resumed) {
		s.resumed = last
		for ch := s.first; ch != nil; ch = ch.behind {
			if ch.live != nil {
				if w := ch.live.waits.Load(); w != nil {
					w.atResume.Store(w.total.Load())
				}
			}
		}
	}
	return strategy.Tick{Resumed: last, Stalled: stalledSince(s.stalls, last)}
}

// endBy sets the deadline of a child that has been asked to end, or is about to.
func (s *Supervisor) endBy(ch *child) {
	if w := ch.live.waits.Load(); w != nil {
		w.atStop.Store(w.total.Load())
	}
	s.deadline(ch, ch.spec.stopTimeout(ch.supervises()))
}

// postpone moves the deadline of a child, to what is left of it, when this process
// stood still meanwhile, when only now it is known to be a supervisor, or when a child
// that ends had no processor to end with. False: nothing is left.
func (s *Supervisor) postpone(ch *child) bool {
	if ch.live == nil || s.hurried {
		return false // a delay before a restart, or a shutdown that has no time left
	}
	passed := time.Duration(s.now - ch.dueFrom)
	listened := passed - s.stalls.Since(s.clock.at(ch.dueFrom))
	limit := ch.spec.startTimeout(ch.supervises())
	left := limit - listened
	if ch.state != messages.ChildStarting {
		limit = ch.spec.stopTimeout(ch.supervises())
		left = min(limit-listened+ch.live.waitedToEnd(), stopCeilings*limit-listened)
	}
	if left <= 0 {
		return false
	}
	from, rest := ch.dueFrom, max(left, catchUp)
	s.deadline(ch, rest)
	ch.dueFrom = from
	if !ch.supervises() {
		s.sys.postpone(1)
	}
	// Whoever waits for the end of this supervisor has to wait for that of the child.
	if lent := listened + rest - limit; ch.state != messages.ChildStarting && lent > s.lent {
		s.ctx.Waited(lent - s.lent)
		s.lent = lent
	}
	return true
}
