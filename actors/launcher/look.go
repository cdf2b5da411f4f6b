package launcher

import (
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/supervisor"
)

// lookEvery is how often the memory and the files of runs are looked at; an
// idle tool is looked at as often as its heartbeat wants it.
const lookEvery = time.Second

// arm sets the time of the next look.
func (a *tool) arm(ctx *supervisor.Ctx) {
	a.unlook()
	every := a.o.Heartbeat
	if len(a.runs) > 0 {
		every = min(every, lookEvery)
	}
	a.unlook = ctx.After(every, look{})
}

// look looks at the process: at its memory and the files of its runs while it
// works, at its health while it does not.
func (a *tool) look(ctx *supervisor.Ctx) {
	if a.over || a.looking {
		return
	}
	a.looking = true
	proc, life, idle, silent := a.proc, ctx.Context(), len(a.runs) == 0, a.mute
	runs := make([]string, 0, len(a.runs))
	for id := range a.runs {
		runs = append(runs, id)
	}
	a.pumps.Go(func() {
		m := looked{memory: proc.Memory()}
		for _, id := range runs {
			if bytes, files := proc.Written(id); bytes > a.o.ArtifactBytes || files > a.o.ArtifactFiles {
				m.over = append(m.over, id)
			}
		}
		if idle {
			if silent == nil {
				silent = &mute{meter: opportunity.Begin(subject(proc), ctx.Stalls())}
			}
			m.healthy = proc.Healthy(life)
			m.mute = silent.look(ctx)
		}
		ctx.Tell(m)
	})
}

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

func (a *tool) looked(ctx *supervisor.Ctx, m looked) {
	a.looking = false
	if a.over {
		return
	}
	ctx.Note(supervisor.Facts{PID: a.proc.PID(), RSS: m.memory})
	if m.healthy == nil || len(a.runs) > 0 { // a run may keep a tool from answering
		ctx.Beat()
		m.mute = nil
	}
	a.mute = m.mute
	for _, id := range m.over {
		a.end(ctx, a.runs[id], causeArtifacts)
	}
	if limit := int64(a.plan.MemoryMB) << 20; limit > 0 && m.memory > limit {
		for _, r := range a.runs {
			if r.cause == "" {
				r.cause = causeMemory
			}
		}
		a.kill(ctx, -1)
	}
	a.arm(ctx)
}
