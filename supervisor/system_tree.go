package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
)

// snapshotPatience is how long a snapshot waits for supervisors that do not answer.
// Time in which this process stood still, or was late for want of a processor, is not
// counted: nobody could answer then.
var snapshotPatience = opportunity.Budget{Opportunity: time.Second}

// Snapshot describes the whole tree. It takes at most a second in which this process
// had a processor, and not longer than ctx: a supervisor that does not answer in time is
// shown without children and with the detail "did not answer". The error is that of ctx, or
// [ErrStopped]. Any goroutine may call it, but not an actor of this system that
// the snapshot would have to wait for.
func (s *System) Snapshot(ctx context.Context) (messages.Node, error) {
	node, _, err := s.describe(ctx, nil)
	return node, err
}

// Child describes one child of the tree, without those below it and without a look at its
// siblings: path has the names on the way to it, from those of Options.Children on. found is false
// when there is no such child. The error is that of ctx, a [context.DeadlineExceeded] when
// a supervisor on the way does not answer in the time that Snapshot takes, or [ErrStopped].
// Who may call it is as for Snapshot.
func (s *System) Child(ctx context.Context, path ...string) (node messages.Node, found bool, err error) {
	if len(path) == 0 {
		return messages.Node{}, false, nil
	}
	node, late, err := s.describe(ctx, path)
	if err != nil {
		return messages.Node{}, false, err
	}
	for range path {
		if len(node.Children) == 0 {
			return messages.Node{}, false, late
		}
		node = node.Children[0]
	}
	return node, true, nil
}

// describe asks for the tree, or for the one child at a path. late says why somebody was
// not waited for any longer.
func (s *System) describe(ctx context.Context, only []string) (node messages.Node, late, err error) {
	node = s.root.node(s)
	p := &snap{of: &snapshot{}, round: newRound(), node: &node, only: only}
	sh := s.root.supervisor()
	if sh == nil {
		return node, nil, ErrStopped
	}
	sh.askFor(p)
	p.round.leave()
	late = opportunity.Wait(ctx, snapshotPatience, opportunity.Begin(opportunity.Unknown{}, s.stalls), p.round.done)
	if _, spent := errors.AsType[*opportunity.SpentError](late); spent {
		late = fmt.Errorf("%w: %w", context.DeadlineExceeded, late)
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.closed = true
	return node, late, nil
}
