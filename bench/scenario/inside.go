package scenario

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// forkMiB is what the copied session holds, in pages that are its own.
const forkMiB = 300

var fork = Scenario{
	Name: "fork", About: "a copy of a session that holds 300 MiB: to the copy, and to the copy's first result",
	Backends: []string{backends.Runner},
	Defaults: map[string]Defaults{backends.Runner: {Sessions: 20}},
	run: func(ctx context.Context, r *round) error {
		h, err := r.start(ctx, coppice.Options{MaxSessions: 8})
		if err != nil {
			return err
		}
		s := h.session("large")
		if err := one(ctx, s, fmt.Sprintf("large = bytearray(%d << 20)\nfor i in range(0, len(large), 4096): large[i] = 1\nlen(large) >> 20", forkMiB), strconv.Itoa(forkMiB)); err != nil {
			return err
		}
		copied, answered := load.NewRecorder(), load.NewRecorder()
		done := r.counter("copies", r.Sessions)
		for range r.Sessions {
			begin := time.Now()
			copies, err := coppiceSession(s).Fork(ctx, coppice.ForkOptions{Copies: 1})
			took := time.Since(begin)
			if err != nil {
				return fmt.Errorf("copy the session: %w", err)
			}
			copied.Record(took + time.Duration(float64(took)*r.Plant))
			if err := one(ctx, realSession{copies[0]}, "len(large) >> 20", strconv.Itoa(forkMiB)); err != nil {
				return err
			}
			took = time.Since(begin)
			answered.Record(took + time.Duration(float64(took)*r.Plant))
			if err := copies[0].Close(ctx); err != nil {
				return fmt.Errorf("close the copy: %w", err)
			}
			done()
		}
		r.quantiles("", copied.Summary())
		r.quantiles("first-result", answered.Summary())
		return nil
	},
}

// callsInCell is how many calls of the host each session makes.
const callsInCell = 1000

// callsCode prints how long each call took, in microseconds, as the code sees it.
const callsCode = `import time
took = []
for i in range(%d):
    begin = time.perf_counter()
    assert tool.add(X=i, Y=1) == i + 1
    took.append(time.perf_counter() - begin)
print(' '.join(str(int(t * 1e6)) for t in took))`

var hostCalls = Scenario{
	Name: "hostcalls", About: "a thousand calls of a function of the host, from each of so many sessions at once",
	Backends: []string{backends.Runner, backends.Gateway},
	Defaults: map[string]Defaults{backends.Runner: {Sessions: 20}, backends.Gateway: {Sessions: 2}},
	run: func(ctx context.Context, r *round) error {
		add := coppice.Function("add", "adds", func(_ context.Context, p struct{ X, Y int }) (int, error) { return p.X + p.Y, nil })
		h, err := r.start(ctx, coppice.Options{MaxSessions: r.Sessions, HostCalls: coppice.HostCallOptions{Functions: []coppice.HostFunction{add}}})
		if err != nil {
			return err
		}
		sessions, err := r.live(ctx, h, r.Sessions)
		if err != nil {
			return err
		}
		rec := load.NewRecorder()
		s := load.Run(ctx, load.Burst(len(sessions)), func(ctx context.Context, i int) error {
			res, err := sessions[i].Execute(ctx, fmt.Sprintf(callsCode, callsInCell))
			if err != nil {
				return err
			}
			if res.Outcome != messages.OutcomeOK {
				return fmt.Errorf("the outcome is %s: %s", res.Outcome, head(res.Text))
			}
			return times(res.Cells[0].Output, callsInCell, r.Plant, rec)
		}, r.counter("sessions that made their calls", r.Sessions))
		if s.Failed > 0 {
			return fmt.Errorf("%d sessions failed: %s", s.Failed, s.First)
		}
		r.quantiles("", rec.Summary())
		r.metric("throughput", "1/s", float64(rec.Summary().Count)/s.Elapsed.Seconds(), record.More)
		return nil
	},
}

