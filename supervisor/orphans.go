package supervisor

import (
	"cmp"
	"errors"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// lastGrace is how long the supervisors have, when a shutdown has run out of
// time, to give up what is left below them.
const lastGrace = 100 * time.Millisecond

var errDeadline = errors.New("did not end before the deadline of the shutdown")

// abandonTree abandons c. If it is a supervisor, what is below has lost its
// owner and is asked to end. False: c was over already.
func (c *incarnation) abandonTree(exit *Exit) bool {
	if !c.abandon(exit) {
		return false
	}
	above := c.overseer()
	if above == nil {
		return true
	}
	above.seal()
	for _, kid := range c.slot.all() {
		if !kid.static {
			c.slot.prune(kid)
		}
		if below := kid.live.Load(); below != nil {
			below.orphaned()
		}
	}
	c.sys.unanswered.Add(int64(above.disown()))
	return true
}

// orphaned asks an incarnation whose supervisor was abandoned to end, and
// abandons it when it does not.
func (c *incarnation) orphaned() {
	s := c.sys
	limit := c.spec.stopTimeout(c.overseer() != nil)
	giveUp := func(exit *Exit) { c.abandonTree(exit) }
	s.addOrphan(c, limit, func() {
		exit := strategy.Exitf(messages.ExitHung, "did not end within %v", limit)
		giveUp(&exit)
	}, giveUp)
	ended := func(exit Exit) {
		s.orphanEnded(c)
		if s.events.watched() { // there is no supervisor any more that says so
			v := exit.Value()
			s.events.emit(messages.ChildChanged{
				At: time.Now(), Path: c.slot.path, Key: c.slot.name, Kind: c.spec.Kind, Epoch: c.epoch,
				From: messages.ChildStopping, To: messages.ChildGone, Exit: &v,
			})
		}
	}
	if c.watch(ended) == nil {
		s.orphanEnded(c)
	}
	c.stop(&Exit{Kind: messages.ExitKilled, Err: errors.New("its supervisor was abandoned")})
}

// leftover describes an incarnation that was abandoned.
func (c *incarnation) leftover(exit *Exit) messages.Leftover {
	l := messages.Leftover{Path: cmp.Or(c.slot.path, c.slot.name), Exit: exit.Value()}
	if f := c.facts.Load(); f != nil {
		l.PID = f.PID
	}
	return l
}
