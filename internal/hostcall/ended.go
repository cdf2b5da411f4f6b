package hostcall

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// How long a result waits for the backends of primitives: at most endWait, and
// endGrace once its caller has gone. One that heeds its context then has endLate to
// say what it could not do.
const (
	endWait  = 10 * time.Second
	endGrace = 2 * time.Second
	endLate  = 250 * time.Millisecond
)

// Ended tells the backends of primitives that the call has ended, waits for them, and
// returns what the result should tell. What they have to say goes to say, in the
// goroutine of the caller. A backend that does not return is left behind, and holds up
// neither the call nor other backends; [Host.Wait] names it.
func (d *Calls) Ended(ctx context.Context, outcome messages.Outcome, say func(messages.HostEvent)) (notices []string) {
	enders := d.offer.Primitives.CallEnders()
	if len(enders) == 0 {
		return nil
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(endGrace):
			cancel()
		case <-end.Done():
		}
	})()
	var events []messages.HostEvent
	sink := &eventSink{say: func(e messages.HostEvent) { events = append(events, e) }}
	ended := make(chan failed, len(enders))
	for name, e := range enders {
		d.host.running.start(name+" at the end of a call", func() {
			supervisor.Guarded(func() error {
				return e.OnCallEnd(end, primitive.CallEnd{Session: d.exec.Key, Exec: d.exec.ID, Outcome: outcome, Emit: sink.event})
			}, func(err error) { ended <- failed{name, err} })
		})
	}
	errs := collect(end, ended, enders)
	sink.close() // no one writes events any more
	for _, e := range events {
		say(e)
	}
	for _, name := range slices.Sorted(maps.Keys(errs)) {
		d.host.o.Logger.Warn("a backend of primitives failed at the end of a call", "backend", name, "session", d.exec.Key.String(), "exec", d.exec.ID, "err", errs[name])
		why := errs[name].Error()
		if exit, ok := errors.AsType[supervisor.Exit](errs[name]); ok {
			why = fmt.Sprintf("its backend failed inside (%s)", exit.Kind) // a panic's text stays with the host
		}
		notices = append(notices, fmt.Sprintf("runtime.%s: %s", name, why))
	}
	return notices
}

// failed is the end of one backend's part.
type failed struct {
	name string
	err  error
}

// collect waits for the backends until ctx ends, and returns those that failed.
func collect(ctx context.Context, ended <-chan failed, enders map[string]primitive.CallEnder) map[string]error {
	errs := map[string]error{}
	var late <-chan time.Time
	over := ctx.Done()
	for len(enders) > 0 {
		select {
		case f := <-ended:
			delete(enders, f.name)
			if f.err != nil {
				errs[f.name] = f.err
			}
		case <-over:
			timer := time.NewTimer(endLate)
			defer timer.Stop()
			over, late = nil, timer.C
		case <-late:
			for name := range enders {
				errs[name] = fmt.Errorf("what the call has left to do at its end has not been done in time, and whether it will be is not known: the backend %q does not answer", name)
			}
			return errs
		}
	}
	return errs
}
