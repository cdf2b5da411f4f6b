package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/bench/load"
	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// starts is how many sessions come before those that are measured. The first one
// starts the fork server; the second one waits until that has imported what all
// sessions share, and so would those that come meanwhile.
const starts = 2

var create = Scenario{
	Name: "create", About: "a new session to its first result; sessions arrive like independent callers",
	Backends: []string{backends.Runner, backends.Gateway, Fake},
	Defaults: map[string]Defaults{
		backends.Runner:  {Sessions: 200, Rate: 40, Duration: 5 * time.Second},
		backends.Gateway: {Sessions: 20, Rate: .4, Duration: 20 * time.Second},
		Fake:             {Sessions: 10_000, Rate: 1000, Duration: 5 * time.Second},
	},
	run: func(ctx context.Context, r *round) error {
		h, err := r.start(ctx, coppice.Options{MaxSessions: r.Sessions + starts, MaxWaiting: 10_000})
		if err != nil {
			return err
		}
		for i := range starts {
			if err := one(ctx, h.session(fmt.Sprint("warm-", i)), sum, "2"); err != nil {
				return fmt.Errorf("warm up: %w", err)
			}
		}
		plan := load.Poisson(r.Rate, r.Duration, r.Seed)
		var closing sync.WaitGroup
		s := load.Run(ctx, plan, func(ctx context.Context, i int) error {
			s := h.session(fmt.Sprint("new-", i))
			err := one(ctx, s, sum, "2")
			closing.Go(func() {
				if err := s.Close(context.WithoutCancel(ctx)); err != nil {
					r.wrongs.add(err.Error())
				}
			})
			return err
		}, r.counter("creating sessions", len(plan)))
		closing.Wait()
		r.sample(s)
		return nil
	},
}

var ready = Scenario{
	Name: "ready", About: "a new session that something waits for, a spare of the runner or a warm kernel of the gateway, to its first result; one after the other, with time to make the next one",
	Backends: []string{backends.Runner, backends.Gateway},
	Defaults: map[string]Defaults{
		backends.Runner:  {Sessions: 100, Rate: 20},
		backends.Gateway: {Sessions: 8, Rate: .4},
	},
	run: func(ctx context.Context, r *round) error {
		h, err := r.start(ctx, coppice.Options{MaxSessions: 8, Backend: r.backend(coppice.GatewayOptions{WarmKernels: 1}, coppice.RunnerOptions{Spares: 2})})
		if err != nil {
			return err
		}
		if err := one(ctx, h.session("warm"), sum, "2"); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
		rec := load.NewRecorder()
		done := r.counter("creating sessions", r.Sessions)
		for i := range r.Sessions {
			if err := pause(ctx, time.Duration(float64(time.Second)/r.Rate)); err != nil {
				return err
			}
			s := h.session(fmt.Sprint("new-", i))
			begin := time.Now()
			if err := one(ctx, s, sum, "2"); err != nil {
				return err
			}
			rec.Record(time.Since(begin))
			if err := s.Close(ctx); err != nil {
				return fmt.Errorf("close a session: %w", err)
			}
			done()
		}
		r.quantiles("", rec.Summary())
		return nil
	},
}

var execute = Scenario{
	Name: "exec", About: "round trips of 1+1 while so many sessions live: back to back in one, of all from independent callers, and as fast as it goes",
	Backends: []string{backends.Runner, backends.Gateway, Fake},
	Defaults: map[string]Defaults{
		backends.Runner:  {Sessions: 100, Rate: 300, Duration: 5 * time.Second},
		backends.Gateway: {Sessions: 10, Rate: 20, Duration: 10 * time.Second},
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
		if err := r.backToBack(ctx, sessions[0], min(r.Duration/3, 3*time.Second)); err != nil {
			return err
		}
		pick := rand.New(rand.NewPCG(r.Seed, 7))
		plan := load.Poisson(r.Rate, r.Duration, r.Seed)
		which := make([]int, len(plan))
		for i := range which {
			which[i] = pick.IntN(len(sessions))
		}
		r.sample(load.Run(ctx, plan, func(ctx context.Context, i int) error {
			return one(ctx, sessions[which[i]], sum, "2")
		}, r.counter("calls", len(plan))))
		return r.capacity(ctx, h, sessions)
	},
}

// backToBack makes one call after the other, the only closed loop here: what one
// caller sees who has nothing else to do.
func (r *round) backToBack(ctx context.Context, s session, d time.Duration) error {
	rec := load.NewRecorder()
	for range 20 { // warm
		if err := one(ctx, s, sum, "2"); err != nil {
			return err
		}
	}
	r.tell("back to back")
	for end := time.Now().Add(d); time.Now().Before(end); {
		begin := time.Now()
		if err := one(ctx, s, sum, "2"); err != nil {
			return err
		}
		rec.Record(time.Since(begin))
	}
	r.quantiles("back-to-back", rec.Summary())
	return nil
}

// evictions are the sessions that a host has ended to make room for others.
type evictions struct {
	mu   sync.Mutex
	keys map[string]bool // guarded by mu
}

func (e *evictions) hear(event messages.Lifecycle) {
	if c, ok := event.(messages.ChildChanged); ok && c.Exit != nil && c.Exit.Kind == messages.ExitEvicted {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.keys[c.Key] = true
	}
}

