package kernel

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/supervisor"
)

// Waiting is what a start waits for at a moment. The zero value is the interpreter
// itself, of which nothing is known yet.
type Waiting struct {
	// Shared says that it is the process that interpreters come from, and Again that
	// this one has ended, or could not be started, and is to be started again.
	Shared, Again bool
	// Turn says that it is the turn of this start among others.
	Turn bool
	// Subject is who has to become ready, where that is known.
	Subject opportunity.Subject
}

// patience bounds a start by who is waited for: an interpreter by the chance that it
// had, the process that it comes from, which has a budget of its own, by the ceiling
// alone, and its turn not at all. Its methods are called by the goroutine of the start.
type patience struct {
	ctx    *supervisor.Ctx
	life   context.Context //nolint:containedctx // that of the start
	budget opportunity.Budget
	cancel context.CancelCauseFunc
	over   func() // ends what bounds the wait of now
}

// wait says that the start waits for something else from now on.
func (p *patience) wait(w Waiting) {
	p.end()
	p.ctx.Hold(w.Again)
	if w.Turn {
		return
	}
	b := p.budget
	if w.Shared {
		b.Opportunity = b.Ceiling
	}
	bound, done := opportunity.Within(p.life, b, w.Subject)
	stop := context.AfterFunc(bound, func() {
		if spent, ok := errors.AsType[*opportunity.SpentError](context.Cause(bound)); ok {
			p.cancel(fmt.Errorf("it was not ready in time: %w", spent))
		}
	})
	p.over = func() { stop(); done() }
}

// end bounds nothing any more.
func (p *patience) end() {
	if p.over != nil {
		p.over()
		p.over = nil
	}
	p.ctx.Hold(false)
}
