package strategy

import (
	"iter"
	"time"

	"github.com/coppice-run/coppice/messages"
)

type chain []Strategy

// Chain asks several strategies. Of what they say about one child the most
// severe counts; of two restarts the one that waits longer; Escalate beats
// everything. A strategy sees the children that those before it end as
// stopping already, so that two limits do not end two children where one is
// enough: put the narrower limit first.
func Chain(strategies ...Strategy) Strategy {
	c := make(chain, 0, len(strategies))
	for _, s := range strategies {
		if s != nil {
			c = append(c, s)
		}
	}
	return c
}

// Decide asks in order.
func (c chain) Decide(v View, ev Event) []Directive {
	var all []Directive
	for _, s := range c {
		ds := s.Decide(v, ev)
		if len(ds) == 0 {
			continue
		}
		v = foresee(v, ds, ev.Subject())
		all = append(all, ds...)
	}
	return Severest(all)
}

// TTL is the earliest of all.
func (c chain) TTL(v View, key string) time.Time {
	var first time.Time
	for _, s := range c {
		t, ok := s.(TTLs)
		if !ok {
			continue
		}
		if at := t.TTL(v, key); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// foreseen is a view in which some children are ending already.
type foreseen struct {
	View
	ending map[string]bool
}

// foresee returns v as it will be when the directives about children other
// than self are done.
func foresee(v View, ds []Directive, self string) View {
	var ending map[string]bool
	for _, d := range ds {
		if d.Key == self || d.Verb != VerbStop && d.Verb != VerbAbandon {
			continue
		}
		if ending == nil {
			ending = make(map[string]bool)
		}
		ending[d.Key] = true
	}
	if ending == nil {
		return v
	}
	return foreseen{v, ending}
}

func (f foreseen) Child(key string) (ChildView, bool) {
	c, ok := f.View.Child(key)
	return f.of(c), ok
}

func (f foreseen) Children() iter.Seq[ChildView] { return mapView(f.View.Children(), f.of) }

func (f foreseen) of(c ChildView) ChildView {
	if c.Live() && f.ending[c.Key] {
		c.State = messages.ChildStopping
	}
	return c
}

// Index is that of the view inside, without the children that are ending.
func (f foreseen) Index() Index {
	if i := indexOf(f.View); i != nil {
		return foreseenIndex{i, f}
	}
	return nil
}

type foreseenIndex struct {
	Index
	f foreseen
}

func (f foreseenIndex) Census(kind, owner string, turn uint64) Census {
	n := f.Index.Census(kind, owner, turn)
	for key := range f.f.ending {
		c, ok := f.f.View.Child(key)
		if ok && !c.Static && c.Live() && c.State != messages.ChildStopping &&
			(kind == "" || c.Kind == kind) && (owner == "" || c.Owner == owner) {
			n.Ending++
		}
	}
	return n
}

func (f foreseenIndex) stays(c ChildView) bool      { return !f.f.ending[c.Key] }
func (f foreseenIndex) Idle() iter.Seq[ChildView]   { return filter(f.Index.Idle(), f.stays) }
func (f foreseenIndex) Failed() iter.Seq[ChildView] { return filter(f.Index.Failed(), f.stays) }

func (f foreseenIndex) Silent(then time.Time) iter.Seq[ChildView] {
	return filter(f.Index.Silent(then), f.stays)
}
