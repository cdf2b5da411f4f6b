package process

import (
	"context"
	"time"
)

// Parts of a wait for the end of a process.
const (
	// parts is into how many parts the time is cut, in each of which the process had
	// a processor or had none.
	parts = 20
	// leastPart is long enough for the system to have counted what a process ran.
	leastPart = 50 * time.Millisecond
	// starvedMost bounds what is added for parts in which it had none.
	starvedMost = 30 * time.Second
)

// endsWithin waits for the end of a process for so long, without the parts of that time
// in which it wanted a processor and hardly ran, and without those in which this process
// stood still: at most starvedMost more. False: it has not ended, or ctx has.
func endsWithin(ctx context.Context, limit time.Duration, done <-chan struct{}, id Identity) bool {
	part := min(limit, max(limit/parts, leastPart))
	timer := time.NewTimer(part)
	defer timer.Stop()
	before := used(id)
	for left, lent := limit, time.Duration(0); left > 0; {
		begun := time.Now()
		select {
		case <-done:
			return true
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
		passed := time.Since(begun)
		now := used(id)
		if now.starved(before, passed) && lent < starvedMost {
			lent += passed
		} else {
			left -= min(passed, 2*part) // a part that took longer was ours
		}
		before = now
		timer.Reset(part)
	}
	select {
	case <-done: // it ended while we looked
		return true
	default:
		return false
	}
}

// usage is what the threads of a process have run, and whether one wants to run.
type usage struct {
	ran   time.Duration
	wants bool
}

// used looks at a process; of one that cannot be looked at it knows nothing.
func used(id Identity) (u usage) {
	threads, err := Threads(id)
	if err != nil {
		return usage{}
	}
	for _, t := range threads {
		u.ran += t.Ran
		u.wants = u.wants || t.State == Wanting || t.State == OnDisk
	}
	return u
}

// starved says whether it wants a processor and had none for most of the time since
// before.
func (u usage) starved(before usage, passed time.Duration) bool {
	return u.wants && u.ran-before.ran < passed/4
}
