package supervisor

import (
	"sync"
	"sync/atomic"
)

// Ref addresses a child by its place in the tree. It survives restarts: a
// message goes to whichever incarnation lives. The Ref of a static child is
// good for as long as the system runs; that of a dynamic child dies when its
// supervisor forgets the key. Refs are comparable; the zero Ref addresses nothing. Any
// goroutine may use a Ref.
type Ref struct{ s *slot }

// slot is a place in the tree, which incarnations come to and leave.
type slot struct {
	place
	// static says that the place outlives its incarnations. Its supervisor sets
	// it before the first one.
	static bool
	// live is the present incarnation, nil without. Its supervisor stores it;
	// it takes itself out when it ends.
	live atomic.Pointer[incarnation]
	// kids are the places below, nil for a leaf. They belong to the place and
	// not to the incarnation, so that Refs to static children survive a restart
	// of their parent.
	kids atomic.Pointer[slots]
}

// slots is written by the supervisor that lives in the slot (and by whoever
// abandons that supervisor), and read by any goroutine.
type slots struct {
	mu sync.RWMutex
	m  map[string]*slot
}

// Tell sends msg to the live incarnation's mailbox. False means that there is
// none and that the message was not taken. True means that it will be handled
// in turn, unless the incarnation ends before; see [Droppable]. It never
// blocks, and it takes no way through the child's supervisor: the messages of
// one sender arrive in order.
func (r Ref) Tell(msg any) bool {
	c := r.live()
	return c != nil && c.tell(msg)
}

// Valid reports whether the Ref was taken from a place in a tree. It does not say that
// an actor lives there.
func (r Ref) Valid() bool { return r.s != nil }

// Path returns the names from the root, joined by /; empty for the zero Ref.
func (r Ref) Path() string {
	if r.s == nil {
		return ""
	}
	return r.s.path
}

// String returns the path.
func (r Ref) String() string { return r.Path() }

// Monitor returns a channel that gets the reason why the incarnation that
// lives now ended, exactly once, and is then closed. With no live incarnation
// that is at once an exit of kind killed with [ErrNoProcess]. It need not be
// received from.
func (r Ref) Monitor() <-chan Exit {
	ch := make(chan Exit, 1)
	c := r.live()
	if c == nil || c.watch(func(e Exit) { ch <- e; close(ch) }) == nil {
		ch <- noProcess
		close(ch)
	}
	return ch
}

func (r Ref) live() *incarnation {
	if r.s == nil {
		return nil
	}
	return r.s.live.Load()
}

// child returns the slot below s that is called name, nil if there is none.
func (s *slot) child(name string) *slot {
	k := s.kids.Load()
	if k == nil {
		return nil
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.m[name]
}

// grow returns the slot called name below s, and makes it if need be.
func (s *slot) grow(name string) *slot {
	if s.kids.Load() == nil {
		s.kids.CompareAndSwap(nil, &slots{m: make(map[string]*slot)})
	}
	k := s.kids.Load()
	k.mu.Lock()
	defer k.mu.Unlock()
	kid := k.m[name]
	if kid == nil {
		path := name
		if s.path != "" {
			path = s.path + "/" + name
		}
		kid = &slot{place: place{name, path}}
		k.m[name] = kid
	}
	return kid
}

// prune takes kid out from below s, if it is still there.
func (s *slot) prune(kid *slot) {
	k := s.kids.Load()
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m[kid.name] == kid {
		delete(k.m, kid.name)
	}
}

// all returns the slots below s, in no order.
func (s *slot) all() []*slot {
	k := s.kids.Load()
	if k == nil {
		return nil
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	kids := make([]*slot, 0, len(k.m))
	for _, kid := range k.m {
		kids = append(kids, kid)
	}
	return kids
}
