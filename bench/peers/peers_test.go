package peers_test

import (
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
