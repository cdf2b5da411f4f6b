package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
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
// reverse; a shell's children come and go with it.
func TestStartOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			logged(l, "a", 3*time.Second, time.Second),
			shell("s", supervisor.Options{Children: []supervisor.Spec{logged(l, "s1", 2*time.Second, 2*time.Second), logged(l, "s2", time.Second, 0)}}),
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
			return []supervisor.Spec{logged(l, "a", 0, 0), shell("s", supervisor.Options{Children: []supervisor.Spec{logged(l, "b", 0, 0), bad}}), logged(l, "never", 0, 0)}
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
			Strategy: supervisor.Backoff(supervisor.BackoffOptions{Initial: time.Second}),
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
		finishes   bool
		unanswered int
		takes      time.Duration
	}{
		{"enough time", 10 * time.Second, 0, true, 1, 3 * time.Second},
		{"too little", 2 * time.Second, 0, false, 2, 2 * time.Second},
		{"none", -1, 0, false, 2, 0},
		{"half of what the caller has", 10 * time.Second, 4 * time.Second, false, 2, 2 * time.Second},
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
					shell("s", supervisor.Options{Children: []supervisor.Spec{shell("gate", supervisor.Options{Door: d})}})}})
				gate := sys.Ref("s", "gate")
				runs, waits := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
				synctest.Wait()
				ctx := context.Background()
				if row.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, row.deadline)
					defer cancel()
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
			shell("gate", supervisor.Options{Door: dynamic(slow), Children: []supervisor.Spec{logged(l, "a", 0, 0), logged(l, "b", 0, 0)}})}})
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
// reported, and holds nobody else up.
func TestShutdownHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		release := make(chan struct{})
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			logged(l, "a", 0, 0),
			shell("s", supervisor.Options{Children: []supervisor.Spec{{Key: "hung", StopTimeout: 2 * time.Second, New: of(behaviour{
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
		stuck := behaviour{terminate: func(*supervisor.Ctx, supervisor.Exit) { <-release }}
		spec := func(key string) supervisor.Spec {
			return supervisor.Spec{Key: key, StopTimeout: time.Hour, New: of(stuck)}
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			spec("a"),
			shell("s", supervisor.Options{Children: []supervisor.Spec{spec("s1"), shell("deep", supervisor.Options{Children: []supervisor.Spec{spec("d1")}})}}),
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

// TestShutdownStuckShell: a shell whose own code hangs cannot hold the end up.
func TestShutdownStuckShell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		release := make(chan struct{})
		d := &door{handle: func(*supervisor.Shell, any) error { <-release; return nil }}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			logged(l, "a", 0, 0),
			shell("s", supervisor.Options{Door: d, Children: []supervisor.Spec{logged(l, "below", 0, 0)}}),
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
		d.unserved = func(_ *supervisor.Shell, w supervisor.Work, e *supervisor.ServiceError) {
			if w.Msg.(int)%2 == 0 {
				w.Settle(e) // the others are forgotten, which a Door should not do
			}
		}
		sys := startOnly(t, supervisor.SystemOptions{Drain: -1, Children: []supervisor.Spec{shell("gate", supervisor.Options{Door: d, Strategy: supervisor.LRUQueue(3, 1000)})}})
		var replies []supervisor.Reply[any]
		in(t, sys.Ref("gate"), func(s *supervisor.Shell) {
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

// TestEscalation: a root that fails ends the tree, and says so once.
func TestEscalation(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		strategy supervisor.Strategy
		tell     error
		kind     messages.ExitKind
	}{
		{"too many failures", supervisor.Chain(supervisor.OneForOne(), supervisor.EscalateAfter(0, time.Minute)), errTest, messages.ExitEscalated},
		{"the strategy panics", badStrategy{func(e supervisor.Event) bool { _, ok := e.(supervisor.Fail); return ok }, func() { panic(errTest) }}, errTest, messages.ExitPanicked},
		{"a significant child is done", supervisor.AutoShutdown(false), supervisor.ErrDone, messages.ExitShutdown},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &log{}
				exits := make(chan supervisor.Exit, 5)
				a := logged(l, "a", 0, 0)
				a.Significant = true
				sys := startOnly(t, supervisor.SystemOptions{
					Strategy: row.strategy, OnEscalate: func(e supervisor.Exit) { exits <- e },
					Children: []supervisor.Spec{a, logged(l, "b", 0, 0)},
				})
				ended := sys.Monitor()
				require.True(t, sys.Ref("a").Tell(row.tell))
				exit := <-exits
				require.Equal(t, row.kind, exit.Kind)
				if row.kind != messages.ExitShutdown {
					require.ErrorIs(t, exit, errTest)
				}
				<-ended
				synctest.Wait()
				require.Empty(t, exits)
				require.Zero(t, sys.Live(), "the tree is down")
				require.Equal(t, []string{"+a", "+b"}, l.take()[:2])
				stop(t, sys)
			})
		})
	}
}

// TestNoEscalationHook: without OnEscalate the tree is down all the same.
func TestNoEscalationHook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := startOnly(t, supervisor.SystemOptions{
			Strategy: supervisor.EscalateAfter(0, time.Minute),
			Children: []supervisor.Spec{{Key: "a", New: of(behaviour{handle: func(*supervisor.Ctx, any) error { return errTest }})}},
		})
		ended := sys.Monitor()
		require.True(t, sys.Ref("a").Tell(1))
		require.Equal(t, messages.ExitEscalated, (<-ended).Kind)
		stop(t, sys)
	})
}

// TestStuckShell: a shell that hangs is abandoned by its parent. Its children
// are ended, its work is settled, and another incarnation takes its place.
func TestStuckShell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		release := make(chan struct{})
		g := newGated("a")
		newGate := func() supervisor.Behaviour {
			d := dynamic(g.behaviour())
			d.handle = func(*supervisor.Shell, any) error { <-release; return nil }
			return supervisor.NewShell(supervisor.Options{Door: d, Children: []supervisor.Spec{logged(l, "below", 0, 0)}})
		}
		sys := startOnly(t, supervisor.SystemOptions{
			Strategy: supervisor.Chain(supervisor.RestartOnce(), supervisor.Heartbeat(2*time.Second)),
			Children: []supervisor.Spec{{Key: "gate", New: newGate}},
		})
		gate, below := sys.Ref("gate"), sys.Ref("gate", "below")
		runs, waits := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		synctest.Wait()
		_, asked, err := supervisor.Begin[int](gate, asking(1)) // hangs in its hand
		require.NoError(t, err)
		ended := gate.Monitor()
		require.Equal(t, messages.ExitHung, (<-ended).Kind)
		for _, r := range []supervisor.Reply[any]{runs, waits} {
			_, err := r.Wait(t.Context())
			require.ErrorIs(t, err, supervisor.ErrGone)
		}
		_, err = asked.Wait(t.Context())
		require.ErrorIs(t, err, supervisor.ErrGone)
		synctest.Wait()
		require.ElementsMatch(t, []string{"+below", "-below", "+below"}, l.take())
		require.True(t, below.Tell(errTest), "the Ref of the static child finds the new one")
		r := submit(t, gate, "a", 3)
		g.open["a"] <- nil
		require.Equal(t, 3, answer(t, r))
		require.Equal(t, 1, sys.Zombies())
		close(release)
		synctest.Wait()
		require.Zero(t, sys.Zombies())
		stop(t, sys)
	})
}

