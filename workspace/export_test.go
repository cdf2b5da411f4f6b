package workspace

import (
	"time"

	"github.com/coppice-run/coppice/messages"
)

// ByLooks has limits kept to without control groups.
func (o SetOptions) ByLooks() SetOptions {
	o.looks = true
	return o
}

// EndedFor is the limit of a workspace of which nothing is left after the system has ended it
// for its memory. refused says that it has refused a process as well.
func EndedFor(t Total, refused bool) messages.ResourceLimitExceeded {
	return (&Workspace{o: Options{Total: t}}).endedFor(refused)
}

// Measured is how often the folder was measured for the quota.
func (w *Workspace) Measured() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.disk.looks
}

// Unpaused has the folder be looked at however long the last look took.
func (w *Workspace) Unpaused() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disk.again = time.Time{}
}
