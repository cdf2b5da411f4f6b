package runner

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/estate"
	"github.com/coppice-run/coppice/messages"
)

// TestACellThatTheNextHostBeginsIsNoneOfThisOne: a cell whose session was left to the next
// host has not run here, whichever is seen first, the end of the call or that of the session:
// it must not look like one that ran.
func TestACellThatTheNextHostBeginsIsNoneOfThisOne(t *testing.T) {
	t.Parallel()
	log, err := estate.Create(t.TempDir(), "log", estate.NewSeal())
	require.NoError(t, err)
	log.Freeze()
	i := &Interpreter{done: make(chan struct{}), err: errLeft}
	i.held.Store(&kept{log: log})
	emit := func(context.Context, messages.Event) error { return nil }

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = i.Execute(ctx, kernel.CellRequest{Code: "1"}, emit)
	require.ErrorIs(t, err, context.Canceled)

	close(i.done)
	_, err = i.Execute(t.Context(), kernel.CellRequest{Code: "1"}, emit)
	require.ErrorIs(t, err, errLeft)
}
