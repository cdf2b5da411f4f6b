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

// limpet is a behaviour whose first incarnation of key "a" does not end before
// release is closed, and that else answers with its epoch.
func limpet(release <-chan struct{}) behaviour {
	return behaviour{
		handle: func(c *supervisor.Ctx, m any) error {
			if w, ok := m.(supervisor.Work); ok {
				c.Finish(w, c.Epoch())
			}
			return nil
		},
		terminate: func(c *supervisor.Ctx, _ supervisor.Exit) {
			if c.Key() == "a" && c.Epoch() == 1 {
				<-release
			}
		},
	}
}

// TestAStrayKeepsItsPlace: what was abandoned may still be there, and so counts
// until it has come back.
func TestAStrayKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{
			Handler: dynamic(limpet(release)), Strategy: strategy.Pin(strategy.LRU(2)),
		})}})
		gate := sys.Ref("gate")
		require.EqualValues(t, 1, answer(t, submit(t, gate, "a", 1)))
		in(t, gate, func(s *supervisor.Supervisor) { s.End("a", supervisor.Exit{Kind: messages.ExitEvicted}) })
		time.Sleep(6 * time.Second)
		require.Equal(t, 1, sys.Zombies())

		require.EqualValues(t, 1, answer(t, submit(t, gate, "b", 1)), "one place is left")
		in(t, gate, func(s *supervisor.Supervisor) { s.Pin("b", true) })
		e := refusal(t, submit(t, gate, "c", 1))
		require.ErrorIs(t, e, supervisor.ErrOverloaded)
		require.ErrorContains(t, e, "2 of 2 places are taken, and none is idle, 1 of them not known to be gone")

		node, err := sys.Snapshot(context.Background())
		require.NoError(t, err)
		require.Len(t, node.Children[0].Abandoned, 1)
		require.Equal(t, "gate/a", node.Children[0].Abandoned[0].Path)

		close(release)
		synctest.Wait()
		require.EqualValues(t, 1, answer(t, submit(t, gate, "c", 2)), "its place is free")
		node, err = sys.Snapshot(context.Background())
		require.NoError(t, err)
		require.Empty(t, node.Children[0].Abandoned)
		stop(t, sys)
	})
}

// TestAKeyWaitsForAStray: what waits for capacity is served when a stray has
// come back, its own successor included.
func TestAKeyWaitsForAStray(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, key string }{{"its own key", "a"}, {"another key", "b"}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{
					Handler: dynamic(limpet(release)), Strategy: strategy.LRUQueue(1, 4),
				})}})
				gate := sys.Ref("gate")
				require.EqualValues(t, 1, answer(t, submit(t, gate, "a", 1)))
				in(t, gate, func(s *supervisor.Supervisor) {
					if row.key == "a" {
						s.Restart("a", supervisor.Exit{Kind: messages.ExitReset})
					} else {
						s.End("a", supervisor.Exit{Kind: messages.ExitEvicted})
					}
				})
				waits := submit(t, gate, row.key, 2)
				time.Sleep(time.Minute)
				synctest.Wait()
				select {
				case <-waits.Done():
					t.Fatal("there are two")
				default:
				}
				close(release)
				answer(t, waits)
				stop(t, sys)
			})
		})
	}
}

// TestAnOwnersStray counts in the owner's quota, and in no other.
func TestAnOwnersStray(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := limpet(release)
		d := &handler{spec: func(_ *supervisor.Supervisor, _ string, w supervisor.Work) (supervisor.Spec, error) {
			return supervisor.Spec{Owner: w.Owner, New: of(b)}, nil
		}}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{
			Handler: d, Strategy: strategy.Quota(1),
		})}})
		gate := sys.Ref("gate")
		of := func(owner string) func(*supervisor.Work) { return func(w *supervisor.Work) { w.Owner = owner } }
		answer(t, submitWork(t, gate, "a", 1, of("ann")))
		in(t, gate, func(s *supervisor.Supervisor) { s.End("a", supervisor.Exit{}) })
		time.Sleep(6 * time.Second)
		require.ErrorIs(t, refusal(t, submitWork(t, gate, "b", 1, of("ann"))), supervisor.ErrOverloaded)
		answer(t, submitWork(t, gate, "c", 1, of("bob")))
		close(release)
		synctest.Wait()
		answer(t, submitWork(t, gate, "b", 2, of("ann")))
		stop(t, sys)
	})
}
