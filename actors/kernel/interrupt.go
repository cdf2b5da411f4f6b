package kernel

import (
	"context"

	"github.com/coppice-run/coppice/messages"
)

// interrupt begins the ladder: interrupt, once more at half of the grace, and
// at its end the interpreter is given up. The first cause decides the outcome.
func (a *Actor) interrupt(m messages.Interrupt) {
	r := a.run
	if r == nil || (m.Exec != "" && m.Exec != r.exec.ID) || r.cause() != "" {
		return
	}
	if m.Active && a.postpone(r, m) {
		return
	}
	cause := m.Cause
	if cause == "" {
		cause = messages.CauseCancelled
	}
	r.interruptCause.Store(&cause)
	a.sendInterrupt(r)
	a.note()
	a.ctx.After(a.o.InterruptGrace/2, interruptDue{r})
	a.ctx.After(a.o.InterruptGrace, graceOver{r})
}

// postpone gives a run the time back that it spent waiting for its host: the
// call's deadline knows nothing of that. While it waits, nothing is due. False:
// it has had all of its active time.
func (a *Actor) postpone(r *run, m messages.Interrupt) bool {
	total, waiting := r.pauses.sum()
	owed := total - r.repaid
	if owed <= 0 && !waiting {
		return false
	}
	r.repaid = total
	if waiting {
		r.owed, r.overdue = owed, &m
		return true
	}
	a.ctx.After(owed, activeDue{r, m})
	return true
}

// resumed lets the time of a run go on whose deadline passed while it waited.
func (a *Actor) resumed(m resumed) {
	r := m.run
	total, waiting := r.pauses.sum()
	if a.run != r || r.overdue == nil || waiting {
		return
	}
	r.repaid = total
	a.ctx.After(r.owed, activeDue{r, *r.overdue})
	r.overdue = nil
}

// interruptAgain covers an interrupt that came a moment before the interpreter
// had begun the cell, and one that the code swallowed.
func (a *Actor) interruptAgain(m interruptDue) {
	if a.run == m.run && !m.run.waiting.Load() {
		a.sendInterrupt(m.run)
	}
}

func (a *Actor) sendInterrupt(r *run) {
	a.pump(func() {
		c, cancel := context.WithTimeout(r.life, a.o.InterruptGrace)
		defer cancel()
		_ = r.interp.Interrupt(c) // the grace period judges by what the cell does, not by this answer
	})
}

// graceOver gives the interpreter up, unless it is a sink that holds the run:
// then what it will not take is dropped, once, and the cell gets another grace.
func (a *Actor) graceOver(m graceOver) {
	if a.run != m.run {
		return
	}
	if m.run.waiting.Load() && m.run.output.Err() == nil {
		m.run.discard(errKilled)
		a.ctx.After(a.o.InterruptGrace, graceOver(m))
		return
	}
	m.run.kill(ErrUnresponsive)
}

// runtimeOver interrupts a cell that has run for as long as it may.
func (a *Actor) runtimeOver(m runtimeOver) {
	r := m.run
	if a.run != r || r.current.Load() != int64(m.cell) || r.cause() != "" {
		return
	}
	r.overrun.Store(true)
	a.interrupt(messages.Interrupt{Key: r.exec.Key, Exec: r.exec.ID, Cause: messages.CauseTimeout})
}
