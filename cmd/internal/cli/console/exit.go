package cli

import (
	"fmt"

	"github.com/coppice-run/coppice/messages"
)

// The exit codes, a contract with scripts.
const (
	codeOK        = 0
	codeRaised    = 1 // the cell raised; another command found something wrong
	codeUsage     = 2
	codeLost      = 70  // EX_SOFTWARE of sysexits.h: lost, or never reached a kernel
	codeTimeout   = 124 // as timeout(1)
	codeCancelled = 130 // as a shell says it of a program that Ctrl-C ended
)

// codeError ends a command with an exit code; err, if not nil, is shown.
type codeError struct {
	code int
	err  error
}

// Error returns the text of the error, or the code.
func (e *codeError) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return fmt.Sprintf("exit code %d", e.code)
}

// Unwrap returns what is shown.
func (e *codeError) Unwrap() error { return e.err }

// failure ends a command with exit code 1 when err is not nil.
func failure(err error) error {
	if err == nil {
		return nil
	}
	return &codeError{code: codeRaised, err: err}
}

// usageError says that the command line is wrong.
type usageError struct{ err error }

// Error returns the text of the error.
func (e usageError) Error() string { return e.err.Error() }

// Unwrap returns the error.
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// outcomeCode is the exit code of run for an outcome.
func outcomeCode(o messages.Outcome) int {
	switch o {
	case messages.OutcomeOK:
		return codeOK
	case messages.OutcomeError:
		return codeRaised
	case messages.OutcomeTimeout:
		return codeTimeout
	case messages.OutcomeCancelled:
		return codeCancelled
	case messages.OutcomeLost, messages.OutcomeNotStarted:
		return codeLost
	default:
		return codeLost
	}
}
