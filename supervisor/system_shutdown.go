package supervisor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// lastGrace is how long the shells have, when a shutdown has run out of time,
// to give up what is left below them.
const lastGrace = 100 * time.Millisecond

var errDeadline = errors.New("did not end before the deadline of the shutdown")

// Shutdown ends the tree: no shell takes new work; running work may finish
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
	s.root.cell.stop(s.root.why())
	hurry := s.hurry.wait()
	select {
	case <-s.root.gone:
	case <-hurry:
		s.lastChance()
	}
	<-s.root.gone
	s.endOrphans()
	s.trip.stop()
	s.report = messages.ShutdownReport{
		Stopped:    int(s.stopped.Load() - stopped),
		Leftovers:  s.leftovers(),
		Unanswered: int(s.unanswered.Load()),
	}
	s.events.close()
	s.report.Duration = time.Since(began)
}

// drain waits until no shell takes work and no child has any in hand.
func (s *System) drain(d time.Duration) {
	if d <= 0 {
		return
	}
	sh := s.root.shell()
	if sh == nil {
		return
	}
	r := newRound()
	if !sh.box.post(ctl{op: ctlDrain, round: r}) {
		return
	}
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
			return
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

// lastChance lets the shells abandon what is below them, and abandons the root
// itself if it does not.
func (s *System) lastChance() {
	timer := time.NewTimer(lastGrace)
	defer timer.Stop()
	select {
	case <-s.root.gone:
	case <-timer.C:
		s.abandonTree(s.root.cell, &Exit{Kind: messages.ExitHung, Err: errDeadline})
	}
}

// abandonTree abandons c. If it is a shell, what is below has lost its owner
// and is asked to end. False: c was over already.
func (s *System) abandonTree(c *cell, exit *Exit) bool {
	if !c.abandon(exit) {
		return false
	}
	sh := c.shell.Load()
	if sh == nil {
		return true
	}
	sh.box.close()
	for _, kid := range c.slot.all() {
		if !kid.static {
			c.slot.prune(kid)
		}
		if below := kid.cell.Load(); below != nil {
			s.adopt(below)
		}
	}
	s.unanswered.Add(int64(sh.ledger.close(ErrGone)))
	return true
}

// adopt asks a cell whose shell was abandoned to end, and abandons it when it
// does not.
func (s *System) adopt(c *cell) {
	limit := c.spec.stopTimeout(c.shell.Load() != nil)
	late := func() {
		exit := strategy.Exitf(messages.ExitHung, "did not end within %v", limit)
		s.abandonTree(c, &exit)
	}
	s.mu.Lock()
	s.orphans[c] = time.AfterFunc(limit, late)
	s.mu.Unlock()
	ended := func(exit Exit) {
		s.release(c)
		if s.events.watched() { // there is no shell any more that says so
			v := exit.Value()
			s.events.emit(messages.ChildChanged{
				At: time.Now(), Path: c.slot.path, Key: c.slot.name, Kind: c.spec.Kind, Epoch: c.epoch,
				From: messages.ChildStopping, To: messages.ChildGone, Exit: &v,
			})
		}
	}
	if c.watch(ended) == nil {
		s.release(c)
	}
	c.stop(&Exit{Kind: messages.ExitKilled, Err: errors.New("its supervisor was abandoned")})
}

func (s *System) release(c *cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.orphans[c]; t != nil {
		t.Stop()
		delete(s.orphans, c)
		s.fewer()
	}
}

// endOrphans waits until what is left below abandoned shells has ended, each
// within its StopTimeout. When the shutdown has no time left, what has not
// ended after a last grace is abandoned; what was abandoned only because of
// that, and does end, is not left over.
func (s *System) endOrphans() {
	grace := time.NewTimer(lastGrace)
	grace.Stop()
	defer grace.Stop()
	hurry := s.hurry.wait()
	for {
		s.mu.Lock()
		orphans, zombies := len(s.orphans), len(s.zombies)
		s.mu.Unlock()
		if orphans == 0 && (zombies == 0 || !s.hurried()) {
			return
		}
		select {
		case <-s.less:
		case <-hurry:
			hurry = nil
			grace.Reset(lastGrace)
		case <-grace.C:
			s.abandonOrphans()
			return
		}
	}
}

func (s *System) hurried() bool {
	select {
	case <-s.hurry.wait():
		return true
	default:
		return false
	}
}

// abandonOrphans gives up what is left below abandoned shells.
func (s *System) abandonOrphans() {
	for {
		s.mu.Lock()
		left := make([]*cell, 0, len(s.orphans))
		for c := range s.orphans {
			left = append(left, c)
		}
		s.mu.Unlock()
		if len(left) == 0 {
			return
		}
		for _, c := range left {
			s.abandonTree(c, &Exit{Kind: messages.ExitHung, Err: errDeadline})
			s.release(c)
		}
	}
}

// fewer tells endOrphans that there is an orphan or a zombie less.
func (s *System) fewer() {
	select {
	case s.less <- struct{}{}:
	default:
	}
}

// addZombie notes that the goroutine of c is on its own. c.mu is held.
func (s *System) addZombie(c *cell, exit *Exit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zombies[c] = exit
}

// zombieEnded notes that it has come back after all.
func (s *System) zombieEnded(c *cell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.zombies, c)
	s.fewer()
}

// leftovers names what did not end, by path.
func (s *System) leftovers() []messages.Leftover {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]messages.Leftover, 0, len(s.zombies))
	for c, exit := range s.zombies {
		out = append(out, c.leftover(exit))
	}
	sortLeftovers(out)
	return out
}

// leftover describes a cell that was abandoned.
func (c *cell) leftover(exit *Exit) messages.Leftover {
	l := messages.Leftover{Path: cmp.Or(c.slot.path, c.slot.name), Exit: exit.Value()}
	if f := c.facts.Load(); f != nil {
		l.PID = f.PID
	}
	return l
}

func sortLeftovers(l []messages.Leftover) {
	slices.SortFunc(l, func(a, b messages.Leftover) int { return cmp.Compare(a.Path, b.Path) })
}
