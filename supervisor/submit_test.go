package supervisor_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// echo answers every work with its message.
var echo = behaviour{handle: func(c *supervisor.Ctx, m any) error {
	if w, ok := m.(supervisor.Work); ok {
		c.Finish(w, w.Msg)
	}
	return nil
}}

// dynamic is a handler whose children are all a.
func dynamic(a behaviour) *handler {
	return &handler{spec: func(_ *supervisor.Supervisor, _ string, w supervisor.Work) (supervisor.Spec, error) {
		return supervisor.Spec{New: of(a), Owner: w.Owner}, nil
	}}
}

// gated is a child that holds its work until the test opens the gate of the
// key, and writes down what it does.
type gated struct {
	log  *log
	open map[string]chan error // what the key's next work ends with
}

func newGated(keys ...string) *gated {
	g := &gated{log: &log{}, open: make(map[string]chan error)}
	for _, k := range keys {
		g.open[k] = make(chan error)
	}
	return g
}

func (g *gated) behaviour() behaviour {
	return behaviour{
		init: func(c *supervisor.Ctx) error {
			g.log.add(fmt.Sprintf("%s#%d", c.Key(), c.Epoch()))
			return nil
		},
		handle: func(c *supervisor.Ctx, m any) error {
			w, ok := m.(supervisor.Work)
			if !ok {
				return supervisor.Unknown(m)
			}
			g.log.add(fmt.Sprintf("%s#%d begins %v", c.Key(), c.Epoch(), w.Msg))
			select {
			case err := <-g.open[c.Key()]:
				if err != nil {
					return err
				}
			case <-c.Context().Done():
				return context.Cause(c.Context())
			}
			c.Finish(w, w.Msg)
			return nil
		},
		terminate: func(c *supervisor.Ctx, e supervisor.Exit) {
			g.log.add(fmt.Sprintf("%s#%d ends %s", c.Key(), c.Epoch(), e.Kind))
		},
	}
}

// gatedSupervisor starts a system with one supervisor of gated children.
func gatedSupervisor(t *testing.T, s strategy.Strategy, keys ...string) (*supervisor.System, supervisor.Ref, *gated) {
	t.Helper()
	g := newGated(keys...)
	sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
		supervise("gate", supervisor.Options{Handler: dynamic(g.behaviour()), Strategy: s}),
	}})
	return sys, sys.Ref("gate"), g
}

// states returns what the supervisor's children are up to: "a idle".
func states(t *testing.T, r supervisor.Ref) []string {
	t.Helper()
	var out []string
	in(t, r, func(s *supervisor.Supervisor) {
		for c := range s.Children() {
			out = append(out, fmt.Sprintf("%s %s", c.Key, c.State))
		}
	})
	return out
}

func TestOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedSupervisor(t, nil, "a", "b")
		var replies []supervisor.Reply[any]
		for i := range 3 {
			replies = append(replies, submit(t, gate, "a", i))
		}
		other := submit(t, gate, "b", "other")
		synctest.Wait()
		require.ElementsMatch(t, []string{"a#1", "a#1 begins 0", "b#1", "b#1 begins other"}, g.log.take(), "one at a time, keys independent")
		in(t, gate, func(s *supervisor.Supervisor) {
			w, ok := s.Running("a")
			require.True(t, ok)
			require.Equal(t, 0, w.Msg)
			require.Equal(t, "a", w.Key())
			waiting := s.Waiting("a")
			require.Len(t, waiting, 2)
			require.Less(t, waiting[0].Seq(), waiting[1].Seq())
			c, _ := s.Child("a")
			require.Equal(t, messages.ChildBusy, c.State)
			require.Equal(t, 2, c.Queue)
			_, ok = s.Running("nobody")
			require.False(t, ok)
			require.Empty(t, s.Waiting("nobody"))
			_, ok = s.Child("nobody")
			require.False(t, ok)
			require.False(t, s.Ref("nobody").Valid())
		})
		for i := range 3 {
			g.open["a"] <- nil
			require.Equal(t, i, answer(t, replies[i]))
		}
		synctest.Wait()
		require.Equal(t, []string{"a#1 begins 1", "a#1 begins 2"}, g.log.take())
		g.open["b"] <- nil
		answer(t, other)
		stop(t, sys)
	})
}

