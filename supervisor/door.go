package supervisor

import (
	"fmt"

	"github.com/coppice-run/coppice/messages"
)

// Door is the application's part of a shell: what its messages mean, and how
// its dynamic children are made. All methods run in the shell's goroutine,
// under its guard: an error or a panic is a failure of the shell, for its own
// parent to decide about. They must not block.
//
// Inside a Door all methods of Shell may be called. What they ask for is done
// when the method of the Door has returned.
type Door interface {
	// Open is called once, before the static children are started.
	Open(*Shell) error
	// Handle gets the messages that were told to the shell.
	Handle(*Shell, any) error
	// Spec says how to make the child of key, which has none; w is the first
	// work that waits for it. Only Key is filled in by the shell. An error
	// refuses the work: Unserved gets it with ErrStartFailed.
	Spec(s *Shell, key string, w Work) (Spec, error)
	// Unserved gets work that will not reach a child, or whose child ended with
	// it in hand, unless it was settled. It has to settle it or to submit it
	// again; what it does neither with stays open until the shell ends.
	Unserved(*Shell, Work, *ServiceError)
	// Changed is called after every change of a child's state, in order.
	Changed(*Shell, messages.ChildChanged)
	// Close is called once when the shell ends, after all children are gone.
	Close(*Shell, Exit)
}

// BaseDoor has the defaults of a Door, to embed: it knows no messages and no
// dynamic children, and answers unserved work with its *[ServiceError].
type BaseDoor struct{}

// Open does nothing.
func (BaseDoor) Open(*Shell) error { return nil }

// Handle returns an *[UnknownMessageError].
func (BaseDoor) Handle(_ *Shell, msg any) error { return Unknown(msg) }

// Spec refuses.
func (BaseDoor) Spec(_ *Shell, key string, _ Work) (Spec, error) {
	return Spec{}, fmt.Errorf("no child %q: %w", key, ErrNoProcess)
}

// Unserved settles w with e.
func (BaseDoor) Unserved(_ *Shell, w Work, e *ServiceError) { w.Settle(e) }

// Changed does nothing.
func (BaseDoor) Changed(*Shell, messages.ChildChanged) {}

// Close does nothing.
func (BaseDoor) Close(*Shell, Exit) {}

var _ Door = BaseDoor{}
