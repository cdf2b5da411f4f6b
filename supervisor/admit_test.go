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

// TestRoomForSeveral: as many as there is room for begin at once, and when one has to go on waiting,
// others of its kind that have been told to wait are not asked about.
func TestRoomForSeveral(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		room := 0
		var asked []string // like room, of the goroutine of the supervisor
		sys, gate := policySupervisor(t, scripted(func(ev strategy.Event) []strategy.Directive {
			spawning, is := ev.(strategy.Spawning)
			switch {
			case !is:
				return nil
			case room == 0:
				asked = append(asked, spawning.Key)
				return []strategy.Directive{strategy.Wait(spawning.Key)}
			}
			asked = append(asked, spawning.Key)
			room--
			return nil
		}), behaviour{init: func(*supervisor.Ctx) error { <-release; return nil }, handle: echo.handle})
		var replies []supervisor.Reply[any]
		asks := func(space int, keys ...string) []string {
			in(t, gate, func(*supervisor.Supervisor) { room, asked = space, nil })
			for _, key := range keys {
				replies = append(replies, submit(t, gate, key, key))
			}
			var all []string
			in(t, gate, func(*supervisor.Supervisor) { all = asked })
			return all
		}
		asks(0, "b", "c", "d")
		require.Equal(t, []string{"b waiting", "c waiting", "d waiting"}, states(t, gate))
		require.Equal(t, []string{"b", "e"}, asks(0, "e"))
		require.Equal(t, []string{"b", "c", "d", "f"}, asks(2, "f"))
		require.Equal(t, []string{"b starting", "c starting", "d waiting", "e waiting", "f waiting"}, states(t, gate))
		in(t, gate, func(*supervisor.Supervisor) { room = 3 })
		close(release)
		replies = append(replies, submit(t, gate, "g", "g"))
		in(t, gate, func(*supervisor.Supervisor) { room = 1 })
		replies = append(replies, submit(t, gate, "b", "b"))
		synctest.Wait()
		in(t, gate, func(s *supervisor.Supervisor) { s.End("b", supervisor.Exit{}) })
		for _, r := range replies {
			answer(t, r)
		}
		stop(t, sys)
	})
}
