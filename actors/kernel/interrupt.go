package kernel

import (
	"cmp"
	"context"
	"errors"
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
	if r.record != nil {
		r.record.Stopped(m.Cause)
	}
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

// limitMet says that what runs has met a limit; run nil: whatever runs.
type limitMet struct {
	run *run
	met messages.ResourceLimitExceeded
}

// guarded tells the guard of an interpreter.
func (a *Actor) guarded(i Interpreter) {
	if a.o.Guard != nil {
		ctx := a.ctx
		a.o.Guard.Began(i.Info(), func(met messages.ResourceLimitExceeded) { ctx.Tell(limitMet{nil, met}) })
	}
}

// limitMet interrupts the cell that has met a limit.
func (a *Actor) limitMet(m limitMet) {
	r := a.run
	switch {
	case r == nil || m.run != nil && m.run != r || r.current.Load() < 0:
		return
	case r.cause() == messages.CauseLimit && m.run == nil: // the code has swallowed it
		a.sendInterrupt(r)
		return
	case r.cause() != "":
		return
	}
	r.met.CompareAndSwap(nil, &m.met)
	a.interrupt(messages.Interrupt{Key: r.exec.Key, Exec: r.exec.ID, Cause: messages.CauseLimit})
}

// meets counts what a cell has printed, and reports whether that is more than it may.
// It belongs to the run's emitting goroutine.
func (r *run) meets(n int, tell func(any) bool) bool {
	if r.mayPrint <= 0 || n == 0 { // what is no output comes in any case
		return false
	}
	if r.printed += int64(n); r.printed <= r.mayPrint {
		return false
	}
	if !r.toldPrinted {
		r.toldPrinted = true
		met := messages.ResourceLimitExceeded{Limit: messages.LimitOutput, Detail: fmt.Sprintf("it printed more than %d bytes, and was interrupted", r.mayPrint)}
		r.met.CompareAndSwap(nil, &met)
		tell(limitMet{r, met})
	}
	return true
}

// shown is how much an event shows, in bytes; 0 of one that is no output.
func shown(e messages.Event) int {
	switch e := e.(type) {
	case messages.Stream:
		return len(e.Text)
	case messages.Display, messages.ExecuteResult:
		return e.Size()
	default:
		return 0
	}
}

// prints begins the count for a cell.
func (r *run) prints() {
	r.emitting.Lock()
	defer r.emitting.Unlock()
	r.printed = 0
}

// judgeLimit notes which limit a cell has met that is not the interpreter's own.
func (r *run) judgeLimit(cell *messages.CellResult, reply CellReply, err error, begin time.Time) {
	met := r.met.Load()
	if met != nil && r.guard != nil {
		r.guard.Stopped(r.interp.Info().PID, *met, r.lost != nil)
	}
	if met == nil && r.guard != nil {
		met = r.guard.Met(r.interp.Info().PID, begin, cell.Error)
	}
	if met == nil && r.lost != nil && reply.Exceeded == nil { // that may have been decided before the cell began
		if lost, is := errors.AsType[*LostError](r.explain(r.lost)); is {
			met = lost.Exceeded
		}
	}
	if met == nil {
		return
	}
	said := *met
	said.Stderr = cmp.Or(said.Stderr, reply.Stderr)
	r.exceeded = &said
	switch {
	case err != nil && r.lost != nil:
		lost := LostError{Err: err}
		if l, ok := errors.AsType[*LostError](err); ok {
			lost = *l
		}
		lost.Reason, lost.Exceeded = said.Error(), &said
		r.lost = &lost
	case cell.Outcome == messages.OutcomeError && r.cause() == messages.CauseLimit: // it raised a mere KeyboardInterrupt
		cell.Error = &messages.ErrorDetails{Name: "ResourceLimitExceeded", Message: string(said.Limit) + ": " + said.Detail}
	}
}

// ended returns why the interpreter is gone, and notes the limit for which it was ended, unless the
// cell had met another one before.
func (r *run) ended(err error) error {
	err = r.explain(err)
	if met, is := errors.AsType[*messages.ResourceLimitExceeded](err); is && r.exceeded == nil {
		r.exceeded = met
	}
	return err
}

// activeDue interrupts a run whose active time, with what it was owed, is over.
func (a *Actor) activeDue(m activeDue) {
	if a.run == m.run {
		a.interrupt(m.interrupt)
	}
}
