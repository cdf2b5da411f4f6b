package strategy

import (
	"time"

	"github.com/coppice-run/coppice/messages"
)

type heartbeat struct{ every time.Duration }

// Heartbeat ends children that hang. A child is expected to call Ctx.Beat once
// in every; when it has been silent for two and a half times that, it is
// stopped with an exit of kind hung. Children that never beat are not expected
// to. A child whose Handle has not returned for that long, and which does not
// wait for someone else (Ctx.Hold), cannot be stopped in order: it is
// abandoned. Whether it is started again is for the strategy that decides about
// failures.
//
// A tick that is late by more than every says that this process itself stood
// still. It judges no child; the next one does.
func Heartbeat(every time.Duration) Strategy { return heartbeat{every} }

// Decide answers Tick.
func (h heartbeat) Decide(v View, ev Event) []Directive {
	tick, ok := ev.(Tick)
	if !ok || h.every <= 0 || tick.Late > h.every {
		return nil
	}
	now, patience := v.Now(), 2*h.every+h.every/2
	var ds []Directive
	for c := range silentChildren(v, now.Add(-patience)) {
		if c.State != messages.ChildIdle && c.State != messages.ChildBusy {
			continue
		}
		if !c.HandlingSince.IsZero() && !c.WaitingForCredit && now.Sub(c.HandlingSince) > patience {
			ds = append(ds, Abandon(c.Key, Exitf(messages.ExitHung, "one call did not return for %v", now.Sub(c.HandlingSince).Round(time.Millisecond))))
			continue
		}
		if c.LastBeat.IsZero() {
			continue
		}
		last := c.LastBeat
		if c.UpAt.After(last) {
			last = c.UpAt
		}
		if silent := now.Sub(last); silent > patience {
			ds = append(ds, Stop(c.Key, Exitf(messages.ExitHung, "no sign of life for %v", silent.Round(time.Millisecond))))
		}
	}
	return ds
}
