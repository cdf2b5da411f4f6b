package supervisor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// TestOrphansHaveTheirTime to end, and no more; that in which this process stood still does not count.
func TestOrphansHaveTheirTime(t *testing.T) {
	t.Parallel()
	for _, stands := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p := &pretended{}
			release := make(chan struct{})
			sys := startOnly(t, supervisor.SystemOptions{Stalls: p, Strategy: strategy.Heartbeat(2 * time.Second), Children: []supervisor.Spec{
				supervise("s", supervisor.Options{
					Handler:  deaf(release),
					Children: []supervisor.Spec{{Key: "hung", StopTimeout: time.Minute, New: of(clinging(release))}},
				}),
			}})
			ended := sys.Monitor("s")
			require.True(t, sys.Ref("s").Tell("hang"))
			<-ended
			begin := time.Now()
			synctest.Wait()
			if stands > 0 {
				p.stand(stands)
			}
			later(time.Until(begin.Add(time.Minute + stands - 2*time.Millisecond)))
			require.Equal(t, 1, sys.Zombies())
			later(0)
			require.Equal(t, 2, sys.Zombies())
			close(release)
			synctest.Wait()
			stop(t, sys)
		})
	}
}

// TestFailsWhileItEnds: nobody is asked about the failure of a child whose end was wanted before.
func TestFailsWhileItEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		release := make(chan struct{})
		sys, gate := policySupervisor(t, onFail(func(fail strategy.Fail) []strategy.Directive {
			l.add(fail.Key)
			return []strategy.Directive{strategy.Restart(fail.Key, 0)}
		}), behaviour{handle: func(*supervisor.Ctx, any) error { <-release; return errTest }})
		r := submit(t, gate, "a", 1)
		synctest.Wait()
		in(t, gate, func(s *supervisor.Supervisor) { require.True(t, s.End("a", supervisor.Exit{})) })
		close(release)
		require.Error(t, refusal(t, r))
		synctest.Wait()
		require.Empty(t, l.take())
		require.Empty(t, states(t, gate))
		stop(t, sys)
	})
}

// TestControlOvertakesData: what a supervisor takes in hand waits when what it was told before that
// has ended it.
func TestControlOvertakesData(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		hold := make(chan struct{})
		sys := startOnly(t, supervisor.SystemOptions{
			Strategy: onFail(func(fail strategy.Fail) []strategy.Directive {
				return []strategy.Directive{strategy.Stop(fail.Key, fail.Exit)}
			}),
			Children: []supervisor.Spec{supervise("s", supervisor.Options{
				Handler: &handler{handle: func(_ *supervisor.Supervisor, m any) error {
					if m == "hold" {
						<-hold
					}
					l.add(m.(string))
					return nil
				}},
				Children: []supervisor.Spec{{Key: "a", New: of(obedient)}},
				Strategy: onFail(func(fail strategy.Fail) []strategy.Directive {
					return []strategy.Directive{strategy.Escalate(fail.Exit)}
				}),
			})},
		})
		synctest.Wait()
		ended := sys.Monitor("s")
		require.True(t, sys.Ref("s").Tell("hold"))
		synctest.Wait() // it is held, and what follows waits
		require.True(t, sys.Ref("s").Tell("data"))
		require.True(t, sys.Ref("s", "a").Tell(errTest))
		synctest.Wait()
		close(hold)
		require.Equal(t, messages.ExitEscalated, (<-ended).Kind)
		synctest.Wait()
		require.Equal(t, []string{"hold"}, l.take())
		stop(t, sys)
	})
}

// TestDrainOnce: why a supervisor takes no more work is what it was first told.
func TestDrainOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		sys, gate := policySupervisor(t, nil, behaviour{handle: func(c *supervisor.Ctx, m any) error {
			<-release
			return echo.handle(c, m)
		}})
		r := submit(t, gate, "a", 1)
		synctest.Wait()
		ended := sys.Monitor("gate", "a")
		in(t, gate, func(s *supervisor.Supervisor) {
			s.Drain(supervisor.Exit{Kind: messages.ExitReset, Err: errTest})
			s.Drain(supervisor.Exit{Kind: messages.ExitEvicted, Err: errors.New("another")})
		})
		close(release)
		answer(t, r)
		require.Equal(t, messages.ExitReset, (<-ended).Kind)
		require.ErrorIs(t, refusal(t, submit(t, gate, "a", 1)), supervisor.ErrDraining)
		stop(t, sys)
	})
}

// TestNothingIsRestartedInADrain: the work that runs may end, and a reset does not end it.
func TestNothingIsRestartedInADrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedSupervisor(t, nil, "a")
		r := submit(t, gate, "a", 1)
		synctest.Wait()
		in(t, gate, func(s *supervisor.Supervisor) {
			s.Drain(supervisor.Exit{Kind: messages.ExitReset})
			require.True(t, s.Restart("a", supervisor.Exit{}), "the key is known")
		})
		synctest.Wait()
		require.Equal(t, []string{"a busy"}, states(t, gate))
		g.open["a"] <- nil
		require.Equal(t, 1, answer(t, r))
		stop(t, sys)
	})
}

// TestDrainIsNotProlonged: one who has much time for a shutdown does not have work run longer
// than the options say.
func TestDrainIsNotProlonged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := startOnly(t, supervisor.SystemOptions{Drain: time.Second, Children: []supervisor.Spec{
			supervise("gate", supervisor.Options{Handler: dynamic(behaviour{handle: func(c *supervisor.Ctx, _ any) error {
				<-c.Context().Done()
				return nil
			}})}),
		}})
		r := submit(t, sys.Ref("gate"), "a", 1)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		report := sys.Shutdown(ctx)
		require.Empty(t, report.Leftovers)
		require.Equal(t, time.Second, time.Since(begin))
		require.Error(t, refusal(t, r))
		check(t, sys)
	})
}

