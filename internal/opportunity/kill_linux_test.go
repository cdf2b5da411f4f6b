package opportunity_test

import (
	"context"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// TestKillAll: nothing of it is left, also when who asks for it has gone.
func TestKillAll(t *testing.T) {
	var ids []process.Identity
	for range 3 {
		cmd := exec.Command("sleep", "3600")
		require.NoError(t, cmd.Start())
		id, err := process.Identify(cmd.Process.Pid)
		require.NoError(t, err)
		ids = append(ids, id)
		go func() { _ = cmd.Wait() }() // ends with the process, which is killed
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Empty(t, opportunity.KillAll(ctx, ids))
	for _, id := range ids {
		require.True(t, process.Ended(id))
	}
	require.Empty(t, opportunity.KillAll(ctx, ids), "they have ended before")
	require.Empty(t, opportunity.KillAll(ctx, nil))
}
