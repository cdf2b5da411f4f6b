package kernelserver

import (
	"fmt"
	"slices"
	"strings"
)

// LaunchError says why no gateway could be started.
type LaunchError struct {
	// Problem is a sentence part: "it exited with code 1".
	Problem string
	// Tail is the end of what it printed, without the token.
	Tail []string
	// Err is the cause.
	Err error
}

// Error returns the problem and the last line that was printed.
func (e *LaunchError) Error() string {
	return withLastLine("start a kernel gateway: "+e.Problem, e.Tail)
}

// Unwrap returns the cause.
func (e *LaunchError) Unwrap() error { return e.Err }

// ExitedError says that a gateway ended by itself.
type ExitedError struct {
	// Tail is the end of what it printed, without the token.
	Tail []string
	// Err says how it ended: a *process.ExitError, or nil after exit code 0.
	Err error
}

// Error says how it ended, with the last line that it printed.
func (e *ExitedError) Error() string {
	how := "exited with code 0"
	if e.Err != nil {
		how = e.Err.Error()
	}
	return withLastLine("the kernel gateway "+how, e.Tail)
}

// Unwrap returns how it ended.
func (e *ExitedError) Unwrap() error { return e.Err }

func withLastLine(text string, tail []string) string {
	for _, l := range slices.Backward(tail) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "[I ") { // a note of what went well
			return fmt.Sprintf("%s (its last line: %s)", text, l)
		}
	}
	return text
}
