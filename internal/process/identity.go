package process

import (
	"errors"
	"syscall"
)

// ErrNoProcess is returned for a process that does not exist. A zombie, which has
// ended and was not reaped, does not count as existing.
var ErrNoProcess = errors.New("no such process")

// ErrUnsupported is returned for what this system does not tell.
var ErrUnsupported = errors.New("not supported on this system")

// Identity names one process for good: a pid is given to another process
// sooner or later, a pid with a start time is not. It may be stored in a file
// and compared with ==.
type Identity struct {
	// PID is the process id.
	PID int `json:"pid"`
	// Start is when the process started, in a form of the system's own that is
	// only good for comparison. On Linux it holds the id of the boot. "" means
	// that it is not known: such an identity is never alive, and has ended when
	// nothing has its number.
	Start string `json:"start"`
}

// Identify returns the identity of the process that has this pid now. It
// returns [ErrNoProcess] when there is none and [ErrUnsupported] where start
// times cannot be had.
func Identify(pid int) (Identity, error) {
	start, err := startTime(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, Start: start}, nil
}

// Alive reports whether the process with this identity runs. It is false when
// the pid belongs to another process now, when the process is a zombie, and
// when that cannot be found out: the caller may be about to kill the process. So
// it does not say that the process has ended; see [Ended].
func Alive(id Identity) bool {
	if id.PID <= 0 || id.Start == "" {
		return false
	}
	start, err := startTime(id.PID)
	return err == nil && start == id.Start
}

// Ended reports whether the process with this identity is known to have ended: nothing
// has its number, or another process, or a zombie. It is false when that cannot be found
// out, as when this process has no descriptor left to look with. Who goes by the end of a
// process asks Ended, and who does something to a process asks [Alive]: neither acts on
// what is not known. Where the system does not tell when a process started, every process
// counts as ended.
func Ended(id Identity) bool {
	if id.PID <= 0 {
		return true
	}
	start, err := startTime(id.PID)
	if err != nil {
		return errors.Is(err, ErrNoProcess) || errors.Is(err, ErrUnsupported)
	}
	return id.Start != "" && start != id.Start
}

// Exhausted reports whether an error says nothing of the process that was looked at: this
// one, or the machine, had no descriptor or memory left to look with.
func Exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// Activity is what a process is doing.
type Activity struct {
	// Stopped says that it was stopped by a signal or a debugger.
	Stopped bool
	// RSS is its resident memory in bytes, 0 when that cannot be told.
	RSS int64
	// Threads is how many it has.
	Threads int
}
