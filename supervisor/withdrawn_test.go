package supervisor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// TestWithdrawnFromAQueue: what is withdrawn is what was named, also while other work is in the hand
// of an incarnation that ends and has not begun it: that goes to the next one.
func TestWithdrawnFromAQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		sys, gate := policySupervisor(t, nil, behaviour{handle: func(c *supervisor.Ctx, m any) error {
			if m == "hold" {
				<-release
				return nil
			}
			return echo.handle(c, m)
		}})
		answer(t, submit(t, gate, "a", 1))
		require.True(t, sys.Ref("gate", "a").Tell("hold"))
		synctest.Wait()
		first := submit(t, gate, "a", 2)
		second, withdrawn := supervisor.NewWork[any](3)
		in(t, gate, func(s *supervisor.Supervisor) {
			s.Submit("a", second)
			require.True(t, s.Restart("a", supervisor.Exit{}))
			require.True(t, s.Withdraw("a", second))
		})
		second.Settle("withdrawn")
		close(release)
		require.Equal(t, 2, answer(t, first))
		require.Equal(t, "withdrawn", answer(t, withdrawn))
		n, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, n.Children[0].Children[0].Done, "of both incarnations")
		in(t, gate, func(s *supervisor.Supervisor) {
			for c := range s.Children() {
				if c.Done != 2 || c.DoneThisEpoch != 1 {
					t.Errorf("done: %d, by this incarnation: %d", c.Done, c.DoneThisEpoch)
				}
			}
		})
		stop(t, sys)
	})
}

// TestRestartOfOneThatWaits: a reset changes nothing for a key that waits for room, nor for a static
// child whose turn to begin has not come.
func TestRestartOfOneThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		room := true
		var asked []string
		sys, gate := policySupervisor(t, scripted(func(ev strategy.Event) []strategy.Directive {
			if s, is := ev.(strategy.Spawning); is {
				if asked = append(asked, s.Key); !room {
					return []strategy.Directive{strategy.Wait(s.Key)}
				}
			}
			return nil
		}), obedient)
		answer(t, submit(t, gate, "a", 1))
		in(t, gate, func(*supervisor.Supervisor) { room = false })
		w, cancelled := supervisor.NewWork[any](2)
		in(t, gate, func(s *supervisor.Supervisor) { s.Submit("b", w) })
		require.Equal(t, []string{"a idle", "b waiting"}, states(t, gate))
		in(t, gate, func(s *supervisor.Supervisor) { require.True(t, s.Restart("b", supervisor.Exit{})) })
		w.Settle("cancelled")
		require.Equal(t, "cancelled", answer(t, cancelled))
		in(t, gate, func(*supervisor.Supervisor) { room = true })
		for range 3 { // a tick is within
			later(time.Second)
		}
		answer(t, submit(t, gate, "c", 3))
		require.Equal(t, []string{"a idle", "c idle"}, states(t, gate))
		stop(t, sys)
	})
	synctest.Test(t, func(t *testing.T) {
		l, told := &log{}, &log{}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("g", supervisor.Options{
			Children: []supervisor.Spec{otpChild(l, "a", strategy.Permanent), otpChild(l, "b", strategy.Permanent)},
			Handler: &handler{changed: func(s *supervisor.Supervisor, e messages.ChildChanged) {
				told.add(e.Key + " " + string(e.To))
				if e.Key == "a" && e.To == messages.ChildStarting && !s.Restart("b", supervisor.Exit{}) {
					t.Error("b is not known")
				}
			}},
		})}})
		synctest.Wait()
		require.Equal(t, []string{"+a1", "+b1"}, l.take())
		require.Equal(t, []string{"a starting", "a idle", "b starting", "b idle"}, told.take())
		stop(t, sys)
	})
}

// TestEndsInTheLastMoment: what a shutdown without time gives up, and what ends in the moment after
// that, is not left over.
func TestEndsInTheLastMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{{Key: "a", StopTimeout: time.Hour, New: of(behaviour{
			terminate: func(*supervisor.Ctx, supervisor.Exit) { time.Sleep(time.Second + 50*time.Millisecond) },
		})}}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		report := sys.Shutdown(ctx)
		require.Empty(t, report.Leftovers)
		require.Less(t, time.Since(begin), 1100*time.Millisecond)
		check(t, sys)
	})
}
