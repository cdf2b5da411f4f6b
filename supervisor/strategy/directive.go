package strategy

import "time"

// Verb is what a directive says. Verbs are ordered: the greater is the more
// severe.
type Verb uint8

// The verbs, from mild to severe.
const (
	// VerbResume: the child goes on as if nothing had happened.
	VerbResume Verb = iota + 1
	// VerbWait: the key that is spawning waits; it is asked about again later.
	VerbWait
	// VerbHibernate: the child is asked to keep its state elsewhere and to end then. It
	// goes on when it cannot.
	VerbHibernate
	// VerbRestart: the incarnation ends and another one starts.
	VerbRestart
	// VerbStop: the child ends in order.
	VerbStop
	// VerbAbandon: the incarnation counts as gone at once, whatever it does.
	VerbAbandon
	// VerbEscalate: the supervisor itself ends.
	VerbEscalate
)

// String returns the name that events carry.
func (v Verb) String() string {
	switch v {
	case VerbResume:
		return "resume"
	case VerbWait:
		return "wait"
	case VerbHibernate:
		return "hibernate"
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
// [Hibernate], [Restart], [Stop], [Abandon] and [Escalate].
type Directive struct {
	Verb Verb
	// Key is the child; empty with VerbEscalate.
	Key string
	// After delays the start of the next incarnation, with VerbRestart.
	After time.Duration
	// Exit is why, with VerbHibernate, VerbStop, VerbAbandon and VerbEscalate.
	Exit Exit
}

// Resume lets a failed child go on with the message after the one that it
// failed on. A work in hand stays in hand.
func Resume(key string) Directive { return Directive{Verb: VerbResume, Key: key} }

// Restart ends the incarnation and starts another one, not before after has
// passed since then. Work that waits goes to the next incarnation. Restarts of
// several static children are one operation: they end in reverse order and
// start in order, each up before the next.
func Restart(key string, after time.Duration) Directive {
	return Directive{Verb: VerbRestart, Key: key, After: after}
}

// Hibernate asks the child to keep its state elsewhere and to end then, so that its next
// work finds it. A child that has something to do is not asked, nor one whose supervisor
// has no Hibernator for a handler: that is left as it is.
func Hibernate(key string, exit Exit) Directive {
	return Directive{Verb: VerbHibernate, Key: key, Exit: exit}
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

// Escalate ends the supervisor. An exit that is a failure becomes a failure of
// the supervisor, of kind escalated, for its own parent to decide about; any
// other exit ends the supervisor in order.
func Escalate(exit Exit) Directive { return Directive{Verb: VerbEscalate, Exit: exit} }

// Severest keeps, of several directives about one key, the most severe one; of
// two restarts the one that waits longer. The order is kept.
func Severest(all []Directive) []Directive {
	if len(all) < 2 {
		return all
	}
	at := make(map[string]int, len(all))
	out := make([]Directive, 0, len(all))
	for _, d := range all {
		key := d.Key
		if d.Verb == VerbEscalate {
			key = ""
		}
		i, seen := at[key]
		switch {
		case !seen:
			at[key] = len(out)
			out = append(out, d)
		case d.Verb > out[i].Verb || d.Verb == out[i].Verb && d.After > out[i].After:
			out[i] = d
		}
	}
	return out
}