func (e *evictions) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.keys)
}

var idle = Scenario{
	Name: "idle", About: "what sessions take that wait: memory, processor time, descriptors, threads; then all of them answer again",
	Backends: []string{backends.Runner, backends.Gateway, Fake},
	Defaults: map[string]Defaults{
		// As long as the time between two heartbeats: each session is asked once.
		backends.Runner:  {Sessions: 500, Duration: 5 * time.Second},
		backends.Gateway: {Sessions: 5, Duration: 5 * time.Second},
		Fake:             {Sessions: 10_000, Duration: 5 * time.Second},
	},
	run: func(ctx context.Context, r *round) error {
		before := ownMemory()
		without, _ := useOf(0)
		ended := evictions{keys: map[string]bool{}}
		h, err := r.start(ctx, coppice.Options{MaxSessions: r.Sessions, OnEvent: ended.hear})
		if err != nil {
			return err
		}
		begin := time.Now()
		sessions, err := r.live(ctx, h, r.Sessions)
		if errors.Is(err, errMemory) {
			r.metric("live", "", float64(r.started), record.None)
			r.note("%v: this is how many it holds", err)
			return nil
		}
		if err != nil {
			return err
		}
		r.metric("start-all", "ms", float64(time.Since(begin).Milliseconds()), record.Less)
		n := float64(r.Sessions)
		if own := ownMemory(); own > 0 {
			r.metric("host-memory", "KiB/session", float64(own-before)/1024/n, record.Less)
		}
		p, err := processes(ctx, h)
		if err != nil {
			return err
		}
		if n := len(p.kernels); n > 0 {
			r.metric("live", "", float64(n), record.None)
			if n < r.Sessions && n+ended.count() >= r.Sessions { // else something has ended them that should not
				r.note("%d of %d sessions live, %d were ended for others: there were no descriptors or processes left; `ulimit -Hn` and `-Hu` say how many there are", n, r.Sessions, ended.count())
				return nil
			}
		}
		if err := r.processMemory(p); err != nil {
			return err
		}
		r.limits(p, without)
		if err := r.idleTime(ctx, p); err != nil {
			return err
		}
		begin = time.Now()
		done := r.counter("answering again", r.Sessions)
		err = each(ctx, sessions, func(s session) error { defer done(); return one(ctx, s, sum, "2") })
		r.metric("answer-all", "ms", float64(time.Since(begin).Milliseconds()), record.Less)
		return err
	},
}

var churn = Scenario{
	Name: "churn", About: "sessions that come, answer once and go, sixteen at a time, as fast as they can",
	Backends: []string{backends.Runner, Fake, backends.Gateway},
	Defaults: map[string]Defaults{
		backends.Runner: {Sessions: 1000}, Fake: {Sessions: 20_000}, backends.Gateway: {Sessions: 10},
	},
	run: func(ctx context.Context, r *round) error {
		h, err := r.start(ctx, coppice.Options{MaxSessions: 4 * atOnce, MaxWaiting: 10_000})
		if err != nil {
			return err
		}
		if err := one(ctx, h.session("warm"), sum, "2"); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
		before := ownMemory()
		sessions := make([]session, r.Sessions)
		for i := range sessions {
			sessions[i] = h.session(fmt.Sprint("churn-", i))
		}
		rec := load.NewRecorder()
		done := r.counter("sessions come and go", r.Sessions)
		begin := time.Now()
		err = each(ctx, sessions, func(s session) error {
			defer done()
			begin := time.Now()
			if err := one(ctx, s, sum, "2"); err != nil {
				return err
			}
			rec.Record(time.Since(begin))
			return s.Close(ctx)
		})
		took := time.Since(begin)
		if err != nil {
			return err
		}
		r.metric("throughput", "1/s", float64(r.Sessions)/took.Seconds(), record.More)
		r.quantiles("", rec.Summary())
		if own := ownMemory(); own > 0 {
			r.metric("host-growth", "KiB", float64(own-before)/1024, record.None)
		}
		return nil
	},
}

var burst = Scenario{
	Name: "burst", About: "so many new sessions at the same instant, each to its first result",
	Backends: []string{backends.Runner, backends.Gateway, Fake},
	Defaults: map[string]Defaults{
		backends.Runner: {Sessions: 100}, backends.Gateway: {Sessions: 5}, Fake: {Sessions: 10_000},
	},
	run: func(ctx context.Context, r *round) error {
		h, err := r.start(ctx, coppice.Options{MaxSessions: min(r.Sessions+1, limitOf(r.Backend)), MaxWaiting: r.Sessions})
		if err != nil {
			return err
		}
		if err := one(ctx, h.session("warm"), sum, "2"); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
		s := load.Run(ctx, load.Burst(r.Sessions), func(ctx context.Context, i int) error {
			return one(ctx, h.session(fmt.Sprint("burst-", i)), sum, "2")
		}, r.counter("sessions answered", r.Sessions))
		r.sample(s)
		r.metric("all", "ms", float64(s.Elapsed.Milliseconds()), record.Less)
		return nil
	},
}

func limitOf(backend string) int {
	if backend == backends.Gateway {
		return maxKernels
	}
	return 1 << 20
}
