//go:build linux

package conformance_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
)

// What the README says that one backend refuses is refused, and the refusal names
// the other one.
func TestWhatOneBackendRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]coppice.Options{
		"memory":    {Backend: backends.Named(backends.Gateway), Limits: coppice.Limits{Memory: 1 << 30}},
		"processor": {Backend: backends.Named(backends.Gateway), Limits: coppice.Limits{CPU: time.Second}},
		"processes": {Backend: backends.Named(backends.Gateway), Limits: coppice.Limits{Processes: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := backends.Runner
			if o.Backend.Name() == other {
				other = backends.Gateway
			}
			o.Python, o.Home = testpython.Path(t), t.TempDir()
			_, err := coppice.Start(t.Context(), o)
			require.ErrorIs(t, err, coppice.ErrOptions)
			require.ErrorContains(t, err, "use the "+other+" backend")
		})
	}
	t.Run("fork", func(t *testing.T) {
		t.Parallel()
		host := plain(t, backends.Gateway)
		_, err := host.Session("a", coppice.In(t.TempDir())).Fork(t.Context(), coppice.ForkOptions{Copies: 1})
		refused, ok := errors.AsType[*messages.ForkRefused](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, messages.ForkUnsupported, refused.Reason)
	})
}
