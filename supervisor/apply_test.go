package supervisor_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// errOther is a failure that is told apart from errTest.
var errOther = errors.New("another")

// pair starts a supervisor s of a, which counts its starts and waits for release when it ends, and
// of b, which goes on after a failure while others is what is decided about a.
func pair(t *testing.T, release <-chan struct{}, others func(fail strategy.Fail) strategy.Directive) (sys *supervisor.System, starts *int) {
	t.Helper()
	starts = new(int)
	sys = startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("s", supervisor.Options{
		Handler: &handler{},
		Strategy: onFail(func(fail strategy.Fail) []strategy.Directive {
			if fail.Key == "a" {
				return []strategy.Directive{strategy.Stop("a", fail.Exit)}
			}
			return []strategy.Directive{strategy.Resume("b"), others(fail)}
		}),
		Children: []supervisor.Spec{
			{Key: "a", New: of(behaviour{
				init:      func(*supervisor.Ctx) error { *starts++; return nil },
				handle:    obedient.handle,
				terminate: func(*supervisor.Ctx, supervisor.Exit) { <-release },
			})},
			{Key: "b", New: of(obedient)},
		},
	})}})
	synctest.Wait()
	return sys, starts
}

// TestADecisionAboutOneThatIsGone starts it only if it is a restart.
func TestADecisionAboutOneThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		close(release)
		sys, starts := pair(t, release, func(fail strategy.Fail) strategy.Directive {
			if errors.Is(fail.Exit, errOther) {
				return strategy.Restart("a", 0)
			}
			return strategy.Stop("a", supervisor.Exit{Kind: messages.ExitShutdown})
		})
		require.True(t, sys.Ref("s", "a").Tell(errTest))
		synctest.Wait()
		require.True(t, sys.Ref("s", "b").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"a gone", "b idle"}, states(t, sys.Ref("s")))
		require.Equal(t, 1, *starts)
		require.True(t, sys.Ref("s", "b").Tell(errOther))
		synctest.Wait()
		require.Equal(t, []string{"a idle", "b idle"}, states(t, sys.Ref("s")))
		require.Equal(t, 2, *starts)
		stop(t, sys)
	})
}

// TestARestartThatIsUnderWay is not begun again, however often it is decided.
func TestARestartThatIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		let := sync.OnceFunc(func() { close(release) })
		defer let() // a test that failed leaves its bubble empty, too
		sys, starts := pair(t, release, func(strategy.Fail) strategy.Directive { return strategy.Restart("a", 0) })
		for range 3 {
			require.True(t, sys.Ref("s", "b").Tell(errTest))
			synctest.Wait()
		}
		synctest.Wait()
		require.Equal(t, []string{"a restarting", "b idle"}, states(t, sys.Ref("s")))
		require.Equal(t, 1, *starts)
		let()
		synctest.Wait()
		require.Equal(t, []string{"a idle", "b idle"}, states(t, sys.Ref("s")))
		require.Equal(t, 2, *starts)
		stop(t, sys)
	})
}

// TestADelayIsNotCutShort by what another child's failure decides, nor begun again.
func TestADelayIsNotCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := decides(t, onFail(func(fail strategy.Fail) []strategy.Directive {
			if fail.Key == "a" {
				return []strategy.Directive{strategy.Restart("a", time.Hour)}
			}
			return []strategy.Directive{strategy.Resume("b"), strategy.Restart("a", 0)}
		}), "a", "b")
		require.True(t, sys.Ref("s", "a").Tell(errTest))
		synctest.Wait()
		require.True(t, sys.Ref("s", "b").Tell(errTest))
		later(50 * time.Minute)
		require.Equal(t, []string{"a restarting", "b idle"}, states(t, sys.Ref("s")))
		in(t, sys.Ref("s"), func(s *supervisor.Supervisor) {
			for c := range s.Children() {
				require.Equal(t, map[string]int{"a": 1, "b": 0}[c.Key], c.Restarts, "it is one restart")
			}
		})
		later(10 * time.Minute)
		require.Equal(t, []string{"a idle", "b idle"}, states(t, sys.Ref("s")))
		stop(t, sys)
	})
}

// TestOthersGoOn when nothing is decided that ends or starts them; one that waits for its restart
// can be given up.
func TestOthersGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		decide := onFail(func(fail strategy.Fail) []strategy.Directive {
			if fail.Key == "a" {
				return []strategy.Directive{strategy.Restart("a", time.Hour)}
			}
			other := strategy.Resume("a")
			if errors.Is(fail.Exit, errOther) {
				other = strategy.Abandon("a", supervisor.Exit{Kind: messages.ExitHung, Err: errOther})
			}
			return []strategy.Directive{strategy.Resume("b"), other, strategy.Wait("a")}
		})
		sys, gate := policySupervisor(t, decide, behaviour{
			init:      func(c *supervisor.Ctx) error { l.add(c.Key()); return nil },
			handle:    obedient.handle,
			terminate: func(c *supervisor.Ctx, _ supervisor.Exit) { l.add(c.Key() + " ends") },
		})
		answer(t, submit(t, gate, "a", 1))
		answer(t, submit(t, gate, "b", 1))
		require.True(t, sys.Ref("gate", "b").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, l.take())
		require.True(t, sys.Ref("gate", "a").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"a restarting", "b idle"}, states(t, gate))
		require.True(t, sys.Ref("gate", "b").Tell(errOther))
		synctest.Wait()
		require.Equal(t, []string{"b idle"}, states(t, gate))
		stop(t, sys)
	})
}

// TestOneThatWaitsIsRefused as it would be if it had been asked about.
func TestOneThatWaitsIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		decide := scripted(func(ev strategy.Event) []strategy.Directive {
			switch ev := ev.(type) {
			case strategy.Spawning:
				if ev.Key == "waits" {
					return []strategy.Directive{strategy.Wait(ev.Key)}
				}
			case strategy.Fail:
				return []strategy.Directive{strategy.Resume(ev.Key), strategy.Stop("waits", supervisor.Exit{Kind: messages.ExitOverloaded, Err: errTest})}
			}
			return nil
		})
		sys, gate := policySupervisor(t, decide, obedient)
		answer(t, submit(t, gate, "a", 1))
		waits := submit(t, gate, "waits", 1)
		synctest.Wait()
		require.True(t, sys.Ref("gate", "a").Tell(errTest))
		require.ErrorIs(t, refusal(t, waits), supervisor.ErrOverloaded)
		synctest.Wait()
		require.Equal(t, []string{"a idle"}, states(t, gate))
		stop(t, sys)
	})
}

// TestARestartTogetherWithNobody is one of those that are there.
func TestARestartTogetherWithNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := decides(t, onFail(func(fail strategy.Fail) []strategy.Directive {
			return []strategy.Directive{strategy.Restart("a", 0), strategy.Restart("nobody", 0), strategy.Restart("b", 0)}
		}), "a", "b")
		require.True(t, sys.Ref("s", "a").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"a idle", "b idle"}, states(t, sys.Ref("s")))
		stop(t, sys)
	})
}
