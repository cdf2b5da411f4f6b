package supervisor_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/supervisor"
)

// TestCancelledWorkTakesNoPlace in a queue that is full, wherever in it that stands.
func TestCancelledWorkTakesNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGated("a")
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("gate", supervisor.Options{Handler: dynamic(g.behaviour()), MaxQueue: 2}),
		}})
		gate := sys.Ref("gate")
		r1 := submit(t, gate, "a", 1)
		synctest.Wait()
		w, cancelled := supervisor.NewWork[any](3)
		r2 := submit(t, gate, "a", 2)
		in(t, gate, func(s *supervisor.Supervisor) { s.Submit("a", w) })
		w.Settle("cancelled")
		r4 := submit(t, gate, "a", 4)
		require.ErrorIs(t, refusal(t, submit(t, gate, "a", 5)), supervisor.ErrOverloaded)
		for range 3 {
			g.open["a"] <- nil
		}
		require.Equal(t, 1, answer(t, r1))
		require.Equal(t, 2, answer(t, r2))
		require.Equal(t, "cancelled", answer(t, cancelled))
		require.Equal(t, 4, answer(t, r4))
		stop(t, sys)
	})
}

// TestNothingWaits: no child is made for work that was cancelled or withdrawn before, and its key is
// forgotten.
func TestNothingWaits(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(*supervisor.Supervisor, supervisor.Work){
		"cancelled": func(_ *supervisor.Supervisor, w supervisor.Work) { w.Settle("cancelled") },
		"withdrawn": func(s *supervisor.Supervisor, w supervisor.Work) { require.True(t, s.Withdraw("a", w)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made := 0
				sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: &handler{
					spec: func(_ *supervisor.Supervisor, key string, _ supervisor.Work) (supervisor.Spec, error) {
						made++
						return supervisor.Spec{Key: key, New: of(echo)}, nil
					},
				}})}})
				gate := sys.Ref("gate")
				w, _ := supervisor.NewWork[any](1)
				in(t, gate, func(s *supervisor.Supervisor) { s.Submit("a", w); take(s, w) })
				synctest.Wait()
				require.Zero(t, made)
				require.Empty(t, states(t, gate))
				stop(t, sys)
			})
		})
	}
}
