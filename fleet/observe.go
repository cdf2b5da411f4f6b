package fleet

import (
	"context"
	"time"

	"github.com/coppice-run/coppice/internal/pause"
)

// watching sees the renewals of all nodes, until ctx ends.
func (m *Member) watching(ctx context.Context) {
	for wait := firstPause; ; {
		err := m.o.Directory.Watch(ctx, nodePrefix, func(e Entry) {
			wait = firstPause
			m.seen(e)
		})
		if !pause.Wait(ctx, &wait) {
			return
		}
		m.o.Log.Warn("the watch of the nodes broke off", "node", m.id, "error", err)
	}
}

// seen takes what the directory says of a node.
func (m *Member) seen(e Entry) {
	n, found, err := readNode(e)
	if err != nil {
		m.o.Log.Warn("a node's record is not understood", "node", m.id, "error", err)
	}
	if err != nil || !found {
		return
	}
	m.mu.Lock()
	sooner := m.sights.see(n, e.Rev, time.Now())
	m.mu.Unlock()
	if sooner { // else it is looked at when it was due: of a thousand nodes, hundreds renew in each second
		nudge(m.look)
	}
}

// judging declares nodes dead whose silence has lasted, until ctx ends. A node that is
// itself not renewed in time has no judgement, see [sights].
func (m *Member) judging(ctx context.Context) {
	for {
		m.mu.Lock()
		dead, next := m.sights.due(m.id, m.o.TTL, time.Now())
		over := m.life.over != nil
		m.mu.Unlock()
		if over {
			return
		}
		wait := time.Hour // nothing to wait for but a look
		if !next.IsZero() {
			wait = time.Until(next)
		}
		for _, s := range dead {
			if !m.certify(ctx, s) {
				wait = min(wait, m.o.TTL/16)
			}
		}
		t := time.NewTimer(max(wait, time.Millisecond))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-m.look:
			t.Stop()
		case <-t.C:
		}
	}
}

// certify swaps the record of a silent node to dead, and reports whether that is known to
// have happened. When it conflicts, the watch, or else a read, brings what stands there.
func (m *Member) certify(ctx context.Context, s sight) bool {
	ctx, cancel := context.WithTimeout(ctx, m.o.TTL/4)
	defer cancel()
	dead := s.node
	dead.State, dead.By = Dead, m.id
	key := nodeKey(dead.ID)
	rev, err := m.o.Directory.Swap(ctx, key, encode(dead), s.rev)
	if err == nil {
		m.o.Log.Warn("declared a node dead", "node", m.id, "dead", dead.ID, "seq", dead.Seq)
		m.seen(Entry{Key: key, Value: encode(dead), Rev: rev})
		return true
	}
	if e, err := m.o.Directory.Get(ctx, key); err == nil && e.Rev != s.rev {
		m.seen(e)
	}
	return false
}