// TestOrphans: below a shell that was abandoned, what does not end is abandoned
// as well.
func TestOrphans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := behaviour{terminate: func(*supervisor.Ctx, supervisor.Exit) { <-release }}
		stuckShell := func(kids ...supervisor.Spec) supervisor.Options {
			return supervisor.Options{Children: kids, Door: &door{handle: func(*supervisor.Shell, any) error { <-release; return nil }}}
		}
		sys := startOnly(t, supervisor.SystemOptions{Strategy: supervisor.Heartbeat(2 * time.Second), Children: []supervisor.Spec{
			shell("s", stuckShell(
				supervisor.Spec{Key: "hung", New: of(stuck)},
				supervisor.Spec{Key: "fine", New: of(echo)},
				shell("deep", stuckShell(supervisor.Spec{Key: "hung", New: of(stuck)})),
			))}})
		require.True(t, sys.Ref("s", "deep").Tell("hang"))
		require.True(t, sys.Ref("s").Tell("hang"))
		synctest.Wait()
		later(time.Hour)
		require.Equal(t, 4, sys.Zombies(), "s, s/hung, s/deep and s/deep/hung")
		r := sys.Shutdown(context.Background())
		require.Len(t, r.Leftovers, 4)
		close(release)
		synctest.Wait()
		require.Zero(t, sys.Zombies())
		check(t, sys)
	})
}

