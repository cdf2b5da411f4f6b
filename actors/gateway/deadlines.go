package gateway

import (
	"cmp"
	"slices"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// due is the one timer for the deadlines of all calls. Nearly every call ends long
// before its own, so a timer for each would be made and stopped for nothing: this one
// is set for the earliest, left alone when that call ends, and looks at all calls
// when it fires.
type due struct {
	at   time.Time // when it fires; zero: it is not set
	stop func()
}

// clear takes the timer back.
func (d *due) clear() {
	if d.stop != nil {
		d.stop()
	}
	*d = due{}
}

// deadlinesDue is the gateway's message to itself.
type deadlinesDue struct{}

// arm sees to it that the timer fires at the call's deadline, or earlier.
func (h *handler) arm(s *supervisor.Supervisor, c *call) {
	c.rung = false
	if c.deadline.IsZero() || (!h.due.at.IsZero() && !c.deadline.Before(h.due.at)) {
		return
	}
	h.set(s, c.deadline)
}

// set has the timer fire at a time.
func (h *handler) set(s *supervisor.Supervisor, at time.Time) {
	h.due.clear()
	h.due = due{at: at, stop: s.Ctx().After(at.Sub(s.Now()), deadlinesDue{})}
}

// deadlines ends what is overdue, in the order in which it became so, and sets the
// timer again.
func (h *handler) deadlines(s *supervisor.Supervisor) {
	h.due.clear() // another may have been set after this one had fired
	var over []*call
	var next *call
	for _, c := range h.calls {
		switch {
		case c.deadline.IsZero() || c.rung:
		case !c.deadline.After(s.Now()):
			over = append(over, c)
		case next == nil || c.deadline.Before(next.deadline):
			next = c
		}
	}
	if next != nil {
		h.arm(s, next)
	}
	slices.SortFunc(over, func(a, b *call) int {
		return cmp.Or(a.deadline.Compare(b.deadline), a.arrived.Compare(b.arrived), cmp.Compare(a.exec.ID, b.exec.ID))
	})
	again := false
	for _, c := range over {
		again = !h.deadline(s, c) || again
	}
	if soon := s.Now().Add(lookAgain); again && (h.due.at.IsZero() || soon.Before(h.due.at)) {
		h.set(s, soon)
	}
}

// lookAgain is how often it is looked whether a start that is longer than the time of
// its calls has come to wait for a process that must be started again.
const lookAgain = 250 * time.Millisecond

// deadline ends an overdue call, unless its kernel is still starting: then the
// time that the start takes is added when it is up. But a start that waits because the
// process has ended that kernels come from is no longer one: no one knows how long
// that takes, and the call has said how long it wants to wait. False: it starts, and
// may come to that.
func (h *handler) deadline(s *supervisor.Supervisor, c *call) bool {
	if _, starting := h.starting[c.child]; starting {
		if child, ok := s.Child(c.child); !ok || !child.WaitingForCredit {
			return false // extend arms it again
		}
	}
	c.rung = true
	h.interrupt(s, messages.Interrupt{Key: c.exec.Key, Exec: c.exec.ID, Cause: messages.CauseTimeout, Active: true})
	return true
}
