package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/pause"
)

// renewing sends a renewal four times in a TTL, and more often while they fail. It ends
// with ctx, or with the life.
func (m *Member) renewing(ctx context.Context) {
	wait := m.o.TTL / 4
	for {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-m.hurry:
			t.Stop()
		case <-t.C:
		}
		wait = m.o.TTL / 4
		switch err := m.renew(ctx); {
		case ctx.Err() != nil:
			return
		case m.Err() != nil:
			m.o.Log.Warn("the node's life is over", "node", m.id, "error", m.Err())
			return
		case err != nil:
			wait = m.o.TTL / 16
			m.o.Log.Warn("a renewal was not acknowledged", "node", m.id, "error", err)
		case m.Check() != nil:
			// It was sent too long ago: the directory is back, and the next one counts.
			wait = 0
		default:
			m.resay(ctx)
		}
	}
}

// renew sends one renewal and settles what became of it. It is called by one goroutine at
// a time. After an error nothing is known of it, or the life is over.
func (m *Member) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.o.TTL/2)
	defer cancel()
	m.mu.Lock()
	sent := m.o.Clock() // before anything of it can be on its way
	seq, last, state := m.life.next(sent), m.life.last, m.state
	m.mu.Unlock()

	value := encode(m.record(seq, state))
	rev, err := m.o.Directory.Swap(ctx, last.Key, value, last.Rev)
	switch {
	case err == nil:
		m.mu.Lock()
		m.life.ack(Entry{Key: last.Key, Value: value, Rev: rev}, seq, sent)
		m.renewed(state)
		m.mu.Unlock()
		return nil
	case errors.Is(err, ErrConflict):
		return m.reread(ctx)
	default:
		return fmt.Errorf("renew the lease: %w", err)
	}
}

// renewed notes an acknowledged renewal, which said state. The lock is held.
func (m *Member) renewed(state State) {
	m.said = state
	m.sights.pulse.beat(time.Now(), m.o.TTL)
	m.tell()
	nudge(m.look)
}

// reread finds out why a renewal met another record than the last.
func (m *Member) reread(ctx context.Context) error {
	for wait := firstPause; ; {
		e, err := m.o.Directory.Get(ctx, nodeKey(m.id))
		if err == nil {
			var v verdict
			if v, err = m.judge(e); v == lifeRenewed || v == lifeOver {
				return err
			} else if v == lifeDoubt {
				err = m.doubt(ctx, e)
			}
		}
		if m.Err() != nil {
			return m.Err()
		}
		if !pause.Wait(ctx, &wait) {
			return fmt.Errorf("read the node's record after a conflict: %w", errors.Join(err, ctx.Err()))
		}
	}
}

// judge has the life look at a record.
func (m *Member) judge(e Entry) (verdict, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.life.met(e)
	switch v {
	case lifeRenewed:
		n, _, _ := readNode(e) // it was read before
		m.renewed(n.State)
	case lifeOver:
		m.tell()
		return v, m.life.over
	}
	return v, nil
}

// doubt tells a stale read from a directory that has lost the last record of this node: a
// swap of what was read to a certificate succeeds in the latter case alone.
func (m *Member) doubt(ctx context.Context, e Entry) error {
	m.mu.Lock()
	seq := m.life.acked
	m.mu.Unlock()
	dead := m.record(seq, Dead)
	dead.By = m.id
	if _, err := m.o.Directory.Swap(ctx, e.Key, encode(dead), e.Rev); err != nil {
		return fmt.Errorf("look whether the directory has lost the node's record: %w", err)
	}
	m.over(fmt.Errorf("%w: the directory has lost its record", ErrOver))
	return m.Err()
}
