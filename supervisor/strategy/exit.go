package strategy

import (
	"fmt"

	"github.com/coppice-run/coppice/messages"
)

// Exit is why an incarnation of a child ended, or failed. It is an error, and
// the cause of the child's context. It is a value: what it
// points to never changes.
type Exit struct {
	// Kind classifies the exit.
	Kind messages.ExitKind
	// Err is the error behind it, if any.
	Err error
	// Panic is the value that was panicked with, for kind panicked.
	Panic any
	// Stack is the stack of the panic.
	Stack []byte
	// Msg is the type of the message that was in hand, empty if none was.
	Msg string
}

// Error says the kind and the reason. The stack is not part of it.
func (e Exit) Error() string {
	if r := e.reason(); r != "" {
		return string(e.Kind) + ": " + r
	}
	return string(e.Kind)
}

// Unwrap returns Err, or the panic's value when that is an error.
func (e Exit) Unwrap() error {
	if e.Err != nil {
		return e.Err
	}
	err, _ := e.Panic.(error)
	return err
}

// Value returns the exit in the form that events and snapshots carry.
func (e Exit) Value() messages.Exit { return messages.Exit{Kind: e.Kind, Reason: e.reason()} }

// Failure reports whether the exit is one that a strategy should count as a
// failure: everything but an end in order.
func (e Exit) Failure() bool {
	switch e.Kind {
	case messages.ExitNormal, messages.ExitShutdown, messages.ExitReset, messages.ExitEvicted, messages.ExitHibernated, "":
		return false
	default:
		return true
	}
}

func (e Exit) reason() string {
	var r string
	switch {
	case e.Err != nil:
		r = e.Err.Error()
	case e.Panic != nil:
		r = fmt.Sprint(e.Panic)
	}
	// An error says itself what was attempted; a panic does not.
	if e.Msg == "" || !e.Failure() || (r != "" && e.Kind != messages.ExitPanicked) {
		return r
	}
	if r == "" {
		return "in " + e.Msg
	}
	return r + " (in " + e.Msg + ")"
}

// Exitf returns an exit of that kind whose error is made as by [fmt.Errorf]: %w
// keeps a cause.
func Exitf(kind messages.ExitKind, format string, args ...any) Exit {
	return Exit{Kind: kind, Err: fmt.Errorf(format, args...)}
}