// TestLost: the work in hand of a child that fails is lost, what waits is not.
func TestLost(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]strategy.Strategy{"stopped": nil, "restarted": strategy.RestartOnce()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sys, gate, g := gatedSupervisor(t, strategy, "a")
				first, second := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
				g.open["a"] <- errTest
				e := refusal(t, first)
				require.ErrorIs(t, e, supervisor.ErrLost)
				require.ErrorIs(t, e, errTest)
				require.True(t, e.Dispatched)
				require.Equal(t, "a", e.Key)
				require.Equal(t, "a: lost: failed: on purpose", e.Error())
				g.open["a"] <- nil
				require.Equal(t, 2, answer(t, second))
				require.Equal(t, []string{"a#1", "a#1 begins 1", "a#1 ends failed", "a#2", "a#2 begins 2"}, g.log.take())
				stop(t, sys)
			})
		})
	}
}

// TestExhausted: a key that has failed too often refuses work until it is
// reset.
func TestExhausted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedSupervisor(t, strategy.RestartOnce(), "a")
		r1, r2, r3 := submit(t, gate, "a", 1), submit(t, gate, "a", 2), submit(t, gate, "a", 3)
		g.open["a"] <- errTest
		g.open["a"] <- errTest
		require.ErrorIs(t, refusal(t, r1), supervisor.ErrLost)
		require.ErrorIs(t, refusal(t, r2), supervisor.ErrLost)
		e := refusal(t, r3)
		require.ErrorIs(t, e, supervisor.ErrExhausted)
		require.ErrorIs(t, e, errTest)
		require.False(t, e.Dispatched)
		require.Equal(t, []string{"a failed"}, states(t, gate))
		require.ErrorIs(t, refusal(t, submit(t, gate, "a", 4)), supervisor.ErrExhausted)

		in(t, gate, func(s *supervisor.Supervisor) { require.True(t, s.Restart("a", supervisor.Exit{})) })
		synctest.Wait()
		require.Equal(t, []string{"a idle"}, states(t, gate), "a reset starts it at once")
		r5 := submit(t, gate, "a", 5)
		g.open["a"] <- errTest
		require.ErrorIs(t, refusal(t, r5), supervisor.ErrLost)
		synctest.Wait()
		require.Equal(t, []string{"a idle"}, states(t, gate), "the failure before the reset is forgotten")
		stop(t, sys)
	})
}

// TestStartFails: a child that does not come up refuses the work that waits,
// and the next work tries again, under RestartOnce too.
func TestStartFails(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]strategy.Strategy{"undecided": nil, "restart once": strategy.RestartOnce()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				starts := 0
				child := echo
				child.init = func(*supervisor.Ctx) error {
					if starts++; starts < 3 {
						return errTest
					}
					return nil
				}
				sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
					supervise("gate", supervisor.Options{Handler: dynamic(child), Strategy: strategy}),
				}})
				gate := sys.Ref("gate")
				for range 2 {
					w, r := supervisor.NewWork[any](1)
					w2, r2 := supervisor.NewWork[any](2)
					in(t, gate, func(s *supervisor.Supervisor) { s.Submit("a", w); s.Submit("a", w2) })
					for _, r := range []supervisor.Reply[any]{r, r2} {
						e := refusal(t, r)
						require.ErrorIs(t, e, supervisor.ErrStartFailed)
						require.ErrorIs(t, e, errTest)
						require.False(t, e.Dispatched)
					}
					synctest.Wait()
					require.Empty(t, states(t, gate), "the key is forgotten")
				}
				require.Equal(t, 3, answer(t, submit(t, gate, "a", 3)))
				stop(t, sys)
			})
		})
	}
}

// TestRestartThatDoesNotStart: a failure in work, and then a start that fails,
// do not leave the key failed.
func TestRestartThatDoesNotStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		child := echo
		child.init = func(*supervisor.Ctx) error {
			if starts++; starts == 2 {
				return errTest
			}
			return nil
		}
		child.handle = func(c *supervisor.Ctx, m any) error {
			if w := m.(supervisor.Work); w.Msg == "crash" {
				return errTest
			}
			return echo.handle(c, m)
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("gate", supervisor.Options{Handler: dynamic(child), Strategy: strategy.RestartOnce()}),
		}})
		gate := sys.Ref("gate")
		require.ErrorIs(t, refusal(t, submit(t, gate, "a", "crash")), supervisor.ErrLost)
		synctest.Wait()
		require.Empty(t, states(t, gate))
		require.Equal(t, 1, answer(t, submit(t, gate, "a", 1)))
		stop(t, sys)
	})
}

// TestBarren: children that come up and end again without touching the work
// that waits are not made for ever.
func TestBarren(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		starts := 0
		child := behaviour{init: func(c *supervisor.Ctx) error {
			starts++
			c.Up()
			return errTest
		}}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: dynamic(child)})}})
		require.ErrorIs(t, refusal(t, submit(t, sys.Ref("gate"), "a", 1)), supervisor.ErrStartFailed)
		require.Equal(t, 4, starts)
		stop(t, sys)
	})
}

