package kernel

import (
	"errors"
	"time"

	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// Guard is what a kernel belongs to besides its session: a workspace, which has to know
// the processes in it, and bounds what they use together.
type Guard interface {
	// Began hears of an interpreter that has started, before it runs a cell, from a
	// goroutine of the kernel's. It must not block. stop, which may be called from any goroutine and
	// returns at once, interrupts the cell that runs, if one does: its result has the limit.
	// Called again, it interrupts that again.
	Began(i Info, stop func(messages.ResourceLimitExceeded))
	// Met returns the limit for which the interpreter with this process id, or something that it
	// has started, was ended since a moment, or that raised is about, what the code has
	// raised; nil: none.
	Met(pid int, since time.Time, raised *messages.ErrorDetails) *messages.ResourceLimitExceeded
	// Ended returns the limit for which the interpreter with this process id was itself ended
	// since a moment, that of its start; nil: it was not, or for another reason. It may not
	// have begun yet. Any goroutine may call it. It waits for nothing but the end of what
	// ends with it for that limit, a second at most.
	Ended(pid int, since time.Time) *messages.ResourceLimitExceeded
	// Stopped hears that a cell has ended which stop has interrupted for a limit, before its
	// result is given, from the goroutine that runs it; lost says that the interpreter did
	// with it, or is given up. It may take some seconds, to end what the cell has started.
	Stopped(pid int, met messages.ResourceLimitExceeded, lost bool)
}

// Brooder is implemented by a backend that makes kernels before anyone has asked for them, or
// whose kernels run before [Guard.Began] hears of them.
type Brooder interface {
	// Brood returns the process that forks kernels, the zero value while there is none, and
	// the numbers of kernels that were made and wait to be taken. Any goroutine may call it.
	Brood() (from process.Identity, waiting []int)
}

// explain returns the error about an interpreter that is gone, or that did not start, with
// the limit for which it was ended: as a [LostError] that has it, so that whoever gets the
// error, be it in the exit of the kernel, learns of it. pid is the interpreter's, 0 where
// only the error can know it; since is when its start began.
func (o Options) explain(err error, pid int, since time.Time) error {
	if err == nil || o.Guard == nil {
		return err
	}
	lost, is := errors.AsType[*LostError](err)
	if is && lost.Exceeded != nil {
		return err
	}
	if is && pid == 0 {
		pid = lost.PID
	}
	if pid == 0 {
		return err
	}
	met := o.Guard.Ended(pid, since)
	if met == nil {
		return err
	}
	said := LostError{Reason: met.Error(), PID: pid, Exceeded: met, Err: err}
	if is {
		said.Replaced, said.Elsewhere = lost.Replaced, lost.Elsewhere
	}
	return &said
}
