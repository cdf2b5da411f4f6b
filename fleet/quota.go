package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// quotaKey is where the members of a fleet say how many keys each has, where there is a bound.
const quotaKey = "quota"

// QuotaError says that the members of a fleet have as many keys as they may together.
type QuotaError struct{ Most int }

// Error implements error.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("the fleet has %d keys, as many as it may have", e.Most)
}

// quota is what a member has said of how many keys it has. Its lock guards the fields.
//
// The record says of each member no fewer than it has: it is swapped to more before a key is claimed,
// and to fewer after one was released. A swap in which all together would be more than there may be is
// not made, but that those are left out that have ended. So there are never more.
type quota struct {
	turn lock
	// has is how many keys the member has or is about to claim, and said what the record says at least.
	has, said int
	// unsure says that the record may say more: a swap had no answer.
	unsure  bool
	written uint64
	entry   Entry
}

// quotaRecord is the record.
type quotaRecord struct {
	Nodes map[string]int `json:"nodes"`
	// By and Write make no two records the same.
	By    string `json:"by"`
	Write uint64 `json:"write"`
}

func (r quotaRecord) all() (sum int) {
	for _, n := range r.Nodes {
		sum += n
	}
	return sum
}

// counts reports whether there is a bound that a key counts for.
func (m *Member) counts(key string) bool { return m.o.Most > 0 && (m.o.Free == nil || !m.o.Free(key)) }

// reserve makes room for one key more, or returns a [*QuotaError]. Where it does not count there is room.
func (m *Member) reserve(ctx context.Context, key string) error {
	if !m.counts(key) {
		return nil
	}
	q := &m.quota
	if err := q.turn.take(ctx); err != nil {
		return fmt.Errorf("count the keys: %w", err)
	}
	defer q.turn.free()
	if q.has+1 > q.said {
		if err := m.say(ctx, q.has+1); err != nil {
			return err
		}
	}
	q.has++
	return nil
}

// unreserve gives the room of a key up. When the directory does not hear of it now, it does with the
// next one.
func (m *Member) unreserve(ctx context.Context, key string) {
	if !m.counts(key) {
		return
	}
	q := &m.quota
	if err := q.turn.take(context.WithoutCancel(ctx)); err != nil {
		return
	}
	defer q.turn.free()
	q.has--
	if ctx.Err() == nil {
		_ = m.say(ctx, q.has) // as above
	}
}

// resay says what the directory has not heard of a key that was released, unless a claim is about to.
func (m *Member) resay(ctx context.Context) {
	q := &m.quota
	select {
	case q.turn <- struct{}{}:
	default:
		return
	}
	defer q.turn.free()
	if q.has == q.said && !q.unsure {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, m.o.TTL/2)
	defer cancel()
	_ = m.say(ctx, q.has) // the next renewal tries again
}

// say has the record say that the member has so many keys. The caller has the turn.
func (m *Member) say(ctx context.Context, has int) error {
	q := &m.quota
	var err error
	if q.entry.Key == "" {
		if q.entry, err = m.o.Directory.Get(ctx, quotaKey); err != nil {
			q.entry = Entry{}
			return fmt.Errorf("read how many keys there are: %w", err)
		}
	}
	for {
		r := quotaRecord{}
		if q.entry.Rev != "" {
			if err := json.Unmarshal(q.entry.Value, &r); err != nil {
				return fmt.Errorf("read how many keys there are: %w", err)
			}
		}
		if r.Nodes == nil {
			r.Nodes = map[string]int{}
		}
		delete(r.Nodes, m.id)
		if has > 0 {
			r.Nodes[m.id] = has
		}
		if has > q.said && r.all() > m.o.Most {
			if err := m.dropEnded(ctx, r); err != nil {
				return err
			}
			if r.all() > m.o.Most {
				q.entry = Entry{} // what was read may be old
				return &QuotaError{Most: m.o.Most}
			}
		}
		q.written++
		r.By, r.Write = m.id, q.written
		value, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("say how many keys there are: %w", err)
		}
		// An older record is met by another conflict.
		e, err := settle(ctx, m.o.Directory, q.entry, value, func(Entry) bool { return false })
		if errors.Is(err, ErrConflict) {
			q.entry = e
			continue
		}
		if err != nil {
			q.entry = Entry{}
			q.said, q.unsure = min(q.said, has), true // it is the one or the other
			return fmt.Errorf("say how many keys there are: %w", err)
		}
		q.entry, q.said, q.unsure = e, has, false
		return nil
	}
}

// dropEnded leaves the members out that never act again.
func (m *Member) dropEnded(ctx context.Context, r quotaRecord) error {
	for id := range r.Nodes {
		if id == m.id {
			continue
		}
		ended, err := m.finished(ctx, Claim{Node: id, TTL: m.o.TTL})
		if err != nil {
			return err
		}
		if ended {
			delete(r.Nodes, id)
		}
	}
	return nil
}
