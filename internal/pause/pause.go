// Package pause waits between the attempts at something that may succeed later: each time
// twice as long as the last, up to a bound. Any goroutine may call it.
package pause

import (
	"context"
	"time"
)

// Most bounds a pause.
const Most = time.Second

// Wait waits for so long, doubles it for the next time, to Most at most, and reports whether
// ctx goes on. It returns as soon as ctx ends.
func Wait(ctx context.Context, wait *time.Duration) bool {
	t := time.NewTimer(*wait)
	defer t.Stop()
	*wait = min(2**wait, Most)
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}
