package supervisor_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// pretended is a process that stands still when a test says so: its timers run all the
// same, and all that is missing is that anybody is heard.
type pretended struct {
	mu     sync.Mutex
	stalls [][2]time.Time
}

// stand has it stand still from now on for d, and waits until that is over.
func (p *pretended) stand(d time.Duration) {
	p.mu.Lock()
	p.stalls = append(p.stalls, [2]time.Time{time.Now(), time.Now().Add(d)})
	p.mu.Unlock()
	later(d)
}

func (p *pretended) Stalled() time.Duration { return p.Since(time.Time{}) }

func (p *pretended) Since(then time.Time) (sum time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, s := range p.stalls {
		from, to := s[0], s[1]
		if from.Before(then) {
			from = then
		}
		if to.After(now) {
			to = now
		}
		sum += max(0, to.Sub(from))
	}
	return sum
}

func (p *pretended) Last() (last time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, s := range p.stalls {
		if last = s[1]; last.After(now) {
			last = now
		}
	}
	return last
}

// owner is a behaviour that asks what it owns once a second, which answers unless it is
// silent.
type owner struct{ silent func() bool }

type askDue struct{}

func (o owner) Init(ctx *supervisor.Ctx) error {
	ctx.Beat()
	ctx.After(time.Second, askDue{})
	return nil
}

func (o owner) Handle(ctx *supervisor.Ctx, msg any) error {
	if _, ask := msg.(askDue); !ask {
		return nil
	}
	if !o.silent() {
		ctx.Beat()
	}
	ctx.After(time.Second, askDue{})
	return nil
}

func (o owner) Terminate(*supervisor.Ctx, supervisor.Exit) {}

// latecomer is one that waited for an hour before its first sign of life.
type latecomer struct{ owner }

func (s latecomer) Init(ctx *supervisor.Ctx) error {
	ctx.Waited(time.Hour)
	return s.owner.Init(ctx)
}

// Children are not heard of while this process stands still. Those that answer
// afterwards live, and one that does not is ended when it has been asked again, whatever
// it had waited for a processor long before.
func TestAStallEndsNobody(t *testing.T) {
	t.Parallel()
	for _, length := range []time.Duration{600 * time.Millisecond, 4 * time.Second, 20 * time.Second, 10 * time.Minute} {
		for offset := range 8 {
			synctest.Test(t, func(t *testing.T) {
				p := &pretended{}
				deaf := func() bool { return p.Last().Equal(time.Now()) }
				hangs := time.Now().Add(time.Minute - 2*time.Second) // it has been silent for a while then
				sys := startOnly(t, supervisor.SystemOptions{Stalls: p, Children: []supervisor.Spec{
					supervise("s", supervisor.Options{Strategy: strategy.Heartbeat(2 * time.Second), Tick: 700 * time.Millisecond, Children: []supervisor.Spec{
						{Key: "well", New: func() supervisor.Behaviour { return owner{deaf} }},
						{Key: "hung", New: func() supervisor.Behaviour {
							return latecomer{owner{func() bool { return deaf() || time.Now().After(hangs) }}}
						}},
					}}),
				}})
				well, hung := sys.Monitor("s", "well"), sys.Monitor("s", "hung")
				later(time.Minute + time.Duration(offset)*210*time.Millisecond)
				p.stand(length)
				back := time.Now()
				exit := <-hung
				require.Equal(t, messages.ExitHung, exit.Kind)
				require.GreaterOrEqual(t, time.Since(back), 3*time.Second, "it was not asked again")
				require.LessOrEqual(t, time.Since(back), 5*time.Second+700*time.Millisecond)
				later(time.Minute)
				require.Empty(t, well, "it was ended for nothing")
				node, err := sys.Snapshot(t.Context())
				require.NoError(t, err)
				require.Equal(t, length, node.Busy.Stalled)
				require.Positive(t, node.Busy.Postponed)
				stop(t, sys)
			})
		}
	}
}

// A call that has not returned is no hang while nothing of this process runs.
func TestACallOverAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pretended{}
		release := make(chan struct{})
		sys := startOnly(t, supervisor.SystemOptions{Stalls: p, Strategy: strategy.Heartbeat(2 * time.Second), Children: []supervisor.Spec{
			{Key: "a", New: of(behaviour{handle: func(*supervisor.Ctx, any) error { <-release; return nil }})},
		}})
		gone := sys.Monitor("a")
		require.True(t, sys.Ref("a").Tell("work"))
		later(4 * time.Second)
		p.stand(time.Hour)
		later(2 * time.Second)
		require.Empty(t, gone)
		node, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		require.Positive(t, node.Busy.Postponed, "its end was put off")
		require.Equal(t, messages.ExitHung, (<-gone).Kind)
		require.Less(t, p.Since(time.Time{}), time.Hour+time.Nanosecond)
		close(release)
		synctest.Wait()
		stop(t, sys)
	})
}

// One that waited for a processor is given more time, and that is counted.
func TestSilentWithoutAProcessor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := startOnly(t, supervisor.SystemOptions{Stalls: &pretended{}, Strategy: strategy.Heartbeat(2 * time.Second), Children: []supervisor.Spec{
			{Key: "a", New: of(behaviour{handle: func(c *supervisor.Ctx, _ any) error {
				c.Beat()
				c.Waited(4 * time.Second)
				return nil
			}})},
		}})
		gone := sys.Monitor("a")
		require.True(t, sys.Ref("a").Tell("work"))
		later(8 * time.Second)
		require.Empty(t, gone)
		node, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		require.Positive(t, node.Busy.Postponed)
		require.Equal(t, messages.ExitHung, (<-gone).Kind)
		stop(t, sys)
	})
}

