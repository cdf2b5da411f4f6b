package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// act is one thing that agents have Python do.
type act struct {
	name string
	// share is how often, in percent of all calls.
	share int
	code  string
	// ok says whether the result is what the code asks for.
	ok func(messages.Result) bool
}

func completes(text string) func(messages.Result) bool {
	return func(r messages.Result) bool {
		return r.Outcome == messages.OutcomeOK && strings.Contains(r.Text, text)
	}
}

// acts is what a day consists of. The code keeps a count in the session, so that
// what a result says of the state can be checked.
var acts = []act{
	{"think", 60, "n = globals().get('n', 0) + 1; 1+1", completes("2")},
	{"define", 15, "n = globals().get('n', 0) + 1\ndef f(x): return x * 2\nf(21)", completes("42")},
	{"print", 10, "n = globals().get('n', 0) + 1\nfor i in range(2000): print('line', i, 'x' * 40)", completes("line 1999")},
	{"compute", 8, "n = globals().get('n', 0) + 1\nsum(i * i for i in range(200_000))", completes("2666646666700000")},
	{"raise", 5, "n = globals().get('n', 0) + 1\n{}['missing']", func(r messages.Result) bool { return r.Outcome == messages.OutcomeError }},
	{"die", 2, "import os; os._exit(3)", func(r messages.Result) bool { return r.Outcome == messages.OutcomeLost }},
}

var mixed = Scenario{
	Name: "mixed", About: "agents that come, think between calls, print, compute, fail, crash and go or stay: a host's day, compressed",
	Backends: []string{backends.Runner, backends.Gateway},
	Defaults: map[string]Defaults{
		backends.Runner:  {Sessions: 100, Rate: 8, Duration: 10 * time.Second},
		backends.Gateway: {Sessions: 6, Rate: .3, Duration: 20 * time.Second},
	},
	run: func(ctx context.Context, r *round) error { return r.day(ctx, nil) },
}

var soak = Scenario{
	Name: "soak", About: "mixed, for long: the host's memory, descriptors and goroutines over time, none of which should grow",
	Backends: []string{backends.Runner, backends.Gateway},
	Defaults: map[string]Defaults{
		backends.Runner:  {Sessions: 100, Rate: 8, Duration: 5 * time.Minute},
		backends.Gateway: {Sessions: 6, Rate: .3, Duration: 5 * time.Minute},
	},
	run: func(ctx context.Context, r *round) error {
		w := &watch{every: max(250*time.Millisecond, r.Duration/120), stop: make(chan struct{})}
		err := r.day(ctx, func(h host) { w.begin(ctx, h) })
		w.end()
		w.tell(r)
		return err
	},
}

// day has agents arrive at the rate, each with a session and 2 to 12 calls; begun,
// if not nil, is called when the host stands.
func (r *round) day(ctx context.Context, begun func(host)) error {
	// A third of the agents leave their session behind: idle and LRU eviction are
	// what ends those.
	h, err := r.start(ctx, coppice.Options{MaxSessions: r.Sessions, MaxWaiting: 10_000, IdleTTL: 5 * time.Second})
	if err != nil {
		return err
	}
	if begun != nil {
		begun(h)
	}
	if err := one(ctx, h.session("warm"), sum, "2"); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	by := map[string]*load.Recorder{}
	for _, a := range acts {
		by[a.name] = load.NewRecorder()
	}
	var mu sync.Mutex
	outcomes := map[messages.Outcome]int{}
	plan := load.Poisson(r.Rate, r.Duration, r.Seed)
	s := load.Run(ctx, plan, func(ctx context.Context, i int) error {
		dice := rand.New(rand.NewPCG(r.Seed, uint64(i)))
		s := h.session(fmt.Sprint("agent-", i))
		for range 2 + dice.IntN(11) {
			a := choose(dice.IntN(100))
			begin := time.Now()
			res, err := s.Execute(ctx, a.code)
			if err != nil && res.Refusal != messages.RefusedExhausted {
				return err
			}
			by[a.name].Record(time.Since(begin))
			mu.Lock()
			outcomes[res.Outcome]++
			mu.Unlock()
			if res.Refusal == messages.RefusedExhausted {
				// The kernel died twice in a row; a host resets the session then.
				if err := s.Reset(ctx); err != nil {
					return fmt.Errorf("reset: %w", err)
				}
				continue
			}
			if !a.ok(res) {
				return fmt.Errorf("%s ended %s, %s: %s %s", a.name, res.Outcome, res.State, res.Reason, head(res.Text))
			}
			if err := pause(ctx, time.Duration(dice.ExpFloat64()*float64(200*time.Millisecond))); err != nil {
				return err
			}
		}
		if dice.IntN(3) == 0 {
			return nil // left behind
		}
		return s.Close(context.WithoutCancel(ctx))
	}, r.counter("agents done", len(plan)))
	if s.Failed > 0 {
		return fmt.Errorf("%d agents failed: %s", s.Failed, s.First)
	}
	calls := 0
	for _, a := range acts {
		sum := by[a.name].Summary()
		calls += int(sum.Count)
		r.quantiles(a.name, sum)
	}
	r.metric("calls", "", float64(calls), record.None)
	r.metric("rate", "1/s", float64(calls)/s.Elapsed.Seconds(), record.None)
	r.metric("lost", "", float64(outcomes[messages.OutcomeLost]), record.None)
	return nil
}

func choose(percent int) act {
	for _, a := range acts {
		if percent < a.share {
			return a
		}
		percent -= a.share
	}
	return acts[0]
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
