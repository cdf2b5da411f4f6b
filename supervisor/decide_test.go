package supervisor_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// scripted is a strategy of a function.
type scripted func(strategy.Event) []strategy.Directive

func (s scripted) Decide(_ strategy.View, ev strategy.Event) []strategy.Directive { return s(ev) }

// onFail is one that decides about failures alone.
func onFail(decide func(strategy.Fail) []strategy.Directive) scripted {
	return func(ev strategy.Event) []strategy.Directive {
		if fail, ok := ev.(strategy.Fail); ok {
			return decide(fail)
		}
		return nil
	}
}

// obedient is a behaviour that answers its work, and fails with whatever it is told to.
var obedient = behaviour{handle: func(c *supervisor.Ctx, m any) error {
	if err, ok := m.(error); ok {
		return err
	}
	return echo.handle(c, m)
}}

// decides starts a supervisor s of static children that fail as they are told.
func decides(t *testing.T, decide scripted, keys ...string) *supervisor.System {
	t.Helper()
	var children []supervisor.Spec
	for _, key := range keys {
		children = append(children, supervisor.Spec{Key: key, New: of(obedient)})
	}
	sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
		supervise("s", supervisor.Options{Strategy: decide, Children: children, Handler: &handler{}}),
	}})
	synctest.Wait()
	return sys
}

// TestWhyOthersRestart: what is restarted because of another child is told which, and nothing
// when no child is the reason.
func TestWhyOthersRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ticks := 0
		sys := decides(t, func(ev strategy.Event) []strategy.Directive {
			switch ev.(type) {
			case strategy.Fail:
				return []strategy.Directive{strategy.Restart("a", 0), strategy.Restart("b", 0)}
			case strategy.Tick:
				if ticks++; ticks == 50 {
					return []strategy.Directive{strategy.Restart("b", 0)}
				}
			}
			return nil
		}, "a", "b")
		ended := sys.Monitor("s", "b")
		require.True(t, sys.Ref("s", "a").Tell(errTest))
		require.ErrorContains(t, (<-ended).Err, "restarted together with a")
		synctest.Wait()
		ended = sys.Monitor("s", "a")
		require.True(t, sys.Ref("s", "b").Tell(errTest))
		require.ErrorContains(t, (<-ended).Err, "restarted together with b", "its own failure is over")
		synctest.Wait()
		ended = sys.Monitor("s", "b")
		require.ErrorContains(t, (<-ended).Err, "restarted by its supervisor")
		stop(t, sys)
	})
}

// TestOthersRestart: a restart of others together does not decide about the child that failed.
func TestOthersRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := decides(t, onFail(func(fail strategy.Fail) []strategy.Directive {
			return []strategy.Directive{strategy.Restart("b", 0), strategy.Restart("c", 0), strategy.Stop("a", fail.Exit)}
		}), "a", "b", "c")
		require.True(t, sys.Ref("s", "a").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"a gone", "b idle", "c idle"}, states(t, sys.Ref("s")))
		stop(t, sys)
	})
}

// TestWhatEscalates: what a supervisor fails with is an escalation, which has the failure that it is
// about, and of escalations only the first.
func TestWhatEscalates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		exit supervisor.Exit
		want func(t *testing.T, got supervisor.Exit)
	}{
		"of a failure": {supervisor.Exit{Kind: messages.ExitFailed, Err: errTest}, func(t *testing.T, got supervisor.Exit) {
			require.Equal(t, messages.ExitEscalated, got.Kind)
			inner, ok := errors.AsType[supervisor.Exit](got.Err)
			require.True(t, ok)
			require.Equal(t, messages.ExitFailed, inner.Kind)
		}},
		"of an escalation": {supervisor.Exit{Kind: messages.ExitEscalated, Err: errTest}, func(t *testing.T, got supervisor.Exit) {
			require.Equal(t, supervisor.Exit{Kind: messages.ExitEscalated, Err: errTest}, got)
		}},
		"of no failure": {supervisor.Exit{Kind: messages.ExitNormal}, func(t *testing.T, got supervisor.Exit) {
			require.Equal(t, messages.ExitNormal, got.Kind)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sys := decides(t, onFail(func(_ strategy.Fail) []strategy.Directive {
					return []strategy.Directive{strategy.Escalate(tc.exit)}
				}), "a")
				ended := sys.Monitor("s")
				require.True(t, sys.Ref("s", "a").Tell(errTest))
				tc.want(t, <-ended)
				synctest.Wait()
				stop(t, sys)
			})
		})
	}
}

