package messages

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// Err returns nil for [OutcomeOK], and else what kept the call from that:
//
//   - a *[CodeError] when the code raised,
//   - a *[TimeoutError], which also matches [context.DeadlineExceeded],
//   - a *[CancelledError], which also matches [context.Canceled],
//   - a *[LostError] when the kernel died under the code,
//   - a *[NotStartedError] when nothing ran, which for one that found no place is
//     matched by [ErrOverloaded], too.
//
// Use [errors.As] to tell them apart. The result still says everything else: what was
// shown before, and what became of the variables.
func (r Result) Err() error {
	switch r.Outcome {
	case OutcomeOK:
		return nil
	case OutcomeError:
		return r.codeError()
	case OutcomeTimeout:
		return &TimeoutError{Ran: r.Ran(), After: r.Duration, State: r.State, Reason: r.Reason, Progress: r.HowFar(), Exceeded: r.Exceeded}
	case OutcomeCancelled:
		return &CancelledError{Ran: r.Ran(), State: r.State, Reason: r.Reason, Progress: r.HowFar()}
	case OutcomeLost:
		return &LostError{Reason: r.Reason, Progress: r.HowFar()}
	default:
		return &NotStartedError{Refusal: r.Refusal, Reason: r.Reason, Remedy: r.Remedy, RetryAfter: time.Duration(r.RetryAfterMS) * time.Millisecond}
	}
}

func (r Result) codeError() error {
	e := &CodeError{Cell: -1, State: r.State}
	for _, c := range r.Cells {
		if c.Outcome == OutcomeError {
			e.Cell, e.Title = c.Index, c.Title
			if c.Error != nil {
				e.Details = *c.Error
			}
			if c.ExitCode != nil {
				e.ExitCode = *c.ExitCode
			}
		}
	}
	if r.StdinRequested && e.Details.Name == "" {
		e.Details.Name, e.Details.Message = "StdinNotImplementedError", "the code asked for input, and none was offered"
	}
	return e
}

// CodeError says that the code of a call raised, and where.
type CodeError struct {
	// Cell is the cell's index in the call, -1 when it is not known; Title is its
	// title.
	Cell  int
	Title string
	// Details are the exception with its place in the code.
	Details ErrorDetails
	// ExitCode is that of a cell which is a program, else 1.
	ExitCode int
	// State is what became of the session's variables.
	State State
}

// Error returns the exception and its place in a line.
func (e *CodeError) Error() string {
	text := e.Details.Name
	if e.Details.Message != "" {
		line, _, _ := strings.Cut(e.Details.Message, "\n")
		text += ": " + line
	}
	if text == "" {
		text = fmt.Sprintf("the code ended with exit code %d", e.ExitCode)
	}
	switch {
	case e.Details.Line > 0 && e.Details.Filename != "":
		return fmt.Sprintf("%s (%s, line %d)", text, e.Details.Filename, e.Details.Line)
	case e.Details.Line > 0:
		return fmt.Sprintf("%s (line %d)", text, e.Details.Line)
	}
	return text
}

// TimeoutError says that the time of a call was up.
type TimeoutError struct {
	// Ran is false when the call was still waiting: its code was not run.
	Ran bool
	// After is how long the call took in all.
	After time.Duration
	// State is what became of the session's variables, "" when nothing ran.
	State  State
	Reason string
	// Progress says how far the call came, and whose time was up.
	Progress Progress
	// Exceeded is the limit that was up, as that of the time of a cell; nil: it was the time of
	// the call.
	Exceeded *ResourceLimitExceeded
}

// Error says whose time was up, and whether the code was run.
func (e *TimeoutError) Error() string {
	text := "the time was up"
	if after := e.Progress.After(); after != "" {
		text += " " + after
	}
	if !e.Ran {
		return text + ": " + e.Progress.NotRun()
	}
	why := becauseOf(e.State, e.Reason)
	if e.Exceeded != nil && !strings.Contains(why, e.Exceeded.Error()) {
		why = because(e.Exceeded.Error()) + strings.Replace(why, ":", ";", 1)
	}
	return text + " while the code ran" + why
}

// Timeout returns true, as that of a net.Error does.
func (e *TimeoutError) Timeout() bool { return true }

// Is matches context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// CancelledError says that a call was cancelled, or interrupted.
type CancelledError struct {
	// Ran is false when the call was still waiting: its code was not run.
	Ran bool
	// State is what became of the session's variables, "" when nothing ran.
	State  State
	Reason string
	// Progress says how far the call came.
	Progress Progress
}

// Error says whether the code was run.
func (e *CancelledError) Error() string {
	if !e.Ran {
		return "the call was cancelled: " + e.Progress.NotRun()
	}
	return "the call was cancelled while the code ran" + cmp.Or(becauseOf(e.State, e.Reason), because(e.Progress.By()))
}

// Is matches context.Canceled.
func (e *CancelledError) Is(target error) bool { return target == context.Canceled }

// LostError says that the kernel died while the code ran: the variables are gone, and
// what the code did outside is not known.
type LostError struct {
	Reason string
	// Progress says how far the call came.
	Progress Progress
}

// Error says why.
func (e *LostError) Error() string {
	if p := e.Progress; p.Reach == ReachSent && p.Begun == 0 {
		return "the kernel was lost before the code began, and the code was not run" + because(e.Reason)
	}
	return "the kernel was lost while the code ran" + because(e.Reason)
}

// NotStartedError says that nothing of a call ran, and why.
type NotStartedError struct {
	Refusal Refusal
	// Reason names the next step, too.
	Reason string
	// Remedy is that step in a word, "" when there is none, and RetryAfter after which
	// time the same call is worth making again; 0: at once.
	Remedy     Remedy
	RetryAfter time.Duration
}

// Error says why.
func (e *NotStartedError) Error() string { return "the code was not run" + because(e.Reason) }

// Is matches ErrOverloaded when there was no place.
func (e *NotStartedError) Is(target error) bool {
	return target == ErrOverloaded && e.Refusal == RefusedOverloaded
}

// ErrOverloaded is matched by the error of a call that found no place: the same call
// may be made again later.
var ErrOverloaded error = overloaded{}

type overloaded struct{}

func (overloaded) Error() string { return "overloaded" }

// becauseOf is the reason of a call that was stopped: where the session had to begin anew for
// it, the reason is of that.
func becauseOf(state State, reason string) string {
	if state == StateFresh || state == StateRestored {
		return ""
	}
	return because(reason)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
