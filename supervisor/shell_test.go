package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// echo answers every work with its message.
var echo = behaviour{handle: func(c *supervisor.Ctx, m any) error {
	if w, ok := m.(supervisor.Work); ok {
		c.Finish(w, w.Msg)
	}
	return nil
}}

// dynamic is a door whose children are all a.
func dynamic(a behaviour) *door {
	return &door{spec: func(_ *supervisor.Shell, _ string, w supervisor.Work) (supervisor.Spec, error) {
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

// gatedShell starts a system with one shell of gated children.
func gatedShell(t *testing.T, s supervisor.Strategy, keys ...string) (*supervisor.System, supervisor.Ref, *gated) {
	t.Helper()
	g := newGated(keys...)
	sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
		shell("gate", supervisor.Options{Door: dynamic(g.behaviour()), Strategy: s}),
	}})
	return sys, sys.Ref("gate"), g
}

// states returns what the shell's children are up to: "a idle".
func states(t *testing.T, r supervisor.Ref) []string {
	t.Helper()
	var out []string
	in(t, r, func(s *supervisor.Shell) {
		for c := range s.Children() {
			out = append(out, fmt.Sprintf("%s %s", c.Key, c.State))
		}
	})
	return out
}

func TestOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedShell(t, nil, "a", "b")
		var replies []supervisor.Reply[any]
		for i := range 3 {
			replies = append(replies, submit(t, gate, "a", i))
		}
		other := submit(t, gate, "b", "other")
		synctest.Wait()
		require.ElementsMatch(t, []string{"a#1", "a#1 begins 0", "b#1", "b#1 begins other"}, g.log.take(), "one at a time, keys independent")
		in(t, gate, func(s *supervisor.Shell) {
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
	for name, strategy := range map[string]supervisor.Strategy{"stopped": nil, "restarted": supervisor.RestartOnce()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sys, gate, g := gatedShell(t, strategy, "a")
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
		sys, gate, g := gatedShell(t, supervisor.RestartOnce(), "a")
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

		in(t, gate, func(s *supervisor.Shell) { require.True(t, s.Restart("a", supervisor.Exit{})) })
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
	for name, strategy := range map[string]supervisor.Strategy{"undecided": nil, "restart once": supervisor.RestartOnce()} {
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
					shell("gate", supervisor.Options{Door: dynamic(child), Strategy: strategy})}})
				gate := sys.Ref("gate")
				for range 2 {
					w, r := supervisor.NewWork[any](1)
					w2, r2 := supervisor.NewWork[any](2)
					in(t, gate, func(s *supervisor.Shell) { s.Submit("a", w); s.Submit("a", w2) })
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
			shell("gate", supervisor.Options{Door: dynamic(child), Strategy: supervisor.RestartOnce()})}})
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
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{shell("gate", supervisor.Options{Door: dynamic(child)})}})
		require.ErrorIs(t, refusal(t, submit(t, sys.Ref("gate"), "a", 1)), supervisor.ErrStartFailed)
		require.Equal(t, 4, starts)
		stop(t, sys)
	})
}

// TestFresh: such work gets an incarnation that nothing was dispatched to.
func TestFresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedShell(t, supervisor.RestartOnce(), "a")
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
		sys, gate, g := gatedShell(t, supervisor.RestartOnce(), "a")
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
		require.Empty(t, states(t, gate), "it is not restarted for nobody")
		stop(t, sys)
	})
}

func TestWithdraw(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedShell(t, nil, "a")
		var works []supervisor.Work
		var replies []supervisor.Reply[any]
		for i := range 4 {
			w, r := supervisor.NewWork[any](i)
			works, replies = append(works, w), append(replies, r)
			in(t, gate, func(s *supervisor.Shell) { s.Submit("a", w) })
		}
		synctest.Wait()
		in(t, gate, func(s *supervisor.Shell) {
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
		require.True(t, works[2].Settled(), "but nothing that was submitted outlives the shell without an answer")
	})
}

func TestMaxQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGated("a")
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			shell("gate", supervisor.Options{Door: dynamic(g.behaviour()), MaxQueue: 1})}})
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
		sys, gate, g := gatedShell(t, nil, "a")
		r1, r2 := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		synctest.Wait()
		w, r3 := supervisor.NewWork[any](3)
		in(t, gate, func(s *supervisor.Shell) {
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

func TestRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedShell(t, nil, "a")
		r1, r2 := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		synctest.Wait()
		in(t, gate, func(s *supervisor.Shell) {
			for range 3 { // they are one
				require.True(t, s.Restart("a", supervisor.Exit{Kind: messages.ExitReset, Err: errTest}))
			}
			require.False(t, s.Restart("nobody", supervisor.Exit{}))
		})
		e := refusal(t, r1)
		require.ErrorIs(t, e, supervisor.ErrLost)
		require.Equal(t, messages.ExitReset, e.Exit.Kind)
		g.open["a"] <- nil
		require.Equal(t, 2, answer(t, r2), "what waits goes to the next incarnation")
		require.Equal(t, []string{"a#1", "a#1 begins 1", "a#1 ends reset", "a#2", "a#2 begins 2"}, g.log.take())
		stop(t, sys)
	})
}

// TestRestartWhileStarting: a reset of a child that starts has nothing to do.
func TestRestartWhileStarting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		up := make(chan struct{})
		inits := 0
		child := echo
		child.init = func(*supervisor.Ctx) error { inits++; <-up; return nil }
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{shell("gate", supervisor.Options{Door: dynamic(child)})}})
		gate := sys.Ref("gate")
		r := submit(t, gate, "a", 1)
		in(t, gate, func(s *supervisor.Shell) { require.True(t, s.Restart("a", supervisor.Exit{})) })
		close(up)
		require.Equal(t, 1, answer(t, r))
		require.Equal(t, 1, inits)
		stop(t, sys)
	})
}

// TestNotBegun: work that was dispatched to an incarnation that ends before it
// has begun it is not lost.
func TestNotBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		epochs := &log{}
		child := behaviour{handle: func(c *supervisor.Ctx, m any) error {
			if w, ok := m.(supervisor.Work); ok {
				epochs.add(fmt.Sprint(c.Epoch(), " ", w.Msg))
				c.Finish(w, w.Msg)
				return nil
			}
			<-hold
			return errTest
		}}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			shell("gate", supervisor.Options{Door: dynamic(child), Strategy: supervisor.RestartOnce()})}})
		gate := sys.Ref("gate")
		answer(t, submit(t, gate, "a", 1))
		require.True(t, sys.Ref("gate", "a").Tell("fail, when you may"))
		r2, r3 := submit(t, gate, "a", 2), submit(t, gate, "a", 3)
		synctest.Wait()
		require.Equal(t, []string{"a busy"}, states(t, gate))
		close(hold)
		require.Equal(t, 2, answer(t, r2))
		require.Equal(t, 3, answer(t, r3))
		require.Equal(t, []string{"1 1", "2 2", "2 3"}, epochs.take())
		stop(t, sys)
	})
}

// TestReturn: a behaviour that finds that what should do the work is gone
// gives the work back.
func TestReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := behaviour{handle: func(c *supervisor.Ctx, m any) error {
			w := m.(supervisor.Work)
			if c.Epoch() == 1 && w.Msg == 2 {
				c.Return(w)
				return errTest
			}
			c.Finish(w, c.Epoch())
			return nil
		}}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			shell("gate", supervisor.Options{Door: dynamic(child), Strategy: supervisor.RestartOnce()})}})
		gate := sys.Ref("gate")
		require.EqualValues(t, 1, answer(t, submit(t, gate, "a", 1)))
		require.EqualValues(t, 2, answer(t, submit(t, gate, "a", 2)))
		stop(t, sys)
	})
}

// resumer lets everything go on.
type resumer struct{}

func (resumer) Decide(_ supervisor.View, e supervisor.Event) []supervisor.Directive {
	if f, ok := e.(supervisor.Fail); ok {
		return []supervisor.Directive{supervisor.Resume(f.Key)}
	}
	return nil
}

