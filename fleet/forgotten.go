package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// forgotten is the record of what a directory has had removed: one for the whole fleet.
type forgotten struct {
	// Epoch is at least the last epoch of each key whose claim was removed.
	Epoch uint64 `json:"epoch"`
	// Lasts is at least as long as any node relies on what it has learnt of Epoch.
	Lasts time.Duration `json:"lasts"`
	// Seq counts the swaps of the record, from 1. By is who has made the last, as its
	// record number Write, so that no two of the records are the same.
	Seq   uint64 `json:"seq"`
	By    string `json:"by"`
	Write uint64 `json:"write"`
}

// forgottenKey is where the record is. It is never removed.
const forgottenKey = "forgotten"

// readForgotten reads the record; there is none for an entry without a revision.
func readForgotten(e Entry) (f forgotten, found bool, err error) {
	if e.Rev == "" {
		return forgotten{}, false, nil
	}
	if err := json.Unmarshal(e.Value, &f); err != nil {
		return forgotten{}, false, fmt.Errorf("read the record %s: %w", e.Key, err)
	}
	return f, true, nil
}

// outdates reports whether an entry has a record that was not written after f, or none, which
// there is once there was one.
func (f forgotten) outdates(e Entry) bool {
	now, found, err := readForgotten(e)
	return err == nil && (!found || now.Seq <= f.Seq)
}

// oblivion is what a member knows of the record. Its lock is taken by who reads or changes
// the rest.
type oblivion struct {
	turn lock
	// epoch was that of the record at a moment after from, by the member's clock.
	epoch uint64
	from  time.Duration
	known bool
}

// relies is how long a member relies on what it knows of the record. Whoever removes claims
// waits longer before it does, see [Member.forget].
func (m *Member) relies() time.Duration { return 4 * m.o.TTL }

// floor returns an epoch that no key has been in, or a later one, whose claim was removed
// before the call. In the strict mode it is learnt by a swap for each call, else by one for
// each time that it is relied on: a read alone may be stale.
func (m *Member) floor(ctx context.Context) (uint64, error) {
	f := &m.oblivion
	if err := f.turn.take(ctx); err != nil {
		return 0, err
	}
	defer f.turn.free()
	if f.known && !m.o.Strict && m.o.Clock()-f.from < m.relies() {
		return f.epoch, nil
	}
	now, err := m.swapForgotten(ctx, 0)
	return now.Epoch, err
}

// guess is a floor to begin with, which has to be looked at again.
func (m *Member) guess(ctx context.Context) (uint64, error) {
	f := &m.oblivion
	if err := f.turn.take(ctx); err != nil {
		return 0, err
	}
	defer f.turn.free()
	if f.known {
		return f.epoch, nil
	}
	now, err := m.swapForgotten(ctx, 0)
	return now.Epoch, err
}

// raise has the record say an epoch, or a later one.
func (m *Member) raise(ctx context.Context, epoch uint64) (forgotten, error) {
	f := &m.oblivion
	if err := f.turn.take(ctx); err != nil {
		return forgotten{}, err
	}
	defer f.turn.free()
	return m.swapForgotten(ctx, epoch)
}

// swapForgotten swaps the record to one of this member, which says at least an epoch, and
// keeps what it says. The caller has the turn.
func (m *Member) swapForgotten(ctx context.Context, least uint64) (forgotten, error) {
	e, err := m.o.Directory.Get(ctx, forgottenKey)
	if err != nil {
		return forgotten{}, fmt.Errorf("read what was forgotten: %w", err)
	}
	for {
		was, _, err := readForgotten(e)
		if err != nil {
			return forgotten{}, err
		}
		next := forgotten{
			Epoch: max(was.Epoch, least), Lasts: max(was.Lasts, m.relies()),
			Seq: was.Seq + 1, By: m.id, Write: m.writes.Add(1),
		}
		from := m.o.Clock() // before the swap can be on its way
		e, err = settle(ctx, m.o.Directory, e, encode(next), was.outdates)
		if err == nil {
			m.oblivion.epoch, m.oblivion.from, m.oblivion.known = next.Epoch, from, true
			return next, nil
		}
		if !errors.Is(err, ErrConflict) {
			return forgotten{}, err
		}
	}
}
