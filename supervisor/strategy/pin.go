package strategy

import (
	"iter"
	"slices"
	"time"

	"github.com/coppice-run/coppice/messages"
)

type pin struct{ s Strategy }

// Pin keeps pinned children (the supervisor's Pin) from being evicted by s. What s says
// about failures of a pinned child stands.
func Pin(s Strategy) Strategy { return pin{s} }

// Decide asks s, to which pinned children look held.
func (p pin) Decide(v View, ev Event) []Directive {
	held := pinned{v}
	return slices.DeleteFunc(p.s.Decide(held, ev), func(d Directive) bool {
		if d.Exit.Kind != messages.ExitEvicted {
			return false
		}
		c, ok := held.Child(d.Key)
		return ok && c.Held
	})
}

// TTL is that of s, and none for a pinned child.
func (p pin) TTL(v View, key string) time.Time {
	t, ok := p.s.(TTLs)
	if !ok {
		return time.Time{}
	}
	return t.TTL(pinned{v}, key)
}

// pinned is a view in which pinned children are held.
type pinned struct{ View }

func (p pinned) Child(key string) (ChildView, bool) {
	c, ok := p.View.Child(key)
	return p.of(c), ok
}

func (p pinned) Children() iter.Seq[ChildView] { return mapView(p.View.Children(), p.of) }

func (p pinned) of(c ChildView) ChildView {
	c.Held = c.Held || c.Pinned
	return c
}

// Index is that of the view inside.
func (p pinned) Index() Index {
	if i := indexOf(p.View); i != nil {
		return pinnedIndex{i}
	}
	return nil
}

type pinnedIndex struct{ Index }

func (p pinnedIndex) Idle() iter.Seq[ChildView]   { return mapView(p.Index.Idle(), pinned{}.of) }
func (p pinnedIndex) Failed() iter.Seq[ChildView] { return mapView(p.Index.Failed(), pinned{}.of) }
