package strategy

import (
	"github.com/coppice-run/coppice/messages"
)

type group struct{ reach groupReach }

type groupReach uint8

const (
	reachOne  groupReach = iota // the child itself
	reachRest                   // and those that were started after it
	reachAll                    // and all others
)

// OneForOne starts a child again when its RestartType says so, and leaves the
// others alone. It has no limit of its own: chain it with [EscalateAfter],
// [Intensity] or [Backoff].
func OneForOne() Strategy { return group{reachOne} }

// OneForAll does so too, and restarts all other static children with it:
// those that had ended as well, but temporary ones end for good.
func OneForAll() Strategy { return group{reachAll} }

// RestForOne does so too, and restarts the static children after it, in the
// order of Options.Children, with it.
func RestForOne() Strategy { return group{reachRest} }

// Decide answers Fail, and Gone of a child that ended by itself.
func (g group) Decide(v View, ev Event) []Directive {
	var key string
	var exit Exit
	switch ev := ev.(type) {
	case Fail:
		key, exit = ev.Key, ev.Exit
	case Gone:
		if !ev.BySelf || ev.Exit.Failure() {
			return nil // it was asked to end, or Fail was answered
		}
		key, exit = ev.Key, ev.Exit
	default:
		return nil
	}
	c, ok := v.Child(key)
	switch {
	case !ok:
		return nil
	case c.RestartType == Permanent, c.RestartType == Transient && exit.Failure():
	case exit.Failure():
		return []Directive{Stop(key, exit)}
	default:
		return nil
	}
	ds := []Directive{Restart(key, 0)}
	if g.reach == reachOne || !c.Static {
		return ds
	}
	for o := range v.Children() {
		if !o.Static || o.Key == key || g.reach == reachRest && o.Order < c.Order {
			continue
		}
		switch {
		case o.RestartType != Temporary && o.RestartType != "":
			ds = append(ds, Restart(o.Key, 0))
		case o.Live(): // never started again, not even because of another one
			ds = append(ds, Stop(o.Key, Exitf(messages.ExitShutdown, "ended together with %s", key)))
		}
	}
	return ds
}

// AutoShutdown ends a supervisor when its significant children (Spec.Significant)
// have ended by themselves and are not started again: when the first has, or,
// with all, when the last has. The supervisor ends in order, with an exit of kind
// shutdown. Chain it with a strategy that restarts.
func AutoShutdown(all bool) Strategy { return autoShutdown{all} }

type autoShutdown struct{ all bool }

// Decide answers Gone.
func (a autoShutdown) Decide(v View, ev Event) []Directive {
	gone, ok := ev.(Gone)
	if !ok {
		return nil
	}
	c, ok := v.Child(gone.Key)
	if !ok || !c.Significant || !gone.BySelf && !gone.Exit.Failure() {
		return nil
	}
	if a.all {
		for o := range v.Children() {
			if o.Significant && o.Key != gone.Key && o.State != messages.ChildGone && o.State != messages.ChildFailed {
				return nil
			}
		}
	}
	return []Directive{Escalate(Exitf(messages.ExitShutdown, "its significant child %s has ended", gone.Key))}
}
