package strategy

import (
	"fmt"
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// Bounds of [HeartbeatOptions], in parts and multiples of Every.
const (
	// patienceOf halves make the silence that is too long.
	patienceHalves = 5
	// askedHalves is how much of it has to come after this process stood still: a
	// child is asked again within Every, and has as much as half of that to answer.
	askedHalves = 3
	// ceilings is the default Ceiling.
	ceilings = 120
)

// HeartbeatOptions say when a child hangs.
type HeartbeatOptions struct {
	// Every is how often a child is expected to call Ctx.Beat. 0 or less: nothing is
	// expected.
	Every time.Duration
	// Ceiling is how long a child may be silent while it has no processor, or never one
	// for long enough; time in which this process stood still is not counted. 0: 120
	// times Every; less than two and a half times Every: that.
	Ceiling time.Duration
}

type heartbeat struct{ patience, asked, ceiling time.Duration }

// Heartbeat is [HeartbeatWithin] with the default ceiling.
func Heartbeat(every time.Duration) Strategy { return HeartbeatWithin(HeartbeatOptions{Every: every}) }

// HeartbeatWithin ends children that hang. A child is expected to call Ctx.Beat once
// in Every; when it has been silent for two and a half times that, it is
// stopped with an exit of kind hung. Children that never beat are not expected
// to. A child whose Handle has not returned for that long, and which does not
// wait for someone else (Ctx.Hold), cannot be stopped in order: it is
// abandoned. Whether it is started again is for the strategy that decides about
// failures.
//
// Silence is what a child was silent for although it had the chance to speak:
//
//	the time since it was last heard of
//	  - what this process stood still of it, and heard nothing   [ChildView]'s Stalled
//	  - what the child waited for a processor, as it says       [ChildView]'s Waited
//
// Nor is a child ended, once this process stood still, before it could have been asked
// again and have answered: in one and a half times Every. Only the Ceiling ends a child
// that had no chance, and twice the Ceiling one that this process never had the time to
// listen to.
func HeartbeatWithin(o HeartbeatOptions) Strategy {
	h := heartbeat{patience: o.Every * patienceHalves / 2, asked: o.Every * askedHalves / 2, ceiling: o.Ceiling}
	if h.ceiling <= 0 {
		h.ceiling = ceilings * o.Every
	}
	h.ceiling = max(h.ceiling, h.patience)
	return h
}

// Decide answers Tick.
func (h heartbeat) Decide(v View, ev Event) []Directive {
	tick, ok := ev.(Tick)
	if !ok || h.patience <= 0 {
		return nil
	}
	now := v.Now()
	var ds []Directive
	for c := range silentChildren(v, now.Add(-h.patience)) {
		if c.State != messages.ChildIdle && c.State != messages.ChildBusy {
			continue
		}
		if !c.HandlingSince.IsZero() && !c.WaitingForCredit {
			in := silence{wall: now.Sub(c.HandlingSince), stalled: c.StalledInCall}
			if h.over(in, in.after(now, tick)) {
				ds = append(ds, Abandon(c.Key, Exitf(messages.ExitHung, "one call did not return for %v", in)))
				continue
			}
		}
		if c.LastBeat.IsZero() {
			continue
		}
		s := silence{wall: now.Sub(c.HeardAt()), stalled: c.Stalled, waited: c.Waited}
		after := s.after(now, tick)
		if after != s {
			after.waited = c.WaitedAfter
		}
		if h.over(s, after) {
			ds = append(ds, Stop(c.Key, Exitf(messages.ExitHung, "no sign of life for %v", s)))
		}
	}
	return ds
}

// over says whether a silence is too long, the last part of which is after.
func (h heartbeat) over(s, after silence) bool {
	switch {
	case s.chance() > h.patience && after.chance() > h.asked:
		return true
	case s.listened() <= h.ceiling:
		return false
	default: // a machine that stands still again and again comes to an end, too
		return after.listened() > h.asked || s.listened() > 2*h.ceiling
	}
}

// silence is a time in which nothing was heard, and what became of it.
type silence struct{ wall, stalled, waited time.Duration }

func (s silence) listened() time.Duration { return max(0, s.wall-max(0, s.stalled)) }
func (s silence) chance() time.Duration   { return max(0, s.listened()-max(0, s.waited)) }

// after is the part of it since this process stood still for long; all of it if it did
// not. Its waited is not set then.
func (s silence) after(now time.Time, t Tick) silence {
	if t.Resumed.IsZero() || !t.Resumed.After(now.Add(-s.wall)) {
		return s
	}
	return silence{wall: now.Sub(t.Resumed), stalled: t.Stalled}
}

// String tells it to people: "4m6s, of which this program stood still for 4m0s".
func (s silence) String() string {
	const worthTelling = 100 * time.Millisecond
	var parts []string
	if s.stalled >= worthTelling {
		parts = append(parts, fmt.Sprintf("this program stood still for %v", s.stalled.Round(time.Millisecond)))
	}
	if s.waited >= worthTelling {
		parts = append(parts, fmt.Sprintf("it waited %v for a processor", s.waited.Round(time.Millisecond)))
	}
	text := s.wall.Round(time.Millisecond).String()
	if len(parts) > 0 {
		text += ", of which " + strings.Join(parts, " and ")
	}
	return text
}