// times records n numbers of microseconds.
func times(text string, n int, plant float64, rec *load.Recorder) error {
	words := strings.Fields(text)
	if len(words) != n {
		return fmt.Errorf("%d calls were answered, not %d", len(words), n)
	}
	for _, w := range words {
		us, err := strconv.ParseFloat(w, 64)
		if err != nil {
			return fmt.Errorf("not a time: %w", err)
		}
		rec.Record(time.Duration(us * (1 + plant) * float64(time.Microsecond)))
	}
	return nil
}

// everyone is an interpreter that all users can run, as the rung of users wants one.
const everyone = "/usr/bin/python3"

// privateCode prints what memory a session has of its own, in KiB.
const privateCode = "print(sum(int(l.split()[1]) for l in open('/proc/self/smaps_rollup') if l.startswith('Private_')))"

// ladder are the rungs, the lowest first.
var ladder = []string{
	kernel.IsolationOff, kernel.IsolationPrivileges, kernel.IsolationLandlock, kernel.IsolationSeccomp, kernel.IsolationUser, kernel.IsolationBubblewrap, kernel.IsolationGVisor,
}

var rungs = Scenario{
	Name: "rungs", About: "what each rung of isolation costs: a new session that nothing waits for, to its first result; a call; the memory of a session",
	Backends: []string{backends.Runner},
	Defaults: map[string]Defaults{backends.Runner: {Sessions: 100}},
	run: func(ctx context.Context, r *round) error {
		for _, rung := range ladder {
			if why := environment.LacksRung(rung); why != nil {
				r.note("the rung %s is not here: %v", rung, why)
				continue
			}
			if err := r.rung(ctx, rung); err != nil {
				return fmt.Errorf("the rung %s: %w", rung, err)
			}
		}
		return nil
	},
}

// rung measures one.
func (r *round) rung(ctx context.Context, rung string) (err error) {
	// Sessions of users of their own cannot enter a folder that is this user's alone.
	dir, err := os.MkdirTemp("", "coppice-rung-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()     // it is empty, and in the folder for temporary ones
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as said
		return fmt.Errorf("open a folder to others: %w", err)
	}
	given := r.Python
	defer func() { r.Python = given }()
	if _, err := os.Stat(everyone); err == nil {
		r.Python = everyone
	}
	h, err := r.start(ctx, coppice.Options{
		MaxSessions: 8, Backend: r.backend(coppice.GatewayOptions{}, coppice.RunnerOptions{Spares: -1}), Isolation: coppice.Isolation{Level: rung, Write: []string{dir}},
	})
	if err != nil {
		return err
	}
	c, _ := coppiceHost(h) // the scenario has no other backend
	at := func(name string) session {
		s := c.Session(name, coppice.In(dir))
		if r.Plant > 0 {
			return plantedSession{realSession{s}, r.Plant}
		}
		return realSession{s}
	}
	old := at("old")
	if err := one(ctx, old, sum, "2"); err != nil {
		return err
	}
	made, called := load.NewRecorder(), load.NewRecorder()
	done := r.counter("sessions on "+rung, r.Sessions)
	for i := range r.Sessions {
		s := at(fmt.Sprint("new-", i))
		begin := time.Now()
		if err := one(ctx, s, sum, "2"); err != nil {
			return err
		}
		made.Record(time.Since(begin))
		if i == 0 {
			if err := r.private(ctx, rung, s); err != nil {
				return err
			}
		}
		if err := s.Close(ctx); err != nil {
			return fmt.Errorf("close a session: %w", err)
		}
		begin = time.Now()
		if err := one(ctx, old, sum, "2"); err != nil {
			return err
		}
		called.Record(time.Since(begin))
		done()
	}
	r.quantiles(rung+"-new", made.Summary())
	r.quantiles(rung+"-call", called.Summary())
	return nil
}

// private measures the memory of a new session that is its own. Where it cannot be
// read, nothing is said of it.
func (r *round) private(ctx context.Context, rung string, s session) error {
	res, err := s.Execute(ctx, privateCode)
	if err != nil {
		return err
	}
	if kib, err := strconv.Atoi(strings.TrimSpace(res.Text)); err == nil {
		r.metric(rung+"-memory", "KiB/session", float64(kib), record.Less)
	}
	return nil
}
