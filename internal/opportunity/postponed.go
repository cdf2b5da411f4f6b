package opportunity

import (
	"sync/atomic"
	"time"
)

// postponed counts for the whole process.
var postponed atomic.Int64

// Postponed is how many verdicts of this process were put off so far, because whoever
// was late had no chance to speak: a fixed limit would have ended a process then.
func Postponed() int64 { return postponed.Load() }

// Postpone counts n more. It is for those who judge by opportunity without a [Meter].
func Postpone(n int64) { postponed.Add(n) }

// Left is that of the budget for what the meter has seen since the wait began, and
// counts a verdict that is put off for longer than a tenth of a second: once for each
// meter, for the process and for the [Watch] that the meter began with.
func (m *Meter) Left(b Budget, seen Measure) time.Duration {
	left := b.Left(seen)
	if over := seen.Wall - b.Opportunity; left == 0 || over < 0 || over+left < worthTelling {
		return left
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.putOff {
		return left
	}
	m.putOff = true
	Postpone(1)
	if w, ok := m.stalls.(*Watch); ok {
		w.postponed.Add(1)
	}
	return left
}

// Postponed is how many verdicts were put off by meters that began with this watch.
func (w *Watch) Postponed() int64 { return w.postponed.Load() }
