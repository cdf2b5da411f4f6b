package console

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/messages"
)

// The exit codes, a contract with scripts.
const (
	OK        = 0
	Raised    = 1 // the cell raised; another command found something wrong
	Usage     = 2
	Lost      = 70  // EX_SOFTWARE of sysexits.h: lost, or never reached a kernel
	Timeout   = 124 // as timeout(1)
	Cancelled = 130 // as a shell says it of a program that Ctrl-C ended
)

// Exit ends a command with an exit code; Err, if not nil, is shown.
type Exit struct {
	Code int
	Err  error
}

// Error returns the text of the error, or the code.
func (e *Exit) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Unwrap returns what is shown.
func (e *Exit) Unwrap() error { return e.Err }

// Failure ends a command with exit code Raised when err is not nil, whatever else err
// may say of a code.
func Failure(err error) error {
	if err == nil {
		return nil
	}
	return &Exit{Code: Raised, Err: err}
}

// UsageError says that the command line is wrong: the exit code is Usage.
type UsageError struct{ Err error }

// Error returns the text of the error.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e UsageError) Unwrap() error { return e.Err }

// Usagef is a UsageError with a text of its own, as fmt.Errorf makes it.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Decided reports whether err says by itself how the command ends: it is nil, an Exit
// or a UsageError.
func Decided(err error) bool {
	if err == nil {
		return true
	}
	if _, ok := errors.AsType[*Exit](err); ok {
		return true
	}
	_, ok := errors.AsType[UsageError](err)
	return ok
}

// Ended is how a command ends after a call with this outcome: nil when all is well,
// else an Exit with its code and nothing to show, since what the call wrote says it.
func Ended(o messages.Outcome) error {
	if code := CodeOf(o); code != OK {
		return &Exit{Code: code}
	}
	return nil
}

// EndedBy is Ended for a result whose code may have ended itself: sys.exit with nothing, None or 0
// is an end as any other, as it is of a script.
func EndedBy(r messages.Result) error {
	if r.Outcome == messages.OutcomeError && len(r.Cells) > 0 && r.Exceeded == nil {
		// The first cell that raises is the last one that ran.
		for _, c := range r.Cells {
			if c.Error != nil && c.Error.ExitStatus() == 0 {
				return nil
			}
		}
	}
	return Ended(r.Outcome)
}

// Stopped is how a command ends that failed with err after ctx, the Soft of its Stops,
// may have ended. A signal ends the host and the call at once, and either may be first:
// what was lost or never begun because of that was cancelled.
func Stopped(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	exit, coded := errors.AsType[*Exit](err)
	if coded && exit.Code == Lost {
		return &Exit{Code: Cancelled, Err: exit.Err}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)) {
		return &Exit{Code: Cancelled, Err: err}
	}
	return err
}

// CodeOf is the exit code for an outcome.
func CodeOf(o messages.Outcome) int {
	switch o {
	case messages.OutcomeOK:
		return OK
	case messages.OutcomeError:
		return Raised
	case messages.OutcomeTimeout:
		return Timeout
	case messages.OutcomeCancelled:
		return Cancelled
	case messages.OutcomeLost, messages.OutcomeNotStarted:
		return Lost
	default:
		return Lost
	}
}
