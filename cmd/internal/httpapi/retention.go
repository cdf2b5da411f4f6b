package httpapi

import (
	"slices"
	"time"
)

// Retention says which executions that have ended are kept. Those that run always are, and
// so is the one of them that was started last. Its zero value is the default.
type Retention struct {
	// Keep is how many are kept, and KeepFor for how long. 0: 256, and 24 h.
	Keep    int
	KeepFor time.Duration
	// KeepBytes is how much their events may take together, in bytes, in memory and in
	// files. 0: 1 GiB.
	KeepBytes int64
}

// The defaults of [Retention].
const (
	DefaultKeep      = 256
	DefaultKeepFor   = 24 * time.Hour
	DefaultKeepBytes = 1 << 30
)

func (r Retention) settle() Retention {
	if r.Keep <= 0 {
		r.Keep = DefaultKeep
	}
	if r.KeepFor <= 0 {
		r.KeepFor = DefaultKeepFor
	}
	if r.KeepBytes <= 0 {
		r.KeepBytes = DefaultKeepBytes
	}
	return r
}

// forgetLocked forgets executions that have ended: the oldest, when they are too many or
// their events too much, and those that are too old. a.mu is held.
func (a *API) forgetLocked() {
	kept, size, old := 0, int64(0), time.Now().Add(-a.o.KeepFor)
	for at, x := range slices.Backward(a.order) { // the newest first
		if !x.hasEnded() {
			continue
		}
		_, bytes, _ := x.events().Size()
		if size += bytes; kept == 0 || kept < a.o.Keep && size <= a.o.KeepBytes && x.describe(false).Ended.After(old) {
			kept++
			continue
		}
		delete(a.table, x.info.ID)
		x.close(a.o.Logger)
		a.order[at] = nil
	}
	a.order = slices.DeleteFunc(a.order, func(x *execution) bool { return x == nil })
}
