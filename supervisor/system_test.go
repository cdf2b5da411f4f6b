package supervisor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// logged is a child that writes its life down; each step takes its time.
func logged(l *log, key string, init, terminate time.Duration) supervisor.Spec {
	return supervisor.Spec{Key: key, New: of(behaviour{
		init:      func(*supervisor.Ctx) error { time.Sleep(init); l.add("+" + key); return nil },
		handle:    func(_ *supervisor.Ctx, m any) error { return m.(error) },
		terminate: func(*supervisor.Ctx, supervisor.Exit) { time.Sleep(terminate); l.add("-" + key) },
	})}
}

// TestStartOrder: one after the other, each up before the next; the end is the
// reverse; a supervisor's children come and go with it.
func TestStartOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			logged(l, "a", 3*time.Second, time.Second),
			supervise("s", supervisor.Options{Children: []supervisor.Spec{logged(l, "s1", 2*time.Second, 2*time.Second), logged(l, "s2", time.Second, 0)}}),
			logged(l, "b", 0, 3*time.Second),
		}})
		require.Equal(t, []string{"+a", "+s1", "+s2", "+b"}, l.take())
		began := time.Now()
		stop(t, sys)
		require.Equal(t, []string{"-b", "-s2", "-s1", "-a"}, l.take())
		require.Equal(t, 6*time.Second, time.Since(began))
	})
}

// TestStartFailsInOrder: what was started is stopped, and the error says what
// failed and why.
func TestStartFailsInOrder(t *testing.T) {
	t.Parallel()
	bad := supervisor.Spec{Key: "bad", New: of(behaviour{init: func(*supervisor.Ctx) error { return errTest }})}
	for name, children := range map[string]func(*log) []supervisor.Spec{
		"at the top": func(l *log) []supervisor.Spec {
			return []supervisor.Spec{logged(l, "a", 0, 0), logged(l, "b", 0, 0), bad, logged(l, "never", 0, 0)}
		},
		"below": func(l *log) []supervisor.Spec {
			return []supervisor.Spec{logged(l, "a", 0, 0), supervise("s", supervisor.Options{Children: []supervisor.Spec{logged(l, "b", 0, 0), bad}}), logged(l, "never", 0, 0)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &log{}
				_, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Children: children(l)})
				require.ErrorIs(t, err, errTest)
				require.ErrorContains(t, err, "bad")
				require.Equal(t, []string{"+a", "+b", "-b", "-a"}, l.take())
			})
		})
	}
}

// TestStartIsRetried: a strategy may give a child that does not come up more
// tries; the system is up when it is.
func TestStartIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		began := time.Now()
		sys := startOnly(t, supervisor.SystemOptions{
			Strategy: strategy.Backoff(strategy.BackoffOptions{Initial: time.Second}),
			Children: []supervisor.Spec{{Key: "a", New: of(behaviour{init: func(*supervisor.Ctx) error {
				if tries++; tries < 3 {
					return errTest
				}
				return nil
			}})}, {Key: "b", New: of(echo)}},
		})
		require.Equal(t, 2500*time.Millisecond, time.Since(began))
		stop(t, sys)
	})
}

// TestStartGivesUp: when ctx ends, what was started is stopped in order.
func TestStartGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errTest)
		defer cancel()
		_, err := supervisor.Start(ctx, supervisor.SystemOptions{Children: []supervisor.Spec{
			logged(l, "a", 0, 2*time.Second),
			{Key: "slow", StartTimeout: time.Hour, New: of(behaviour{init: func(c *supervisor.Ctx) error {
				<-c.Context().Done()
				return context.Cause(c.Context())
			}})},
		}})
		require.ErrorIs(t, err, errTest)
		require.Equal(t, []string{"+a", "-a"}, l.take())
	})
}

// TestEmpty: a system of nothing.
func TestEmpty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := startOnly(t, supervisor.SystemOptions{})
		n, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		require.Equal(t, "supervisor", n.Name)
		require.Equal(t, messages.ChildIdle, n.State)
		require.Empty(t, n.Children)
		r := sys.Shutdown(t.Context())
		require.True(t, r.Clean())
		require.Equal(t, 1, r.Stopped)
		_, err = sys.Snapshot(t.Context())
		require.ErrorIs(t, err, supervisor.ErrStopped)
		require.False(t, sys.Ref().Tell(1))
		check(t, sys)
	})
}

