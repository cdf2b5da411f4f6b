package strategy

import (
	"iter"
	"time"
)

// Limits of the history of failures that a [View] remembers.
const (
	// MaxFailures is how many failures of one child.
	MaxFailures = 32
	// MaxGroupFailures is how many failures of all children together.
	MaxGroupFailures = 1024
)

// View is what a strategy sees of a supervisor: its children at the moment of
// the event. It is good for the duration of Decide only.
type View interface {
	// Now is the instant of the event.
	Now() time.Time
	// Child returns the child of key.
	Child(key string) (ChildView, bool)
	// Children ranges over all children, in the order in which their keys
	// became known: static children come first, in the order of Options.
	Children() iter.Seq[ChildView]
	// Len is how many children there are.
	Len() int
	// Failures returns when the child failed, oldest first; of many, the last
	// MaxFailures. A reset (the supervisor's Restart) clears them.
	Failures(key string) []time.Time
	// GroupFailures returns when any child of the supervisor failed, oldest
	// first; of many, the last MaxGroupFailures.
	GroupFailures() []time.Time
}
