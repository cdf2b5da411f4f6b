package opportunity

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Stalls tells how long this process stood still or ran too late, in all. The answer
// never falls, and grows no faster than time. Any goroutine may ask.
type Stalls interface{ Stalled() time.Duration }

// never is a process of which that is not known.
type never struct{}

func (never) Stalled() time.Duration { return 0 }

// How a watch looks.
const (
	// watchEvery is how often a watch wakes: it finds what is longer, wherever it
	// falls.
	watchEvery = 100 * time.Millisecond
	// watchAgain is how soon it wakes after it was late: on a machine that gives this
	// process a moment now and then, most of what lies between two of them would else
	// count as time in which it listened.
	watchAgain = 10 * time.Millisecond
	// onTime is how late it may be on a machine that is in order.
	onTime = 10 * time.Millisecond
)

// Watch sees whether this process is stalled: by a machine with too much to do, by
// SIGSTOP, by a virtual machine that is paused. It wakes ten times a second while it
// runs, more often while it is late, and takes the lateness of its own waking for that of all that the process
// does. It has no goroutine in between, and Stop leaves none. The zero value is a
// watch that does not run. Any goroutine may call its methods.
type Watch struct {
	// now replaces time.Now in tests. nil: it does not.
	now func() time.Time

	postponed atomic.Int64 // verdicts put off, of meters that began with it

	mu      sync.Mutex
	holds   int
	due     time.Time // when it wakes next; zero: it does not run
	timer   *time.Timer
	stalled time.Duration
	history history
}

// Start lets it run until Stop has been called as often.
func (w *Watch) Start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holds++; w.holds > 1 {
		return
	}
	w.due = w.clock().Add(watchEvery)
	w.timer = time.AfterFunc(watchEvery, w.tick)
}

// Stop undoes one Start. What it has seen stays.
func (w *Watch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holds == 0 {
		return
	}
	if w.holds--; w.holds > 0 {
		return
	}
	w.saw(w.clock())
	w.timer.Stop()
	w.due = time.Time{}
}

// Stalled is how long the process was stalled while the watch ran, also when the watch
// has not come to see it itself: whoever wakes first after a stall learns the truth.
func (w *Watch) Stalled() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stalled + late(w.due, w.clock())
}

// tick runs when the watch is due, or later: how much is what it is for. A timer begins
// its goroutine before all that wait for a processor of this process; it goes to their end.
func (w *Watch) tick() {
	runtime.Gosched()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock()
	if w.due.IsZero() || now.Before(w.due) { // it was stopped, and perhaps started again
		return
	}
	next := watchEvery
	if w.saw(now) > 0 {
		next = watchAgain
	}
	w.due = now.Add(next)
	w.timer.Reset(next)
}

// saw counts how late it is, and returns that. The lock is held.
func (w *Watch) saw(now time.Time) time.Duration {
	d := late(w.due, now)
	w.stalled += d
	w.history.add(now, d)
	return d
}

func (w *Watch) clock() time.Time {
	if w.now != nil {
		return w.now()
	}
	return time.Now()
}

// late is how much later than due now is, but for what is in order.
func late(due, now time.Time) time.Duration {
	if due.IsZero() {
		return 0
	}
	return max(0, now.Sub(due)-onTime)
}
