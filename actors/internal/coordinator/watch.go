package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/actors/internal/process"
)

const (
	lookEvery = 200 * time.Millisecond
	askEvery  = 5 * time.Second
)

// Watch returns when the gateway is gone, with why, or nil when ctx ended. A
// gateway that is silent for too long is ended; suspect, if not nil, hears when
// a suspicion begins (with what was observed) and when it ends (nil). It is
// called from the goroutine that called Watch.
func (l *Lease) Watch(ctx context.Context, suspect func(error)) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	asked, pause := time.Now(), askEvery
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		if !process.Alive(l.Process) {
			return fmt.Errorf("the shared %v ended", l.Gateway)
		}
		if time.Since(asked) < pause {
			continue
		}
		err := healthy(ctx, l.Gateway)
		asked = time.Now()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			if !since.IsZero() && suspect != nil {
				suspect(nil)
			}
			since, pause = time.Time{}, askEvery
		case since.IsZero():
			if suspect != nil {
				suspect(err)
			}
			since, pause = asked, lookEvery
		case time.Since(since) > l.o.Suspicion:
			if err := replace(ctx, l.o.Dir, l.Gateway); err != nil {
				return err
			}
		default:
			pause = min(2*pause, askEvery)
		}
	}
}
