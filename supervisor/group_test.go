package supervisor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// TestWhatAGroupEndsWith: the child that has failed ends with its own failure, the others with the
// group's reason.
func TestWhatAGroupEndsWith(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		sys := group(t, strategy.OneForAll(), otpChild(l, "a", strategy.Permanent), otpChild(l, "b", strategy.Permanent))
		a, b := sys.Monitor("g", "a"), sys.Monitor("g", "b")
		require.True(t, sys.Ref("g", "a").Tell(errTest))
		exit := <-a
		require.ErrorIs(t, exit, errTest)
		require.True(t, exit.Failure())
		exit = <-b
		require.NotErrorIs(t, exit, errTest)
		require.False(t, exit.Failure())
		synctest.Wait()
		stop(t, sys)
	})
}

// TestAGroupWithOneThatIsGone: what is to stay down with a group, and is down already, has no part
// in it: it can be started again afterwards. What is down and is to come up with the group does, and
// that is one restart, as it is of one that waits for its restart by itself.
func TestAGroupWithOneThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		with := strategy.Stop("b", strategy.Exitf(messages.ExitShutdown, "it stays down"))
		sys := group(t, onFail(func(fail strategy.Fail) []strategy.Directive {
			if fail.Key == "d" {
				return []strategy.Directive{strategy.Restart("d", time.Minute)}
			}
			return []strategy.Directive{strategy.Restart("a", 0), with, strategy.Restart("c", 0), strategy.Restart("d", 0)}
		}), otpChild(l, "a", strategy.Permanent), otpChild(l, "b", strategy.Temporary), otpChild(l, "c", strategy.Permanent), otpChild(l, "d", strategy.Permanent))
		g := sys.Ref("g")
		restarts := func() (all []int) {
			n, err := sys.Snapshot(t.Context())
			require.NoError(t, err)
			for _, c := range n.Children[0].Children {
				all = append(all, c.Restarts)
			}
			return all
		}
		for _, key := range []string{"b", "c"} {
			require.True(t, sys.Ref("g", key).Tell(supervisor.ErrDone))
			synctest.Wait()
		}
		require.True(t, sys.Ref("g", "d").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"a idle", "b gone", "c gone", "d restarting"}, states(t, g))
		require.Equal(t, []int{0, 0, 0, 1}, restarts())
		l.take()

		require.True(t, sys.Ref("g", "a").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"a idle", "b gone", "c idle", "d restarting"}, states(t, g), "it has its delay")
		require.Equal(t, []string{"-a1", "+a2", "+c2"}, l.take())
		later(time.Minute)
		require.Equal(t, []string{"+d2"}, l.take())
		require.Equal(t, []int{1, 0, 1, 1}, restarts())

		in(t, g, func(s *supervisor.Supervisor) { require.True(t, s.Restart("b", supervisor.Exit{})) })
		synctest.Wait()
		require.Equal(t, []string{"+b2"}, l.take())
		require.Equal(t, []string{"a idle", "b idle", "c idle", "d idle"}, states(t, g))
		stop(t, sys)
	})
}

// TestAGroupGoesOn when its supervisor has failed in the middle of it, and is let go on.
func TestAGroupGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, panics := &log{}, false
		sys := startOnly(t, supervisor.SystemOptions{Strategy: resumer{}, Children: []supervisor.Spec{supervise("g", supervisor.Options{
			Handler: &handler{}, Children: []supervisor.Spec{otpChild(l, "a", strategy.Permanent), otpChild(l, "b", strategy.Permanent)},
			Strategy: scripted(func(ev strategy.Event) []strategy.Directive {
				switch ev := ev.(type) {
				case strategy.Fail:
					return []strategy.Directive{strategy.Restart("a", 0), strategy.Restart("b", 0)}
				case strategy.Up:
					if panics && ev.Key == "a" {
						panics = false
						panic("on purpose")
					}
				}
				return nil
			}),
		})}})
		in(t, sys.Ref("g"), func(*supervisor.Supervisor) { panics = true })
		require.True(t, sys.Ref("g", "b").Tell(errTest))
		synctest.Wait()
		left := true
		in(t, sys.Ref("g"), func(*supervisor.Supervisor) { left = panics })
		require.False(t, left, "the strategy has not failed")
		require.Equal(t, []string{"a idle", "b idle"}, states(t, sys.Ref("g")))
		require.Equal(t, []string{"+a1", "+b1", "-b1", "-a1", "+a2", "+b2"}, l.take())
		stop(t, sys)
	})
}
