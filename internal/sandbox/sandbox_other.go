//go:build !linux

package sandbox

import (
	"context"
	"fmt"
)

// ABI returns 0.
func ABI() int { return 0 }

// Strongest returns Off.
func Strongest() Level { return Off }

// AtMost returns Off.
func AtMost(Level) Level { return Off }

// Describe says that there is nothing.
func (r Rules) Describe() string { return "the host's own rights: this system has no isolation" }

// Available returns ErrUnavailable for all rungs but Off and Privileges, which
// then does nothing.
func Available(l Level) error {
	if l <= Privileges {
		return nil
	}
	return fmt.Errorf("%w: %s works on Linux only", ErrUnavailable, l)
}

// Confine returns an error for rungs that are not available.
func (r Rules) Confine() error { return Available(r.Level) }

// Scopes returns 0.
func (r Rules) Scopes() uint64 { return 0 }

// Count returns ErrUnavailable.
func Count(context.Context, []string) (int, error) { return 0, ErrUnavailable }

// Wrap returns the program itself.
func (r Rules) Wrap(c Command) (wrapped Command, done func(), err error) {
	return c, func() {}, Available(r.Level)
}
