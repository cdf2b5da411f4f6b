package opportunity

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistory(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	var h history
	require.Zero(t, h.since(begin))
	h.add(at(3), 0)
	h.add(at(3), time.Second)           // from 2 to 3
	h.add(at(10), 400*time.Millisecond) // from 9.6 to 10
	require.Equal(t, at(3), h.last, "the other one was short")
	for from, want := range map[float64]time.Duration{
		0: 1400 * time.Millisecond, 2: 1400 * time.Millisecond, 2.5: 900 * time.Millisecond, 3: 400 * time.Millisecond,
		9.75: 250 * time.Millisecond, 10: 0, 11: 0,
	} {
		require.Equal(t, want, h.since(at(from)), from)
	}
}

// However many there are, none is forgotten that a silence of today may contain.
func TestALongHistoryIsThinnedAndLosesNothing(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	var h history
	const n = 20 * mostStalls
	for i := range n {
		h.add(begin.Add(time.Duration(i+1)*time.Second), 250*time.Millisecond)
		require.LessOrEqual(t, len(h.stalls), mostStalls)
	}
	require.Equal(t, n*250*time.Millisecond, h.since(begin.Add(-time.Hour)))
	require.Equal(t, 25*time.Second, h.since(begin.Add((n-100)*time.Second)), "the younger ones are exact")
}

func TestAWatchTellsWhenItWas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var jump time.Duration
		w := Watch{now: func() time.Time { return time.Now().Add(jump) }}
		w.Start()
		begin := time.Now()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Zero(t, w.Last())
		before := w.now()
		jump = time.Minute
		require.Equal(t, w.now(), w.Last(), "it has not ended")
		const most = time.Minute
		require.InDelta(t, most, w.Since(begin), float64(watchEvery+onTime))
		require.InDelta(t, most, w.Since(before), float64(watchEvery+onTime))
		require.InDelta(t, most/2, w.Since(before.Add(most/2)), float64(watchEvery+onTime))
		require.Zero(t, w.Since(w.now()))
		w.Stop()
		require.InDelta(t, most, w.Since(begin), float64(watchEvery+onTime), "it is kept")
		require.Equal(t, w.now(), w.Last())
	})
}