// TestResume: the incarnation goes on, with the work in hand and with what came
// in the meantime, in order.
func TestResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &log{}
		child := behaviour{}
		var work supervisor.Work
		child.handle = func(c *supervisor.Ctx, m any) error {
			seen.add(fmt.Sprint(typeOf(m)))
			switch m := m.(type) {
			case supervisor.Work:
				work = m
			case error:
				return m
			case string:
				c.Finish(work, m)
			}
			return nil
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			shell("gate", supervisor.Options{Door: dynamic(child), Strategy: resumer{}})}})
		gate := sys.Ref("gate")
		r := submit(t, gate, "a", 1)
		synctest.Wait()
		a := sys.Ref("gate", "a")
		for _, m := range []any{errTest, 2, errTest, 3, errTest, "done"} {
			require.True(t, a.Tell(m))
		}
		require.Equal(t, "done", answer(t, r))
		require.Equal(t, []string{"work", "error", "int", "error", "int", "error", "string"}, seen.take())
		require.Equal(t, 1, len(states(t, gate)))
		stop(t, sys)
	})
}

func typeOf(m any) string {
	switch m.(type) {
	case supervisor.Work:
		return "work"
	case error:
		return "error"
	default:
		return fmt.Sprintf("%T", m)
	}
}

// TestReplay: a Door may submit again what it is told is unserved.
func TestReplay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGated("a")
		d := dynamic(g.behaviour())
		replayed := 0
		d.unserved = func(s *supervisor.Shell, w supervisor.Work, e *supervisor.ServiceError) {
			if replayed++; replayed == 1 {
				s.Submit(w.Key(), w)
				return
			}
			w.Settle(e)
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			shell("gate", supervisor.Options{Door: d, Strategy: supervisor.RestartOnce()})}})
		gate := sys.Ref("gate")
		r1, r2 := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		g.open["a"] <- errTest
		g.open["a"] <- nil
		g.open["a"] <- nil
		require.Equal(t, 1, answer(t, r1))
		require.Equal(t, 2, answer(t, r2))
		require.Equal(t, []string{"a#1", "a#1 begins 1", "a#1 ends failed", "a#2", "a#2 begins 2", "a#2 begins 1"}, g.log.take())
		stop(t, sys)
	})
}

// TestSpecFails: a Door that cannot say how to make a child refuses the work,
// and nothing else.
func TestSpecFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &door{spec: func(*supervisor.Shell, string, supervisor.Work) (supervisor.Spec, error) {
			return supervisor.Spec{}, errTest
		}}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{shell("gate", supervisor.Options{Door: d})}})
		e := refusal(t, submit(t, sys.Ref("gate"), "a", 1))
		require.ErrorIs(t, e, supervisor.ErrStartFailed)
		require.ErrorIs(t, e, errTest)
		require.Empty(t, states(t, sys.Ref("gate")))
		stop(t, sys)
	})
}

// TestDrain: what runs is finished, nothing else is begun, and every dynamic
// child ends as soon as it is free.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedShell(t, nil, "a", "b")
		r1, r2 := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		rb := submit(t, gate, "b", "b")
		g.open["b"] <- nil
		answer(t, rb)
		synctest.Wait()
		in(t, gate, func(s *supervisor.Shell) { s.Drain(supervisor.Exit{}) })
		require.ErrorIs(t, refusal(t, r2), supervisor.ErrDraining)
		require.ErrorIs(t, refusal(t, submit(t, gate, "a", 3)), supervisor.ErrDraining)
		require.ErrorIs(t, refusal(t, submit(t, gate, "new", 4)), supervisor.ErrDraining)
		synctest.Wait()
		require.Equal(t, []string{"a busy"}, states(t, gate))
		g.open["a"] <- nil
		require.Equal(t, 1, answer(t, r1))
		synctest.Wait()
		require.Empty(t, states(t, gate))
		stop(t, sys)
	})
}

