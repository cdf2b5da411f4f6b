package launcher

import (
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/supervisor"
)

// times is how long a run has gone on.
func (r *running) times() times { return times{r.limit, time.Since(r.began)} }

// cut ends a run early. The caller's own time may have begun before the run did, which
// waited, or for which the process was started.
func (a *tool) cut(ctx *supervisor.Ctx, m cut) {
	r := a.runs[m.run]
	if r != nil && r.cause == "" && m.cause == causeTimeout && m.limit != r.limit {
		r.limit, r.began = m.limit, r.flight.arrived
	}
	a.end(ctx, r, m.cause)
}

// end asks the tool to cancel a run, and begins the grace.
func (a *tool) end(ctx *supervisor.Ctx, r *running, why cause) {
	if r == nil || r.cause != "" {
		return
	}
	r.cause = why
	if a.over || a.killed {
		return
	}
	run, proc, life := r.flight.run.ID, a.proc, r.life
	a.pumps.Go(func() {
		if err := proc.Cancel(life, run); err != nil && life.Err() == nil {
			ctx.Tell(report{run, err})
		}
	})
	r.stop = append(r.stop, ctx.After(a.o.CancelGrace-hardGrace(a.o), graceOver{run}))
}

// hardGrace is the end of the grace of a run, in which its process is asked to end.
func hardGrace(o *Options) time.Duration { return min(mostHardGrace, o.CancelGrace/2) }

// force ends the process because a run of it does not end.
func (a *tool) force(ctx *supervisor.Ctx, r *running) {
	if r == nil {
		return
	}
	r.hard = true
	a.kill(ctx, max(hardGrace(a.o), 1))
}

// kill ends the process. Its other runs end with it.
func (a *tool) kill(ctx *supervisor.Ctx, grace time.Duration) {
	if a.killed || a.over {
		return
	}
	a.killed = true
	for _, r := range a.runs {
		if r.cause == "" {
			r.cause = causeOther
		}
	}
	a.pumps.Go(func() {
		if err := a.stop(ctx, grace, hardCeilings); err != nil {
			ctx.Tell(report{"", err})
		}
	})
}

// tooLarge ends the process for the memory that it uses, and leaves word of it: no run
// that could may be in flight.
func (a *tool) tooLarge(ctx *supervisor.Ctx, used int64) {
	if a.killed {
		return
	}
	_, told := causeMemory.error(&a.plan, a.o, times{})
	told.Message += fmt.Sprintf(": %d MiB were in use", used>>20)
	if len(a.runs) == 0 {
		told.Message += " while the tool was idle"
	}
	told.Stderr = a.proc.Stderr()
	a.record.failed(ctx.Now(), told)
	a.why = fmt.Errorf("the tool %s was ended: %w", a.plan.ID, told)
	a.kill(ctx, -1)
}

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
			silent.look(ctx)
			m.mute = silent
		}
		ctx.Tell(m)
	})
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
		a.tooLarge(ctx, m.memory)
	}
	a.arm(ctx)
}