// TestStopped: a report of a shutdown counts what that has ended, and nothing that ended before.
func TestStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate := policySupervisor(t, nil, echo)
		for _, key := range []string{"a", "b", "c"} {
			answer(t, submit(t, gate, key, 1))
		}
		in(t, gate, func(s *supervisor.Supervisor) { require.True(t, s.End("a", supervisor.Exit{})) })
		synctest.Wait()
		report := sys.Shutdown(context.Background())
		require.Equal(t, 4, report.Stopped, "b, c, gate and the root")
		check(t, sys)
	})
}

// TestTicks come at their interval, whatever else there is to do.
func TestTicks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration // written in the goroutine of the supervisor
		begin := time.Now()
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{
			Tick:    10 * time.Second,
			Handler: dynamic(obedient),
			Strategy: scripted(func(ev strategy.Event) []strategy.Directive {
				switch ev := ev.(type) {
				case strategy.Tick:
					at = append(at, time.Since(begin))
				case strategy.Fail:
					return []strategy.Directive{strategy.Restart(ev.Key, 1300*time.Millisecond)}
				}
				return nil
			}),
		})}})
		gate := sys.Ref("gate")
		for i := range 100 {
			answer(t, submit(t, gate, "a", 1))
			if i%7 == 0 { // another time to wake up for
				require.True(t, sys.Ref("gate", "a").Tell(errTest))
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		var want []time.Duration
		for i := range 10 {
			want = append(want, time.Duration(i+1)*10*time.Second)
		}
		in(t, gate, func(*supervisor.Supervisor) {})
		require.Equal(t, want, at)
		stop(t, sys)
	})
}

// TestWorkDoesNotHurryARestart: a delay is not shorter for those who wait.
func TestWorkDoesNotHurryARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var starts []time.Duration // written by one incarnation after the other
		begin := time.Now()
		sys, gate := policySupervisor(t, onFail(func(fail strategy.Fail) []strategy.Directive {
			return []strategy.Directive{strategy.Restart(fail.Key, time.Minute)}
		}), behaviour{
			init: func(*supervisor.Ctx) error { starts = append(starts, time.Since(begin)); return nil },
			handle: func(c *supervisor.Ctx, m any) error {
				if w := m.(supervisor.Work); w.Msg == "fail" {
					return errTest
				}
				return echo.handle(c, m)
			},
		})
		require.Error(t, refusal(t, submit(t, gate, "a", "fail")))
		later(time.Second)
		r := submit(t, gate, "a", 1)
		later(time.Second)
		answer(t, r)
		require.Equal(t, []time.Duration{0, time.Minute}, starts)
		stop(t, sys)
	})
}

// TestWell: one that says that it is well again may fail again.
func TestWell(t *testing.T) {
	t.Parallel()
	for _, well := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			sys, gate := policySupervisor(t, strategy.RestartOnce(), behaviour{handle: func(c *supervisor.Ctx, m any) error {
				w, ok := m.(supervisor.Work)
				switch {
				case ok && w.Msg == "fail":
					return errTest
				case ok:
					c.Finish(w, c.Epoch())
				case m == "well":
					c.Well()
				}
				return nil
			}})
			require.Error(t, refusal(t, submit(t, gate, "a", "fail")))
			synctest.Wait()
			require.True(t, sys.Ref("gate", "a").Tell(map[bool]string{true: "well", false: "as it is"}[well]))
			synctest.Wait()
			require.Error(t, refusal(t, submit(t, gate, "a", "fail")))
			r := submit(t, gate, "a", "work")
			if well {
				require.EqualValues(t, 3, answer(t, r))
			} else {
				require.ErrorIs(t, refusal(t, r), supervisor.ErrExhausted)
			}
			stop(t, sys)
		})
	}
}

// TestEndsWhileAChildRestarts: a child that was to begin anew when its supervisor ends does not, and
// is said to be gone.
func TestEndsWhileAChildRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, told := &log{}, &log{}
		first, second := make(chan struct{}), make(chan struct{})
		slow := func(key string, release <-chan struct{}) supervisor.Spec {
			spec := otpChild(l, key, strategy.Permanent)
			born := spec.New
			spec.New = func() supervisor.Behaviour { return lingering{born(), release} }
			return spec
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("g", supervisor.Options{
			Strategy: strategy.OneForOne(), Children: []supervisor.Spec{slow("a", first), slow("b", second)},
			Handler: &handler{changed: func(_ *supervisor.Supervisor, e messages.ChildChanged) {
				told.add(e.Key + " " + string(e.To))
			}},
		})}})
		require.True(t, sys.Ref("g", "a").Tell(errTest))
		synctest.Wait()
		l.take()
		told.take()
		require.True(t, sys.Ref("g").Tell(do(func(*supervisor.Supervisor) error { return supervisor.ErrDone })))
		synctest.Wait()
		close(first)
		synctest.Wait()
		require.Equal(t, []string{"-a1"}, l.take(), "it ends as it was about to, before its turn")
		require.Equal(t, []string{"b stopping", "a gone"}, told.take())
		close(second)
		synctest.Wait()
		require.Equal(t, []string{"-b1"}, l.take())
		require.Equal(t, []string{"b gone"}, told.take())
		stop(t, sys)
	})
}
