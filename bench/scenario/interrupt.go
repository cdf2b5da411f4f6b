package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// stuck are the codes that are interrupted. Each says when it is about to begin.
var stuck = []struct {
	name, code string
	// after is how long it runs first: what it printed comes a little before it is
	// stuck, and a flood has to fill what is between the kernel and the caller, who
	// reads nothing meanwhile.
	after time.Duration
}{
	{"loop", "print('on', flush=True)\nwhile True: pass", 50 * time.Millisecond},
	{"sleep", "import time\nprint('on', flush=True)\ntime.sleep(60)", 50 * time.Millisecond},
	{"await", "import asyncio\nprint('on', flush=True)\nawait asyncio.sleep(60)", 50 * time.Millisecond},
	{"flood", "while True: print('0123456789' * 10)", 500 * time.Millisecond},
}

var interrupt = Scenario{
	Name: "interrupt", About: "from the interrupt of a loop, of time.sleep, of await and of a flood of output to the result; the session then answers on",
	Backends: []string{backends.Runner, backends.Gateway},
	Defaults: map[string]Defaults{backends.Runner: {Sessions: 10}, backends.Gateway: {Sessions: 3}},
	run: func(ctx context.Context, r *round) error {
		h, err := r.start(ctx, coppice.Options{MaxSessions: r.Sessions})
		if err != nil {
			return err
		}
		sessions, err := r.live(ctx, h, r.Sessions)
		if err != nil {
			return err
		}
		done := r.counter("interrupts", len(stuck)*len(sessions))
		for _, what := range stuck {
			rec := load.NewRecorder()
			for _, s := range sessions {
				took, err := stop(ctx, coppiceSession(s), what.code, what.after)
				if err != nil {
					return fmt.Errorf("interrupt a %s: %w", what.name, err)
				}
				rec.Record(took + time.Duration(float64(took)*r.Plant))
				if err := one(ctx, s, sum, "2"); err != nil {
					return fmt.Errorf("after the interrupt of a %s: %w", what.name, err)
				}
				done()
			}
			r.quantiles(what.name, rec.Summary())
		}
		return nil
	},
}

// stop runs code, interrupts it some time after its first output, and returns the
// time to its result.
func stop(ctx context.Context, s *coppice.Session, code string, after time.Duration) (time.Duration, error) {
	var begin time.Time
	for e, err := range s.Stream(ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}}) {
		if err != nil {
			return 0, err
		}
		switch e := e.(type) {
		case messages.Stream:
			if !begin.IsZero() {
				continue
			}
			if err := pause(ctx, after); err != nil {
				return 0, err
			}
			begin = time.Now()
			if err := s.Interrupt(); err != nil {
				return 0, err
			}
		case messages.Final:
			if begin.IsZero() || e.Result.Outcome != messages.OutcomeCancelled {
				return 0, fmt.Errorf("the outcome is %s: %s", e.Result.Outcome, head(e.Result.Text))
			}
			return time.Since(begin), nil
		}
	}
	return 0, fmt.Errorf("the stream ended without a result")
}
