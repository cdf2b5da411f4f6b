package sharedgateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

const (
	askAgain = 200 * time.Millisecond // after the first silence, and then ever later
	askEvery = 5 * time.Second
)

// Watch returns when the gateway is gone, with why, or nil when ctx ended. A
// gateway that is silent for too long is ended; suspect, if not nil, hears when
// a suspicion begins (with what was observed) and when it ends (nil). It is
// called from the goroutine that called Watch.
//
// The end of the gateway's process is known at once, also while it is asked
// whether it is well.
func (l *Lease) Watch(ctx context.Context, suspect func(error)) error {
	lives, over := context.WithCancel(ctx)
	var awaiting sync.WaitGroup
	awaiting.Go(func() {
		defer over()
		_ = process.Await(lives, l.Process) // when not nil, whoever called Watch goes
	})
	defer awaiting.Wait()
	defer over()
	ask := time.NewTimer(askEvery)
	defer ask.Stop()
	pause := askEvery
	var stalls opportunity.Watch
	stalls.Start()
	defer stalls.Stop()
	var silent *opportunity.Meter // since it does not answer; nil: it does
	for {
		var err error
		select {
		case <-lives.Done():
		case <-ask.C:
			err = healthy(lives, l.Gateway)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case lives.Err() != nil:
			return fmt.Errorf("the shared %v ended", l.Gateway)
		case err == nil:
			if silent != nil && suspect != nil {
				suspect(nil)
			}
			silent, pause = nil, askEvery
		case silent == nil:
			if suspect != nil {
				suspect(err)
			}
			silent, pause = opportunity.Begin(opportunity.Processes(l.Process), &stalls), askAgain
		case l.o.suspicion().Expired(silent.Measure()) != opportunity.Open:
			if err := replace(ctx, l.o.Dir, l.Gateway); err != nil {
				return err
			}
		default:
			pause = min(2*pause, askEvery)
		}
		ask.Reset(pause)
	}
}
