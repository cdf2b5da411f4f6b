package supervisor

import (
	"iter"
	"time"
)

type forKind struct {
	kind string
	s    Strategy
}

// For restricts s to children of one kind: it sees no others, and no events
// about others. GroupFailures remain those of the whole shell.
func For(kind string, s Strategy) Strategy { return forKind{kind, s} }

// Decide asks s about events of its kind.
func (f forKind) Decide(v View, ev Event) []Directive {
	if key := eventKey(ev); key != "" {
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