// TestFresh: such work gets an incarnation that nothing was dispatched to.
func TestFresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedSupervisor(t, strategy.RestartOnce(), "a")
		fresh := func(w *supervisor.Work) { w.Fresh = true }
		r1 := submitWork(t, gate, "a", 1, fresh)
		r2 := submitWork(t, gate, "a", 2, fresh)
		r3 := submit(t, gate, "a", 3)
		for _, r := range []supervisor.Reply[any]{r1, r2, r3} {
			g.open["a"] <- nil
			answer(t, r)
		}
		require.Equal(t, []string{"a#1", "a#1 begins 1", "a#1 ends reset", "a#2", "a#2 begins 2", "a#2 begins 3"}, g.log.take())
		stop(t, sys)
	})
}

// TestLast: the child ends after such work; what waits gets another one.
func TestLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedSupervisor(t, strategy.RestartOnce(), "a")
		last := func(w *supervisor.Work) { w.Last = true }
		r1, r2 := submitWork(t, gate, "a", 1, last), submitWork(t, gate, "a", 2, last)
		g.open["a"] <- nil
		g.open["a"] <- nil
		answer(t, r1)
		answer(t, r2)
		synctest.Wait()
		require.Equal(t, []string{"a#1", "a#1 begins 1", "a#1 ends shutdown", "a#2", "a#2 begins 2", "a#2 ends shutdown"}, g.log.take())
		require.Empty(t, states(t, gate))

		r3 := submitWork(t, gate, "a", 3, last)
		g.open["a"] <- errTest
		require.ErrorIs(t, refusal(t, r3), supervisor.ErrLost)
		synctest.Wait()
		require.Empty(t, states(t, gate), "it is not restarted without work")
		stop(t, sys)
	})
}

func TestWithdraw(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedSupervisor(t, nil, "a")
		var works []supervisor.Work
		var replies []supervisor.Reply[any]
		for i := range 4 {
			w, r := supervisor.NewWork[any](i)
			works, replies = append(works, w), append(replies, r)
			in(t, gate, func(s *supervisor.Supervisor) { s.Submit("a", w) })
		}
		synctest.Wait()
		in(t, gate, func(s *supervisor.Supervisor) {
			require.False(t, s.Withdraw("a", works[0]), "it runs")
			require.True(t, s.Withdraw("a", works[2]))
			require.False(t, s.Withdraw("a", works[2]), "it does not wait any more")
			require.False(t, s.Withdraw("nobody", works[1]))
		})
		works[1].Settle("cancelled") // work that has its answer is not dispatched
		g.open["a"] <- nil
		g.open["a"] <- nil
		require.Equal(t, 0, answer(t, replies[0]))
		require.Equal(t, "cancelled", answer(t, replies[1]))
		require.Equal(t, 3, answer(t, replies[3]))
		require.False(t, works[2].Settled(), "it is the caller's again")
		require.Equal(t, []string{"a#1", "a#1 begins 0", "a#1 begins 3"}, g.log.take())
		stop(t, sys)
		require.True(t, works[2].Settled(), "but nothing that was submitted outlives the supervisor without an answer")
	})
}

func TestMaxQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGated("a")
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("gate", supervisor.Options{Handler: dynamic(g.behaviour()), MaxQueue: 1}),
		}})
		gate := sys.Ref("gate")
		r1 := submit(t, gate, "a", 1)
		synctest.Wait()
		r2, r3 := submit(t, gate, "a", 2), submit(t, gate, "a", 3)
		require.ErrorIs(t, refusal(t, r3), supervisor.ErrOverloaded)
		g.open["a"] <- nil
		g.open["a"] <- nil
		answer(t, r1)
		answer(t, r2)
		stop(t, sys)
	})
}

func TestEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedSupervisor(t, nil, "a")
		r1, r2 := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		synctest.Wait()
		w, r3 := supervisor.NewWork[any](3)
		in(t, gate, func(s *supervisor.Supervisor) {
			require.True(t, s.End("a", supervisor.Exit{Kind: messages.ExitShutdown, Err: errTest}))
			require.False(t, s.End("nobody", supervisor.Exit{}))
			s.Submit("a", w) // while it ends: gets another child
		})
		e := refusal(t, r1)
		require.ErrorIs(t, e, supervisor.ErrLost)
		require.Equal(t, messages.ExitShutdown, e.Exit.Kind)
		e = refusal(t, r2)
		require.ErrorIs(t, e, supervisor.ErrEnded)
		require.ErrorIs(t, e, errTest)
		require.False(t, e.Dispatched)
		g.open["a"] <- nil
		require.Equal(t, 3, answer(t, r3))
		stop(t, sys)
	})
}
