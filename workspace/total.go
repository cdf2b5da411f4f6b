package workspace

import (
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/machine"
)

// Total bounds what everything in a workspace uses together: sessions, processes, and
// what they have started, also what has left their groups and sessions. 0: no limit.
// It holds on both backends. Whoever is ended is told with the limit's name: a cell by
// [messages.Result.Exceeded], a process by the Reason of its Exit.
//
// Where the host has control groups (Linux: version 2 that is left to it, or version 1 that it may
// change, as root may), Memory and Processors are kept to by the system, and more than 256 processes
// and threads beyond Processes are refused by it; looks at the group, which cost little, find who
// has started them. Elsewhere on Linux the workspace is looked at ten times a
// second, and less often when a look takes long; until the next one it may have more.
// On other systems Output alone is kept to, and the others are refused. [Info.Kept] says which.
// On the rung gvisor, Memory is what its sandboxes take, and the biggest of those is ended, with all
// sessions of the workspace where it is theirs; so is the one that has most processes, where there are
// more than Processes, which are counted about once a second; Processors is kept to by a control group that they are in.
type Total struct {
	// Memory is in bytes, without files that were read. When there is more, the process that has most is ended, again
	// and again; by a control group, all of the workspace is.
	Memory int64 `json:"memory,omitempty"`
	// Processes is how many may live, the sessions' own included. When there are more,
	// the cell or the process that has started most of them is stopped, with all that
	// it has started, also while it was being stopped: when its result or its Exit is there
	// and a moment has passed, nothing of it is left. It is no wall: what has left both its parents and
	// the limit of file locks that it was born with (RLIMIT_LOCKS) is no one's, and is ended alone.
	Processes int `json:"processes,omitempty"`
	// Processors is how many processors may be kept busy, 0.5 for half of one. It needs
	// a control group: without one it is refused.
	Processors float64 `json:"processors,omitempty"`
	// Output is how many bytes each cell and each process may print. It is stopped then,
	// and what it prints after that is left out.
	Output int64 `json:"output,omitempty"`
}

// Usage is what everything in a workspace used when it was looked at.
type Usage struct {
	// At is when that was. Zero: it has not been looked at.
	At time.Time `json:"at,omitzero"`
	// Memory is in bytes, without files that were read; Processes is how many live.
	Memory    int64 `json:"memory"`
	Processes int   `json:"processes"`
	// Ends is how often something was ended or stopped for a limit of the workspace, and
	// Last is the newest of them, in words.
	Ends int    `json:"ends,omitempty"`
	Last string `json:"last,omitempty"`
}

// How limits are kept to, for Info.Kept.
const (
	keptByGroup = "a control group of the workspace"
	keptByLooks = "looks at its processes, ten times a second"
	keptInside  = keptByLooks + ", which are those that its sandboxes run in"
)

// watched reports whether something is limited that has to be looked at.
func (t Total) watched() bool { return t.Memory > 0 || t.Processes > 0 || t.Processors > 0 }

// negative reports whether one of the limits is below zero, or no number.
func (t Total) negative() bool {
	return t.Memory < 0 || t.Processes < 0 || !(t.Processors >= 0) || t.Output < 0
}

func memory(bytes int64) string { return bytesOf(bytes) + " of memory" }

// bytesOf writes a number of bytes for people: rounded down, unless nothing would be left.
func bytesOf(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", max(n, 0))
	}
	return machine.Size(uint64(n))
}

// apart writes what is used and what may be, which look different also where they round to the same.
func apart(used, most int64) (had, may string) {
	if had, may = bytesOf(used), bytesOf(most); had == may {
		return fmt.Sprintf("%d bytes", used), fmt.Sprintf("%d bytes", most)
	}
	return had, may
}

func count(processes int) string { return fmt.Sprintf("%d processes", processes) }
