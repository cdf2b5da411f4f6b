package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Bounds of one round of forgetting.
const (
	// mostForgotten is how many claims one round removes; another follows at once.
	mostForgotten = 1 << 16
	// scanTime is how long the look at all claims may take.
	scanTime = 10 * time.Minute
)

// forgetting has claims removed that nobody has needed for long, until ctx ends. One node
// of a fleet does so; should two, each removal is a compare-and-swap all the same.
func (m *Member) forgetting(ctx context.Context) {
	if m.o.Forget < 0 {
		return
	}
	for {
		if !sleep(ctx, m.o.Forget/24) {
			return
		}
		for more := m.firstOfAll(); more; {
			removed, full, err := m.forget(ctx)
			if ctx.Err() != nil {
				return
			}
			if removed > 0 {
				m.o.Log.Info("forgot keys that nobody has", "node", m.id, "keys", removed)
			}
			if err != nil { // the next look tries again
				m.o.Log.Warn("keys that nobody has could not be forgotten", "node", m.id, "error", err)
			}
			more = full && err == nil
		}
	}
}

// firstOfAll reports whether this node may act, and has the least ID of those that it sees.
func (m *Member) firstOfAll() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.sights.seen {
		if id < m.id {
			return false
		}
	}
	return m.life.check(m.o.Clock()) == nil
}

// forget removes claims that were released long ago, and says of how many that is known,
// and whether there are more. Claims of nodes that are over it releases first.
//
// A claim that has no record any longer is made again with the epoch after the floor, see
// [Member.floor], so what a node believes of the floor has to be right when it counts. Hence
// the order: the floor is raised, then time passes until no node relies on what it knew
// before, and then the claims go.
func (m *Member) forget(ctx context.Context) (removed int, full bool, err error) {
	old, orphans, full, err := m.scan(ctx)
	if err != nil {
		return 0, false, fmt.Errorf("look at the claims: %w", err)
	}
	if err := m.releaseOrphans(ctx, orphans); err != nil {
		return 0, false, err
	}
	if len(old) == 0 {
		return 0, false, nil
	}
	latest := uint64(0)
	for _, o := range old {
		latest = max(latest, o.epoch)
	}
	record, err := m.raise(ctx, latest)
	if err != nil {
		return 0, false, fmt.Errorf("raise the epoch of what is forgotten: %w", err)
	}
	if !sleep(ctx, record.Lasts+record.Lasts/4) { // for clocks that do not go alike
		return 0, false, ctx.Err()
	}
	for _, o := range old {
		if err := m.remove(ctx, o); err != nil {
			return removed, false, fmt.Errorf("remove a claim: %w", err)
		}
		removed++
	}
	return removed, full, nil
}

func (m *Member) remove(ctx context.Context, o released) error {
	ctx, cancel := context.WithTimeout(ctx, m.o.TTL)
	defer cancel()
	return m.o.Directory.Remove(ctx, o.key, o.rev)
}

// released is the record of a key that nobody has.
type released struct {
	key   string
	rev   Revision
	epoch uint64
}

// scan lists the claims that were released long ago, and those of nodes that are not seen,
// and says whether there are more.
func (m *Member) scan(ctx context.Context) (old []released, orphans []Entry, full bool, err error) {
	ctx, stop := context.WithTimeout(ctx, scanTime)
	defer stop()
	now, whole := time.Now(), false
	before := now.Add(-m.o.Forget).Unix()
	live := m.live()
	err = m.o.Directory.Watch(ctx, claimPrefix, func(e Entry) {
		if whole || full { // the watch ends
			return
		}
		if e.Key == "" {
			whole = true
			stop()
			return
		}
		c, found, _ := readClaim(e, "") // of what cannot be read, whoever asks for the key hears
		switch {
		case !found:
			return
		case c.Node == "" && c.Until > now.Unix(): // what is kept is found by it
		case c.Node == "" && c.Ended <= before:
			old = append(old, released{key: e.Key, rev: e.Rev, epoch: c.Epoch})
		case c.Node != "" && !live[c.Node]:
			orphans = append(orphans, e)
		}
		if full = len(old)+len(orphans) >= mostForgotten; full {
			stop()
		}
	})
	if whole || full {
		err = nil
	}
	return old, orphans, full, err
}

// live are the nodes that are not known to be over, this one among them.
func (m *Member) live() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := map[string]bool{m.id: true}
	for id := range m.sights.seen {
		live[id] = true
	}
	return live
}

// releaseOrphans releases the claims of nodes that are over, as their owners can no more:
// nobody has asked for the keys since.
func (m *Member) releaseOrphans(ctx context.Context, orphans []Entry) error {
	over := map[string]bool{}
	for _, e := range orphans {
		was, _, err := readClaim(e, "")
		if err != nil {
			return err
		}
		if _, asked := over[was.Node]; !asked {
			if over[was.Node], err = m.finished(ctx, was); err != nil {
				return err
			}
		}
		if !over[was.Node] {
			continue // it has not been silent for long enough
		}
		if _, err := m.o.Directory.Swap(ctx, e.Key, encode(was.orphaned(time.Now())), e.Rev); err != nil && !errors.Is(err, ErrConflict) {
			return fmt.Errorf("release a claim of node %s, which is over: %w", was.Node, err)
		}
	}
	return nil
}

// sleep waits, and reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}
