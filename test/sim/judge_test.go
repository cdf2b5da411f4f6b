package sim_test

import (
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// judge checks a result against what happened. The lock is held.
func (w *world) judge(c *call, r messages.Result) {
	if c.answered {
		w.breach(1, c.place, "%s has two results", c.exec.ID)
		return
	}
	c.answered, c.at, c.result = true, w.now(), r
	w.tally[r.Outcome]++
	c.place.note(w, "result "+string(r.Outcome)+", "+string(r.State)+": "+r.Reason, c.exec.ID, 0)
	if r.Exec != c.exec.ID || r.Session != c.exec.Key.Session || len(r.Cells) != len(c.exec.Cells) {
		w.breach(1, c.place, "the result of %s is that of %s in %s, with %d cells", c.exec.ID, r.Exec, r.Session, len(r.Cells))
		return
	}
	if !c.late && w.drained >= 0 && w.drained < c.at {
		w.breach(11, c.place, "drained at %v, and %s is answered now", w.drained, c.exec.ID)
	}
	w.judgeCells(c, r)
	w.judgeOutcome(c, r)
	w.judgeState(c, r)
	w.judgeTime(c)
}

// judgeCells is for invariant 9.
func (w *world) judgeCells(c *call, r messages.Result) {
	for i, cell := range r.Cells {
		if i >= len(c.ran) {
			// An interpreter that has died between two cells is found dead by
			// the next one, which then has not run and is not pending either.
			if cell.Status != messages.CellPending && !(c.touched && i == len(c.ran)) {
				w.breach(9, c.place, "cell %d of %s is %s and was not begun", i, c.exec.ID, cell.Status)
			}
			continue
		}
		rec := c.ran[i]
		if rec.how == "" {
			w.breach(1, c.place, "%s has a result while cell %d runs", c.exec.ID, i)
		}
		if cell.Status == messages.CellPending || cell.Status == messages.CellRunning {
			w.breach(9, c.place, "cell %d of %s is %s and was begun", i, c.exec.ID, cell.Status)
		}
		if complete := cell.Status == messages.CellComplete; complete != (cell.Outcome == messages.OutcomeOK) || complete && rec.how != "complete" {
			w.breach(9, c.place, "cell %d of %s is %s, %s, and ended: %s", i, c.exec.ID, cell.Status, cell.Outcome, rec.how)
		}
		if cell.Status == messages.CellComplete && !strings.HasPrefix(cell.Output, rec.text()) {
			w.breach(8, c.place, "cell %d of %s printed %q, not %q", i, c.exec.ID, cell.Output, rec.text())
		}
	}
}

// judgeOutcome is for invariant 9.
func (w *world) judgeOutcome(c *call, r messages.Result) {
	complete, last := 0, ""
	for _, rec := range c.ran {
		last = rec.how
		if rec.how == "complete" {
			complete++
		}
	}
	wrong := false
	switch r.Outcome {
	case messages.OutcomeOK:
		wrong = complete != len(r.Cells)
	case messages.OutcomeError:
		wrong = last != "raised"
	case messages.OutcomeNotStarted:
		wrong = len(c.ran) > 0 || c.touched
	case messages.OutcomeTimeout:
		wrong = c.deadline == 0 || c.at < c.deadline
	case messages.OutcomeCancelled:
		wrong = c.cancelled == 0 && c.place.stopped < c.submitted && w.closing < 0
	case messages.OutcomeLost:
		wrong = r.State != messages.StateLost
	default:
		wrong = true
	}
	if c.late && r.Outcome != messages.OutcomeNotStarted {
		wrong = true
	}
	if wrong {
		w.breach(9, c.place, "%s says %s, %s; %d cells are complete, the last ended: %s", c.exec.ID, r.Outcome, r.State, complete, last)
	}
}

// judgeState is for invariant 8.
func (w *world) judgeState(c *call, r messages.Result) {
	if len(c.ran) == 0 {
		w.judgeUntouched(c, r)
		return
	}
	first := c.ran[0]
	i := first.interp
	dead := i.gone && i.goneAt < c.at // not when it died at the very instant of the answer
	switch r.State {
	case messages.StateKept:
		if first.counter == 1 || dead {
			w.breach(8, c.place, "%s says kept; its first cell was number %d of interpreter %d", c.exec.ID, first.counter, i.id)
		}
	case messages.StateFresh:
		if first.counter != 1 || dead {
			w.breach(8, c.place, "%s says fresh; its first cell was number %d of interpreter %d", c.exec.ID, first.counter, i.id)
		}
		if r.Reason == "" && !w.o.loose && c.after != 0 && c.exec.Mode != messages.ModePerCall {
			w.breach(8, c.place, "%s says fresh, and not why the state of interpreter %d is gone", c.exec.ID, c.after)
		}
	case messages.StateLost:
		i.announced = true
	default:
		w.breach(8, c.place, "%s says %q", c.exec.ID, r.State)
	}
	if c.exec.Mode == messages.ModePerCall && first.counter != 1 {
		w.breach(8, c.place, "%s ran in a kernel that was used", c.exec.ID)
	}
	if c.exec.Reset && first.counter != 1 {
		w.breach(8, c.place, "%s asked for a reset and ran in a kernel that was used", c.exec.ID)
	}
}

// judgeUntouched is for a call of which nothing ran: its result claims nothing of
// the state, or, from a kernel that had the call, what the session has at this
// moment.
func (w *world) judgeUntouched(c *call, r messages.Result) {
	if r.State == "" {
		return
	}
	i := c.place.live
	lives := i != nil && i.counter > 0 && (!i.closing || i.closingAt == c.at)
	// An interpreter that died under a call whose sink is slow is not known to be
	// dead before that has taken everything.
	news := c.place.news
	lived := c.place.lostAt == c.at || news != nil && (!news.answered || news.at == c.at)
	ending := c.place.stopped == c.at || w.closing >= 0 || w.draining
	switch {
	case r.State == "" && !r.Ran():
		return // a call that has not reached a kernel knows nothing of one
	case r.Outcome == messages.OutcomeNotStarted:
		w.breach(8, c.place, "%s was not started and says %s", c.exec.ID, r.State)
	case r.State == messages.StateKept && i != nil && i.counter == 0:
		// A call is on its way to the interpreter: it has to begin now.
		w.doubts = append(w.doubts, func() {
			if i.firstAt != c.at {
				w.breach(8, c.place, "%s says kept, and interpreter %d had not run anything at %v", c.exec.ID, i.id, c.at)
			}
		})
	case r.State == messages.StateKept && !lives && !lived:
		w.breach(8, c.place, "%s says kept, and there is no interpreter that has run anything", c.exec.ID)
	case r.State != messages.StateKept && lives && !ending && !i.closing && i.touchedAt < c.at:
		w.breach(8, c.place, "%s says %s, and interpreter %d lives", c.exec.ID, r.State, i.id)
	}
}

// slack is for what takes no time of its own, but is done on a tick.
const slack = time.Second

// judgeTime is for invariant 12. The deadline of a call stands still while its
// kernel starts; a call that a kernel has in its mailbox while it ends is free
// when it has ended.
func (w *world) judgeTime(c *call) {
	p := c.place
	due := p.ends - c.ends
	if i := p.live; i != nil && i.closing {
		due += c.at - i.closingAt
	}
	switch {
	case c.cancelled != 0:
		due += c.cancelled
	case c.deadline != 0:
		due += c.deadline + p.waits - c.waits
		if p.starting > 0 {
			due += c.at - p.startedAt
		}
	default:
		return
	}
	// A cell has a grace to stop, and a sink that is slow another one.
	limit := due + 2*w.o.grace + c.out.pause + slack
	if starved := w.starvedSince(p, c.submitted); starved > 0 {
		limit += 2*starved + slack // its grace goes on, and is looked at now and then
	}
	if c.at > limit {
		w.breach(12, p, "%s is answered at %v; %v was the latest", c.exec.ID, c.at, limit)
	}
}

// final is what holds when the tree has ended. The lock is held.
func (w *world) final() {
	for _, doubt := range w.doubts {
		doubt()
	}
	if w.alive+w.starting > 0 {
		w.breach(10, nil, "%d interpreters live, %d start", w.alive, w.starting)
		for _, p := range w.places {
			if p.live != nil || p.starting > 0 {
				w.breach(10, p, "left behind")
			}
		}
	}
	for _, c := range w.order {
		if !c.answered {
			w.breach(1, c.place, "%s has no result", c.exec.ID)
		}
	}
}
