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
		left := m.Left(b, seen)
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

// A look at a process costs what a whole call does, so that nothing is looked at which
// is over soon: within a tenth of a second, or an eighth of a small budget.
const (
	soonMost = 100 * time.Millisecond
	soonPart = 8
)

// takesLong waits until it is worth a look; false: it is over by then, or ctx is.
func takesLong(ctx context.Context, b Budget, over <-chan struct{}) bool {
	soon := time.NewTimer(min(soonMost, b.Opportunity/soonPart))
	defer soon.Stop()
	select {
	case <-soon.C:
		return true
	case <-over:
	case <-ctx.Done():
	}
	return false
}

// Context returns a context that ends with ctx, and with a [*SpentError] as its cause
// when the budget is spent. begin gives the meter, once it is worth a look: what is over
// soon is not looked at, and that time is not counted. look, if not nil, is given what
// was measured: then, whenever that is looked at, and at least every ten parts of the
// budget's opportunity. Both are called by one goroutine, for which cancel waits.
func Context(ctx context.Context, b Budget, begin func() *Meter, look func(Measure)) (_ context.Context, cancel func()) {
	const looks = 10
	c, end := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if !takesLong(c, b, nil) {
			return
		}
		m := begin()
		begun := m.Measure()
		if look != nil {
			look(begun)
		}
		for {
			seen := m.Measure()
			if look != nil {
				look(seen)
			}
			left := m.Left(b, seen.After(begun))
			if left <= 0 {
				end(&SpentError{Budget: b, Measure: seen.After(begun), By: b.Expired(seen.After(begun))})
				return
			}
			if look != nil {
				left = min(left, max(settleLeast, b.Opportunity/looks))
			}
			timer := time.NewTimer(left)
			select {
			case <-c.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
		}
	}()
	return c, func() {
		end(context.Canceled)
		<-over
	}
}
