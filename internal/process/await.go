package process

import (
	"context"
	"time"
)

// awaitEvery is how often a process is looked at where the system does not tell
// of its end.
const awaitEvery = 100 * time.Millisecond

// Await returns nil once the process with this identity has ended, or when it
// was not there to begin with, and the cause of ctx when that ended first. The
// process need not be a child. Any goroutine may call it.
//
// On Linux the system reports the end at once (pidfd_open(2)); elsewhere, and
// where that is not allowed, the process is looked at ten times a second.
func Await(ctx context.Context, id Identity) error {
	told := awaitTold(ctx, id)
	if told && ctx.Err() == nil {
		return nil
	}
	look := time.NewTicker(awaitEvery)
	defer look.Stop()
	for !Ended(id) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
