package strategy

import (
	"fmt"
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
	for c := range byIdleness(v, "") {
		if now.Before(i.due(c)) {
			break // the rest has been idle for less
		}
		ds = append(ds, Stop(c.Key, Exitf(messages.ExitEvicted, "idle for %v", i.after)))
	}
	for c := range failedKeys(v) {
		if at := i.due(c); !at.IsZero() && !now.Before(at) {
			ds = append(ds, Stop(c.Key, Exitf(messages.ExitEvicted, "failed for %v", i.after)))
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
	room := roomFor{limit: l.limit, waiting: l.waiting}
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
	room := roomFor{limit: q.limit, owner: c.Owner}
	return room.spawning(v, spawning.Key)
}

// roomFor is a limit on live children.
type roomFor struct {
	limit, waiting int
	owner          string // "": all children
}

func (r roomFor) spawning(v View, key string) []Directive {
	self, _ := v.Child(key)
	n := takeCensus(v, r.owner, self.Turn)
	switch {
	case n.Live < r.limit:
		return nil
	case n.Ending >= n.Waiting:
		return []Directive{Wait(key)} // one that ends makes room for this one too
	}
	for c := range byIdleness(v, r.owner) {
		return []Directive{Stop(c.Key, r.evicted()), Wait(key)}
	}
	if n.Waiting-1 < r.waiting {
		return []Directive{Wait(key)}
	}
	return []Directive{Stop(key, Exit{Kind: messages.ExitOverloaded, Err: &FullError{Live: n.Live, Limit: r.limit, Strays: n.Strays, Owner: r.owner}})}
}

// excess ends the idle children that are too many.
func (r roomFor) excess(v View) []Directive {
	n := takeCensus(v, r.owner, 0)
	over := n.Live - n.Ending - r.limit
	if over <= 0 {
		return nil
	}
	var ds []Directive
	for c := range byIdleness(v, r.owner) {
		ds = append(ds, Stop(c.Key, r.evicted()))
		if over--; over == 0 {
			break
		}
	}
	return ds
}

func (r roomFor) evicted() Exit {
	return Exitf(messages.ExitEvicted, "a new one needed its place, of the %d that there are%s", r.limit, forOwner(r.owner))
}

// FullError is the error of the exit of a child that found no place.
type FullError struct {
	// Live is how many have a place, of Limit, and Strays of how many of them it is not known
	// that they are gone.
	Live, Limit, Strays int
	// Owner is whose places they are, "" for those of all.
	Owner string
}

// Error says that all places are taken, and of whom.
func (e *FullError) Error() string {
	text := fmt.Sprintf("%d of %d places%s are taken, and none is idle", e.Live, e.Limit, forOwner(e.Owner))
	if e.Strays > 0 {
		text += fmt.Sprintf(", %d of them not known to be gone", e.Strays)
	}
	return text
}

func forOwner(owner string) string {
	if owner == "" {
		return ""
	}
	return " for " + owner
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
	for c := range byIdleness(v, "") {
		if c.RSS > m.bytes {
			ds = append(ds, Stop(c.Key, Exitf(messages.ExitEvicted, "its memory, %d MiB, is over the limit of %d MiB", c.RSS>>20, m.bytes>>20)))
		}
	}
	return ds
}
