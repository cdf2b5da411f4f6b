package launcher

import (
	"context"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/supervisor"
)

// mute is what a process waited for a processor while it owes the word that it is well,
// and how much of that was said to the supervisor. One goroutine at a time uses it.
type mute struct {
	meter *opportunity.Meter
	said  time.Duration
}

// look measures, and says what is new.
func (m *mute) look(ctx *supervisor.Ctx) opportunity.Measure {
	seen := m.meter.Measure()
	all := seen.Listened - seen.Opportunity
	ctx.Waited(all - m.said)
	m.said = all
	return seen
}

// looks is how often a process that is asked to end is looked at during its grace, and
// lookLeast how seldom at least.
const (
	looks     = 10
	lookLeast = 25 * time.Millisecond
)

// stop ends the process: a request, then by force when it had the chance to end for as long
// as grace, or after so many times that. Until then the supervisor hears what it waits for a
// processor, which is not held against the actor. It may be called from any goroutine that
// the actor joins.
func (a *tool) stop(ctx *supervisor.Ctx, grace time.Duration, ceilings int) error {
	proc := a.proc
	if grace <= 0 {
		return proc.Stop(context.Background(), grace)
	}
	b := opportunity.Budget{Opportunity: grace, Ceiling: time.Duration(ceilings) * grace}
	bound, over := context.WithCancel(context.Background())
	defer over()
	m := &mute{meter: opportunity.Begin(subject(proc), ctx.Stalls())}
	var looking sync.WaitGroup
	looking.Go(func() { // until the process has ended, or has to
		for {
			left := m.meter.Left(b, m.look(ctx))
			if left <= 0 {
				over()
				return
			}
			timer := time.NewTimer(min(left, max(lookLeast, grace/looks)))
			select {
			case <-timer.C:
			case <-bound.Done():
				timer.Stop()
				return
			}
		}
	})
	err := proc.Stop(bound, b.Ceiling)
	over()
	looking.Wait()
	return err
}

// witness is a process whose threads can be looked at.
type witness interface{ Subject() opportunity.Subject }

// subject is what is to be looked at of a process, nil if that cannot be known.
func subject(p process) opportunity.Subject {
	if w, ok := p.(witness); ok {
		return w.Subject()
	}
	return nil
}
