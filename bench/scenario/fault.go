package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// crashEvery: one call in so many ends its kernel.
const crashEvery = 20

var crashy = Scenario{
	Name: "crashy", About: "one call in twenty ends its kernel: from the death to the answer, and of the session's next call",
	Backends: []string{backends.Runner, backends.Gateway, Fake},
	Defaults: map[string]Defaults{
		backends.Runner:  {Sessions: 50, Rate: 60, Duration: 5 * time.Second},
		backends.Gateway: {Sessions: 5, Rate: 3, Duration: 20 * time.Second},
		Fake:             {Sessions: 10_000, Rate: 3000, Duration: 5 * time.Second},
	},
	run: func(ctx context.Context, r *round) error {
		h, err := r.start(ctx, coppice.Options{MaxSessions: r.Sessions})
		if err != nil {
			return err
		}
		sessions, err := r.live(ctx, h, r.Sessions)
		if err != nil {
			return err
		}
		death, next, calm := load.NewRecorder(), load.NewRecorder(), load.NewRecorder()
		var lost, restarts, refused atomic.Int64
		pick := rand.New(rand.NewPCG(r.Seed, 11))
		plan := load.Poisson(r.Rate, r.Duration, r.Seed)
		type step struct {
			session int
			crash   bool
		}
		steps := make([]step, len(plan))
		for i := range steps {
			steps[i] = step{pick.IntN(len(sessions)), pick.IntN(crashEvery) == 0}
		}
		s := load.Run(ctx, plan, func(ctx context.Context, i int) error {
			s, code := sessions[steps[i].session], sum
			if steps[i].crash {
				code = crashCode(r.Backend)
			}
			begin := time.Now()
			res, err := s.Execute(ctx, code)
			took := time.Since(begin)
			switch {
			case err != nil && res.Refusal != messages.RefusedExhausted:
				return err
			case steps[i].crash && res.Outcome == messages.OutcomeLost:
				lost.Add(1)
				death.Record(took)
			case !steps[i].crash && res.Outcome == messages.OutcomeOK:
				if res.State == messages.StateFresh {
					restarts.Add(1)
					next.Record(took)
				} else {
					calm.Record(took)
				}
			case res.Refusal == messages.RefusedExhausted:
				refused.Add(1)
				return s.Reset(ctx)
			default:
				return fmt.Errorf("the outcome of %q is %s, %s: %s", code, res.Outcome, res.State, res.Reason)
			}
			return nil
		}, r.counter("calls", len(plan)))
		r.sample(s)
		r.quantiles("death-to-answer", death.Summary())
		r.quantiles("next-call", next.Summary())
		r.quantiles("undisturbed", calm.Summary())
		r.metric("kernels-lost", "", float64(lost.Load()), record.None)
		r.metric("kernels-regrown", "", float64(restarts.Load()), record.None)
		// A kernel that dies again right after its restart is not started a third
		// time: the session's next call is refused and told to reset it.
		r.metric("refused-until-reset", "", float64(refused.Load()), record.None)
		return nil
	},
}

func crashCode(backend string) string {
	if backend == Fake {
		return "die"
	}
	return "import os; os._exit(1)"
}

var evict = Scenario{
	Name: "evict", About: "ten times more sessions than may live: most calls evict the least recently used session and start their own",
	Backends: []string{backends.Runner, backends.Gateway, Fake},
	Defaults: map[string]Defaults{
		backends.Runner:  {Sessions: 200, Rate: 40, Duration: 5 * time.Second},
		backends.Gateway: {Sessions: 20, Rate: .4, Duration: 20 * time.Second},
		Fake:             {Sessions: 10_000, Rate: 1000, Duration: 5 * time.Second},
	},
	run: func(ctx context.Context, r *round) error {
		places := max(2, r.Sessions/10)
		var evicted atomic.Int64
		h, err := r.start(ctx, coppice.Options{MaxSessions: places, MaxWaiting: 100_000, OnEvent: func(e messages.Lifecycle) {
			if c, ok := e.(messages.ChildChanged); ok && c.To == messages.ChildGone && c.Exit != nil && c.Exit.Kind == messages.ExitEvicted {
				evicted.Add(1)
			}
		}})
		if err != nil {
			return err
		}
		if err := one(ctx, h.session("warm"), sum, "2"); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
		pick := rand.New(rand.NewPCG(r.Seed, 13))
		plan := load.Poisson(r.Rate, r.Duration, r.Seed)
		which := make([]int, len(plan))
		for i := range which {
			which[i] = pick.IntN(r.Sessions)
		}
		r.sample(load.Run(ctx, plan, func(ctx context.Context, i int) error {
			return one(ctx, h.session(fmt.Sprint("many-", which[i])), sum, "2")
		}, r.counter("calls", len(plan))))
		r.metric("places", "", float64(places), record.None)
		r.metric("evicted", "", float64(evicted.Load()), record.None)
		return nil
	},
}
