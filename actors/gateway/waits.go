package gateway

import (
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// waits is what one call has waited for until since, and what it has waited for from
// then on.
type waits struct {
	messages.Waited
	reach messages.Reach
	since time.Time
}

// reachOf is what a call waits for while its kernel is in that state.
func reachOf(s messages.ChildState) messages.Reach {
	switch s {
	case messages.ChildIdle, messages.ChildBusy:
		return messages.ReachTurn
	case messages.ChildWaiting, messages.ChildGone:
		return messages.ReachPlace
	default:
		return messages.ReachKernel
	}
}

// moved adds the time that has passed to what was waited for, and notes what is waited
// for next.
func (w *waits) moved(to messages.Reach, now time.Time) {
	d := max(0, now.Sub(w.since))
	switch w.reach {
	case messages.ReachTurn:
		w.Turn += d
	case messages.ReachPlace:
		w.Place += d
	default:
		w.Kernel += d
	}
	w.reach, w.since = to, now
}

// progress is how far a call came that no kernel has.
func (c *call) progress(s *supervisor.Supervisor) messages.Progress {
	w := c.waits
	w.moved(w.reach, s.Now())
	return messages.Progress{Reach: w.reach, Cells: len(c.exec.Cells), Waited: w.Waited}
}
