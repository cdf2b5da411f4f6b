package process

import "time"

// ThreadState is what a thread was doing when it was looked at.
type ThreadState byte

// What a thread may be doing.
const (
	// Asleep waits for something to come, a lock or input.
	Asleep ThreadState = iota
	// Wanting runs, or waits for a processor to run on: the system does not tell
	// which.
	Wanting
	// OnDisk waits for a disk, a page of memory or a network file system, and heeds
	// no signal; so does a thread whose control group is frozen.
	OnDisk
	// Halted was stopped by a signal or a debugger.
	Halted
	// Over has ended.
	Over
)

// Thread is what the system counts of one thread, since that began.
type Thread struct {
	// ID is the thread's own number, unique on the machine while it lives.
	ID    int
	State ThreadState
	// Ran is the processor time that it has used. The system may add to it as
	// rarely as every 10 ms.
	Ran time.Duration
	// Waited is how long it wanted a processor and had none, up to the last time
	// that it got one: a wait that still goes on is not in it.
	Waited time.Duration
	// Turns is how often it got a processor.
	Turns uint64
	// Counted says that Waited and Turns are known. Some kernels and sandboxes do
	// not count them.
	Counted bool
}

// MostThreads is how many threads [Threads] looks at: the oldest. The threads of a
// Jupyter kernel that answer others are among its first twelve, and those of every
// Python process are there before those that its code begins.
const MostThreads = 16
