package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Ownership is a key that belongs to this node, in one epoch. It ends with
// [Ownership.Release], or with the life of its node. Any goroutine may call its methods.
type Ownership struct {
	m     *Member
	key   string
	epoch uint64
	first uint64
	used  uint64
	past  Past

	// kept is what the owner has last said of what is kept, a string; doubt says that the
	// claim may say something else. Only who has the turn changes them.
	kept           atomic.Value
	until, written int64
	doubt          atomic.Bool

	// turn is taken by who reads or changes what follows.
	turn lock
	// entry and claim are the last that are known of the record; pending is what was
	// written since, with nothing known of it.
	entry   Entry
	claim   Claim
	pending []byte
	// recent are the IDs of the last turns, the newest last; turns counts those of this epoch.
	recent []string
	turns  int
	// begun says that a turn has begun in it.
	begun bool
	ended chan struct{}
}

// remembered is how many IDs of turns an ownership remembers, and inClaims how many of them each
// claim has in the strict mode.
const (
	remembered = 100
	inClaims   = 32
)

// slot is the place of one key at a node: it has one ownership at most, and one goroutine
// at a time that makes or ends it.
type slot struct {
	turn lock
	own  *Ownership
	// users counts who holds on to the slot. The member's lock guards it.
	users int
	// gone is the last epoch whose release was not acknowledged: it may still name this
	// node, and is not taken up again.
	gone uint64
}

// lock is a mutex whose wait ends with a context.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) take(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l lock) free() { <-l }

// Claim makes this node the owner of a key, unless it is already, and returns the one
// ownership of the epoch. It waits for the directory as long as ctx lasts; a claim of which
// nothing was known then is taken up by a later call. The error is a [*QuotaError] when there are as many keys as [Options].Most says, an [*OwnedError] when
// the key belongs to a node that may be alive, and matches [ErrSuspended], [ErrOver] or
// [ErrDraining] when this node takes no keys.
func (m *Member) Claim(ctx context.Context, key string) (*Ownership, error) {
	s := m.hold(key)
	defer m.letGo(key, s)
	if err := s.turn.take(ctx); err != nil {
		return nil, fmt.Errorf("claim a key: %w", err)
	}
	defer s.turn.free()
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("claim a key: %w", err)
	}
	if s.own != nil && !s.own.over() {
		return s.own, nil
	}
	if s.own != nil { // it has ended, and nobody has released it
		s.own = nil
		m.unreserve(ctx, key)
	}
	if m.draining() {
		return nil, fmt.Errorf("claim a key: %w", ErrDraining)
	}
	if err := m.reserve(ctx, key); err != nil {
		return nil, fmt.Errorf("claim a key: %w", err)
	}
	o, err := m.claim(ctx, key, s.gone)
	if err != nil {
		m.unreserve(ctx, key)
		return nil, fmt.Errorf("claim a key: %w", err)
	}
	s.own = o
	return o, nil
}

