package supervisor_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

func TestRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedSupervisor(t, nil, "a")
		r1, r2 := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		synctest.Wait()
		in(t, gate, func(s *supervisor.Supervisor) {
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

// TestRestartWhileStarting: a first start may bring back what was there before the reset, and
// begins again; the start after a reset does not.
func TestRestartWhileStarting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		up := make(chan struct{})
		inits := 0
		child := echo
		child.init = func(*supervisor.Ctx) error { inits++; <-up; return nil }
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: dynamic(child)})}})
		gate := sys.Ref("gate")
		r := submit(t, gate, "a", 1)
		for _, want := range []int{1, 2, 2} {
			synctest.Wait()
			require.Equal(t, want, inits)
			in(t, gate, func(s *supervisor.Supervisor) { require.True(t, s.Restart("a", supervisor.Exit{})) })
			if inits == 1 {
				up <- struct{}{} // the first one ends, the next one begins
			}
		}
		close(up)
		require.Equal(t, 1, answer(t, r))
		require.Equal(t, 2, inits)
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
			supervise("gate", supervisor.Options{Handler: dynamic(child), Strategy: strategy.RestartOnce()}),
		}})
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

// TestNotBegunIsWithdrawn: work that an incarnation which ends has not begun is taken
// back at once, however long that end takes; when the key is ended it is answered.
func TestNotBegunIsWithdrawn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		act  func(*supervisor.Supervisor, supervisor.Work)
		want error
	}{
		"withdrawn": {act: func(s *supervisor.Supervisor, w supervisor.Work) {
			if s.Withdraw("a", w) {
				w.Settle(errTest)
			}
		}, want: errTest},
		"the key is ended": {act: func(s *supervisor.Supervisor, _ supervisor.Work) { s.End("a", supervisor.Exit{}) }, want: supervisor.ErrEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				hold := make(chan struct{})
				epochs := &log{}
				child := behaviour{
					handle: func(c *supervisor.Ctx, m any) error {
						if w, ok := m.(supervisor.Work); ok {
							epochs.add(fmt.Sprint(c.Epoch(), " ", w.Msg))
							c.Finish(w, w.Msg)
							return nil
						}
						<-hold
						return errTest
					},
					terminate: func(_ *supervisor.Ctx, e supervisor.Exit) {
						if e.Failure() {
							time.Sleep(time.Second)
						}
					},
				}
				sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
					supervise("gate", supervisor.Options{Handler: dynamic(child), Strategy: strategy.RestartOnce()}),
				}})
				gate := sys.Ref("gate")
				answer(t, submit(t, gate, "a", 1))
				require.True(t, sys.Ref("gate", "a").Tell("fail, when you may"))
				w, reply := supervisor.NewWork[any](2)
				in(t, gate, func(s *supervisor.Supervisor) { s.Submit("a", w) })
				synctest.Wait()
				in(t, gate, func(s *supervisor.Supervisor) { require.False(t, s.Withdraw("a", w), "it may be begun") })
				close(hold)
				synctest.Wait() // its end has begun
				begin := time.Now()
				in(t, gate, func(s *supervisor.Supervisor) { tc.act(s, w) })
				_, err := reply.Wait(t.Context())
				require.ErrorIs(t, err, tc.want)
				require.Zero(t, time.Since(begin))
				require.Equal(t, 3, answer(t, submit(t, gate, "a", 3)))
				require.NotContains(t, epochs.take(), "2 2")
				stop(t, sys)
			})
		})
	}
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
			supervise("gate", supervisor.Options{Handler: dynamic(child), Strategy: strategy.RestartOnce()}),
		}})
		gate := sys.Ref("gate")
		require.EqualValues(t, 1, answer(t, submit(t, gate, "a", 1)))
		require.EqualValues(t, 2, answer(t, submit(t, gate, "a", 2)))
		stop(t, sys)
	})
}

// resumer lets everything go on.
type resumer struct{}

func (resumer) Decide(_ strategy.View, e strategy.Event) []strategy.Directive {
	if f, ok := e.(strategy.Fail); ok {
		return []strategy.Directive{strategy.Resume(f.Key)}
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
			supervise("gate", supervisor.Options{Handler: dynamic(child), Strategy: resumer{}}),
		}})
		gate := sys.Ref("gate")
		r := submit(t, gate, "a", 1)
		synctest.Wait()
		a := sys.Ref("gate", "a")
		for _, m := range []any{errTest, 2, errTest, 3, errTest, "done"} {
			require.True(t, a.Tell(m))
		}
		require.Equal(t, "done", answer(t, r))
		require.Equal(t, []string{"work", "error", "int", "error", "int", "error", "string"}, seen.take())
		require.Len(t, states(t, gate), 1)
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

// TestReplay: a Handler may submit unserved work again.
func TestReplay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGated("a")
		d := dynamic(g.behaviour())
		replayed := 0
		d.unserved = func(s *supervisor.Supervisor, w supervisor.Work, e *supervisor.ServiceError) {
			if replayed++; replayed == 1 {
				s.Submit(w.Key(), w)
				return
			}
			w.Settle(e)
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("gate", supervisor.Options{Handler: d, Strategy: strategy.RestartOnce()}),
		}})
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

// TestSpecFails: a Handler that cannot say how to make a child refuses the work,
// and nothing else.
func TestSpecFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &handler{spec: func(*supervisor.Supervisor, string, supervisor.Work) (supervisor.Spec, error) {
			return supervisor.Spec{}, errTest
		}}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: d})}})
		e := refusal(t, submit(t, sys.Ref("gate"), "a", 1))
		require.ErrorIs(t, e, supervisor.ErrStartFailed)
		require.ErrorIs(t, e, errTest)
		require.Empty(t, states(t, sys.Ref("gate")))
		stop(t, sys)
	})
}

// TestFailedWhileNothingWaited: failures of a child that nothing waited for are none of those in a
// row that did not touch the work.
func TestFailedWhileNothingWaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leaves := false
		child := behaviour{handle: obedient.handle, init: func(c *supervisor.Ctx) error {
			c.Up()
			if leaves {
				leaves = false
				return supervisor.ErrDone
			}
			return nil
		}}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{
			Handler: dynamic(child),
			Strategy: onFail(func(f strategy.Fail) []strategy.Directive {
				return []strategy.Directive{strategy.Restart(f.Key, time.Second)}
			}),
		})}})
		gate := sys.Ref("gate")
		answer(t, submit(t, gate, "a", 1))
		for range 10 {
			require.True(t, sys.Ref("gate", "a").Tell(errTest))
			later(2 * time.Second)
		}
		require.True(t, sys.Ref("gate", "a").Tell(errTest))
		synctest.Wait()
		leaves = true
		require.Equal(t, 2, answer(t, submit(t, gate, "a", 2)), "the second incarnation had begun nothing, as only the first of those that work waited for")
		require.False(t, leaves)
		stop(t, sys)
	})
}
