package coppice_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
)

// TestHibernateWithoutTime: whose time is over learns what was attempted.
func TestHibernateWithoutTime(t *testing.T) {
	t.Parallel()
	host, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), Env: []string{"COPPICE_PYTHON_SKIP_CHECK=1"}})
	require.NoError(t, err)
	t.Cleanup(func() { host.Shutdown(context.Background()) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = host.Session("a").Hibernate(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, `keep the session "a" on disk: `)
}