// claim swaps the claim of a key to one of this node. gone is an epoch that is not taken
// up again.
func (m *Member) claim(ctx context.Context, key string, gone uint64) (*Ownership, error) {
	floor, err := m.guess(ctx)
	if err != nil {
		return nil, fmt.Errorf("learn which epochs are forgotten: %w", err)
	}
	e, err := m.o.Directory.Get(ctx, claimKey(key))
	if err != nil {
		return nil, fmt.Errorf("read the claim: %w", err)
	}
	for {
		was, found, err := readClaim(e, key)
		if err != nil {
			return nil, err
		}
		over := false
		if found && was.Node != "" && was.Node != m.id {
			if over, err = m.finished(ctx, was); err != nil {
				return nil, err
			}
		}
		epoch, ok := nextEpoch(was, m.id, over, gone, floor)
		if !ok {
			return nil, &OwnedError{Key: key, Epoch: was.Epoch, Node: was.Node}
		}
		next := Claim{Key: key, Epoch: epoch, First: was.First, Node: m.id, TTL: m.o.TTL, Write: m.writes.Add(1), Used: was.Used, By: was.By, Why: was.Why, Before: was.Before, Recent: was.Recent, All: was.All}
		if was.Until > time.Now().Unix() {
			next.Kept, next.Until, next.Written = was.Kept, was.Until, was.Written
		}
		if over || was.Node == m.id && was.Epoch <= gone {
			next.Used, next.By, next.Why, next.All = was.Epoch, "", "", false // nobody can say what its owner has begun
			next.Before = was.outdated()
		}
		// A claim of this node in an epoch that may be forgotten is one that came late: others may
		// have had the key since in that epoch, too.
		if !found || epoch > was.Epoch+1 || was.Node == m.id && was.Epoch <= floor {
			next.First = epoch
		}
		stale := func(e Entry) bool { return was.outdates(e, key) } // none is no older one: it may have been removed
		e, err = settle(ctx, m.o.Directory, e, encode(next), stale)
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Only now: the swap may have been on its way for long.
		if floor, err = m.floor(ctx); err != nil {
			return nil, fmt.Errorf("learn which epochs are forgotten: %w", err)
		}
		if epoch > floor {
			o := &Ownership{
				m: m, key: key, epoch: epoch, first: next.First, used: next.Used, past: next.past(), turn: newLock(), entry: e, claim: next,
				recent: slices.Clone(next.Recent), ended: make(chan struct{}), until: next.Until, written: next.Written,
			}
			o.kept.Store(next.Kept)
			return o, nil
		}
	}
}

// nextEpoch says in which epoch the node me may own a key whose claim was the given one,
// and whether it may. over says that the owner, another node, is dead or has left.
//
// A claim that names me, and of which me has no ownership, is one whose swap had no
// answer: nothing has run in its epoch, which is taken up. It is swapped all the same, for
// the read may be stale. One that me has given up, with no answer either, is not, and
// neither is one of an epoch up to floor: keys whose claims were removed may have been in
// these, and a swap that was on its way for long could have made such a claim again.
func nextEpoch(was Claim, me string, over bool, gone, floor uint64) (epoch uint64, ok bool) {
	switch {
	case was.Node == me && was.Epoch > max(gone, floor):
		return was.Epoch, true
	case was.Node == me, was.Node == "", over:
		return max(was.Epoch, floor) + 1, true
	default:
		return 0, false
	}
}

// finished reports whether the owner of a claim never acts again. A node without a record
// is silent like one whose record stands still, and is declared dead like it.
func (m *Member) finished(ctx context.Context, c Claim) (bool, error) {
	e, err := m.o.Directory.Get(ctx, nodeKey(c.Node))
	if err != nil {
		return false, fmt.Errorf("read the record of the owner: %w", err)
	}
	n, found, err := readNode(e)
	if err != nil {
		return false, err
	}
	if found {
		return n.State.Final(), nil // it stays so, however old the read
	}
	m.mu.Lock()
	m.sights.missing(c.Node, c.TTL, time.Now())
	m.mu.Unlock()
	nudge(m.look)
	return false, nil
}

// draining reports whether the node takes no keys.
func (m *Member) draining() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state == Draining
}

// hold returns the slot of a key, for as long as it is not let go.
func (m *Member) hold(key string) *slot {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.slots[key]
	if s == nil {
		s = &slot{turn: newLock()}
		m.slots[key] = s
	}
	s.users++
	return s
}

// letGo drops a slot that nothing is known of and nobody holds. The caller has freed its
// turn, or never had it.
func (m *Member) letGo(key string, s *slot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.users--; s.users == 0 && s.own == nil && s.gone == 0 {
		delete(m.slots, key)
	}
}

