package messages

import (
	"fmt"
	"strings"
)

// Refusal says why the code of a call never reached a kernel.
type Refusal string

// The refusals.
const (
	// RefusedRequest: the request could not be made as it was.
	RefusedRequest Refusal = "invalid_request"
	// RefusedOverloaded: there was no place for the session, or too many waited.
	RefusedOverloaded Refusal = "overloaded"
	// RefusedStart: no kernel could be started.
	RefusedStart Refusal = "start_failed"
	// RefusedExhausted: the session's kernel failed again right after a restart; the
	// session takes calls again after a reset.
	RefusedExhausted Refusal = "exhausted"
	// RefusedResetting: the call asked for a reset, and that of another call was still
	// under way.
	RefusedResetting Refusal = "resetting"
	// RefusedClosed: the session was closed while the call waited, or its workspace has ended; then
	// the remedy is RemedyRequest.
	RefusedClosed Refusal = "session_closed"
	// RefusedDraining: the host shuts down, or has.
	RefusedDraining Refusal = "draining"
)

// NotStarted is the result of a call of which nothing ran. It says nothing of the
// session's variables: such a call neither made nor lost any. why is "" for one that
// was withdrawn; set Outcome then.
func NotStarted(e Execute, backend string, why Refusal, reason string) Result {
	r := Result{
		Progress: Progress{Reach: ReachUnsent, Cells: len(e.Cells), Stop: StopOf(why)},
		Outcome:  OutcomeNotStarted, Refusal: why, Reason: reason,
		Backend: backend, Session: e.Key.Session, Cwd: e.Key.Cwd, Exec: e.ID, Cells: Pending(e.Cells),
	}
	r.Remedy, r.RetryAfterMS = why.Remedy()
	return r
}

// Remedy is what a program can do about a call of which nothing ran.
type Remedy string

// The remedies.
const (
	// RemedyRetry: the same call may be served when it is made again.
	RemedyRetry Remedy = "retry"
	// RemedyMoreTime: the call, or its caller, is to have more time.
	RemedyMoreTime Remedy = "more_time"
	// RemedyReset: the session is to be reset.
	RemedyReset Remedy = "reset"
	// RemedyRequest: the request is to be mended, or what it names to be made, such as a
	// workspace that has ended.
	RemedyRequest Remedy = "mend_request"
	// RemedySetup: Python, or the machine, is to be mended; coppice doctor says how.
	RemedySetup Remedy = "mend_setup"
)

// How long it takes until a call is worth making again.
const (
	retryPlaceMS = 1000 // for a place: calls are short, and idle sessions make room
	retryStartMS = 2000 // for a start: the pause between two of a server is 0.1 s to 10 s
)

// Remedy is what can be done about the refusal, and after how many milliseconds the
// same call is worth making again, 0 for at once. "": nothing helps, the host is
// shutting down.
func (r Refusal) Remedy() (Remedy, int64) {
	switch r {
	case RefusedRequest:
		return RemedyRequest, 0
	case RefusedOverloaded:
		return RemedyRetry, retryPlaceMS
	case RefusedStart:
		return RemedySetup, retryStartMS
	case RefusedExhausted:
		return RemedyReset, 0
	case RefusedClosed:
		return RemedyRetry, 0
	case RefusedResetting:
		return RemedyRetry, retryPlaceMS
	default:
		return "", 0
	}
}

// WorkspaceGone is what can be done about a call of a workspace that has ended, in words.
const WorkspaceGone = "make the workspace anew, or use another one"

// UnknownKernelError says that a session names a kernelspec that the server of its kernels does
// not have: the request of its calls is wrong.
type UnknownKernelError struct {
	// Name is what was asked for, and Known what there is, sorted.
	Name  string
	Known []string
}

// Error names both.
func (e *UnknownKernelError) Error() string {
	return fmt.Sprintf("the server has no kernel called %q; it has %s (--kernel, Options.KernelName, OnKernel)", e.Name, strings.Join(e.Known, ", "))
}

// Pending are the results of cells that have not begun.
func Pending(cells []Cell) []CellResult {
	all := make([]CellResult, len(cells))
	for i, c := range cells {
		all[i] = CellResult{Index: i, Title: c.Title, Status: CellPending, Outcome: OutcomeNotStarted}
	}
	return all
}

// Ran reports whether code of the call may have run: it reached a kernel. A call
// without cells has run when its session has a kernel.
func (r Result) Ran() bool {
	if r.Outcome == OutcomeNotStarted {
		return false
	}
	for _, c := range r.Cells {
		if c.Status != CellPending {
			return true
		}
	}
	return len(r.Cells) == 0 && r.Outcome == OutcomeOK
}
