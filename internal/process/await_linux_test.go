package process_test

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/process"
)

func TestAwait(t *testing.T) {
	t.Parallel()
	require.NoError(t, process.Await(t.Context(), process.Identity{}), "what is not there has ended")

	p := start(t, child("wait"))
	stale := p.Identity()
	stale.Start = "1@" + stale.Start
	require.NoError(t, process.Await(t.Context(), stale), "a recycled pid is another process")

	enough := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, enough)
	defer cancel()
	require.ErrorIs(t, process.Await(ctx, p.Identity()), enough)
	require.True(t, process.Alive(p.Identity()))

	told := make(chan error, 1)
	go func() { told <- process.Await(t.Context(), p.Identity()) }()
	require.NoError(t, p.Stop(t.Context(), process.StopOptions{Grace: -1}))
	require.NoError(t, <-told)
	require.False(t, process.Alive(p.Identity()))
}

// A zombie has ended, though it was not reaped.
func TestAwaitAZombie(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	require.NoError(t, cmd.Start())
	id, err := process.Identify(cmd.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	require.NoError(t, process.Await(t.Context(), id))
	require.Error(t, cmd.Wait(), "it was killed")
}
