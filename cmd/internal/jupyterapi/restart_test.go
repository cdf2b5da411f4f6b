package jupyterapi

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/test/testpython"
)

// TestARestartThatFails leaves the kernel what it was.
func TestARestartThatFails(t *testing.T) {
	t.Parallel()
	host, err := coppice.Start(t.Context(), coppice.Options{
		Home: t.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), Python: testpython.Path(t), Env: os.Environ(),
	})
	require.NoError(t, err)
	a := New(Options{Host: host, Cwd: t.TempDir()})
	defer a.Close()
	k, err := a.start(t.Context(), "", t.TempDir())
	require.NoError(t, err)
	k.mu.Lock()
	k.count = 3
	process := k.process
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.True(t, host.Shutdown(ctx).Clean())
	require.Error(t, k.restart())
	require.Equal(t, idle, k.glance().state)
	k.mu.Lock()
	defer k.mu.Unlock()
	require.Equal(t, 3, k.count)
	require.Equal(t, process, k.process)
	require.Zero(t, k.past.before)
}