// TestShutdownDrain: running work may finish within the drain, nothing new
// begins, and what is cut off is counted.
func TestShutdownDrain(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name       string
		drain      time.Duration
		deadline   time.Duration
		skips      bool
		finishes   bool
		unanswered int
		takes      time.Duration
	}{
		{"enough time", 10 * time.Second, 0, false, true, 1, 3 * time.Second},
		{"too little", 2 * time.Second, 0, false, false, 2, 2 * time.Second},
		{"none", -1, 0, false, false, 2, 0},
		{"it is skipped", 10 * time.Second, 0, true, false, 2, 0},
		{"half of what the caller has", 10 * time.Second, 4 * time.Second, false, false, 2, 2 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := dynamic(behaviour{handle: func(c *supervisor.Ctx, m any) error {
					w := m.(supervisor.Work)
					select {
					case <-time.After(3 * time.Second):
						c.Finish(w, "done")
					case <-c.Context().Done():
					}
					return nil
				}})
				sys := startOnly(t, supervisor.SystemOptions{Drain: row.drain, Children: []supervisor.Spec{
					supervise("s", supervisor.Options{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: d})}}),
				}})
				gate := sys.Ref("s", "gate")
				runs, waits := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
				synctest.Wait()
				ctx := context.Background()
				if row.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, row.deadline)
					defer cancel()
				}
				if row.skips {
					sys.SkipDrain()
				}
				r := sys.Shutdown(ctx)
				require.True(t, r.Clean(), "%v", r.Leftovers)
				require.Equal(t, row.takes, r.Duration)
				require.Equal(t, row.unanswered, r.Unanswered)
				require.Equal(t, 4, r.Stopped)
				require.ErrorIs(t, refusal(t, waits), supervisor.ErrDraining)
				if row.finishes {
					require.Equal(t, "done", answer(t, runs))
				} else {
					require.ErrorIs(t, refusal(t, runs), supervisor.ErrLost)
				}
				check(t, sys)
			})
		})
	}
}

// TestShutdownParallel: dynamic children end at once, and before the static
// ones that they may use.
func TestShutdownParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		slow := echo
		slow.terminate = func(*supervisor.Ctx, supervisor.Exit) { time.Sleep(time.Second); l.add("dynamic") }
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("gate", supervisor.Options{Handler: dynamic(slow), Children: []supervisor.Spec{logged(l, "a", 0, 0), logged(l, "b", 0, 0)}}),
		}})
		for i := range 100 {
			answer(t, submit(t, sys.Ref("gate"), fmt.Sprint(i), 1))
		}
		l.take()
		r := sys.Shutdown(context.Background())
		require.Equal(t, time.Second, r.Duration)
		require.Equal(t, 104, r.Stopped)
		seen := l.take()
		require.Len(t, seen, 102)
		require.Equal(t, []string{"-b", "-a"}, seen[100:])
		check(t, sys)
	})
}

// TestShutdownHung: what does not end within its StopTimeout is abandoned and
// reported, and holds nothing else up.
func TestShutdownHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		release := make(chan struct{})
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			logged(l, "a", 0, 0),
			supervise("s", supervisor.Options{Children: []supervisor.Spec{{Key: "hung", StopTimeout: 2 * time.Second, New: of(behaviour{
				init:      func(c *supervisor.Ctx) error { c.Note(supervisor.Facts{PID: 42}); return nil },
				terminate: func(*supervisor.Ctx, supervisor.Exit) { <-release },
			})}}}),
			logged(l, "b", 0, 0),
		}})
		l.take()
		r := sys.Shutdown(context.Background())
		require.Equal(t, 2*time.Second, r.Duration)
		require.Equal(t, []messages.Leftover{{Path: "s/hung", PID: 42, Exit: messages.Exit{Kind: messages.ExitHung, Reason: "did not end within 2s"}}}, r.Leftovers)
		require.False(t, r.Clean())
		require.Equal(t, []string{"-b", "-a"}, l.take())
		close(release)
		check(t, sys)
	})
}

