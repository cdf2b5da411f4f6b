// Package deadline ends what waits on a connection or a file when a context ends: such a wait
// knows deadlines only. Any goroutine may call it.
//
// It guarantees that a context which ends late is not taken for that of the next call: once
// stop has returned, the deadline is not touched any more.
package deadline

import (
	"context"
	"time"
)

// Past moves a deadline into the past when ctx ends, such as SetReadDeadline of a connection.
// The caller calls stop when its own wait is over. It reports whether the deadline is as it was;
// otherwise ctx has ended, and whoever goes on with the connection sets another one.
func Past(ctx context.Context, set func(time.Time) error) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	over := make(chan struct{})
	off := context.AfterFunc(ctx, func() {
		defer close(over)
		_ = set(time.Unix(1, 0)) // what is closed is not waited for
	})
	return func() bool {
		if off() {
			return true
		}
		<-over
		return false
	}
}

// Free is Past for what goes on afterwards without any deadline.
func Free(ctx context.Context, set func(time.Time) error) (stop func()) {
	past := Past(ctx, set)
	return func() {
		if !past() {
			_ = set(time.Time{}) // as above
		}
	}
}
