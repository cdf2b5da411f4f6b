package launcher

import (
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
func (m *mute) look(ctx *supervisor.Ctx) *mute {
	seen := m.meter.Measure()
	all := seen.Listened - seen.Opportunity
	ctx.Waited(all - m.said)
	m.said = all
	return m
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
