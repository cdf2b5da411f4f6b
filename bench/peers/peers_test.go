package peers_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/bench/peers"
	"github.com/coppice-run/coppice/test/testpython"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryPeerAnswers(t *testing.T) {
	root, err := peers.Root(".")
	require.NoError(t, err)
	// COPPICE_BENCH_PEERS has those of the registries answer too; without it they
	// say how they are installed.
	o := peers.Options{Python: testpython.Path(t), Root: root, Extras: os.Getenv("COPPICE_BENCH_PEERS"), Calls: 3, Creates: 1}
	for _, p := range peers.All() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			r, err := p.Run(t.Context(), o)
			require.Positive(t, p.Expect())
			if gone := p.Available(o); gone != nil {
				require.ErrorIs(t, err, peers.ErrLeftOut)
				require.ErrorContains(t, gone, p.Name)
				require.Empty(t, r.Metrics)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "peer/"+p.Name+"/1", r.Name())
			v, ok := r.Metric("exec-p50")
			require.True(t, ok)
			require.Positive(t, v)
			require.NotEmpty(t, r.Notes)
		})
	}
}

// Each side gets the same sessions and calls, and goes first in every other turn.
func TestBesideTakesTurns(t *testing.T) {
	t.Parallel()
	var opened, called, closed int
	r, err := peers.Beside(t.Context(), "gateway", peers.Options{Python: testpython.Path(t), Calls: 3, Creates: 1}, func(context.Context) (peers.Opened, error) {
		opened++
		return peers.Opened{Call: func() error { called++; return nil }, Close: func() error { closed++; return nil }}, nil
	})
	require.NoError(t, err)
	require.Equal(t, []int{3, 2 + 20 + 3, 3}, []int{opened, called, closed})
	require.Equal(t, "beside/gateway/1", r.Name())
	for _, name := range []string{"exec-p50", "floor-exec-p50", "create-p50", "floor-create-p50"} {
		_, ok := r.Metric(name)
		require.True(t, ok, name)
	}
	for name, n := range map[string]int64{"exec": 3, "floor-exec": 3, "create": 1, "floor-create": 1} {
		require.Equal(t, n, r.Curves[name].Count, name)
	}
	bad := errors.New("it is broken")
	_, err = peers.Beside(t.Context(), "gateway", peers.Options{Python: "/nowhere/python"}, nil)
	require.Error(t, err)
	_, err = peers.Beside(t.Context(), "runner", peers.Options{Python: testpython.Path(t), Root: "/nowhere"}, func(context.Context) (peers.Opened, error) {
		return peers.Opened{}, bad
	})
	require.Error(t, err)
}

func TestRootIsFoundFromBelowOnly(t *testing.T) {
	_, err := peers.Root(t.TempDir())
	require.ErrorIs(t, err, peers.ErrRoot)
}

// Without Extras floors and the clients of the tests' environment are measured.
func TestPeersOfTheRegistriesAreLeftOutUntilTheyAreInstalled(t *testing.T) {
	here := 0
	for _, p := range peers.All() {
		if p.Available(peers.Options{}) == nil {
			here++
		}
	}
	require.Equal(t, 7, here)
}
