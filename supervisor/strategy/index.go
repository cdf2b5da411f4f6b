package strategy

import (
	"iter"
	"slices"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// Index is what a view knows without a look at every child, so that a tick and
// a spawn cost the same with ten and with ten thousand of them. The views of a
// supervisor have one ([Indexed]), and the views of [Chain], [For] and [Pin]
// pass it on; without one the strategies look at every child.
type Index interface {
	// Census counts the dynamic children of a kind and an owner, "" meaning
	// any, and of the keys that wait those up to turn.
	Census(kind, owner string, turn uint64) Census
	// Idle ranges over the dynamic children that are idle, the one that has
	// been so for longest first.
	Idle() iter.Seq[ChildView]
	// Failed ranges over the dynamic children that stay failed.
	Failed() iter.Seq[ChildView]
	// Silent ranges over the children that are up and have been in one call,
	// or without a beat after an earlier one, since before then.
	Silent(then time.Time) iter.Seq[ChildView]
}

// Indexed is a view that may have an index: Index returns nil if it has none.
type Indexed interface {
	View
	Index() Index
}

// Census is a count of children.
type Census struct {
	// Live is how many take a place in the capacity; of these, Ending are about
	// to leave it, and Strays were abandoned and are not known to be gone.
	Live, Ending, Strays int
	// Waiting is how many keys wait for a place.
	Waiting int
}

func indexOf(v View) Index {
	if i, ok := v.(Indexed); ok {
		return i.Index()
	}
	return nil
}

// takeCensus counts the dynamic children of owner.
func takeCensus(v View, owner string, turn uint64) Census {
	if i := indexOf(v); i != nil {
		return i.Census("", owner, turn)
	}
	var n Census
	for c := range v.Children() {
		if c.Static || owner != "" && c.Owner != owner {
			continue
		}
		if c.State == messages.ChildWaiting && c.Turn <= turn {
			n.Waiting++
		}
		if c.Live() {
			n.Live++
		}
		if c.State == messages.ChildStopping {
			n.Ending++
		}
	}
	return n
}

// byIdleness ranges over the children of owner that may be evicted, the one
// that has been idle for longest first.
func byIdleness(v View, owner string) iter.Seq[ChildView] {
	fits := func(c ChildView) bool { return c.Evictable() && (owner == "" || c.Owner == owner) }
	if i := indexOf(v); i != nil {
		return filter(i.Idle(), fits)
	}
	all := slices.Collect(filter(v.Children(), fits))
	slices.SortStableFunc(all, func(a, b ChildView) int { return a.LastDone.Compare(b.LastDone) })
	return slices.Values(all)
}

// failedKeys ranges over the dynamic keys that stay failed.
func failedKeys(v View) iter.Seq[ChildView] {
	if i := indexOf(v); i != nil {
		return i.Failed()
	}
	return filter(v.Children(), func(c ChildView) bool { return c.State == messages.ChildFailed && !c.Static })
}

// silentChildren ranges over the children that a heartbeat has to look at.
func silentChildren(v View, then time.Time) iter.Seq[ChildView] {
	if i := indexOf(v); i != nil {
		return i.Silent(then)
	}
	return v.Children()
}

func filter(seq iter.Seq[ChildView], ok func(ChildView) bool) iter.Seq[ChildView] {
	return func(yield func(ChildView) bool) {
		for c := range seq {
			if ok(c) && !yield(c) {
				return
			}
		}
	}
}

func mapView(seq iter.Seq[ChildView], f func(ChildView) ChildView) iter.Seq[ChildView] {
	return func(yield func(ChildView) bool) {
		for c := range seq {
			if !yield(f(c)) {
				return
			}
		}
	}
}