// Owned returns the keys that this node has, with their epochs.
func (m *Member) Owned() map[string]uint64 {
	m.mu.Lock()
	slots := make(map[string]*slot, len(m.slots))
	for key, s := range m.slots {
		s.users++
		slots[key] = s
	}
	m.mu.Unlock()
	owned := map[string]uint64{}
	for key, s := range slots {
		select {
		case s.turn <- struct{}{}:
			if s.own != nil && !s.own.over() {
				owned[key] = s.own.epoch
			}
			s.turn.free()
		default: // it is being claimed or released
		}
		m.letGo(key, s)
	}
	return owned
}

// Key returns the key.
func (o *Ownership) Key() string { return o.key }

// Epoch returns the epoch, a fencing token for what code of this owner writes elsewhere.
func (o *Ownership) Epoch() uint64 { return o.epoch }

// Used is the last epoch before this one in which a turn may have begun: what it left in
// memory is not here, and who has not heard of that has to be told. 0: there is none.
func (o *Ownership) Used() uint64 { return o.used }

// First returns the first epoch of the key since it was forgotten, if it ever was: whoever
// names an earlier one knows the key from before.
func (o *Ownership) First() uint64 { return o.first }

// Ended is closed when the ownership was released, or was found to be another node's.
// That the life of the node is over is told by [Member.Done].
func (o *Ownership) Ended() <-chan struct{} { return o.ended }

// Release ends the ownership, so that any node may have the key in the next epoch; turns
// that run are lost. Call it once what the key has is ended. When the error is not nil, the
// directory may still say that the key belongs to this node, until the node claims it again
// or its life is over; the ownership has ended in any case. A later call does nothing.
func (o *Ownership) Release(ctx context.Context) error { return o.release(ctx, "") }

func (o *Ownership) release(ctx context.Context, why string) error {
	s := o.m.hold(o.key)
	defer o.m.letGo(o.key, s)
	if err := s.turn.take(ctx); err != nil {
		return fmt.Errorf("release a key: %w", err)
	}
	defer s.turn.free()
	if s.own != o {
		return nil
	}
	if err := o.turn.take(ctx); err != nil {
		return fmt.Errorf("release a key: %w", err)
	}
	defer o.turn.free()
	s.own, s.gone = nil, o.epoch
	o.finish()
	defer o.m.unreserve(ctx, o.key)
	if err := o.m.Err(); err != nil {
		return nil // its claims are anybody's
	}
	next := o.said()
	next.Node, next.Ended = "", time.Now().Unix()
	if next.Kept == "" {
		next.Written = 0
	}
	if o.begun {
		next.Used, next.By, next.Why, next.Before = o.epoch, "", "", 0
		if why != "" {
			next.By, next.Why = o.m.id, why
		}
		o.tell(&next)
	}
	if err := o.write(ctx, next); err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("release a key: %w", err)
	}
	s.gone = 0
	return nil
}

// over reports whether the ownership has ended.
func (o *Ownership) over() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// finish ends the ownership, once. The caller has its turn.
func (o *Ownership) finish() {
	if !o.over() {
		close(o.ended)
	}
}

// write swaps the claim to another one of this owner, after what was written before and
// not heard of. ErrConflict says that the key is another node's. The caller has the turn.
func (o *Ownership) write(ctx context.Context, next Claim) error {
	if o.pending != nil {
		if err := o.swap(ctx, o.pending); err != nil {
			return err
		}
	}
	next.Write = o.m.writes.Add(1)
	return o.swap(ctx, encode(next))
}

// swap is the part of write that settles one of them.
func (o *Ownership) swap(ctx context.Context, value []byte) error {
	o.pending = value
	was := o.claim
	stale := func(e Entry) bool { return e.Rev == "" || was.outdates(e, o.key) }
	e, err := settle(ctx, o.m.o.Directory, o.entry, value, stale)
	if err != nil {
		return err
	}
	c, _, err := readClaim(e, o.key)
	if err != nil {
		return err
	}
	o.entry, o.claim, o.pending = e, c, nil
	return nil
}
