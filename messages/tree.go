package messages

import (
	"strings"
	"time"
)

// ChildState is where an actor in the supervision tree is in its life, as the
// state machine in package supervisor names it.
type ChildState string

// The child states.
const (
	ChildWaiting    ChildState = "waiting"    // wants to start; waits for capacity
	ChildStarting   ChildState = "starting"   // initialises; counts in the capacity
	ChildIdle       ChildState = "idle"       // up, nothing to do
	ChildBusy       ChildState = "busy"       // up, has work in hand
	ChildSuspended  ChildState = "suspended"  // failed; its strategy decides
	ChildRestarting ChildState = "restarting" // between two incarnations
	ChildStopping   ChildState = "stopping"   // terminates; still counts
	ChildFailed     ChildState = "failed"     // failed for good, until a reset
	ChildGone       ChildState = "gone"       // ended
)

// ExitKind classifies why an actor ended.
type ExitKind string

// The exit kinds.
const (
	ExitNormal     ExitKind = "normal"     // it was done
	ExitShutdown   ExitKind = "shutdown"   // its parent asked it to end
	ExitReset      ExitKind = "reset"      // its session was reset
	ExitEvicted    ExitKind = "evicted"    // a strategy made room or found it idle too long
	ExitHibernated ExitKind = "hibernated" // its state is kept on disk, for the next call
	ExitFailed     ExitKind = "failed"     // it returned an error
	ExitPanicked   ExitKind = "panicked"   // it panicked
	ExitKilled     ExitKind = "killed"     // its goroutine ended under it (runtime.Goexit), or its owner died
	ExitHung       ExitKind = "hung"       // it did not answer and was abandoned
	ExitExhausted  ExitKind = "exhausted"  // it failed more often than its strategy allows
	ExitEscalated  ExitKind = "escalated"  // a supervisor gave up
	ExitOverloaded ExitKind = "overloaded" // there was no capacity for it
)

// Exit is the reason why an actor ended, as a value that can be shown.
type Exit struct {
	Kind   ExitKind `json:"kind"`
	Reason string   `json:"reason,omitempty"`
}

// SessionClosed begins the Reason of the Exit of a kernel whose session was closed. The
// host's own end is an exit of the same kind.
const SessionClosed = "the session was closed"

// Stop is what the end of its kernel is for a call that ran.
func (e Exit) Stop() Stop {
	switch e.Kind {
	case ExitReset:
		return StopReset
	case ExitEvicted, ExitHibernated:
		return StopEvicted
	case ExitShutdown:
		if strings.HasPrefix(e.Reason, SessionClosed) {
			return StopClosed
		}
		return StopShutdown
	default:
		return StopDied
	}
}

// Node is one actor in a snapshot of the supervision tree.
type Node struct {
	// Name is the child's name in its parent: "gateway", "kernel-gateway", or
	// a session key.
	Name string `json:"name"`
	// Kind is "supervisor", "kernel", "server", "sink", …
	Kind  string     `json:"kind"`
	State ChildState `json:"state"`
	// Epoch counts the incarnations of the child from 1.
	Epoch uint64 `json:"epoch"`
	// Since is when State began.
	Since time.Time `json:"since"`
	// StartedAt is when this incarnation began.
	StartedAt time.Time `json:"started_at,omitzero"`
	// Restarts counts the restarts of the child since it was first started.
	Restarts int `json:"restarts,omitempty"`
	// LastExit is why the previous incarnation ended.
	LastExit *Exit `json:"last_exit,omitempty"`
	// Queue is how much work waits for the child, without what it has in hand.
	Queue int `json:"queue,omitempty"`
	// Done counts the work that was answered.
	Done   uint64 `json:"done,omitempty"`
	Pinned bool   `json:"pinned,omitempty"`
	// Owner is the label that the child's capacity is counted under.
	Owner string `json:"owner,omitempty"`
	// TTL is when an idle child will be evicted; zero when it will not be.
	TTL time.Time `json:"ttl,omitzero"`
	// PID is the process behind the child, 0 if there is none or it is not
	// known.
	PID int `json:"pid,omitempty"`
	// RSS is the resident memory of that process in bytes, 0 if not known.
	RSS int64 `json:"rss,omitempty"`
	// Detail is what the child says of itself, for people: "interrupting".
	Detail string `json:"detail,omitempty"`
	// Busy tells what the machine owed the whole tree; of the root alone, and nil
	// while there is nothing to tell.
	Busy     *Busy  `json:"busy,omitempty"`
	Children []Node `json:"children,omitempty"`
	// Abandoned lists the incarnations of children that did not end in time and
	// whose end is not confirmed yet. They keep their place in the capacity.
	Abandoned []Leftover `json:"abandoned,omitempty"`
}

