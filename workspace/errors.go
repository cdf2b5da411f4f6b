package workspace

import (
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/supervisor/strategy"
)

// Errors of workspaces; ask with errors.Is.
var (
	// ErrUnknown: there is no workspace of this name, and none is known to have ended.
	ErrUnknown = errors.New("there is no such workspace")
	// ErrNoPlace: there are as many workspaces as there may be, and none can be ended.
	ErrNoPlace = errors.New("there is no place for another workspace")
)

// noPlaceError says of whom the places are that are taken: what the tree adds to that, the names of
// its children, says nothing to who has asked.
type noPlaceError struct{ err error }

func (e *noPlaceError) Error() string {
	why := e.err
	if full, ok := errors.AsType[*strategy.FullError](why); ok {
		why = full
	}
	return fmt.Sprintf("%v: %v", ErrNoPlace, why)
}

func (e *noPlaceError) Unwrap() []error { return []error{ErrNoPlace, e.err} }

// Reason is why a workspace ended.
type Reason string

// The reasons.
const (
	ReasonAsked    Reason = "asked"    // someone ended it
	ReasonEndTime  Reason = "end_time" // Options.EndAt had come
	ReasonIdle     Reason = "idle"     // it was not used for Options.IdleEnd
	ReasonEvicted  Reason = "evicted"  // another one needed its place
	ReasonOwner    Reason = "owner"    // its owner has left
	ReasonShutdown Reason = "shutdown" // its host ended
	ReasonFailed   Reason = "failed"   // it could not go on; the detail says why
)

// EndedError says that a workspace has ended.
type EndedError struct {
	// Workspace is its name.
	Workspace string
	Reason    Reason
	// Detail says it in words: "it was not used for 5m0s".
	Detail string
	// At is when.
	At time.Time
}

// Error says so in a sentence.
func (e *EndedError) Error() string {
	return fmt.Sprintf("the workspace %s has ended: %s", e.Workspace, e.Detail)
}

// ExistsError says that a workspace of this name is there, and was made otherwise.
type ExistsError struct{ Workspace string }

// Error names it, and the next step.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("there is a workspace %s already, with other options; end it, or choose another name", e.Workspace)
}
