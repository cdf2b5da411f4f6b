package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/pause"
)

// TestWait waits twice as long each time, to the bound, and no longer than its context.
func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		began, wait := time.Now(), 300*time.Millisecond
		for _, want := range []time.Duration{300, 900, 1900, 2900, 3900} {
			require.True(t, pause.Wait(ctx, &wait))
			require.Equal(t, want*time.Millisecond, time.Since(began))
		}
		require.False(t, pause.Wait(ctx, &wait))
		require.Equal(t, 4*time.Second, time.Since(began))
		require.Equal(t, pause.Most, wait)
		wait = time.Hour
		require.False(t, pause.Wait(ctx, &wait))
		require.Equal(t, pause.Most, wait)
	})
}
