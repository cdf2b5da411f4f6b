package supervisor

import (
	"iter"
	"time"

	"github.com/coppice-run/coppice/supervisor/strategy"
)

// tableView is what a strategy sees of the children, and its index: see
// [strategy.View] and [strategy.Index]. It is good for one event.
type tableView struct{ *children }

// Now is the instant of the event.
func (v tableView) Now() time.Time { return v.clock.at(v.now) }

// Child returns the child of key.
func (v tableView) Child(key string) (strategy.ChildView, bool) {
	ch := v.table[key]
	if ch == nil {
		return strategy.ChildView{}, false
	}
	return ch.view(v.clock), true
}

// Children ranges over all children.
func (v tableView) Children() iter.Seq[strategy.ChildView] {
	return func(yield func(strategy.ChildView) bool) {
		for ch := v.first; ch != nil; ch = ch.behind {
			if !yield(ch.view(v.clock)) {
				return
			}
		}
	}
}

// Len is how many children there are.
func (v tableView) Len() int { return len(v.table) }

// Failures returns when the child of key failed.
func (v tableView) Failures(key string) []time.Time {
	if ch := v.table[key]; ch != nil {
		return v.clock.times(ch.failures)
	}
	return nil
}

// GroupFailures returns when any child failed.
func (v tableView) GroupFailures() []time.Time { return v.clock.times(v.groupFailures) }

// Index is the view itself.
func (v tableView) Index() strategy.Index { return v }

func (v tableView) each(l *childList) iter.Seq[strategy.ChildView] {
	return func(yield func(strategy.ChildView) bool) {
		for ch := l.eldest; ch != nil; ch = ch.younger {
			if !yield(ch.view(v.clock)) {
				return
			}
		}
	}
}

// Idle ranges over the dynamic children that are idle.
func (v tableView) Idle() iter.Seq[strategy.ChildView] { return v.each(&v.idle) }

// Failed ranges over the dynamic children that stay failed.
func (v tableView) Failed() iter.Seq[strategy.ChildView] { return v.each(&v.failures) }

// Census counts the dynamic children of a kind and an owner.
func (v tableView) Census(kind, owner string, turn uint64) strategy.Census {
	var n strategy.Census
	if owner == "" {
		owner = anyOwner
	}
	if kind != "" {
		t := v.tallies[tallyKey{kind, owner}]
		n.Live, n.Ending, n.Strays = t.live, t.ending, t.strays
	} else {
		for key, t := range v.tallies {
			if key.owner == owner {
				n.Live += t.live
				n.Ending += t.ending
				n.Strays += t.strays
			}
		}
	}
	for ch := v.waitlist.head; ch != nil && ch.turn <= turn; ch = ch.younger {
		if (kind == "" || ch.spec.Kind == kind) && (owner == anyOwner || ch.spec.Owner == owner) {
			n.Waiting++
		}
	}
	return n
}

// Silent ranges over the children that a heartbeat has to look at.
func (v tableView) Silent(then time.Time) iter.Seq[strategy.ChildView] {
	limit := v.clock.of(then)
	return func(yield func(strategy.ChildView) bool) {
		if !v.heard.asked {
			v.heard.asked = true
			for ch := v.first; ch != nil; ch = ch.behind {
				v.heard.add(ch, 0) // nothing is known of it
			}
		}
		on := true
		v.heard.visit(limit, func(ch *child) instant {
			last, silent := ch.heard(v.now, limit)
			if !silent || !on {
				return last
			}
			view := ch.view(v.clock)
			view.Stalled, view.StalledInCall = stalledSince(v.stalls, view.HeardAt()), stalledSince(v.stalls, view.HandlingSince)
			if view.Stalled+view.StalledInCall+view.Waited > 0 {
				v.excused++
			}
			on = yield(view)
			return last
		})
	}
}
