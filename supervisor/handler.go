package supervisor

import (
	"fmt"

	"github.com/coppice-run/coppice/messages"
)

// Handler is the application's part of a supervisor: what its messages mean, and
// how its dynamic children are made. All methods run in the supervisor's
// goroutine, under its guard: an error or a panic is a failure of the
// supervisor, for its own parent to decide about. They must not block.
//
// Inside a Handler all methods of Supervisor may be called. What they ask for is
// done when the method of the Handler has returned.
type Handler interface {
	// Open is called once, before the static children are started.
	Open(*Supervisor) error
	// Handle gets the messages that were sent to the supervisor with Tell.
	Handle(*Supervisor, any) error
	// Spec says how to make the child of key, which has none; w is the first
	// work that waits for it. Only Key is filled in by the supervisor. An error
	// refuses the work: Unserved gets it with ErrStartFailed.
	Spec(s *Supervisor, key string, w Work) (Spec, error)
	// Unserved gets work that will not reach a child, or whose child ended with
	// it in hand, unless it was settled. It has to settle it or to submit it
	// again; what it does neither with stays open until the supervisor ends.
	Unserved(*Supervisor, Work, *ServiceError)
	// Changed is called after every change of a child's state, in order.
	Changed(*Supervisor, messages.ChildChanged)
	// Close is called once when the supervisor ends, after all children are
	// gone.
	Close(*Supervisor, Exit)
}

// Hibernator is implemented by a Handler whose children can keep their state elsewhere
// while they are not there.
type Hibernator interface {
	// Hibernate asks an idle child to do so and to end then, because of exit. It is
	// asked again later when the child goes on instead.
	Hibernate(s *Supervisor, key string, exit Exit)
}

// BaseHandler has the defaults of a Handler, to embed: it knows no messages and
// no dynamic children, and answers unserved work with its *[ServiceError].
type BaseHandler struct{}

// Open does nothing.
func (BaseHandler) Open(*Supervisor) error { return nil }

// Handle returns an *[UnknownMessageError].
func (BaseHandler) Handle(_ *Supervisor, msg any) error { return Unknown(msg) }

// Spec refuses.
func (BaseHandler) Spec(_ *Supervisor, key string, _ Work) (Spec, error) {
	return Spec{}, fmt.Errorf("no child %q: %w", key, ErrNoProcess)
}

// Unserved settles w with e.
func (BaseHandler) Unserved(_ *Supervisor, w Work, e *ServiceError) { w.Settle(e) }

// Changed does nothing.
func (BaseHandler) Changed(*Supervisor, messages.ChildChanged) {}

// Close does nothing.
func (BaseHandler) Close(*Supervisor, Exit) {}

var _ Handler = BaseHandler{}
