package supervisor

import (
	"errors"
	"fmt"
)

// Errors of messages and questions.
var (
	// ErrNoProcess: the Ref has no live incarnation; the message was not taken.
	ErrNoProcess = errors.New("no such actor")
	// ErrGone: the actor ended before it answered.
	ErrGone = errors.New("the actor ended before it answered")
	// ErrStartTimeout: a child was not up within its Spec's StartTimeout.
	ErrStartTimeout = errors.New("not up in time")
	// ErrStopped: the system was asked to shut down.
	ErrStopped = errors.New("the system is shut down")
)

// Kinds of [ServiceError]; use errors.Is to ask for one.
var (
	// ErrOverloaded: there was no capacity for a child, or too much work waits.
	ErrOverloaded = errors.New("overloaded")
	// ErrDraining: the supervisor takes no new work, because it is about to end.
	ErrDraining = errors.New("draining")
	// ErrStartFailed: the child did not come up. The next work tries again.
	ErrStartFailed = errors.New("the start failed")
	// ErrExhausted: the child failed more often than its strategy allows, and
	// stays failed until Supervisor.Restart or Supervisor.End.
	ErrExhausted = errors.New("failed too often")
	// ErrLost: the child ended with the work in hand.
	ErrLost = errors.New("lost")
	// ErrEnded: the child was ended while the work waited.
	ErrEnded = errors.New("ended")
)

// ServiceError says why a work did not get its answer from a child. It is what
// Handler.Unserved gets, and what BaseHandler answers with.
type ServiceError struct {
	// Key is the child.
	Key string
	// Kind is ErrOverloaded, ErrDraining, ErrStartFailed, ErrExhausted,
	// ErrLost or ErrEnded.
	Kind error
	// Dispatched says that an incarnation had begun the work: it may have had
	// effects. It is true for ErrLost alone; work that no incarnation has begun
	// is never reported as lost.
	Dispatched bool
	// Exit is why the child ended, or was refused; its zero value when neither
	// is the case.
	Exit Exit
}

// Error says the kind, the child and the exit.
func (e *ServiceError) Error() string {
	if e.Exit.Kind == "" {
		return fmt.Sprintf("%s: %s", e.Key, e.Kind)
	}
	return fmt.Sprintf("%s: %s: %s", e.Key, e.Kind, e.Exit.Error())
}

// Unwrap returns the kind and the exit.
func (e *ServiceError) Unwrap() []error {
	if e.Exit.Kind == "" {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Exit}
}
