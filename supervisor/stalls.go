package supervisor

import (
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
)

// Stalls tells when this process stood still or ran too late: stopped by a signal,
// starved of a processor, in a virtual machine that was paused. Nothing is heard then,
// and no one is to blame for it. Any goroutine may call its methods.
type Stalls interface {
	// Stalled is how long it was in all. It never falls.
	Stalled() time.Duration
	// Since is how long it was from then until now.
	Since(then time.Time) time.Duration
	// Last is when the last stall of half a second or more ended, now while one has
	// not ended, and zero if there was none.
	Last() time.Time
}

// catchUp is what a deadline gets besides when this process stood still shortly
// before: what came meanwhile is read first.
const catchUp = 100 * time.Millisecond

// stalledSince is Since for an instant that may be never.
func stalledSince(s Stalls, then time.Time) time.Duration {
	if then.IsZero() {
		return 0
	}
	return s.Since(then)
}

// listened is how much of the time since then this process did not stand still.
func (s *commons) listened(then time.Time) time.Duration {
	return time.Since(then) - s.stalls.Since(then)
}

// postpone counts ends that were put off.
func (s *commons) postpone(n int) {
	s.postponed.Add(int64(n))
	opportunity.Postpone(int64(n))
}

// busy is what was lost, nil for nothing.
func (s *commons) busy() *messages.Busy {
	b := messages.Busy{Stalled: s.stalls.Stalled(), Waited: time.Duration(max(0, s.waited.Load())), Postponed: s.postponed.Load()}
	if w, ok := s.stalls.(*opportunity.Watch); ok {
		b.Postponed += w.Postponed()
	}
	if b == (messages.Busy{}) {
		return nil
	}
	return &b
}

// waits is what an incarnation says that it waited for a processor.
type waits struct {
	total    atomic.Int64 // since it began
	atBeat   atomic.Int64 // total at the last beat
	atResume atomic.Int64 // when this process was last seen to come back from standing still
	atStop   atomic.Int64 // when it was asked to end
}

// addWaited counts more. Any goroutine may call it.
func (c *incarnation) addWaited(d time.Duration) {
	w := c.waits.Load()
	if w == nil {
		c.waits.CompareAndSwap(nil, new(waits))
		w = c.waits.Load()
	}
	w.total.Add(int64(d))
	c.sys.waited.Add(int64(d))
}

// waited is what it waited since it gave a sign of life, and the part of that since
// this process came back from standing still.
func (c *incarnation) waited() (sinceBeat, afterwards time.Duration) {
	w := c.waits.Load()
	if w == nil {
		return 0, 0
	}
	total, beat := w.total.Load(), w.atBeat.Load()
	return time.Duration(max(0, total-beat)), time.Duration(max(0, total-max(beat, w.atResume.Load())))
}

// waitedToEnd is what it waited since it was asked to end.
func (c *incarnation) waitedToEnd() time.Duration {
	if w := c.waits.Load(); w != nil {
		return time.Duration(max(0, w.total.Load()-w.atStop.Load()))
	}
	return 0
}