// TestChanged: a Door hears of every step of a child, in order.
func TestChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGated("a")
		d := dynamic(g.behaviour())
		steps := &log{}
		d.changed = func(_ *supervisor.Shell, e messages.ChildChanged) {
			s := fmt.Sprintf("%s#%d %s>%s", e.Path, e.Epoch, e.From, e.To)
			if e.Exit != nil {
				s += " " + string(e.Exit.Kind)
			}
			steps.add(s)
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			shell("gate", supervisor.Options{Door: d, Strategy: supervisor.RestartOnce()})}})
		gate := sys.Ref("gate")
		r1, r2 := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		g.open["a"] <- errTest
		refusal(t, r1)
		g.open["a"] <- nil
		answer(t, r2)
		in(t, gate, func(s *supervisor.Shell) { s.End("a", supervisor.Exit{}) })
		synctest.Wait()
		require.Equal(t, []string{
			"gate/a#1 >starting", "gate/a#1 starting>idle", "gate/a#1 idle>busy",
			"gate/a#1 busy>suspended failed", "gate/a#1 suspended>restarting failed",
			"gate/a#2 restarting>starting", "gate/a#2 starting>idle", "gate/a#2 idle>busy", "gate/a#2 busy>idle",
			"gate/a#2 idle>stopping shutdown", "gate/a#2 stopping>gone shutdown",
		}, steps.take())
		stop(t, sys)
	})
}

// TestManualUp: work comes after Up, other messages before.
func TestManualUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &log{}
		child := behaviour{handle: func(c *supervisor.Ctx, m any) error {
			switch m := m.(type) {
			case supervisor.Work:
				seen.add("work")
				c.Finish(m, nil)
			case string:
				seen.add(m)
				if m == "ready" {
					c.Up()
					c.Up()
				}
			}
			return nil
		}}
		d := &door{spec: func(*supervisor.Shell, string, supervisor.Work) (supervisor.Spec, error) {
			return supervisor.Spec{New: of(child), ManualUp: true}, nil
		}}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{shell("gate", supervisor.Options{Door: d})}})
		gate := sys.Ref("gate")
		r := submit(t, gate, "a", 1)
		synctest.Wait()
		require.Equal(t, []string{"a starting"}, states(t, gate))
		in(t, gate, func(s *supervisor.Shell) {
			require.True(t, s.Send("a", "hello"))
			require.False(t, s.Send("nobody", "hello"))
		})
		synctest.Wait()
		require.True(t, sys.Ref("gate", "a").Tell("ready"))
		answer(t, r)
		require.Equal(t, []string{"hello", "ready", "work"}, seen.take())
		stop(t, sys)
	})
}

// TestTimeouts: a child that does not start, or does not end, in time.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name                      string
		spec                      supervisor.Spec
		startHangs, ignoresCancel bool
		failsAfter, abandoned     time.Duration
	}{
		{"start, and it listens", supervisor.Spec{}, true, false, 30 * time.Second, 0},
		{"start, and it does not listen", supervisor.Spec{StartTimeout: time.Second, StopTimeout: 2 * time.Second}, true, true, time.Second, 3 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				row.spec.New = of(behaviour{init: func(c *supervisor.Ctx) error {
					if row.ignoresCancel {
						<-release
						return nil
					}
					<-c.Context().Done()
					return context.Cause(c.Context())
				}})
				d := &door{spec: func(*supervisor.Shell, string, supervisor.Work) (supervisor.Spec, error) { return row.spec, nil }}
				sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{shell("gate", supervisor.Options{Door: d})}})
				began := time.Now()
				e := refusal(t, submit(t, sys.Ref("gate"), "a", 1))
				require.ErrorIs(t, e, supervisor.ErrStartFailed)
				want := row.failsAfter
				if row.abandoned > 0 {
					want = row.abandoned
					require.Equal(t, messages.ExitHung, e.Exit.Kind)
					require.Equal(t, 1, sys.Zombies())
				} else {
					require.ErrorIs(t, e, supervisor.ErrStartTimeout)
				}
				require.Equal(t, want, time.Since(began))
				close(release)
				synctest.Wait()
				require.Zero(t, sys.Zombies(), "it came back after all")
				stop(t, sys)
			})
		})
	}
}

