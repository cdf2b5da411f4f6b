package fleet

import "time"

// Clock tells how much time has passed since some moment. A lease is counted by it, so it
// has to go on while the machine sleeps, and never to go back: a laptop that was closed
// for an hour must not believe in the lease that it had. What it says of a day is no
// matter. Any goroutine may call it.
type Clock func() time.Duration

// SystemClock returns the clock of this machine: CLOCK_BOOTTIME on Linux; elsewhere the
// monotonic clock and the one on the wall, whichever has gone further between two looks,
// since the former may stand still while the machine sleeps. A virtual machine that is
// paused, and of whose clocks none is put forward afterwards, needs [Options].Strict.
func SystemClock() Clock { return systemClock() }
