package kernel

import (
	"time"

	"github.com/coppice-run/coppice/messages"
)

// Guard is what a kernel belongs to besides its session: a workspace, which has to know
// the processes in it, and bounds what they use together.
type Guard interface {
	// Began hears of an interpreter that has started, before it runs a cell, from a
	// goroutine of the kernel's. It must not block. stop, which may be called from any goroutine and
	// returns at once, interrupts the cell that runs, if one does: its result has the limit.
	Began(i Info, stop func(messages.ResourceLimitExceeded))
	// Met returns the limit for which the interpreter with this process id, or something that it
	// has started, was ended since a moment, or that raised is about, what the code has
	// raised; nil: none.
	Met(pid int, since time.Time, raised *messages.ErrorDetails) *messages.ResourceLimitExceeded
}
