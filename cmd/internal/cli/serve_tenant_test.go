package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
)

// The live view offers copies where the backend makes them, on every server.
func TestTheLiveViewKnowsWhetherSessionsCanBeCopied(t *testing.T) {
	t.Parallel()
	for want, backend := range map[bool]coppice.Backend{true: coppice.Runner(coppice.RunnerOptions{}), false: coppice.Gateway(coppice.GatewayOptions{})} {
		host, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Backend: backend, Env: []string{"COPPICE_PYTHON_SKIP_CHECK=1"}})
		require.NoError(t, err)
		api, err := httpapi.New(httpapi.Options{Host: host, Cwd: t.TempDir()})
		require.NoError(t, err)
		s := source(host, api, 7)
		require.Equal(t, want, s.Fork)
		require.Equal(t, 7, s.MaxSessions)
		require.NoError(t, api.Close())
		require.True(t, host.Shutdown(t.Context()).Clean())
	}
}
