package supervisor

import (
	"context"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// snapshotPatience is how long a snapshot waits for supervisors that do not
// answer.
const snapshotPatience = time.Second

// Snapshot describes the whole tree. It takes at most a second, and not longer
// than ctx: a supervisor that does not answer in time is shown without children
// and with the detail "did not answer". The error is that of ctx, or
// [ErrStopped]. Any goroutine may call it, but not an actor of this system that
// the snapshot would have to wait for.
func (s *System) Snapshot(ctx context.Context) (messages.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotPatience)
	defer cancel()
	node := s.root.node(s)
	p := &snap{of: &snapshot{}, round: newRound(), node: &node}
	sh := s.root.supervisor()
	if sh == nil {
		return node, ErrStopped
	}
	sh.askFor(p)
	p.round.leave()
	select {
	case <-p.round.done:
	case <-ctx.Done():
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.closed = true
	return node, nil
}
