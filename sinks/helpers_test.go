package sinks_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/supervisor"
)

// start runs a tree with nothing but a hub in it, for as long as the test.
func start(t testing.TB, o sinks.HubOptions) *sinks.Hub {
	t.Helper()
	hub, err := sinks.NewHub(o)
	require.NoError(t, err)
	system, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Children: []supervisor.Spec{hub.Spec()}})
	require.NoError(t, err)
	t.Cleanup(func() {
		report := system.Shutdown(context.Background())
		require.True(t, report.Clean(), "%v", report.Leftovers)
		require.Empty(t, system.Bugs())
	})
	return hub
}
