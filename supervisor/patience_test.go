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

// TestWhoWaitsForTheEndOfOthers is given what those are given: a supervisor below which two have no
// processor to end with has the longer of their times, and not one after the other.
func TestWhoWaitsForTheEndOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		late := map[string]struct{ limit, waited, takes time.Duration }{
			"long":  {2 * time.Second, 20 * time.Second, 8 * time.Second},
			"short": {2500 * time.Millisecond, 3 * time.Second, 4 * time.Second},
		}
		h := &handler{spec: func(_ *supervisor.Supervisor, key string, _ supervisor.Work) (supervisor.Spec, error) {
			l := late[key]
			return supervisor.Spec{StopTimeout: l.limit, New: of(behaviour{handle: echo.handle, terminate: func(c *supervisor.Ctx, _ supervisor.Exit) {
				c.Waited(l.waited)
				time.Sleep(l.takes)
			}})}, nil
		}}
		below := supervise("below", supervisor.Options{Handler: h})
		below.StopTimeout = 3 * time.Second
		sys := startOnly(t, supervisor.SystemOptions{Stalls: &pretended{}, Children: []supervisor.Spec{
			supervise("top", supervisor.Options{Handler: &handler{}, Children: []supervisor.Spec{below}}),
		}})
		for key := range late {
			answer(t, submit(t, sys.Ref("top", "below"), key, 1))
		}
		ended, begin := sys.Monitor("top", "below"), time.Now()
		in(t, sys.Ref("top"), func(s *supervisor.Supervisor) { require.True(t, s.Restart("below", supervisor.Exit{})) })
		require.Equal(t, messages.ExitReset, (<-ended).Kind)
		require.Equal(t, 8*time.Second, time.Since(begin))
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
