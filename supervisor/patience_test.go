package supervisor_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// starved ends a supervisor below another one with three children that have no processor to end
// with, and which has 3 s itself. It returns how that ended, and after how long.
func starved(t *testing.T, h *handler) (kind messages.ExitKind, took time.Duration, sys *supervisor.System) {
	t.Helper()
	late := map[string]struct{ limit, waited, takes time.Duration }{
		"first": {time.Second, 4 * time.Second, 3500 * time.Millisecond},
		"long":  {2 * time.Second, 20 * time.Second, 8 * time.Second},
		"short": {2500 * time.Millisecond, 3 * time.Second, 4 * time.Second},
	}
	h.spec = func(_ *supervisor.Supervisor, key string, _ supervisor.Work) (supervisor.Spec, error) {
		l := late[key]
		return supervisor.Spec{StopTimeout: l.limit, New: of(behaviour{handle: echo.handle, terminate: func(c *supervisor.Ctx, _ supervisor.Exit) {
			c.Waited(l.waited)
			time.Sleep(l.takes)
		}})}, nil
	}
	below := supervise("below", supervisor.Options{Handler: h})
	below.StopTimeout = 3 * time.Second
	sys = startOnly(t, supervisor.SystemOptions{Stalls: &pretended{}, Children: []supervisor.Spec{
		supervise("top", supervisor.Options{Handler: &handler{}, Children: []supervisor.Spec{below}}),
	}})
	for key := range late {
		answer(t, submit(t, sys.Ref("top", "below"), key, 1))
	}
	ended, begin := sys.Monitor("top", "below"), time.Now()
	in(t, sys.Ref("top"), func(s *supervisor.Supervisor) { require.True(t, s.Restart("below", supervisor.Exit{})) })
	kind = (<-ended).Kind
	return kind, time.Since(begin), sys
}

// TestWhoWaitsForTheEndOfOthers is given what the one of them is given that has the most.
func TestWhoWaitsForTheEndOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kind, took, sys := starved(t, &handler{})
		require.Equal(t, messages.ExitReset, kind)
		require.Equal(t, 8*time.Second, took)
		synctest.Wait()
		stop(t, sys)
	})
}

// TestWhoHangsItself is not given more than that: 10 s, which are those of the longest.
func TestWhoHangsItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		let := sync.OnceFunc(func() { close(release) })
		defer let()
		kind, took, sys := starved(t, &handler{close: func(*supervisor.Supervisor, supervisor.Exit) { <-release }})
		require.Equal(t, messages.ExitHung, kind)
		require.Equal(t, 13*time.Second, took)
		let()
		synctest.Wait()
		stop(t, sys)
	})
}

// TestAllThatHangHaveTheirTime, also where no other child ends and no strategy ticks.
func TestAllThatHangHaveTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		gate := supervise("gate", supervisor.Options{
			Handler: dynamic(behaviour{handle: echo.handle, terminate: func(*supervisor.Ctx, supervisor.Exit) { <-release }}),
		})
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("top", supervisor.Options{Handler: &handler{}, Children: []supervisor.Spec{gate}}),
		}})
		for _, key := range []string{"a", "b"} {
			answer(t, submit(t, sys.Ref("top", "gate"), key, 1))
		}
		ended, begin := sys.Monitor("top", "gate"), time.Now()
		in(t, sys.Ref("top"), func(s *supervisor.Supervisor) { require.True(t, s.Restart("gate", supervisor.Exit{})) })
		require.Equal(t, messages.ExitReset, (<-ended).Kind)
		require.Equal(t, 5*time.Second, time.Since(begin))
		close(release)
		synctest.Wait()
		stop(t, sys)
	})
}

// TestWhatItWaitedBefore a sign of life does not excuse the silence after it.
func TestWhatItWaitedBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := startOnly(t, supervisor.SystemOptions{Stalls: &pretended{}, Strategy: strategy.Heartbeat(2 * time.Second), Children: []supervisor.Spec{
			{Key: "a", New: of(behaviour{handle: func(c *supervisor.Ctx, _ any) error {
				c.Waited(20 * time.Second)
				c.Beat()
				return nil
			}})},
		}})
		gone, begin := sys.Monitor("a"), time.Now()
		require.True(t, sys.Ref("a").Tell("work"))
		require.Equal(t, messages.ExitHung, (<-gone).Kind)
		require.LessOrEqual(t, time.Since(begin), 7*time.Second)
		synctest.Wait()
		stop(t, sys)
	})
}