// TestOrphansAtShutdown: those that are still about to end when the system
// shuts down are given up with it.
func TestOrphansAtShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		sys := startOnly(t, supervisor.SystemOptions{Strategy: supervisor.Heartbeat(2 * time.Second), Children: []supervisor.Spec{
			shell("s", supervisor.Options{
				Door:     &door{handle: func(*supervisor.Shell, any) error { <-release; return nil }},
				Children: []supervisor.Spec{{Key: "slow", StopTimeout: time.Hour, New: of(behaviour{terminate: func(*supervisor.Ctx, supervisor.Exit) { <-release }})}},
			})}})
		ended := sys.Monitor("s")
		require.True(t, sys.Ref("s").Tell("hang"))
		<-ended
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r := sys.Shutdown(ctx)
		require.Len(t, r.Leftovers, 2)
		close(release)
		synctest.Wait()
		check(t, sys)
	})
}

// TestEvents: watchers hear everything in order, until they stop.
func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen, second []string // written by the one goroutine that calls the watchers
		say := func(e messages.Lifecycle) string {
			switch e := e.(type) {
			case messages.ChildChanged:
				return fmt.Sprintf("%s#%d %s>%s", e.Path, e.Epoch, e.From, e.To)
			case messages.Decided:
				return fmt.Sprintf("%s: %s", e.Path, e.Directive)
			default:
				return e.Type()
			}
		}
		sys := startOnly(t, supervisor.SystemOptions{
			Strategy: supervisor.RestartOnce(),
			OnEvent:  func(e messages.Lifecycle) { seen = append(seen, say(e)) },
			Children: []supervisor.Spec{shell("s", supervisor.Options{Strategy: supervisor.RestartOnce(), Children: []supervisor.Spec{
				{Key: "a", New: of(behaviour{handle: func(*supervisor.Ctx, any) error { return errTest }})}}})},
		})
		unwatch := sys.Watch(func(e messages.Lifecycle) { second = append(second, say(e)) })
		require.True(t, sys.Ref("s", "a").Tell(1))
		synctest.Wait()
		unwatch()
		unwatch()
		stop(t, sys)
		require.Equal(t, []string{
			"s#1 >starting", "s/a#1 >starting", "s/a#1 starting>idle", "s#1 starting>idle",
			"s/a#1 idle>suspended", "s/a: restart", "s/a#1 suspended>restarting", "s/a#2 restarting>starting", "s/a#2 starting>idle",
			"s#1 idle>stopping", "s/a#2 idle>stopping", "s/a#2 stopping>gone", "s#1 stopping>gone",
		}, seen)
		require.Equal(t, seen[4:9], second)
	})
}

// TestSlowWatcher: what does not fit is counted, nothing blocks.
func TestSlowWatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var events, dropped int
		sys := startOnly(t, supervisor.SystemOptions{
			OnEvent: func(e messages.Lifecycle) {
				<-hold
				if d, ok := e.(messages.Dropped); ok {
					require.Equal(t, "events", d.What)
					dropped += d.Count
					return
				}
				events++
			},
			Children: []supervisor.Spec{shell("gate", supervisor.Options{Door: dynamic(echo)})},
		})
		const works = 35_000 // two events each, and a few
		for i := range works {
			answer(t, submit(t, sys.Ref("gate"), "a", i))
		}
		close(hold)
		synctest.Wait()
		stop(t, sys)
		require.Positive(t, dropped)
		require.InDelta(t, 2*works, events+dropped, 20)
	})
}

