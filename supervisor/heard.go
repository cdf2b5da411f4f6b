package supervisor

import (
	"slices"
	"time"
)

// heard has the children by when each was heard of last, as far as that is known, so that
// those that are silent are found without a look at all: one that was heard of is looked at
// again when that would be too long ago, and it was heard of since. It belongs to the
// supervisor's goroutine.
type heard struct {
	// asked says that somebody asks: else those that are removed would stay in the lists.
	asked bool
	by    map[instant]*child // the first of each list, by the part of time
}

// heardWidth is the part of time whose children are in one list.
const heardWidth = instant(time.Second / 2)

// add takes a child that was heard of at an instant, or is taken for it.
func (h *heard) add(ch *child, at instant) {
	if h.by == nil {
		h.by = map[instant]*child{}
	}
	part := at / heardWidth
	ch.nextHeard, h.by[part] = h.by[part], ch
}

// visit looks at the children that were not known to be heard of after an instant, each once,
// and in an order that does not change. look returns when one was.
func (h *heard) visit(limit instant, look func(*child) instant) {
	var parts []instant
	for part := range h.by {
		if part <= limit/heardWidth {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	var due *child
	for _, part := range parts {
		for ch := h.by[part]; ch != nil; {
			next := ch.nextHeard
			ch.nextHeard, due = due, ch
			ch = next
		}
		delete(h.by, part)
	}
	for due != nil {
		ch := due
		due, ch.nextHeard = ch.nextHeard, nil
		if !ch.removed {
			h.add(ch, look(ch))
		}
	}
}
