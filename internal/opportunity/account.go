package opportunity

import "time"

// totals is what was seen up to one moment, counted from when the meter began.
type totals struct {
	wall    time.Duration
	stalled time.Duration // of us
	waited  time.Duration // of the other side: waits that are over, or certain
	pending time.Duration // what a thread that wants a processor now may have waited besides
}

// After we stood still for longStall or more, catchUp of what follows is not counted:
// what came meanwhile is read first. At most once in catchUpEvery of listening, so
// that a machine that always stalls comes to an end, too.
const (
	longStall    = 500 * time.Millisecond
	catchUp      = 100 * time.Millisecond
	catchUpEvery = time.Second
)

// account turns totals into opportunity. It is a value without a clock.
//
//	heard   = wall - stalled          for each span between two looks
//	most   += heard - waited          what it had if nothing pending was a wait
//	chance  = most - pending          what it had for certain; never falls
//
// A wait that ends may be longer than the span in which it ends: it is taken from
// most, down to what was pending before, and no further: neither can a wait take back
// a chance that was there before it began, nor can what was stalled be waited too.
type account struct {
	last     totals
	most     time.Duration
	pending  time.Duration
	chance   time.Duration
	listened time.Duration
	owed     time.Duration // of catchUp
	caught   time.Duration // listened, when it was owed last; 0: never
}

// add takes what was seen up to now. Totals that go back count as nothing new.
func (a *account) add(now totals) {
	wall := max(0, now.wall-a.last.wall)
	stalled := between(0, now.stalled-a.last.stalled, wall)
	if stalled >= longStall && (a.caught == 0 || a.listened-a.caught >= catchUpEvery) {
		a.owed, a.caught = catchUp, max(1, a.listened)
	}
	heard := wall - stalled
	late := min(heard, a.owed)
	heard -= late
	a.owed -= late

	waited := between(0, now.waited-a.last.waited, heard+a.pending)
	a.most = max(a.chance, a.most+heard-waited)
	a.pending = between(0, now.pending, a.pending+heard)
	a.chance = max(a.chance, a.most-a.pending)
	a.listened += heard
	a.last = totals{
		wall: max(a.last.wall, now.wall), stalled: max(a.last.stalled, now.stalled),
		waited: max(a.last.waited, now.waited),
	}
}

func between(low, d, high time.Duration) time.Duration { return max(low, min(d, high)) }
