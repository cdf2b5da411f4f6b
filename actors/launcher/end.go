package launcher

import (
	"context"
	"log/slog"
	"time"

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
			ctx.Tell(report{slog.LevelInfo, "the tool did not take a cancel", []any{"tool", a.plan.ID, "run", run, "err", err}})
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
	proc := a.proc
	a.pumps.Go(func() {
		if err := proc.Stop(context.WithoutCancel(ctx.Context()), grace); err != nil {
			ctx.Tell(report{slog.LevelWarn, "a tool does not end", []any{"tool", a.plan.ID, "err", err}})
		}
	})
}
