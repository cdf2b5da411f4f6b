package fleet

import (
	"sync"
	"time"
)

// furthest returns a clock that adds up how far time has come between two looks, by the
// monotonic clock or by the one on the wall, whichever says more.
func furthest(now func() time.Time) Clock {
	var (
		mu   sync.Mutex
		last = now()
		sum  time.Duration
	)
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		t := now()
		sum += max(t.Sub(last), t.Round(0).Sub(last.Round(0)), 0)
		last = t
		return sum
	}
}
