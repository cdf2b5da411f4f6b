package supervisor

import (
	"iter"
	"slices"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// index is what the view of a shell knows without a look at every child, so
// that a tick and a spawn cost the same with ten and with ten thousand of
// them. The wrapping views pass it on; a View from elsewhere has none, and the
// functions below then look at every child.
type index interface {
	// census counts the dynamic children of a kind and an owner, "" meaning
	// any, and of the keys that wait those up to turn.
	census(kind, owner string, turn uint64) census
	// idle ranges over the dynamic children that are idle, the one that has
	// been so for longest first, and failed over those that stay failed.
	idle() iter.Seq[ChildView]
	failed() iter.Seq[ChildView]
	// silent ranges over the children that are up and have been in one call,
	// or without a beat after an earlier one, since before then.
	silent(then time.Time) iter.Seq[ChildView]
}

// census is how many children take a place, how many of these are about to
// leave it, how many were abandoned and are not known to be gone, and how many
// keys wait.
type census struct{ live, ending, strays, waiting int }

// indexed is implemented by views that may have an index.
type indexed interface{ index() index }

func indexOf(v View) index {
	if i, ok := v.(indexed); ok {
		return i.index()
	}
	return nil
}

// takeCensus counts the dynamic children of owner.
func takeCensus(v View, owner string, turn uint64) census {
	if i := indexOf(v); i != nil {
		return i.census("", owner, turn)
	}
	var n census
	for c := range v.Children() {
		if c.Static || owner != "" && c.Owner != owner {
			continue
		}
		if c.State == messages.ChildWaiting && c.Turn <= turn {
			n.waiting++
		}
		if c.Live() {
			n.live++
		}
		if c.State == messages.ChildStopping {
			n.ending++
		}
	}
	return n
}

// byIdleness ranges over the children of owner that may be evicted, the one
// that has been idle for longest first.
func byIdleness(v View, owner string) iter.Seq[ChildView] {
	fits := func(c ChildView) bool { return c.Evictable() && (owner == "" || c.Owner == owner) }
	if i := indexOf(v); i != nil {
		return filter(i.idle(), fits)
	}
	all := slices.Collect(filter(v.Children(), fits))
	slices.SortStableFunc(all, func(a, b ChildView) int { return a.LastDone.Compare(b.LastDone) })
	return slices.Values(all)
}

// failedKeys ranges over the dynamic keys that stay failed.
func failedKeys(v View) iter.Seq[ChildView] {
	if i := indexOf(v); i != nil {
		return i.failed()
	}
	return filter(v.Children(), func(c ChildView) bool { return c.State == messages.ChildFailed && !c.Static })
}

// silentChildren ranges over the children that a heartbeat has to look at.
func silentChildren(v View, then time.Time) iter.Seq[ChildView] {
	if i := indexOf(v); i != nil {
		return i.silent(then)
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

// The wrapping views' indexes.
type (
	pinnedIndex struct{ index }
	ofKindIndex struct {
		index
		kind string
	}
	foreseenIndex struct {
		index
		f foreseen
	}
)

func (p pinned) index() index {
	if i := indexOf(p.View); i != nil {
		return pinnedIndex{i}
	}
	return nil
}

func (p pinnedIndex) idle() iter.Seq[ChildView]   { return mapView(p.index.idle(), pinned{}.of) }
func (p pinnedIndex) failed() iter.Seq[ChildView] { return mapView(p.index.failed(), pinned{}.of) }

func (o ofKind) index() index {
	if i := indexOf(o.View); i != nil {
		return ofKindIndex{i, o.kind}
	}
	return nil
}

func (o ofKindIndex) census(kind, owner string, turn uint64) census {
	if kind != "" && kind != o.kind {
		return census{}
	}
	return o.index.census(o.kind, owner, turn)
}

func (o ofKindIndex) fits(c ChildView) bool       { return c.Kind == o.kind }
func (o ofKindIndex) idle() iter.Seq[ChildView]   { return filter(o.index.idle(), o.fits) }
func (o ofKindIndex) failed() iter.Seq[ChildView] { return filter(o.index.failed(), o.fits) }

func (o ofKindIndex) silent(then time.Time) iter.Seq[ChildView] {
	return filter(o.index.silent(then), o.fits)
}

func (f foreseen) index() index {
	if i := indexOf(f.View); i != nil {
		return foreseenIndex{i, f}
	}
	return nil
}

func (f foreseenIndex) census(kind, owner string, turn uint64) census {
	n := f.index.census(kind, owner, turn)
	for key := range f.f.ending {
		c, ok := f.f.View.Child(key)
		if ok && !c.Static && c.Live() && c.State != messages.ChildStopping &&
			(kind == "" || c.Kind == kind) && (owner == "" || c.Owner == owner) {
			n.ending++
		}
	}
	return n
}

func (f foreseenIndex) stays(c ChildView) bool      { return !f.f.ending[c.Key] }
func (f foreseenIndex) idle() iter.Seq[ChildView]   { return filter(f.index.idle(), f.stays) }
func (f foreseenIndex) failed() iter.Seq[ChildView] { return filter(f.index.failed(), f.stays) }

func (f foreseenIndex) silent(then time.Time) iter.Seq[ChildView] {
	return filter(f.index.silent(then), f.stays)
}
