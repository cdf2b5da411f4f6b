package supervisor_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// TestContext: it ends before Terminate, with the reason for its cause.
func TestContext(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		end  func(*testing.T, *supervisor.System)
		kind messages.ExitKind
	}{
		"stopped":  {func(t *testing.T, s *supervisor.System) { stop(t, s) }, messages.ExitShutdown},
		"fails":    {func(_ *testing.T, s *supervisor.System) { s.Ref("a").Tell(errTest) }, messages.ExitFailed},
		"is done":  {func(_ *testing.T, s *supervisor.System) { s.Ref("a").Tell(supervisor.ErrDone) }, messages.ExitNormal},
		"poisoned": {func(_ *testing.T, s *supervisor.System) { s.Poison(s.Ref("a")) }, messages.ExitKilled},
		"goexit":   {func(_ *testing.T, s *supervisor.System) { s.Ref("a").Tell("goexit") }, messages.ExitKilled},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				causes := make(chan error, 2)
				sys, _ := one(t, behaviour{
					init: func(c *supervisor.Ctx) error {
						life := c.Context()
						go func() { <-life.Done(); causes <- context.Cause(life) }()
						return nil
					},
					handle: func(_ *supervisor.Ctx, m any) error {
						if m == "goexit" {
							runtime.Goexit()
						}
						return m.(error)
					},
					terminate: func(c *supervisor.Ctx, e supervisor.Exit) {
						if c.Context().Err() == nil {
							causes <- errTest
						}
						if c.Tell("late") {
							causes <- errTest
						}
						causes <- e
					},
				})
				row.end(t, sys)
				for range 2 {
					var exit supervisor.Exit
					require.ErrorAs(t, <-causes, &exit)
					require.Equal(t, row.kind, exit.Kind)
				}
				stop(t, sys)
			})
		})
	}
}

// TestContextLate: one that is first asked for at the end has ended.
func TestContextLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cause error
		sys, _ := one(t, behaviour{terminate: func(c *supervisor.Ctx, _ supervisor.Exit) { cause = context.Cause(c.Context()) }})
		stop(t, sys)
		require.ErrorIs(t, cause, supervisor.ErrStopped)
	})
}

func TestAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &log{}
		began := time.Now()
		sys, a := one(t, behaviour{
			init: func(c *supervisor.Ctx) error {
				c.After(time.Hour, "hour")
				c.After(time.Minute, "minute")
				stop := c.After(time.Second, "never")
				stop()
				stop()
				c.After(2*time.Hour, "too late")
				return nil
			},
			handle: func(c *supervisor.Ctx, m any) error {
				seen.add(fmt.Sprint(m, " ", c.Now().Sub(began)))
				if m == "end" {
					return supervisor.ErrDone
				}
				return nil
			},
			terminate: func(c *supervisor.Ctx, _ supervisor.Exit) { c.After(time.Second, "from beyond")() },
		})
		later(90 * time.Minute)
		require.True(t, a.Tell("end"))
		later(24 * time.Hour)
		require.Equal(t, []string{"minute 1m0s", "hour 1h0m0s", "end 1h30m0.001s"}, seen.take())
		stop(t, sys)
	})
}

// TestWatchDeath: an actor learns once why another one ended.
func TestWatchDeath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &log{}
		var other supervisor.Ref
		told := func(e supervisor.Exit) any { return "ended: " + e.Error() }
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			{Key: "a", New: of(behaviour{handle: func(_ *supervisor.Ctx, m any) error { return m.(error) }})},
			{Key: "b", New: of(behaviour{handle: func(c *supervisor.Ctx, m any) error {
				switch m := m.(type) {
				case supervisor.Ref:
					other = m
					c.Watch(other, told)
					c.Watch(other, func(supervisor.Exit) any { return "never" })()
				case string:
					seen.add(m)
					if m == "again" {
						c.Watch(other, told)
						c.Watch(supervisor.Ref{}, told)
					}
				}
				return nil
			}})},
		}})
		require.True(t, sys.Ref("b").Tell(sys.Ref("a")))
		synctest.Wait()
		monitor := sys.Monitor("a")
		require.True(t, sys.Ref("a").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"ended: failed: on purpose"}, seen.take())
		require.ErrorIs(t, <-monitor, errTest)
		_, open := <-monitor
		require.False(t, open, "once")
		require.True(t, sys.Ref("b").Tell("again"))
		synctest.Wait()
		require.Equal(t, []string{"again", "ended: killed: no such actor", "ended: killed: no such actor"}, seen.take())
		stop(t, sys)
	})
}

