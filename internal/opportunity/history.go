package opportunity

import (
	"slices"
	"time"
)

// mostStalls is how many stalls a watch remembers one by one. Of more, the older ones
// are reported as fewer and longer ones.
const mostStalls = 512

// stall is one time in which this process stood still or ran too late.
type stall struct{ from, to time.Time }

// history is the stalls that a watch has seen, oldest first. It is a value without a
// clock.
type history struct {
	stalls []stall
	last   time.Time // when the last long one ended
}

// add takes a stall that ends now and has lasted for d.
func (h *history) add(now time.Time, d time.Duration) {
	if d <= 0 {
		return
	}
	if d >= longStall {
		h.last = now
	}
	if len(h.stalls) >= mostStalls {
		h.thin()
	}
	h.stalls = append(h.stalls, stall{now.Add(-d), now})
}

// thin makes one of every two of the older half. The two stay as long as they were
// together, and end with the later one.
func (h *history) thin() {
	kept := h.stalls[:0]
	for i := 0; i+1 < mostStalls/2; i += 2 {
		a, b := h.stalls[i], h.stalls[i+1]
		kept = append(kept, stall{b.from.Add(-a.to.Sub(a.from)), b.to})
	}
	h.stalls = append(kept, h.stalls[mostStalls/2:]...)
}

// since is how much of the time after then was stalled.
func (h *history) since(then time.Time) time.Duration {
	var sum time.Duration
	for _, s := range slices.Backward(h.stalls) {
		if !s.to.After(then) {
			break
		}
		sum += s.to.Sub(later(s.from, then))
	}
	return sum
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Since is how much of the time from then until now the process was stalled, as far
// as the watch ran; also by a stall that the watch has not come to see itself.
func (w *Watch) Since(then time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock()
	sum := w.history.since(then)
	if d := late(w.due, now); d > 0 && now.After(then) {
		sum += now.Sub(later(now.Add(-d), then))
	}
	return sum
}

// Last is when the last stall of half a second or more ended, or now while one has not
// ended; zero if there was none. What came in it may be unread for a moment yet.
func (w *Watch) Last() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock()
	if late(w.due, now) >= longStall {
		return now
	}
	return w.history.last
}