// TestAbandonedWhileItEnds: nobody is asked about a child that does not end in time, when its end
// was wanted.
func TestAbandonedWhileItEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var heard []string // written in the goroutine of the supervisor
		late := false
		hung := strategy.Exitf(messages.ExitHung, "too long")
		decide := scripted(func(ev strategy.Event) []strategy.Directive {
			switch ev.(type) {
			case strategy.Tick:
				if late {
					late = false
					return []strategy.Directive{strategy.Abandon("a", hung)}
				}
				return nil
			case strategy.Fail:
				heard = append(heard, "fail")
				return []strategy.Directive{strategy.Restart("a", 0)}
			}
			return nil
		})
		sys, gate := policySupervisor(t, decide, behaviour{
			handle:    echo.handle,
			terminate: func(*supervisor.Ctx, supervisor.Exit) { <-release },
		})
		answer(t, submit(t, gate, "a", 1))
		in(t, gate, func(s *supervisor.Supervisor) {
			require.True(t, s.End("a", supervisor.Exit{Kind: messages.ExitNormal}))
			late = true
		})
		for range 40 { // a tick is within
			later(time.Second)
		}
		require.Empty(t, states(t, gate))
		require.Empty(t, heard)
		close(release)
		synctest.Wait()
		stop(t, sys)
	})
}

// TestAnnounced: watchers hear what a strategy decides that changes something, each once, and why.
func TestAnnounced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var decided []string // written by the one goroutine that calls the watchers
		room, full := false, false
		decide := scripted(func(ev strategy.Event) []strategy.Directive {
			switch ev := ev.(type) {
			case strategy.Fail:
				if errors.Is(ev.Exit, errTest) {
					return []strategy.Directive{strategy.Resume(ev.Key)}
				}
				return []strategy.Directive{strategy.Stop(ev.Key, ev.Exit)}
			case strategy.Spawning:
				switch {
				case ev.Key == "late" && !room, ev.Key == "never" && !full:
					return []strategy.Directive{strategy.Wait(ev.Key)}
				case ev.Key == "never":
					return []strategy.Directive{strategy.Stop(ev.Key, strategy.Exitf(messages.ExitOverloaded, "too long"))}
				}
			}
			return nil
		})
		sys := startOnly(t, supervisor.SystemOptions{
			OnEvent: func(e messages.Lifecycle) {
				if d, ok := e.(messages.Decided); ok {
					decided = append(decided, fmt.Sprint(d.Path, ": ", d.Directive, " ", d.Exit != nil))
				}
			},
			Children: []supervisor.Spec{supervise("s", supervisor.Options{Strategy: decide, Handler: dynamic(obedient)})},
		})
		gate := sys.Ref("s")
		answer(t, submit(t, gate, "a", 1))
		waits := submit(t, gate, "late", 1)
		for range 3 { // each is a moment at which there might be room
			answer(t, submit(t, gate, "a", 1))
			synctest.Wait()
		}
		require.True(t, sys.Ref("s", "a").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"s/late: wait false"}, decided, "a child that goes on as if nothing were is no news")
		require.True(t, sys.Ref("s", "a").Tell(errors.New("another")))
		synctest.Wait()
		in(t, gate, func(*supervisor.Supervisor) { room = true })
		answer(t, submit(t, gate, "b", 1))
		answer(t, waits)
		require.Equal(t, []string{"s/late: wait false", "s/a: stop true"}, decided)
		waits = submit(t, gate, "never", 1)
		in(t, gate, func(*supervisor.Supervisor) { full = true })
		answer(t, submit(t, gate, "c", 1))
		require.ErrorIs(t, refusal(t, waits), supervisor.ErrOverloaded)
		synctest.Wait()
		require.Equal(t, []string{"s/never: wait false", "s/never: stop true"}, decided[2:], "that it has to wait hides nothing else")
		stop(t, sys)
	})
}

