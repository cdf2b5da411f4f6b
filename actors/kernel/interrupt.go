package kernel

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
)

// interrupt begins the ladder: interrupt, at an eighth of the grace no sink but
// that of the result is waited for any more, at a third the output of a cell that
// has ended is dropped, interrupt once more at half of it, and at its end give the
// interpreter up. The first cause decides the outcome.
func (a *Actor) interrupt(m messages.Interrupt) {
	r := a.run
	if r == nil || (m.Exec != "" && m.Exec != r.exec.ID) || r.cause() != "" {
		return
	}
	if m.Active && a.postpone(r, m) {
		return
	}
	m.Cause = cmp.Or(m.Cause, messages.CauseCancelled)
	r.interrupted.Store(&m)
	if r.watched != nil {
		r.waited.Processor = r.watched.Measure().Waited
	}
	r.grace = a.meter(r.interp)
	a.sendInterrupt(r)
	a.note()
	a.ctx.After(a.o.InterruptGrace/8, hurryDue{r})
	a.ctx.After(a.o.InterruptGrace/3, enoughDue{r})
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
	if r := m.run; a.run == r && !r.waiting.Load() && !r.backlogged() {
		a.sendInterrupt(r)
	}
}

// enough drops the output that still waits of a cell that has ended, so that
// the caller gets its answer.
func (a *Actor) enough(m enoughDue) {
	if a.run == m.run && m.run.backlogged() {
		m.run.discard(ErrEnough)
	}
}

// backlogged reports whether the cell has ended and its output waits for sinks.
func (r *run) backlogged() bool {
	b, ok := r.interp.(Backlogged)
	return ok && b.Ended()
}

// hurry makes the sinks of an interrupted run give way.
func (a *Actor) hurry(m hurryDue) {
	if h, ok := m.run.exec.Out.(messages.Hurrier); ok && a.run == m.run {
		h.Hurry()
	}
}

func (a *Actor) sendInterrupt(r *run) {
	r.asked = time.Now()
	a.pump(func() {
		c, cancel := context.WithTimeout(r.life, max(starvedMost, a.o.InterruptGrace)) // who passes it on may have no processor either
		defer cancel()
		_ = r.interp.Interrupt(c) // the grace period judges by what the cell does, not by this answer
	})
}

// askAgain is how often an interpreter that has no processor to heed an interrupt with
// is asked again.
const askAgain = 5 * time.Second

// starvedMost is how long an interpreter may have no processor after an interrupt
// before it is given up all the same.
const starvedMost = 30 * time.Second

// meter begins to measure the chance that an interpreter has. Any goroutine may call
// it.
func (a *Actor) meter(interp Interpreter) *opportunity.Meter {
	return opportunity.Begin(subject(interp), a.ctx.Stalls())
}

// subject is who is waited for, nil where that is not known.
func subject(interp Interpreter) opportunity.Subject {
	if w, ok := interp.(Witness); ok {
		return w.Subject()
	}
	return nil
}

// graceOver gives the interpreter up, unless it has not had the grace to heed the
// interrupt in: it had no processor, or this process stood still. Nor is it given up
// when it is a sink that holds the run: then what that will not take is dropped, once,
// and the cell gets another grace.
func (a *Actor) graceOver(m graceOver) {
	if a.run != m.run {
		return
	}
	patience := opportunity.Budget{Opportunity: a.o.InterruptGrace, Ceiling: starvedMost}
	if m.run.confirmed {
		patience.Opportunity /= 2
	}
	seen := m.run.grace.Measure()
	if left := m.run.grace.Left(patience, seen); left > 0 {
		if time.Since(m.run.asked) >= askAgain { // we, too, may have been late: nothing ran yet when it came
			a.interruptAgain(interruptDue(m))
		}
		a.ctx.After(left, m)
		return
	}
	if (m.run.waiting.Load() || m.run.backlogged()) && m.run.output.Err() == nil {
		m.run.discard(errKilled)
		m.run.grace = a.meter(m.run.interp)
		a.ctx.After(a.o.InterruptGrace, graceOver(m))
		return
	}
	if m.run.backlogged() { // it has ended, and is about to say so
		a.ctx.After(a.o.InterruptGrace, m)
		return
	}
	if m.run.unheard == nil && lostTime(seen) {
		m.run.unheard = unresponsive(seen)
		a.confirm(m.run)
		return
	}
	m.run.wantEnd()
	m.run.kill(cmp.Or(m.run.unheard, unresponsive(seen)))
}

// confirm asks an interpreter for a sign of life that seems not to heed an interrupt, on
// a machine that is busy: the end of its cell may lie unread, for as long as this process
// has too much else to do. What came before the answer is read then, or about to be.
func (a *Actor) confirm(r *run) {
	a.pump(func() {
		bound, done := opportunity.Within(r.life, opportunity.Budget{Opportunity: a.o.InterruptGrace, Ceiling: starvedMost}, subject(r.interp))
		_ = r.interp.Ping(bound) // whether it answers or not: it had the chance
		done()
		a.ctx.Tell(confirmed{r})
	})
}

// isConfirmed gives this process half of the grace to read what has come.
func (a *Actor) isConfirmed(m confirmed) {
	if a.run != m.run {
		return
	}
	m.run.confirmed = true
	m.run.grace = opportunity.Begin(nil, a.ctx.Stalls())
	a.ctx.After(a.o.InterruptGrace/2, graceOver(m))
}

// unresponsive says what became of the grace, where that was not the time on the clock.
func unresponsive(m opportunity.Measure) error {
	if !lostTime(m) {
		return ErrUnresponsive
	}
	return fmt.Errorf("%w, in %s", ErrUnresponsive, m)
}

// lostTime says that the machine was busy.
func lostTime(m opportunity.Measure) bool {
	const worthTelling = 100 * time.Millisecond
	return m.Wall-m.Opportunity >= worthTelling
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
