package strategy

import (
	"time"

	"github.com/coppice-run/coppice/messages"
)

type hibernating struct{ s Strategy }

// Hibernating is s with every eviction of an idle child on [Tick] a [Hibernate]: time has
// passed, and no one waits for its place. What s does to make room stays as it is.
func Hibernating(s Strategy) Strategy { return hibernating{s} }

// Decide asks s.
func (h hibernating) Decide(v View, ev Event) []Directive {
	ds := h.s.Decide(v, ev)
	if _, ok := ev.(Tick); !ok {
		return ds
	}
	for i, d := range ds {
		if c, ok := v.Child(d.Key); ok && d.Verb == VerbStop && d.Exit.Kind == messages.ExitEvicted && c.Evictable() {
			ds[i] = Hibernate(d.Key, d.Exit)
		}
	}
	return ds
}

// TTL is that of s.
func (h hibernating) TTL(v View, key string) time.Time {
	if t, ok := h.s.(TTLs); ok {
		return t.TTL(v, key)
	}
	return time.Time{}
}
