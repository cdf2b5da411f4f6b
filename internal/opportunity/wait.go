package opportunity

import (
	"context"
	"fmt"
	"time"
)

// Wait waits until done is closed or has something, which is nil, until the budget is
// spent ([*SpentError]), or until ctx ends (its cause, wrapped). The meter may have
// begun earlier: what it has seen counts. On a machine in order it wakes once; for
// the rest of the time that was not an opportunity it sleeps again.
func Wait(ctx context.Context, b Budget, m *Meter, done <-chan struct{}) error {
	for {
		seen := m.Measure()
		left := b.Left(seen)
		if left <= 0 {
			select { // what came while we looked has come in time
			case <-done:
				return nil
			default:
				return &SpentError{Budget: b, Measure: seen, By: b.Expired(seen)}
			}
		}
		timer := time.NewTimer(left)
		select {
		case <-done:
			timer.Stop()
			return nil
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("wait for an answer: %w", context.Cause(ctx))
		case <-timer.C:
		}
	}
}
