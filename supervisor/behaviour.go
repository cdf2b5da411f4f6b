package supervisor

import (
	"errors"
)

// Behaviour is what an actor does. The supervisor owns the actor's goroutine
// and calls the three methods from it, one at a time, always under its guard:
// a panic, a returned error and runtime.Goexit all become a typed [Exit] that
// the parent's [strategy.Strategy] decides about. None of them ends the program.
//
//	New ─▶ Init ─▶ Handle, Handle, … ─▶ Terminate
//
// One Behaviour value serves one incarnation. A restart makes a new value.
type Behaviour interface {
	// Init is the first call of an incarnation. It does not run in the
	// goroutine of whoever asked for the child, so it may take its time, up to
	// Spec.StartTimeout; but while it runs no message is handled and the child
	// cannot be stopped in order. Long work belongs in a goroutine that ends
	// with Ctx.Context and tells its result by [Ctx.Tell].
	//
	// A nil error makes the child ready for work, unless Spec.ManualUp is set.
	// An error is a failed start.
	Init(*Ctx) error
	// Handle serves one message: a [Work] that the parent dispatched, or any
	// message that was sent with Tell. An error is a failure of the incarnation: it is
	// suspended until its parent's strategy has decided. [ErrDone] ends it in
	// order. An error that is an [Exit] keeps its kind.
	Handle(*Ctx, any) error
	// Terminate is called exactly once for each incarnation whose Init was
	// entered, whatever ended it. Ctx.Context has ended by then. It may block
	// up to Spec.StopTimeout; after that the incarnation is abandoned: it
	// counts as gone, while its goroutine goes on until it returns.
	Terminate(*Ctx, Exit)
}

// ErrDone is what Handle, or Init, returns to end the incarnation in order,
// with an exit of kind normal.
var ErrDone = errors.New("done")

// UnknownMessageError says that a behaviour got a message that it has no case for.
type UnknownMessageError struct {
	// Msg is the type of the message.
	Msg string
}

// Error names the type.
func (e *UnknownMessageError) Error() string { return "unknown message " + e.Msg }

// Unknown returns a *[UnknownMessageError] for msg: the default case of a
// Handle.
func Unknown(msg any) error { return &UnknownMessageError{Msg: typeName(msg)} }

// Droppable is a message that owns something, such as a process that was just
// started. Dropped is called instead of Handle when the message was taken
// (Tell returned true) but its incarnation ended before its turn. It runs in
// the actor's goroutine under the guard; the two exceptions, in which neither
// is called, are an incarnation whose goroutine was ended by runtime.Goexit
// and one that hangs for ever.
type Droppable interface{ Dropped() }

// Facts are what a child says of itself, for the snapshot.
type Facts struct {
	// Detail is one word or a short phrase for people: "interrupting".
	Detail string
	// PID is the process behind the child, 0 if there is none.
	PID int
	// RSS is the resident memory of that process in bytes, 0 if not known.
	RSS int64
	// CopyOf is what the child began as a copy of, "" if it did not; see
	// [messages.ChildChanged].
	CopyOf string
}
