package strategy

import "time"

// Event is what a strategy decides about. The types in this file are all
// there are.
type Event interface {
	// Subject is the key of the child that the event is about; "" for [Tick],
	// which is about all of them.
	Subject() string

	event()
}

type (
	// Tick comes at regular intervals: see the supervisor's Options.Tick.
	Tick struct {
		// Resumed is when this process last came back from standing still for
		// half a second or more: it was stopped, or starved of a processor. Zero:
		// it never did.
		Resumed time.Time
		// Stalled is how long it stood still in all since then.
		Stalled time.Duration
	}
	// Spawning says that the child of Key, which is in state waiting, wants to
	// start. It comes again whenever a child ended, became idle or was
	// unpinned, until the answer is something else than [Wait].
	Spawning struct{ Key string }
	// Up says that the child is ready for work.
	Up struct{ Key string }
	// Fail says that the child failed. It is in state suspended; the view
	// counts this failure already.
	Fail struct {
		Key  string
		Exit Exit
	}
	// Gone says that the child has ended and that nothing is planned that
	// starts it again.
	Gone struct {
		Key  string
		Exit Exit
		// BySelf says that the child was not asked to end.
		BySelf bool
	}
)

// Subject is empty: a tick is about all children.
func (Tick) Subject() string { return "" }

// Subject is the key that wants to start.
func (e Spawning) Subject() string { return e.Key }

// Subject is the child that is ready.
func (e Up) Subject() string { return e.Key }

// Subject is the child that failed.
func (e Fail) Subject() string { return e.Key }

// Subject is the child that has ended.
func (e Gone) Subject() string { return e.Key }

func (Tick) event()     {}
func (Spawning) event() {}
func (Up) event()       {}
func (Fail) event()     {}
func (Gone) event()     {}