// Busy is what was lost on a machine with too much to do, since the tree was started.
type Busy struct {
	// Stalled is how long this process stood still or ran too late, in nanoseconds.
	Stalled time.Duration `json:"stalled,omitempty"`
	// Waited is how long children that were silent waited for a processor, in
	// nanoseconds, added up over them.
	Waited time.Duration `json:"waited,omitempty"`
	// Postponed is how often the end of a child, of a cell that was interrupted, or of a
	// process that starts was put off for that: a child that is late for long counts
	// again and again.
	Postponed int64 `json:"postponed,omitempty"`
	// Pressure is the part of the last ten seconds in which some process here waited
	// for a processor, from 0 to 1: of the host's control group, or where groups are
	// not counted of the whole machine. 0 where the system does not tell.
	Pressure float64 `json:"pressure,omitempty"`
}

// Lifecycle is something that happened in the supervision tree. The types in
// this file are all there are.
type Lifecycle interface {
	// Subject returns the path of the child from the root, names joined by /.
	Subject() string
	// Type returns the name of the event's type in JSON.
	Type() string
	lifecycle()
}

// ChildChanged says that a child went from one state to another.
type ChildChanged struct {
	At   time.Time `json:"at"`
	Path string    `json:"path"`
	// Key is the child's name in its parent.
	Key   string     `json:"key"`
	Kind  string     `json:"kind"`
	Epoch uint64     `json:"epoch"`
	From  ChildState `json:"from,omitempty"`
	To    ChildState `json:"to"`
	// Exit is set when To is suspended, failed or gone.
	Exit *Exit `json:"exit,omitempty"`
	// PID is the process behind the child, if known.
	PID int `json:"pid,omitempty"`
	// CopyOf is the name of the session that the child began as a copy of, in the same
	// directory and workspace, with all that it had in memory; its own name where it was
	// put back to a checkpoint of its own. "": it began with nothing, or from disk.
	CopyOf string `json:"copy_of,omitempty"`
}

// Decided says what a strategy decided about a child, when that is more than
// to carry on.
type Decided struct {
	At   time.Time `json:"at"`
	Path string    `json:"path"`
	// Directive is restart, stop, wait, abandon, hibernate or escalate.
	Directive string        `json:"directive"`
	After     time.Duration `json:"after,omitempty"`
	Exit      *Exit         `json:"exit,omitempty"`
}

// Dropped says that messages or output of a child that is no longer current
// were dropped.
type Dropped struct {
	At    time.Time `json:"at"`
	Path  string    `json:"path"`
	Epoch uint64    `json:"epoch"`
	Count int       `json:"count"`
	What  string    `json:"what"`
}

func (ChildChanged) lifecycle() {}
func (Decided) lifecycle()      {}
func (Dropped) lifecycle()      {}

// Subject returns e.Path.
func (e ChildChanged) Subject() string { return e.Path }

// Subject returns e.Path.
func (e Decided) Subject() string { return e.Path }

// Subject returns e.Path.
func (e Dropped) Subject() string { return e.Path }

// Type returns "child_changed".
func (ChildChanged) Type() string { return "child_changed" }

// Type returns "decided".
func (Decided) Type() string { return "decided" }

// Type returns "dropped".
func (Dropped) Type() string { return "dropped" }

// ShutdownReport says how the end of a tree went.
type ShutdownReport struct {
	// Stopped counts the actors that ended in order.
	Stopped int `json:"stopped"`
	// Leftovers names what did not end in time, with the reason.
	Leftovers []Leftover `json:"leftovers"`
	// Unanswered counts calls that were ended by the shutdown.
	Unanswered int           `json:"unanswered"`
	Duration   time.Duration `json:"duration"`
	// Unkept names the sessions that should have been kept on disk, and could not: what they had
	// in memory is lost.
	Unkept []Unkept `json:"unkept,omitempty"`
}

// Unkept is a session that ended without being kept on disk, where sessions are.
type Unkept struct {
	Key SessionKey `json:"key"`
	// Problem is why.
	Problem string `json:"problem"`
}

// Clean reports whether everything ended.
func (r ShutdownReport) Clean() bool { return len(r.Leftovers) == 0 }

// Leftover is one actor that did not end in time.
type Leftover struct {
	Path string `json:"path"`
	Exit Exit   `json:"exit"`
	PID  int    `json:"pid,omitempty"`
}
