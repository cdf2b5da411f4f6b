package supervisor

import (
	"iter"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// View is what a strategy sees of a shell: its children at the moment of the
// event. It is good for the duration of Decide only.
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
	// 32. A reset (Shell.Restart) clears them.
	Failures(key string) []time.Time
	// GroupFailures returns when any child of the shell failed, oldest first;
	// of many, the last 1024.
	GroupFailures() []time.Time
}

// ChildView is what can be known of a child.
type ChildView struct {
	Key, Kind, Owner string
	// Epoch counts the incarnations from 1; 0 before the first.
	Epoch uint64
	State messages.ChildState
	// Since is when State began.
	Since time.Time
	// StartedAt is when this incarnation was spawned, UpAt when it became
	// ready: zero if it has not.
	StartedAt, UpAt time.Time
	// LastBeat is the last call of Ctx.Beat in this incarnation, zero if there
	// was none.
	LastBeat time.Time
	// LastDone is when the last work was finished, or the incarnation became
	// ready, whichever is later.
	LastDone time.Time
	// BusySince is when the work in hand was dispatched, zero without.
	BusySince time.Time
	// HandlingSince is when the call of Init, Handle or Terminate that has not
	// returned yet began; zero when the child is in none of them.
	HandlingSince time.Time
	// Turn orders the keys that wait for capacity: the smaller one waits for
	// longer. 0 for all others.
	Turn uint64
	// Queue is how much work waits, without what is in hand.
	Queue int
	// Done counts the work that this child has finished, DoneThisEpoch that of
	// this incarnation.
	Done, DoneThisEpoch uint64
	// Restarts counts the restarts since a work was last finished or the child
	// was reset, TotalRestarts all since the key became known.
	Restarts, TotalRestarts int
	// Pinned is what Shell.Pin set. Held says that a [Pin] further out honours
	// it, so that the child must not be evicted.
	Pinned, Held bool
	// WaitingForCredit is what Ctx.Hold set: the child waits for somebody else.
	WaitingForCredit bool
	// Static says that the child is one of Options.Children.
	Static bool
	// RSS, PID and Detail are what Ctx.Note said last.
	RSS    int64
	PID    int
	Detail string
	// LastExit is why the incarnation before this one ended, nil if there was
	// none.
	LastExit *Exit
	// Served says that work was dispatched to this incarnation.
	Served      bool
	RestartType RestartType
	Significant bool
	// Order grows with every key that becomes known.
	Order int
}

// Live reports whether the child takes a place in the capacity: it is
// starting, idle, busy, suspended, restarting or stopping.
func (c ChildView) Live() bool { return live(c.State) }

// Evictable reports whether the child may be ended to make room: it is dynamic
// and idle, nothing waits for it, and it is not held.
func (c ChildView) Evictable() bool {
	return c.State == messages.ChildIdle && c.Queue == 0 && !c.Held && !c.Static
}

func live(s messages.ChildState) bool {
	switch s {
	case messages.ChildStarting, messages.ChildIdle, messages.ChildBusy,
		messages.ChildSuspended, messages.ChildRestarting, messages.ChildStopping:
		return true
	default:
		return false
	}
}
