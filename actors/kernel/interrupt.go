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
