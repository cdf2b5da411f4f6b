package supervisor

import (
	"time"

	"github.com/coppice-run/coppice/messages"
)

type idleTTL struct{ after time.Duration }

// IdleTTL ends dynamic children that have had nothing to do for d, counted
// from the end of their last work, with an exit of kind evicted. It also
// forgets keys that have been failed for d. A child that has work in hand or
// waiting, starts, or is suspended, is never ended.
func IdleTTL(d time.Duration) Strategy { return idleTTL{d} }

// Decide answers Tick.
func (i idleTTL) Decide(v View, ev Event) []Directive {
	if _, ok := ev.(Tick); !ok {
		return nil
	}
	var ds []Directive
	now := v.Now()
	for c := range v.Children() {
		if at := i.due(c); !at.IsZero() && !now.Before(at) {
			ds = append(ds, Stop(c.Key, exitf(messages.ExitEvicted, "idle for %v", i.after)))
		}
	}
	return ds
}

// TTL is when the child will have been idle for long enough.
func (i idleTTL) TTL(v View, key string) time.Time {
	c, ok := v.Child(key)
	if !ok {
		return time.Time{}
	}
	return i.due(c)
}

func (i idleTTL) due(c ChildView) time.Time {
	switch {
	case c.Evictable():
		return c.LastDone.Add(i.after)
	case c.State == messages.ChildFailed && !c.Static && !c.Held:
		return c.Since.Add(i.after)
	default:
		return time.Time{}
	}
}

type lru struct{ limit, waiting int }

// LRU allows max dynamic children that are live. For a new one beyond that it
// ends the idle child that has had nothing to do for longest, with an exit of
// kind evicted. When there is none, the new one is refused, with an exit of
// kind overloaded.
func LRU(max int) Strategy { return lru{max, 0} }

// LRUQueue does what LRU does, but lets up to waiting keys wait until a child
// ends or becomes idle, before it refuses.
func LRUQueue(max, waiting int) Strategy { return lru{max, waiting} }

// Decide answers Spawning, and corrects on Tick what was not prevented there:
// a child that was pinned or busy when room was needed.
func (l lru) Decide(v View, ev Event) []Directive {
	room := roomFor{limit: l.limit, waiting: l.waiting, what: "children"}
	switch ev := ev.(type) {
	case Spawning:
		return room.spawning(v, ev.Key)
	case Tick:
		return room.excess(v)
	default:
		return nil
	}
}

type quota struct{ limit int }

// Quota allows each owner perOwner live dynamic children. For a new one beyond
// that it ends the owner's idle child that has had nothing to do for longest,
// and refuses when there is none. Children without an owner are not counted.
func Quota(perOwner int) Strategy { return quota{perOwner} }

// Decide answers Spawning.
func (q quota) Decide(v View, ev Event) []Directive {
	spawning, ok := ev.(Spawning)
	if !ok {
		return nil
	}
	c, ok := v.Child(spawning.Key)
	if !ok || c.Owner == "" {
		return nil
	}
	room := roomFor{limit: q.limit, owner: c.Owner, what: "children of " + c.Owner}
	return room.spawning(v, spawning.Key)
}

// roomFor is a limit on live children.
type roomFor struct {
	limit, waiting int
	owner          string // "": all children
	what           string
}

// count is what a limit needs to know.
type count struct {
	live, ending, waiting int
	oldest                ChildView // the first to be evicted; Key is empty without
}

// count counts, of the keys that wait, those up to turn.
func (r roomFor) count(v View, turn uint64) count {
	var n count
	for c := range v.Children() {
		if c.Static || r.owner != "" && c.Owner != r.owner {
			continue
		}
		if c.State == messages.ChildWaiting && c.Turn <= turn {
			n.waiting++
		}
		if !c.Live() {
			continue
		}
		n.live++
		if c.State == messages.ChildStopping {
			n.ending++
		}
		if c.Evictable() && (n.oldest.Key == "" || c.LastDone.Before(n.oldest.LastDone)) {
			n.oldest = c
		}
	}
	return n
}

func (r roomFor) spawning(v View, key string) []Directive {
	self, _ := v.Child(key)
	n := r.count(v, self.Turn)
	switch {
	case n.live < r.limit:
		return nil
	case n.ending >= n.waiting:
		return []Directive{Wait(key)} // one that ends makes room for this one too
	case n.oldest.Key != "":
		return []Directive{Stop(n.oldest.Key, r.evicted()), Wait(key)}
	case n.waiting-1 < r.waiting:
		return []Directive{Wait(key)}
	default:
		return []Directive{Stop(key, exitf(messages.ExitOverloaded, "%d of %d %s, none of them idle", n.live, r.limit, r.what))}
	}
}

func (r roomFor) excess(v View) []Directive {
	var ds []Directive
	for {
		n := r.count(v, 0)
		if n.live-n.ending <= r.limit || n.oldest.Key == "" {
			return ds
		}
		ds = append(ds, Stop(n.oldest.Key, r.evicted()))
		v = foresee(v, ds, "")
	}
}

func (r roomFor) evicted() Exit {
	return exitf(messages.ExitEvicted, "made room: %d %s are allowed", r.limit, r.what)
}

type maxRSS struct{ bytes int64 }

// MaxRSS ends an idle dynamic child whose process (Ctx.Note) has grown beyond
// a number of bytes, with an exit of kind evicted that names both figures. The
// next work gets a new child.
func MaxRSS(bytes int64) Strategy { return maxRSS{bytes} }

// Decide answers Tick.
func (m maxRSS) Decide(v View, ev Event) []Directive {
	if _, ok := ev.(Tick); !ok {
		return nil
	}
	var ds []Directive
	for c := range v.Children() {
		if c.RSS > m.bytes && c.Evictable() {
			ds = append(ds, Stop(c.Key, exitf(messages.ExitEvicted, "its memory, %d MiB, is over the limit of %d MiB", c.RSS>>20, m.bytes>>20)))
		}
	}
	return ds
}
