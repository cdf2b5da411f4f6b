package strategy

import (
	"iter"
	"time"
)

type forKind struct {
	kind string
	s    Strategy
}

// For restricts s to children of one kind: it sees no others, and no events
// about others. GroupFailures remain those of the whole supervisor.
func For(kind string, s Strategy) Strategy { return forKind{kind, s} }

// Decide asks s about events of its kind.
func (f forKind) Decide(v View, ev Event) []Directive {
	if key := ev.Subject(); key != "" {
		if c, ok := v.Child(key); !ok || c.Kind != f.kind {
			return nil
		}
	}
	return f.s.Decide(ofKind{v, f.kind}, ev)
}

// TTL is that of s for a child of its kind.
func (f forKind) TTL(v View, key string) time.Time {
	t, ok := f.s.(TTLs)
	if !ok {
		return time.Time{}
	}
	return t.TTL(ofKind{v, f.kind}, key)
}

// ofKind is a view of the children of one kind.
type ofKind struct {
	View
	kind string
}

func (o ofKind) Child(key string) (ChildView, bool) {
	c, ok := o.View.Child(key)
	if !ok || c.Kind != o.kind {
		return ChildView{}, false
	}
	return c, true
}

func (o ofKind) Children() iter.Seq[ChildView] {
	return func(yield func(ChildView) bool) {
		for c := range o.View.Children() {
			if c.Kind == o.kind && !yield(c) {
				return
			}
		}
	}
}

func (o ofKind) Len() int {
	n := 0
	for range o.Children() {
		n++
	}
	return n
}

func (o ofKind) Failures(key string) []time.Time {
	if _, ok := o.Child(key); !ok {
		return nil
	}
	return o.View.Failures(key)
}

// Index is that of the view inside, for one kind.
func (o ofKind) Index() Index {
	if i := indexOf(o.View); i != nil {
		return ofKindIndex{i, o.kind}
	}
	return nil
}

type ofKindIndex struct {
	Index
	kind string
}

func (o ofKindIndex) Census(kind, owner string, turn uint64) Census {
	if kind != "" && kind != o.kind {
		return Census{}
	}
	return o.Index.Census(o.kind, owner, turn)
}

func (o ofKindIndex) fits(c ChildView) bool       { return c.Kind == o.kind }
func (o ofKindIndex) Idle() iter.Seq[ChildView]   { return filter(o.Index.Idle(), o.fits) }
func (o ofKindIndex) Failed() iter.Seq[ChildView] { return filter(o.Index.Failed(), o.fits) }

func (o ofKindIndex) Silent(then time.Time) iter.Seq[ChildView] {
	return filter(o.Index.Silent(then), o.fits)
}
