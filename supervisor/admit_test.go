package supervisor_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// TestTheHandlerIsAskedOnce for each time that a key comes to have a child, about the work that
// waits first: not again while it waits for room, not for a restart, and not for a child that
// nothing waits for and that is made as before.
func TestTheHandlerIsAskedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGated("a", "b")
		var asked []string
		h := &handler{spec: func(_ *supervisor.Supervisor, key string, w supervisor.Work) (supervisor.Spec, error) {
			asked = append(asked, fmt.Sprint(key, " ", w.Msg))
			return supervisor.Spec{New: of(g.behaviour())}, nil
		}}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{
			Handler: h, Strategy: strategy.Chain(strategy.RestartOnce(), strategy.LRUQueue(1, 10)),
		})}})
		gate := sys.Ref("gate")
		a := submit(t, gate, "a", 1)
		b := []supervisor.Reply[any]{submit(t, gate, "b", 2), submit(t, gate, "b", 3), submit(t, gate, "b", 4)}
		synctest.Wait()
		require.Equal(t, []string{"a busy", "b waiting"}, states(t, gate))
		require.Equal(t, []string{"a 1", "b 2"}, asked)

		g.open["a"] <- nil
		require.Equal(t, 1, answer(t, a))
		g.open["b"] <- errTest
		require.ErrorIs(t, refusal(t, b[0]), supervisor.ErrLost)
		synctest.Wait()
		require.Equal(t, []string{"a 1", "b 2"}, asked, "it is restarted as it is")
		g.open["b"] <- errTest
		require.ErrorIs(t, refusal(t, b[1]), supervisor.ErrLost)
		require.ErrorIs(t, refusal(t, b[2]), supervisor.ErrExhausted)
		synctest.Wait()
		require.Equal(t, []string{"b failed"}, states(t, gate))

		in(t, gate, func(s *supervisor.Supervisor) { require.True(t, s.Restart("b", supervisor.Exit{})) })
		synctest.Wait()
		require.Equal(t, []string{"b idle"}, states(t, gate))
		require.Equal(t, []string{"a 1", "b 2"}, asked)

		for range 2 {
			failing := submit(t, gate, "b", 5)
			g.open["b"] <- errTest
			require.ErrorIs(t, refusal(t, failing), supervisor.ErrLost)
		}
		a = submit(t, gate, "a", 6)
		synctest.Wait()
		require.Equal(t, []string{"b failed", "a busy"}, states(t, gate))
		in(t, gate, func(s *supervisor.Supervisor) { require.True(t, s.Restart("b", supervisor.Exit{})) })
		last := submit(t, gate, "b", 7)
		synctest.Wait()
		require.Equal(t, []string{"b waiting", "a busy"}, states(t, gate))
		require.Equal(t, []string{"a 1", "b 2", "a 6", "b 7"}, asked, "work has come that it may be for")
		g.open["a"] <- nil
		require.Equal(t, 6, answer(t, a))
		g.open["b"] <- nil
		require.Equal(t, 7, answer(t, last))
		require.Equal(t, []string{"a 1", "b 2", "a 6", "b 7"}, asked)
		stop(t, sys)
	})
}
