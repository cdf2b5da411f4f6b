package strategy

import (
	"time"

	"github.com/coppice-run/coppice/messages"
)

// RestartType says whether a child that ended is started again. The group
// strategies ([OneForOne], [OneForAll], [RestForOne]) read it; [RestartOnce],
// [Intensity] and [Backoff] restart what fails, whatever its type.
type RestartType string

// The restart types.
const (
	// Temporary children are never started again. It is what the zero value
	// means.
	Temporary RestartType = "temporary"
	// Transient children are started again when they failed.
	Transient RestartType = "transient"
	// Permanent children are started again when they failed and when they
	// ended in order by themselves.
	Permanent RestartType = "permanent"
)

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
	// Stalled is how much of the time since HeardAt this process stood still, and
	// StalledInCall how much of that since HandlingSince. They are known of children
	// that a Tick has to look at, those that were silent for long; 0 of the others.
	Stalled, StalledInCall time.Duration
	// Waited is how long what the child owns waited for a processor since HeardAt, as
	// the child has said (Ctx.Waited), and WaitedAfter how much of that came after
	// Tick.Resumed. They are known of the same children.
	Waited, WaitedAfter time.Duration
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
	// Pinned is what the supervisor's Pin set. Held says that a [Pin] further out honours
	// it, so that the child must not be evicted.
	Pinned, Held bool
	// WaitingForCredit is what Ctx.Hold set: the child waits for someone else.
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
func (c ChildView) Live() bool { return Live(c.State) }

// HeardAt is when the child gave its last sign of life: its last beat, or when it came
// up. Zero: it has not beaten.
func (c ChildView) HeardAt() time.Time {
	if !c.LastBeat.IsZero() && c.UpAt.After(c.LastBeat) {
		return c.UpAt
	}
	return c.LastBeat
}

// Evictable reports whether the child may be ended to make room: it is dynamic
// and idle, nothing waits for it, and it is not held.
func (c ChildView) Evictable() bool {
	return c.State == messages.ChildIdle && c.Queue == 0 && !c.Held && !c.Static
}

// Live reports whether a child in state s takes a place in the capacity.
func Live(s messages.ChildState) bool {
	switch s {
	case messages.ChildStarting, messages.ChildIdle, messages.ChildBusy,
		messages.ChildSuspended, messages.ChildRestarting, messages.ChildStopping:
		return true
	default:
		return false
	}
}