// TestShutdownDeadline: when the caller's time is over, everything is given up
// at once, at every depth.
func TestShutdownDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := clinging(release)
		spec := func(key string) supervisor.Spec {
			return supervisor.Spec{Key: key, StopTimeout: time.Hour, New: of(stuck)}
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			spec("a"),
			supervise("s", supervisor.Options{Children: []supervisor.Spec{spec("s1"), supervise("deep", supervisor.Options{Children: []supervisor.Spec{spec("d1")}})}}),
			spec("b"),
		}})
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r := sys.Shutdown(ctx)
		require.InDelta(t, 10*time.Second, r.Duration, float64(200*time.Millisecond))
		var paths []string
		for _, l := range r.Leftovers {
			paths = append(paths, l.Path)
			require.Equal(t, messages.ExitHung, l.Exit.Kind)
		}
		require.Equal(t, []string{"a", "b", "s/deep/d1", "s/s1"}, paths)
		close(release)
		synctest.Wait()
		require.Zero(t, sys.Zombies())
		check(t, sys)
	})
}

// TestShutdownStuckSupervisor: a supervisor whose own code hangs cannot hold
// the end up.
func TestShutdownStuckSupervisor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		release := make(chan struct{})
		d := deaf(release)
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			logged(l, "a", 0, 0),
			supervise("s", supervisor.Options{Handler: d, Children: []supervisor.Spec{logged(l, "below", 0, 0)}}),
		}})
		l.take()
		require.True(t, sys.Ref("s").Tell("hang"))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r := sys.Shutdown(ctx)
		require.InDelta(t, 10*time.Second, r.Duration, float64(200*time.Millisecond))
		require.Len(t, r.Leftovers, 1)
		require.Equal(t, "s", r.Leftovers[0].Path)
		synctest.Wait()
		require.ElementsMatch(t, []string{"-a", "-below"}, l.take(), "the rest terminates all the same")
		close(release)
		check(t, sys)
	})
}

// TestShutdownShared: many callers share one shutdown and its report; the first
// whose ctx ends decides.
func TestShutdownShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{{Key: "a", StopTimeout: time.Hour, New: of(behaviour{
			terminate: func(*supervisor.Ctx, supervisor.Exit) { <-release },
		})}}})
		var reports [5]messages.ShutdownReport
		var wg sync.WaitGroup
		for i := range reports {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(10+i)*time.Second)
				defer cancel()
				reports[i] = sys.Shutdown(ctx)
			})
		}
		wg.Wait()
		for _, r := range reports {
			require.Equal(t, reports[0], r)
		}
		require.InDelta(t, 10*time.Second, reports[0].Duration, float64(200*time.Millisecond))
		require.Len(t, reports[0].Leftovers, 1)
		require.Equal(t, reports[0], sys.Shutdown(context.Background()), "and later, too")
		close(release)
		check(t, sys)
	})
}

// TestShutdownFullQueues: everything that was submitted has its answer.
func TestShutdownFullQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := dynamic(behaviour{handle: func(c *supervisor.Ctx, _ any) error { <-c.Context().Done(); return errTest }})
		d.unserved = func(_ *supervisor.Supervisor, w supervisor.Work, e *supervisor.ServiceError) {
			if w.Msg.(int)%2 == 0 {
				w.Settle(e) // the others are forgotten, which a Handler should not do
			}
		}
		sys := startOnly(t, supervisor.SystemOptions{Drain: -1, Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: d, Strategy: strategy.LRUQueue(3, 1000)})}})
		var replies []supervisor.Reply[any]
		in(t, sys.Ref("gate"), func(s *supervisor.Supervisor) {
			for i := range 1000 {
				w, r := supervisor.NewWork[any](i)
				replies = append(replies, r)
				s.Submit(fmt.Sprint(i%50), w)
			}
		})
		synctest.Wait()
		r := sys.Shutdown(context.Background())
		require.True(t, r.Clean())
		require.GreaterOrEqual(t, r.Unanswered, 1000)
		for _, reply := range replies {
			select {
			case <-reply.Done():
			default:
				t.Fatal("a work has no answer")
			}
		}
		check(t, sys)
	})
}
