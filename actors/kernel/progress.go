package kernel

import (
	"time"

	"github.com/coppice-run/coppice/messages"
)

// waitedFor is what a call has waited for that is taken in hand now: what lies before this
// incarnation was for a place, or for the end of the kernel before, what follows it for
// its start, and what remains for earlier calls.
func (a *Actor) waitedFor(exec messages.Execute) messages.Waited {
	if exec.Made.IsZero() {
		return messages.Waited{}
	}
	return messages.Waited{
		Place:  max(0, a.init.Sub(exec.Made)),
		Kernel: max(0, a.up.Sub(later(a.init, exec.Made))),
		Turn:   max(0, time.Since(later(a.up, exec.Made))),
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// watchAfter is how long a run goes on before it is looked at how much processor it gets:
// nearly all are over by then.
const watchAfter = 250 * time.Millisecond

// watchSoon sees to it that a run is looked at, with one timer for however many runs there
// are in that time.
func (a *Actor) watchSoon() {
	if !a.watching {
		a.watching = true
		a.ctx.After(watchAfter, watchDue{})
	}
}

// watch begins to measure what the run gets that is in hand.
func (a *Actor) watch() {
	a.watching = false
	if r := a.run; r != nil && r.watched == nil {
		r.watched = a.meter(r.interp)
	}
}

// progress is how far a run came, which has ended.
func (a *Actor) progress(r *run) messages.Progress {
	reach := messages.ReachSent
	if r.unsent {
		reach = messages.ReachKernel
	}
	p := messages.Progress{Reach: reach, Begun: r.lastIndex + 1, Cells: len(r.cells), Stop: r.stop, Waited: r.waited, First: r.first}
	switch {
	case r.outcome == messages.OutcomeOK:
		p.Reach = messages.ReachEnded
	case p.Begun > 0:
		p.Reach = messages.ReachBegun
	}
	if i := r.interrupted.Load(); i != nil && i.Cause != messages.CauseLimit && r.outcome == outcomeOf(i.Cause) {
		p.Stop, p.Limit = i.Stop(r.exec.Timeout)
		if r.overrun.Load() {
			p.Stop, p.Limit = messages.StopRuntime, r.runtime
		}
	}
	if p.Stop == "" && r.lost != nil {
		p.Stop = messages.StopDied
	}
	return p
}
