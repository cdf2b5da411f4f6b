package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/actors/internal/kernelserver"
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
			if err := l.replace(ctx); err != nil {
				return err
			}
		default:
			pause = min(2*pause, askEvery)
		}
	}
}

// replace ends the gateway, unless it answers now or another host was first.
func (l *Lease) replace(ctx context.Context) error {
	unlock, err := lock(ctx, l.o.Dir, "replacing a gateway that does not answer")
	if err != nil {
		return err
	}
	defer unlock()
	if healthy(ctx, l.Gateway) == nil || !process.Alive(l.Process) {
		return nil
	}
	kernelserver.Remove(ctx, l.Process, l.Dir)
	r, err := read(l.o.Dir)
	if err != nil {
		return err
	}
	return write(l.o.Dir, r.without(l.Gateway))
}
