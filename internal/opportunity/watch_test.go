package opportunity

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A clock that jumps is a process that stood still: all of its timers are late.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after, jump time.Duration
		want        time.Duration
	}{
		"on time":                         {after: time.Second},
		"as late as is in order":          {after: time.Second, jump: onTime},
		"an hour, at a tick":              {after: time.Second, jump: time.Hour, want: time.Hour - watchEvery - onTime},
		"between two ticks, and unseen":   {after: 1020 * time.Millisecond, jump: 80 * time.Millisecond},
		"between two ticks, and too long": {after: 1050 * time.Millisecond, jump: time.Second, want: time.Second - 50*time.Millisecond - onTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var jumped atomic.Int64
				w := Watch{now: func() time.Time { return time.Now().Add(time.Duration(jumped.Load())) }}
				w.Start()
				time.Sleep(tc.after)
				synctest.Wait()
				require.Zero(t, w.Stalled())
				jumped.Store(int64(tc.jump))
				require.Equal(t, tc.want, w.Stalled(), "whoever asks first is told")
				before := w.Stalled()
				for range 100 { // it is seen by the watch itself, and once
					time.Sleep(watchEvery / 10)
					synctest.Wait()
					require.GreaterOrEqual(t, w.Stalled(), before)
					before = w.Stalled()
				}
				w.Stop()
				seen := w.Stalled()
				require.InDelta(t, tc.want, seen, float64(watchEvery)) // its own timer is not late here, and so comes after its clock
				time.Sleep(time.Hour)
				require.Equal(t, seen, w.Stalled(), "it does not run")
			})
		})
	}
}

func TestAWatchHasSeveralUsers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w Watch
		w.Stop() // nobody has started it
		w.Start()
		w.Start()
		w.Stop()
		require.False(t, w.due.IsZero())
		w.Stop()
		require.True(t, w.due.IsZero())
		w.Start()
		time.Sleep(time.Minute)
		require.Zero(t, w.Stalled())
		w.Stop()
	})
}
