package opportunity

import (
	"time"

	"golang.org/x/sys/unix"
)

// slept is how long the machine has slept since it was started.
func slept() time.Duration {
	var all, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil {
		return 0
	}
	return max(0, time.Duration(all.Nano()-awake.Nano())).Truncate(time.Millisecond)
}
