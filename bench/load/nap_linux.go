package load

import (
	"syscall"
	"time"
)

// nap waits for a short time, to within about 60 us: the kernel's timers are finer
// than those of Go's poller. A signal ends it early.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(d.Nanoseconds())
	_ = syscall.Nanosleep(&t, nil) // the caller looks at the clock again
}
