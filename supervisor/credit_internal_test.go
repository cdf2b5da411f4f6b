package supervisor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCreditServedTooLate: one that gives up just when it is served keeps nothing of it.
func TestCreditServedTooLate(t *testing.T) {
	t.Parallel()
	late := 0
	for range 100 {
		c := NewCredit(10)
		require.True(t, c.TryAcquire(10))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Acquire(ctx, 4) }() // joined by the receive
		waits := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.waiters)
		}
		for waits() == 0 {
		}
		c.mu.Lock()
		cancel()
		c.used = 3
		c.serve()
		c.mu.Unlock()
		if err := <-done; err != nil {
			late++
		} else {
			c.Release(4)
		}
		require.EqualValues(t, 3, c.InUse())
	}
	require.Positive(t, late)
}
