package supervisor

import (
	"context"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// Shutdown ends the tree: no supervisor takes new work; running work may finish
// within SystemOptions.Drain; children are stopped, dynamic ones in parallel
// and static ones in reverse order, each within its StopTimeout; what does not
// end is abandoned and reported. When ctx ends, everything that is left is
// abandoned at once, and Shutdown returns at most 0.2 s later.
//
// Calls share one shutdown and get the same report; of several ctx the first
// that ends counts. Afterwards no goroutine of the system is left but those
// that the report's Leftovers name.
func (s *System) Shutdown(ctx context.Context) messages.ShutdownReport {
	if d, ok := ctx.Deadline(); ok {
		s.shorten(time.Until(d) / 2)
	}
	s.beginShutdown()
	select {
	case <-s.done:
	case <-ctx.Done():
		s.hurry.open()
		<-s.done
	}
	return s.report
}

// SkipDrain has a Shutdown that comes let no running work finish: it is stopped at once. It is
// for those whose work goes on elsewhere.
func (s *System) SkipDrain() { s.shorten(0) }

// shorten keeps the drain from using more than its part of the first caller's
// time.
func (s *System) shorten(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing.Load() && d < s.o.Drain {
		s.o.Drain = max(d, 0)
	}
}

// beginShutdown starts the one shutdown. Its goroutine ends with done.
func (s *System) beginShutdown() { s.once.Do(func() { go s.shutdown() }) }

func (s *System) shutdown() {
	defer close(s.done)
	began := time.Now()
	stopped := s.stopped.Load()
	s.mu.Lock()
	s.closing.Store(true)
	drain := s.o.Drain
	s.mu.Unlock()

	s.drain(drain)
	s.root.live.stop(s.root.why())
	hurry := s.hurry.wait()
	select {
	case <-s.root.gone:
	case <-hurry:
		s.lastChance()
	}
	<-s.root.gone
	s.endOrphans()
	s.trip.stop()
	s.unwatch()
	s.report = messages.ShutdownReport{
		Stopped:    int(s.stopped.Load() - stopped),
		Leftovers:  s.leftovers(),
		Unanswered: int(s.unanswered.Load()),
	}
	s.events.close()
	s.report.Duration = time.Since(began)
}

// drain waits until no supervisor takes work and no child has any in hand.
func (s *System) drain(d time.Duration) {
	if d <= 0 {
		return
	}
	sh := s.root.supervisor()
	if sh == nil {
		return
	}
	r := newRound()
	if !sh.box.post(ctl{op: ctlDrain, round: r}) {
		return
	}
	begun := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	hurry := s.hurry.wait()
	drained := r.done
	for {
		select {
		case <-drained:
			drained = nil
		case <-s.quiet:
		case <-timer.C:
			rest := d - s.listened(begun)
			if rest <= 0 {
				return
			}
			timer.Reset(max(rest, catchUp))
		case <-hurry:
			return
		case <-s.root.gone:
			return
		}
		if drained == nil && s.inHand.Load() == 0 {
			return
		}
	}
}

// lastChance lets the supervisors abandon what is below them, and abandons the
// root itself if it does not.
func (s *System) lastChance() {
	timer := time.NewTimer(lastGrace)
	defer timer.Stop()
	select {
	case <-s.root.gone:
	case <-timer.C:
		s.root.live.abandonTree(&Exit{Kind: messages.ExitHung, Err: errDeadline})
	}
}

// endOrphans waits until what is left below abandoned supervisors has ended,
// each within its StopTimeout. When the shutdown has no time left, what has not
// ended after a last grace is abandoned; what was abandoned only because of
// that, and does end, is not left over.
func (s *System) endOrphans() {
	grace := time.NewTimer(lastGrace)
	grace.Stop()
	defer grace.Stop()
	hurry := s.hurry.wait()
	for {
		orphans, zombies := s.survivors()
		if orphans == 0 && (zombies == 0 || !s.hurried()) {
			return
		}
		select {
		case <-s.less:
		case <-hurry:
			hurry = nil
			grace.Reset(lastGrace)
		case <-grace.C:
			s.giveUpOrphans(&Exit{Kind: messages.ExitHung, Err: errDeadline})
			return
		}
	}
}
