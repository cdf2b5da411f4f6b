package kernel

import (
	"context"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// copyTimeout bounds one request for copies, by the chance of the session to make them. A copy of a session that holds
// gigabytes takes tens of milliseconds.
const copyTimeout = 30 * time.Second

// copyMost is how long it may take on a machine that has no processor for it.
const copyMost = 2 * time.Minute

// Copier is implemented by interpreters that can be copied while they live.
type Copier interface {
	// Copy makes a copy of the interpreter, with all that it has in memory, for
	// each name. The copies wait in the backend: one whose name is the ID of a
	// session's key is what the next Start for that key returns.
	//
	// The error is a *messages.ForkRefused when the interpreter cannot be copied
	// as it is; it then goes on as if nothing had been asked. Copy is called like
	// Execute, from one goroutine at a time and not while a cell runs.
	Copy(ctx context.Context, names []string) error
}

// copied is what the goroutine that made copies reports.
type copied struct {
	work supervisor.Work
	err  error
}

// fork makes copies of the interpreter. The supervisor gives the actor no other
// work meanwhile.
func (a *Actor) fork(w supervisor.Work, m messages.Fork) error {
	if a.interpGone() {
		// The next incarnation has nothing that would be worth a copy.
		a.ctx.Finish(w, &messages.ForkRefused{Reason: messages.ForkNoKernel, Problem: lostReason(a.interp.Err())})
		return a.interp.Err()
	}
	c, ok := a.interp.(Copier)
	if !ok {
		a.ctx.Finish(w, &messages.ForkRefused{Reason: messages.ForkUnsupported, Problem: "only the runner backend can copy a session"})
		return nil
	}
	ctx, from := a.ctx, subject(a.interp)
	a.pump(func() {
		bounded, done := opportunity.Within(a.life, opportunity.Budget{Opportunity: copyTimeout, Ceiling: copyMost}, from)
		defer done()
		ctx.Tell(copied{w, c.Copy(bounded, m.Names)})
	})
	return nil
}

func (a *Actor) copied(m copied) error {
	if m.err != nil {
		a.ctx.Finish(m.work, m.err)
		return nil
	}
	a.ctx.Finish(m.work, true)
	return nil
}
