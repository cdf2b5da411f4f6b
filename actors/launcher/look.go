package launcher

import (
	"fmt"
	"time"

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
	proc, life, idle := a.proc, ctx.Context(), len(a.runs) == 0
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
			m.healthy = proc.Healthy(life)
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
	}
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
