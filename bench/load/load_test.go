package load_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/bench/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A server that stalls is seen by all calls that were due meanwhile. A closed loop
// would have seen one slow call.
func TestAStallIsSeenByEveryCallThatWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := make(chan struct{}, 1) // serves one call at a time
		stalled := false
		s := load.Virtual(t.Context(), load.Steady(100, 2*time.Second), func(context.Context, int) error {
			one <- struct{}{}
			defer func() { <-one }()
			if !stalled {
				stalled = true
				time.Sleep(time.Second)
			}
			return nil
		}, nil)
		require.EqualValues(t, 200, s.Latency.Count)
		require.Zero(t, s.Failed)
		require.InDelta(t, time.Second, s.Latency.Max, float64(10*time.Millisecond))
		// Half of all calls were due during the stall, and waited for its end: up to
		// a second, evenly.
		require.Greater(t, s.Latency.P90, 700*time.Millisecond)
		require.Zero(t, s.Late.Max.Truncate(time.Millisecond), "the generator itself is on time")
	})
}

func TestErrorsAndTheEndOfTheContextAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second-time.Millisecond)
		defer cancel()
		var ended atomic.Int64
		s := load.Virtual(ctx, load.Steady(10, 2*time.Second), func(_ context.Context, i int) error {
			if i%2 == 1 {
				return errors.New("odd")
			}
			return nil
		}, func() { ended.Add(1) })
		require.EqualValues(t, 5, s.Latency.Count)
		require.Equal(t, 5, s.Failed)
		require.Equal(t, "odd", s.First)
		require.Equal(t, 10, s.Skipped)
		require.EqualValues(t, 10, ended.Load())
	})
}

func TestPlans(t *testing.T) {
	require.Equal(t, load.Plan{0, 0, 0}, load.Burst(3))
	require.Equal(t, load.Plan{0, 250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond}, load.Steady(4, time.Second))
	require.Empty(t, load.Poisson(0, time.Second, 1))
	require.Empty(t, load.Steady(5, 0))
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.5, 2000).Draw(t, "rate")
		seed := rapid.Uint64().Draw(t, "seed")
		plan := load.Poisson(rate, 5*time.Second, seed)
		require.Equal(t, plan, load.Poisson(rate, 5*time.Second, seed), "the same seed gives the same plan")
		require.True(t, slices.IsSorted(plan))
		require.Less(t, plan.Duration(), 5*time.Second)
		// The number of arrivals has the standard deviation sqrt(mean); seven of
		// them are never seen.
		mean := rate * 5
		require.InDelta(t, mean, len(plan), 7*max(1, math.Sqrt(mean))+1)
	})
}

func TestRecorderKeepsThreeDigits(t *testing.T) {
	r := load.NewRecorder()
	for i := 1; i <= 1000; i++ {
		r.Record(time.Duration(i) * time.Millisecond)
	}
	r.Record(-time.Second) // counts as the shortest
	s := r.Summary()
	require.EqualValues(t, 1001, s.Count)
	require.InEpsilon(t, 500*time.Millisecond, s.P50, 0.005)
	require.InEpsilon(t, 990*time.Millisecond, s.P99, 0.005)
	require.Equal(t, time.Microsecond, s.Min)
	require.Equal(t, load.Summary{}, load.NewRecorder().Summary())
}

// On a real clock a call is made within a fraction of a millisecond of its instant,
// most of the time: what is measured is the call and not the timer.
func TestCallsAreMadeOnTime(t *testing.T) {
	s := load.Run(t.Context(), load.Steady(500, 200*time.Millisecond), func(context.Context, int) error { return nil }, nil)
	require.EqualValues(t, 100, s.Latency.Count)
	require.GreaterOrEqual(t, s.Late.Min, time.Duration(0))
	require.GreaterOrEqual(t, s.Elapsed, 198*time.Millisecond)
}