// The limits of a start and of an end do not run while this process stands still, and
// what a child has no processor for is not counted against its end.
func TestLimitsOverAStall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		takes, stands time.Duration // from a second after it began
		waits         bool          // it says that it waited all the time
		waited        time.Duration // and so long before it was asked to end
		clean         bool
		after         time.Duration // when it was abandoned
	}{
		"in time":                      {takes: 4 * time.Second, clean: true},
		"too late":                     {takes: time.Hour, after: 5 * time.Second},
		"a stall":                      {takes: time.Hour + 4*time.Second, stands: time.Hour, clean: true},
		"a stall, and too late":        {takes: 2 * time.Hour, stands: time.Hour, after: time.Hour + 5*time.Second},
		"without a processor":          {takes: 25 * time.Second, waits: true, clean: true},
		"without a processor for long": {takes: time.Hour, waits: true, after: 30 * time.Second},
		"without one earlier":          {takes: time.Hour, waited: 10 * time.Second, after: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &pretended{}
				sys := startOnly(t, supervisor.SystemOptions{Stalls: p, Children: []supervisor.Spec{supervise("s", supervisor.Options{
					Children: []supervisor.Spec{{Key: "a", New: of(behaviour{init: func(ctx *supervisor.Ctx) error { ctx.Waited(tc.waited); return nil }, terminate: func(ctx *supervisor.Ctx, _ supervisor.Exit) {
						for end := time.Now().Add(tc.takes); time.Now().Before(end); later(100 * time.Millisecond) {
							if tc.waits {
								ctx.Waited(100 * time.Millisecond)
							}
						}
					}})}},
				})}})
				gone := sys.Monitor("s", "a")
				later(time.Hour) // it is no matter how long it has been there
				begin := time.Now()
				ended := make(chan messages.ShutdownReport, 1)
				go func() { ended <- sys.Shutdown(context.Background()) }()
				if tc.stands > 0 {
					later(time.Second)
					p.stand(tc.stands)
				}
				exit := <-gone
				took := time.Since(begin)
				later(2 * time.Hour)
				require.True(t, (<-ended).Clean() || !tc.clean)
				if tc.clean {
					require.Equal(t, messages.ExitShutdown, exit.Kind)
					return
				}
				require.Equal(t, messages.ExitHung, exit.Kind)
				require.InDelta(t, tc.after, took, float64(200*time.Millisecond))
			})
		})
	}
}

// A start that takes longer than it may because this process stood still has the rest
// of its time afterwards.
func TestAStartOverAStall(t *testing.T) {
	t.Parallel()
	for rest, wellDone := range map[time.Duration]bool{28 * time.Second: true, 32 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			p := &pretended{}
			sys := startOnly(t, supervisor.SystemOptions{Stalls: p, Children: []supervisor.Spec{supervise("s", supervisor.Options{Handler: &handler{
				spec: func(_ *supervisor.Supervisor, key string, _ supervisor.Work) (supervisor.Spec, error) {
					return supervisor.Spec{Key: key, ManualUp: true, New: of(behaviour{
						init: func(ctx *supervisor.Ctx) error {
							ctx.After(time.Hour+time.Second+rest, "up")
							return nil
						},
						handle: func(ctx *supervisor.Ctx, msg any) error {
							if w, ok := msg.(supervisor.Work); ok {
								ctx.Finish(w, 1)
								return nil
							}
							ctx.Up()
							return nil
						},
					})}, nil
				},
				handle: func(s *supervisor.Supervisor, m any) error { s.Submit("a", m.(supervisor.Work)); return nil },
			}})}})
			_, reply, err := supervisor.Begin[int](sys.Ref("s"), "go")
			require.NoError(t, err)
			later(time.Second)
			p.stand(time.Hour)
			_, err = reply.Wait(t.Context())
			require.Equal(t, wellDone, err == nil, "%v", err)
			stop(t, sys)
		})
	}
}

// A snapshot waits for those who could not answer while this process stood still, and for
// those who had the chance no longer than it says.
func TestSnapshotOverAStall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers, takes time.Duration
		detail         string
	}{
		"they answer":   {answers: time.Hour + time.Second/2, takes: time.Hour + time.Second/2},
		"they never do": {answers: 2 * time.Hour, takes: time.Hour + time.Second + 100*time.Millisecond, detail: "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, release := &pretended{}, make(chan struct{})
				sys := startOnly(t, supervisor.SystemOptions{Stalls: p, Children: []supervisor.Spec{
					supervise("busy", supervisor.Options{Handler: deaf(release), Children: []supervisor.Spec{{Key: "below", New: of(echo)}}}),
				}})
				require.True(t, sys.Ref("busy").Tell("hang"))
				synctest.Wait()
				began := time.Now()
				go p.stand(time.Hour)
				time.AfterFunc(tc.answers, func() { close(release) })
				node, err := sys.Snapshot(t.Context())
				require.NoError(t, err)
				require.WithinRange(t, time.Now(), began.Add(tc.takes), began.Add(tc.takes+100*time.Millisecond))
				require.Equal(t, tc.detail, node.Children[0].Detail)
				require.Len(t, node.Children[0].Children, map[bool]int{true: 1}[tc.detail == ""])
				<-release
				stop(t, sys)
			})
		})
	}
}
