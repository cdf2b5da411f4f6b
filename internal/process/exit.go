package process

import (
	"fmt"
	"os"
)

// ExitError says how a child ended.
type ExitError struct {
	// Code is the exit code, or -1 after a signal.
	Code int
	// Signal is the number of the signal that ended it, 0 after an exit.
	Signal int
	// Name is the signal's name for people ("killed"), "" after an exit.
	Name string
}

// Error returns "exited with code 3" or "was ended by signal 9 (killed)".
func (e *ExitError) Error() string {
	if e.Signal != 0 {
		return fmt.Sprintf("was ended by signal %d (%s)", e.Signal, e.Name)
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

// exitOf reads the state of a reaped process.
func exitOf(s *os.ProcessState) *ExitError {
	e := &ExitError{Code: s.ExitCode()}
	e.Signal, e.Name = exitSignal(s)
	return e
}