// TestSnapshot: the whole tree, nested shells included, each in its state.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := newGated("a", "b")
		sys := startOnly(t, supervisor.SystemOptions{Name: "root", Children: []supervisor.Spec{
			{Key: "plain", Kind: "sink", New: of(behaviour{init: func(c *supervisor.Ctx) error { c.Note(supervisor.Facts{Detail: "writes"}); return nil }})},
			shell("s", supervisor.Options{Children: []supervisor.Spec{shell("gate", supervisor.Options{
				Door: dynamic(g.behaviour()), Strategy: supervisor.Chain(supervisor.RestartOnce(), supervisor.IdleTTL(time.Hour), supervisor.LRUQueue(2, 2)),
			})}}),
		}})
		gate := sys.Ref("s", "gate")
		submitWork(t, gate, "a", 1, func(w *supervisor.Work) { w.Owner = "ann" })
		submit(t, gate, "a", 2)
		submit(t, gate, "b", 1)
		submit(t, gate, "c", 1)
		g.open["a"] <- errTest
		g.open["b"] <- nil
		synctest.Wait()
		in(t, gate, func(s *supervisor.Shell) { s.Pin("a", true) })
		got, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		node := func(name, kind string, state messages.ChildState, children ...messages.Node) messages.Node {
			return messages.Node{Name: name, Kind: kind, State: state, Epoch: 1, Since: began, StartedAt: began, Children: children}
		}
		a := node("a", "", messages.ChildBusy)
		a.Epoch, a.Restarts, a.Pinned, a.Owner = 2, 1, true, "ann"
		a.LastExit = &messages.Exit{Kind: messages.ExitFailed, Reason: "on purpose"}
		c := node("c", "", messages.ChildBusy)
		plain := node("plain", "sink", messages.ChildIdle)
		plain.Detail = "writes"
		want := node("root", "supervisor", messages.ChildIdle, plain,
			node("s", "supervisor", messages.ChildIdle, node("gate", "supervisor", messages.ChildIdle, a, c)))
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
		stop(t, sys)
	})
}

// TestSnapshotHung: a shell that does not answer is shown as such, in time.
func TestSnapshotHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		d := &door{handle: func(*supervisor.Shell, any) error { <-release; return nil }}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			shell("hung", supervisor.Options{Door: d, Children: []supervisor.Spec{{Key: "below", New: of(echo)}}}),
			shell("fine", supervisor.Options{Children: []supervisor.Spec{{Key: "below", New: of(echo)}}}),
		}})
		require.True(t, sys.Ref("hung").Tell("hang"))
		synctest.Wait()
		began := time.Now()
		n, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, "did not answer", n.Children[0].Detail)
		require.Empty(t, n.Children[0].Children)
		require.Empty(t, n.Children[1].Detail)
		require.Len(t, n.Children[1].Children, 1)

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		began = time.Now()
		_, err = sys.Snapshot(ctx)
		require.NoError(t, err)
		require.Equal(t, 10*time.Millisecond, time.Since(began))
		close(release)
		synctest.Wait()
		require.Len(t, n.Children[0].Children, 0, "an answer that comes late changes nothing")
		stop(t, sys)
	})
}

// TestRefs: places, by their names from the root.
func TestRefs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGated("k")
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			shell("s", supervisor.Options{Children: []supervisor.Spec{shell("gate", supervisor.Options{Door: dynamic(g.behaviour())})}})}})
		require.Equal(t, "s/gate", sys.Ref("s", "gate").Path())
		require.False(t, sys.Ref("s", "gate", "k").Valid())
		r := submit(t, sys.Ref("s", "gate"), "k", 1)
		synctest.Wait()
		k := sys.Ref("s", "gate", "k")
		require.Equal(t, "s/gate/k", k.Path())
		g.open["k"] <- nil
		answer(t, r)
		in(t, sys.Ref("s", "gate"), func(s *supervisor.Shell) {
			require.Equal(t, k, s.Ref("k"))
			s.End("k", supervisor.Exit{})
		})
		synctest.Wait()
		require.False(t, k.Tell(1), "the key is forgotten")
		require.False(t, sys.Ref("s", "gate", "k").Valid())
		stop(t, sys)
	})
}

// TestNotAnActor: after the end nothing is taken, and nobody hangs.
func TestAfterShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{shell("gate", supervisor.Options{Door: dynamic(echo)})}})
		gate := sys.Ref("gate")
		stop(t, sys)
		require.False(t, gate.Tell(1))
		_, err := supervisor.Ask[int](t.Context(), gate, asking(1))
		require.ErrorIs(t, err, supervisor.ErrNoProcess)
		exit := <-sys.Monitor("gate")
		require.True(t, errors.Is(exit, supervisor.ErrNoProcess))
	})
}
