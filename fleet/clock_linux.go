package fleet

import (
	"time"

	"golang.org/x/sys/unix"
)

func systemClock() Clock {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil { // a filter of system calls
		return furthest(time.Now)
	}
	return func() time.Duration {
		var t unix.Timespec
		// It has worked, and its arguments are the same.
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
		return time.Duration(t.Nano())
	}
}
