package supervisor

import "time"

// Strategy decides what becomes of the children of a shell. It is a value
// without state, I/O or clock: the same view and event give the same answer.
// A shell calls Decide from its own goroutine.
//
// A strategy that has no opinion returns nil. What nobody decides is: a child
// that failed is stopped ([Fail]), a key that wants to start is started
// ([Spawning]), and everything else stays as it is.
type Strategy interface {
	Decide(View, Event) []Directive
}

// TTLs is implemented by strategies that end idle children after a while, so
// that a snapshot can show when.
type TTLs interface {
	// TTL returns when the strategy will end the child if nothing happens to
	// it before; the zero time when it will not.
	TTL(v View, key string) time.Time
}

// Event is what a strategy decides about. The types in this file are all
// there are.
type Event interface{ event() }

type (
	// Tick comes once every Options.Tick.
	Tick struct {
		// Late is how much later than it should the tick came. A large value
		// means that this process was stopped or starved of CPU, and so that
		// silence of a child says nothing about the child.
		Late time.Duration
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
		// BySelf says that nobody had asked it to end.
		BySelf bool
	}
)

func (Tick) event()     {}
func (Spawning) event() {}
func (Up) event()       {}
func (Fail) event()     {}
func (Gone) event()     {}

// Verb is what a directive says. Verbs are ordered: the greater is the more
// severe.
type Verb uint8

// The verbs, from mild to severe.
const (
	// VerbResume: the child goes on as if nothing had happened.
	VerbResume Verb = iota + 1
	// VerbWait: the key that is spawning waits; it is asked about again later.
	VerbWait
	// VerbRestart: the incarnation ends and another one starts.
	VerbRestart
	// VerbStop: the child ends in order.
	VerbStop
	// VerbAbandon: the incarnation counts as gone at once, whatever it does.
	VerbAbandon
	// VerbEscalate: the shell itself ends.
	VerbEscalate
)

// String returns the name that events carry.
func (v Verb) String() string {
	switch v {
	case VerbResume:
		return "resume"
	case VerbWait:
		return "wait"
	case VerbRestart:
		return "restart"
	case VerbStop:
		return "stop"
	case VerbAbandon:
		return "abandon"
	case VerbEscalate:
		return "escalate"
	default:
		return "none"
	}
}

// Directive is one answer of a strategy. Make them with [Resume], [Wait],
// [Restart], [Stop], [Abandon] and [Escalate].
type Directive struct {
	Verb Verb
	// Key is the child; empty with VerbEscalate.
	Key string
	// After delays the start of the next incarnation, with VerbRestart.
	After time.Duration
	// Exit is why, with VerbStop, VerbAbandon and VerbEscalate.
	Exit Exit
}

// Resume lets a failed child go on with the message after the one that it
// failed on. A Work in hand stays in hand.
func Resume(key string) Directive { return Directive{Verb: VerbResume, Key: key} }

// Restart ends the incarnation and starts another one, not before after has
// passed since then. Work that waits goes to the next incarnation. Restarts of
// several static children are one operation: they end in reverse order and
// start in order, each up before the next.
func Restart(key string, after time.Duration) Directive {
	return Directive{Verb: VerbRestart, Key: key, After: after}
}

// Stop ends the child. Work that waits gets a new child, except after an exit
// of kind exhausted: that leaves the key failed. For the key that is spawning
// it is a refusal.
//
// If the reason is a failure that the child has not reported itself, such as a
// hang, the strategy is asked about it with [Fail] first: what is said there of
// a restart, or of the end, holds for this failure as for any other.
func Stop(key string, exit Exit) Directive { return Directive{Verb: VerbStop, Key: key, Exit: exit} }

// Abandon gives the incarnation up without waiting for it, and otherwise does
// what Stop does. Its Terminate still runs, when and if it can.
func Abandon(key string, exit Exit) Directive {
	return Directive{Verb: VerbAbandon, Key: key, Exit: exit}
}

// Wait answers Spawning: not yet.
func Wait(key string) Directive { return Directive{Verb: VerbWait, Key: key} }

// Escalate ends the shell. An exit that is a failure becomes a failure of the
// shell, of kind escalated, for the shell's own parent to decide about; any
// other exit ends the shell in order.
func Escalate(exit Exit) Directive { return Directive{Verb: VerbEscalate, Exit: exit} }
