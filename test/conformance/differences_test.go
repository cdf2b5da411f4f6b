//go:build linux

package conformance_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// What the README says that one backend refuses is refused, and the refusal names
// the other one.
func TestWhatOneBackendRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]coppice.Options{
		"memory":    {Backend: coppice.BackendGateway, Limits: coppice.Limits{Memory: 1 << 30}},
		"processes": {Backend: coppice.BackendGateway, Limits: coppice.Limits{Processes: 1}},
		"isolation": {Backend: coppice.BackendGateway, Isolation: coppice.Isolation{Level: coppice.IsolationLandlock}},
		"language":  {Backend: coppice.BackendRunner, KernelName: "ir"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := coppice.BackendRunner
			if o.Backend == other {
				other = coppice.BackendGateway
			}
			o.Python, o.Home = testpython.Path(t), t.TempDir()
			_, err := coppice.Start(t.Context(), o)
			require.ErrorIs(t, err, coppice.ErrOptions)
			require.ErrorContains(t, err, "use the "+other+" backend")
		})
	}
	t.Run("fork", func(t *testing.T) {
		t.Parallel()
		host := start(t, coppice.BackendGateway, coppice.Options{})
		_, err := host.Session("a", coppice.In(t.TempDir())).Fork(t.Context(), coppice.ForkOptions{Copies: 1})
		refused, ok := errors.AsType[*messages.ForkRefused](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, messages.ForkUnsupported, refused.Reason)
	})
}
