package supervisor_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/supervisor"
)

func TestCredit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := supervisor.NewCredit(10)
		ctx := t.Context()
		require.NoError(t, c.Acquire(ctx, 4))
		require.NoError(t, c.Acquire(ctx, 2))
		require.True(t, c.TryAcquire(4))
		require.False(t, c.TryAcquire(1))
		require.True(t, c.TryAcquire(0))
		require.EqualValues(t, 10, c.InUse())

		order := &log{}
		for _, w := range []struct {
			name string
			n    int64
		}{{"large", 8}, {"small", 1}} {
			go func() {
				if err := c.Acquire(ctx, w.n); err != nil {
					t.Error(err)
				}
				order.add(w.name)
			}()
			synctest.Wait()
		}
		c.Release(4)
		synctest.Wait()
		require.Empty(t, order.take(), "a small one does not overtake a large one")
		require.False(t, c.TryAcquire(1), "nor does one that does not wait")
		c.Release(6)
		synctest.Wait()
		require.Equal(t, []string{"large", "small"}, sorted(order.take()))
		c.Release(9)
		require.Zero(t, c.InUse())
		c.Release(1)
		require.Zero(t, c.InUse(), "too much does not make a debt")
	})
}

func sorted(l []string) []string {
	if len(l) == 2 && l[0] > l[1] {
		l[0], l[1] = l[1], l[0]
	}
	return l
}

// TestCreditClamp: what is larger than all of it takes all of it.
func TestCreditClamp(t *testing.T) {
	t.Parallel()
	c := supervisor.NewCredit(10)
	require.NoError(t, c.Acquire(t.Context(), 1000))
	require.EqualValues(t, 10, c.InUse())
	c.Release(1000)
	require.Zero(t, c.InUse())
	require.NoError(t, c.Acquire(t.Context(), -1))
	require.Zero(t, c.InUse())
	least := supervisor.NewCredit(0)
	require.True(t, least.TryAcquire(5))
	require.False(t, least.TryAcquire(1))
}

// TestCreditCtx: one that gives up leaves the row, and those behind it may fit.
func TestCreditCtx(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := supervisor.NewCredit(10)
		require.True(t, c.TryAcquire(5))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errTest)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- c.Acquire(ctx, 9) }()
		synctest.Wait()
		behind := make(chan error, 1)
		go func() { behind <- c.Acquire(t.Context(), 5) }()
		synctest.Wait()
		require.ErrorIs(t, <-done, errTest)
		require.NoError(t, <-behind)
		require.EqualValues(t, 10, c.InUse())
	})
}

// TestCreditNeverExceeds: whatever many goroutines do, no more than all of it
// is in use, and in the end nothing is.
func TestCreditNeverExceeds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 20).Draw(t, "limit")
		amounts := rapid.SliceOfN(rapid.Int64Range(0, 30), 1, 40).Draw(t, "amounts")
		c := supervisor.NewCredit(limit)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var wg sync.WaitGroup
		var over atomic.Bool
		for i, n := range amounts {
			wg.Go(func() {
				if i%7 == 6 {
					if c.TryAcquire(n) {
						c.Release(n)
					}
					return
				}
				if c.Acquire(ctx, n) != nil {
					return
				}
				if c.InUse() > limit {
					over.Store(true)
				}
				if i == len(amounts)/2 {
					cancel() // some give up
				}
				c.Release(n)
			})
		}
		wg.Wait()
		if over.Load() || c.InUse() != 0 {
			t.Fatalf("over %t, %d left", over.Load(), c.InUse())
		}
	})
}

func BenchmarkCredit(b *testing.B) {
	c := supervisor.NewCredit(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Acquire(context.Background(), 100)
		c.Release(100)
	}
}