// TestStopTimeout: an incarnation that does not end is abandoned; the next one
// starts, and the old one's late words do not count.
func TestStopTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		late := make(chan [2]bool, 1)
		terminated := 0
		child := behaviour{
			handle: func(c *supervisor.Ctx, m any) error {
				w, ok := m.(supervisor.Work)
				if !ok {
					return nil
				}
				if c.Epoch() == 1 {
					<-release
					late <- [2]bool{c.Tell("x"), c.Finish(w, "late")}
					return nil
				}
				c.Finish(w, c.Epoch())
				return nil
			},
			terminate: func(c *supervisor.Ctx, e supervisor.Exit) {
				if c.Epoch() == 1 {
					terminated++
				}
			},
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{shell("gate", supervisor.Options{Door: dynamic(child)})}})
		gate := sys.Ref("gate")
		r1, r2 := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		synctest.Wait()
		old := sys.Monitor("gate", "a")
		began := time.Now()
		in(t, gate, func(s *supervisor.Shell) { s.Restart("a", supervisor.Exit{}) })
		require.EqualValues(t, 2, answer(t, r2))
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Equal(t, messages.ExitHung, (<-old).Kind)
		e := refusal(t, r1)
		require.ErrorIs(t, e, supervisor.ErrLost)
		require.Equal(t, messages.ExitHung, e.Exit.Kind)
		require.Equal(t, 1, sys.Zombies())
		close(release)
		require.Equal(t, [2]bool{false, false}, <-late)
		synctest.Wait()
		require.Equal(t, 1, terminated, "it still terminates")
		require.Zero(t, sys.Zombies())
		stop(t, sys)
	})
}

// TestMaxAbandoned: a shell whose children hang again and again gives up.
func TestMaxAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		child := behaviour{terminate: func(*supervisor.Ctx, supervisor.Exit) { <-release }}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			shell("gate", supervisor.Options{Door: dynamic(child), MaxAbandoned: 2})}})
		gate := sys.Ref("gate")
		ended := gate.Monitor()
		for i := range 3 {
			submit(t, gate, "a", i)
			synctest.Wait()
			in(t, gate, func(s *supervisor.Shell) { s.End("a", supervisor.Exit{}) })
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		exit := <-ended
		require.Equal(t, messages.ExitEscalated, exit.Kind)
		close(release)
		synctest.Wait()
		stop(t, sys)
	})
}

// TestStaticWork: static children take work like any other; one that has ended
// for good refuses it.
func TestStaticWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := echo
		child.handle = func(c *supervisor.Ctx, m any) error {
			if w := m.(supervisor.Work); w.Msg == "end" {
				c.Finish(w, "ended")
				return supervisor.ErrDone
			}
			return echo.handle(c, m)
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			shell("gate", supervisor.Options{Door: &door{}, Children: []supervisor.Spec{{Key: "a", New: of(child)}}})}})
		gate := sys.Ref("gate")
		require.Equal(t, 1, answer(t, submit(t, gate, "a", 1)))
		require.Equal(t, "ended", answer(t, submit(t, gate, "a", "end")))
		synctest.Wait()
		require.Equal(t, []string{"a gone"}, states(t, gate))
		require.ErrorIs(t, refusal(t, submit(t, gate, "a", 2)), supervisor.ErrEnded)
		in(t, gate, func(s *supervisor.Shell) { s.Restart("a", supervisor.Exit{}) })
		require.Equal(t, 3, answer(t, submit(t, gate, "a", 3)))
		e := refusal(t, submit(t, gate, "stranger", 4))
		require.ErrorIs(t, e, supervisor.ErrStartFailed)
		require.ErrorIs(t, e, supervisor.ErrNoProcess)
		stop(t, sys)
	})
}

func TestSameKeyTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Children: []supervisor.Spec{
			{Key: "a", New: of(echo)}, {Key: "a", New: of(echo)},
		}})
		require.ErrorContains(t, err, `two children are called "a"`)
	})
}

// TestShellTwice: a Shell value serves one incarnation.
func TestShellTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := supervisor.NewShell(supervisor.Options{})
		_, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Children: []supervisor.Spec{
			{Key: "a", New: func() supervisor.Behaviour { return one }}, {Key: "b", New: func() supervisor.Behaviour { return one }},
		}})
		require.ErrorContains(t, err, "one incarnation")
	})
}

// TestNobodysMessages: a shell without a Door drops what it is told.
func TestNobodysMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{shell("plain", supervisor.Options{})}})
		_, err := supervisor.Ask[int](t.Context(), sys.Ref("plain"), func(w supervisor.Work) any { return w })
		require.ErrorIs(t, err, supervisor.ErrGone)
		require.True(t, sys.Ref("plain").Tell("hello"))
		synctest.Wait()
		require.True(t, sys.Ref("plain").Tell("still there"))
		require.False(t, errors.Is(err, supervisor.ErrNoProcess))
		stop(t, sys)
	})
}
