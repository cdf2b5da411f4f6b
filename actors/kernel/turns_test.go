package kernel_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
)

// Starts take their turns in the order in which they came, as many at a time as may.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := kernel.Turns{AtOnce: 2}
		var mu sync.Mutex
		var order []int
		texts := map[int][]string{}
		running, most := 0, 0
		waited := map[int]bool{}
		var wg sync.WaitGroup
		begin := time.Now()
		for n := range 10 {
			wg.Go(func() {
				back, err := turns.Take(t.Context(), func(s string) {
					mu.Lock()
					defer mu.Unlock()
					texts[n] = append(texts[n], s)
				}, func(w kernel.Waiting) {
					mu.Lock()
					defer mu.Unlock()
					waited[n] = w.Turn
				})
				require.NoError(t, err)
				mu.Lock()
				order = append(order, n)
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(4500 * time.Millisecond)
				mu.Lock()
				running--
				mu.Unlock()
				back()
				back()
			})
			synctest.Wait()
		}
		wg.Wait()
		require.Equal(t, 2, most)
		require.Equal(t, 5*4500*time.Millisecond, time.Since(begin))
		for at, n := range order { // two at a time, in either order
			require.Equal(t, at/2, n/2, order)
		}
		require.Empty(t, texts[1], "it did not wait")
		require.False(t, waited[1])
		require.True(t, waited[9])
		require.Equal(t, "waiting for its turn: start 8 of 8", texts[9][0])
		require.Contains(t, texts[9], "waiting for its turn: start 2 of 8")
	})
}

// Who leaves the queue holds up no one, nor does a start that hangs.
func TestTurnsAreNotLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := kernel.Turns{AtOnce: 1}
		hung, err := turns.Take(t.Context(), nil, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = turns.Take(ctx, nil, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		begin := time.Now()
		back, err := turns.Take(t.Context(), nil, nil)
		require.NoError(t, err)
		require.Equal(t, 29*time.Second, time.Since(begin), "of one that hangs it is taken away")
		hung() // too late: it is another's
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = turns.Take(ctx, nil, nil)
		require.Error(t, err)
		back()
		back, err = turns.Take(t.Context(), nil, nil)
		require.NoError(t, err)
		back()
	})
}
