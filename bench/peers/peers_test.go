package peers_test

import (
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
	o := peers.Options{Python: testpython.Path(t), Root: root, Calls: 3, Creates: 1}
	for _, p := range peers.All() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			r, err := p.Run(t.Context(), o)
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