// TestWatchPanics: the function that makes the message runs under the guard of
// the one that watches.
func TestWatchPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			{Key: "a", New: of(behaviour{handle: func(*supervisor.Ctx, any) error { return supervisor.ErrDone }})},
			{Key: "b", New: of(behaviour{handle: func(c *supervisor.Ctx, m any) error {
				c.Watch(m.(supervisor.Ref), func(supervisor.Exit) any { panic("on purpose") })
				return nil
			}})},
		}})
		require.True(t, sys.Ref("b").Tell(sys.Ref("a")))
		synctest.Wait()
		ended := sys.Monitor("b")
		require.True(t, sys.Ref("a").Tell(1))
		require.Equal(t, messages.ExitPanicked, (<-ended).Kind)
		stop(t, sys)
	})
}

// TestPrevious: an incarnation knows about the one before it.
func TestPrevious(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &log{}
		a := behaviour{
			init: func(c *supervisor.Ctx) error {
				exit, ok := c.Previous()
				seen.add(fmt.Sprintf("%s#%d %v %v served %v", c.Key(), c.Epoch(), ok, exit, c.Served()))
				return nil
			},
			handle: func(c *supervisor.Ctx, m any) error {
				w, ok := m.(supervisor.Work)
				if !ok {
					return errTest
				}
				c.Finish(w, nil)
				return nil
			},
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("gate", supervisor.Options{Handler: dynamic(a), Strategy: strategy.Intensity(9, time.Hour)}),
		}})
		gate := sys.Ref("gate")
		answer(t, submit(t, gate, "a", 1))
		for range 2 { // one that has begun anew does so again
			in(t, gate, func(s *supervisor.Supervisor) { s.Restart("a", supervisor.Exit{}) })
			synctest.Wait()
		}
		require.True(t, sys.Ref("gate", "a").Tell("fail"))
		synctest.Wait()
		require.Equal(t, []string{"a#1 false  served false", "a#2 true reset served true", "a#3 true reset served true", "a#4 true failed: on purpose served true"}, seen.take())
		require.Equal(t, "gate/a", sys.Ref("gate", "a").Path())
		stop(t, sys)
	})
}

// TestPreviousOfOneThatHadHibernated: what it was asked for while it ended, or afterwards, says why
// there is nothing of it.
func TestPreviousOfOneThatHadHibernated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &log{}
		hold := make(chan struct{})
		a := behaviour{
			init: func(c *supervisor.Ctx) error {
				exit, _ := c.Previous()
				seen.add(fmt.Sprintf("%d after %v", c.Epoch(), exit))
				return nil
			},
			handle: func(c *supervisor.Ctx, m any) error {
				if w, ok := m.(supervisor.Work); ok {
					c.Finish(w, nil)
					return nil
				}
				return supervisor.Exit{Kind: messages.ExitHibernated}
			},
			terminate: func(*supervisor.Ctx, supervisor.Exit) { <-hold },
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("gate", supervisor.Options{Handler: dynamic(a)}),
		}})
		gate := sys.Ref("gate")
		for n, ask := range []func(s *supervisor.Supervisor){
			func(*supervisor.Supervisor) {},
			func(s *supervisor.Supervisor) { s.Restart("a", supervisor.Exit{}) },
			func(s *supervisor.Supervisor) { s.End("a", supervisor.Exit{}) },
		} {
			answer(t, submit(t, gate, "a", n))
			require.True(t, sys.Ref("gate", "a").Tell("sleep"))
			synctest.Wait()
			in(t, gate, ask)
			r := submit(t, gate, "a", n) // it waits for the next incarnation
			synctest.Wait()
			hold <- struct{}{}
			answer(t, r)
		}
		require.Equal(t, []string{"1 after ", "2 after hibernated", "3 after reset", "4 after shutdown"}, seen.take())
		close(hold)
		stop(t, sys)
	})
}