// TestSuspendedSupervisor: one that has failed decides nothing until it goes on.
func TestSuspendedSupervisor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		l := &log{}
		sys := startOnly(t, supervisor.SystemOptions{Strategy: slow{until}, Children: []supervisor.Spec{
			supervise("s", supervisor.Options{
				Handler:  &handler{handle: func(_ *supervisor.Supervisor, m any) error { return m.(error) }},
				Children: []supervisor.Spec{{Key: "a", New: of(obedient)}},
				Strategy: onFail(func(fail strategy.Fail) []strategy.Directive {
					l.add(fail.Key)
					return []strategy.Directive{strategy.Resume(fail.Key)}
				}),
			}),
		}})
		synctest.Wait()
		require.True(t, sys.Ref("s").Tell(errTest))
		synctest.Wait()
		require.True(t, sys.Ref("s", "a").Tell(errTest))
		synctest.Wait()
		require.Empty(t, l.take())
		close(until)
		synctest.Wait()
		require.Equal(t, []string{"a"}, l.take())
		stop(t, sys)
	})
}

// TestARestartThatDoesNotStart ends the child and not its supervisor, which does so only when it
// starts itself.
func TestARestartThatDoesNotStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("s", supervisor.Options{
				Handler: &handler{},
				Strategy: scripted(func(ev strategy.Event) []strategy.Directive {
					fail, ok := ev.(strategy.Fail)
					switch {
					case !ok:
						return nil
					case starts > 1:
						return []strategy.Directive{strategy.Stop(fail.Key, fail.Exit)}
					default:
						return []strategy.Directive{strategy.Restart(fail.Key, 0)}
					}
				}),
				Children: []supervisor.Spec{{Key: "a", New: of(behaviour{
					init: func(*supervisor.Ctx) error {
						if starts++; starts > 1 {
							return errTest
						}
						return nil
					},
					handle: obedient.handle,
				})}},
			}),
		}})
		synctest.Wait()
		s := sys.Ref("s")
		require.True(t, sys.Ref("s", "a").Tell(errTest))
		synctest.Wait()
		require.Equal(t, 2, starts)
		require.Equal(t, []string{"a gone"}, states(t, s))
		stop(t, sys)
	})
}

// TestOthersEnd: a child may end because of another that goes on.
func TestOthersEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := decides(t, onFail(func(fail strategy.Fail) []strategy.Directive {
			other := strategy.Stop("b", supervisor.Exit{Kind: messages.ExitShutdown})
			if !errors.Is(fail.Exit, errTest) {
				other = strategy.Restart("b", 0)
			}
			return []strategy.Directive{strategy.Resume(fail.Key), other}
		}), "a", "b")
		require.True(t, sys.Ref("s", "a").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"a idle", "b gone"}, states(t, sys.Ref("s")))
		require.True(t, sys.Ref("s", "a").Tell(errors.New("another")))
		synctest.Wait()
		require.Equal(t, []string{"a idle", "b idle"}, states(t, sys.Ref("s")), "and come back because of it")
		stop(t, sys)
	})
}

// keeper is a Handler that keeps the state of children elsewhere.
type keeper struct {
	*handler
	kept *log
}

func (k keeper) Hibernate(_ *supervisor.Supervisor, key string, _ supervisor.Exit) { k.kept.add(key) }

// TestHibernated: only what idles is kept elsewhere.
func TestHibernated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &log{}
		release := make(chan struct{})
		all := []strategy.Directive{
			strategy.Hibernate("idle", supervisor.Exit{}), strategy.Hibernate("busy", supervisor.Exit{}), strategy.Hibernate("busy alone", supervisor.Exit{}), strategy.Hibernate("none", supervisor.Exit{}),
		}
		h := keeper{dynamic(behaviour{handle: func(c *supervisor.Ctx, m any) error {
			if c.Key() != "idle" {
				<-release
			}
			return echo.handle(c, m)
		}}), kept}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{
			Handler: h, Strategy: scripted(func(ev strategy.Event) []strategy.Directive {
				if _, ok := ev.(strategy.Tick); ok {
					return all
				}
				return nil
			}),
		})}})
		gate := sys.Ref("gate")
		answer(t, submit(t, gate, "idle", 1))
		busy, waits, alone := submit(t, gate, "busy", 1), submit(t, gate, "busy", 1), submit(t, gate, "busy alone", 1)
		var keys []string
		for len(keys) == 0 {
			later(time.Second)
			keys = kept.take()
		}
		for _, key := range keys {
			require.Equal(t, "idle", key)
		}
		close(release)
		answer(t, busy)
		answer(t, waits)
		answer(t, alone)
		stop(t, sys)
	})
}