// cargo is a message that owns something.
type cargo struct{ l *log }

func (c cargo) Dropped() { c.l.add("dropped") }

// TestDroppable: what was taken is handled or dropped, never forgotten.
func TestDroppable(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stopped", "fails", "is done", "panics in Dropped"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &log{}
				hold := make(chan struct{})
				sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{{Key: "a", New: of(behaviour{
					handle: func(c *supervisor.Ctx, m any) error {
						switch m.(type) {
						case cargo:
							l.add("handled")
							return nil
						case string:
							switch how {
							case "stopped":
								<-c.Context().Done()
								return nil
							case "is done":
								<-hold
								return supervisor.ErrDone
							}
							<-hold
							return errTest
						}
						return nil
					},
					terminate: func(*supervisor.Ctx, supervisor.Exit) { l.add("terminated") },
				})}}})
				a := sys.Ref("a")
				require.True(t, a.Tell(cargo{l}))
				require.True(t, a.Tell("hold"))
				synctest.Wait() // it is held; what follows waits behind it
				require.True(t, a.Tell(cargo{l}))
				if how == "panics in Dropped" {
					require.True(t, a.Tell(badCargo{}))
				}
				require.True(t, a.Tell(cargo{l}))
				_, r, err := supervisor.Begin[int](a, cargo{l})
				require.NoError(t, err)
				if how == "stopped" {
					stop(t, sys)
				} else {
					close(hold)
					synctest.Wait()
				}
				require.False(t, a.Tell(cargo{l}), "from here on it is the caller's")
				_, err = r.Wait(t.Context())
				require.ErrorIs(t, err, supervisor.ErrGone)
				synctest.Wait()
				require.ElementsMatch(t, []string{"handled", "dropped", "dropped", "dropped", "terminated"}, l.take())
				stop(t, sys)
			})
		})
	}
}

type badCargo struct{}

func (badCargo) Dropped() { panic("on purpose") }

// TestDropped: the watchers hear how much was dropped.
func TestDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dropped []messages.Dropped
		hold := make(chan struct{})
		sys := startOnly(t, supervisor.SystemOptions{
			OnEvent: func(e messages.Lifecycle) {
				if d, ok := e.(messages.Dropped); ok {
					dropped = append(dropped, d)
				}
			},
			Children: []supervisor.Spec{{Key: "a", New: of(behaviour{handle: func(*supervisor.Ctx, any) error { <-hold; return errTest }})}},
		})
		for range 4 {
			require.True(t, sys.Ref("a").Tell(1))
		}
		close(hold)
		synctest.Wait()
		require.Len(t, dropped, 1, "once")
		d := dropped[0]
		d.At = time.Time{}
		require.Equal(t, messages.Dropped{Path: "a", Epoch: 1, Count: 3, What: "messages"}, d)
		stop(t, sys)
	})
}

// TestStashIsBounded: a child that stays suspended does not fill memory.
func TestStashIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		decide := make(chan struct{})
		seen := 0
		d := dynamic(behaviour{handle: func(c *supervisor.Ctx, m any) error {
			switch m := m.(type) {
			case supervisor.Work:
				c.Finish(m, nil)
			case error:
				return m
			case int:
				seen++
			}
			return nil
		}})
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("gate", supervisor.Options{Handler: d, Strategy: slow{decide}}),
		}})
		gate := sys.Ref("gate")
		answer(t, submit(t, gate, "a", 1))
		a := sys.Ref("gate", "a")
		require.True(t, a.Tell(errTest))
		synctest.Wait()
		for i := range 3000 {
			require.True(t, a.Tell(i))
		}
		synctest.Wait()
		close(decide)
		synctest.Wait()
		require.Equal(t, 1024, seen)
		stop(t, sys)
	})
}

// slow thinks about a failure until it may go on.
type slow struct{ until chan struct{} }

func (s slow) Decide(_ strategy.View, e strategy.Event) []strategy.Directive {
	if f, ok := e.(strategy.Fail); ok {
		<-s.until
		return []strategy.Directive{strategy.Resume(f.Key)}
	}
	return nil
}
