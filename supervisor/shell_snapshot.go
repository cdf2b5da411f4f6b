package supervisor

import (
	"context"
	"sync"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// snapshotPatience is how long a snapshot waits for shells that do not answer.
const snapshotPatience = time.Second

// unanswered is the detail of a shell that did not describe its children in
// time.
const unanswered = "did not answer"

// snapshot is one question for the whole tree.
type snapshot struct {
	mu     sync.Mutex
	closed bool // nobody writes into the nodes any more
}

// snap is the part of a snapshot that one shell answers: the children of node.
type snap struct {
	of    *snapshot
	round *round
	node  *messages.Node
}

// answer fills the node in, unless the time for it is over.
func (p *snap) answer(children []messages.Node, abandoned []messages.Leftover) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.of.closed {
		return
	}
	p.node.Children, p.node.Abandoned = children, abandoned
	if p.node.Detail == unanswered {
		p.node.Detail = ""
	}
}

// ask has the shell describe what is below node. It does not wait.
func (p *snap) ask(s *Shell) {
	p.node.Detail = unanswered
	p.round.enter()
	if !s.box.post(ctl{op: ctlSnapshot, snap: p}) {
		p.round.leave()
	}
}

// describe answers a snapshot: with this shell's children, and by asking those
// that are shells.
func (s *Shell) describe(p *snap) {
	defer p.round.leave()
	nodes := make([]messages.Node, 0, len(s.table))
	var below []*Shell
	var at []int
	for ch := s.first; ch != nil; ch = ch.behind {
		nodes = append(nodes, s.node(ch))
		if ch.cell == nil {
			continue
		}
		if sh := ch.cell.shell.Load(); sh != nil {
			below, at = append(below, sh), append(at, len(nodes)-1)
		}
	}
	for i, sh := range below {
		(&snap{of: p.of, round: p.round, node: &nodes[at[i]]}).ask(sh)
	}
	p.answer(nodes, s.abandoned())
}

// abandoned names the incarnations that were given up and have not come back.
func (s *Shell) abandoned() []messages.Leftover {
	var out []messages.Leftover
	for c, st := range s.strays {
		out = append(out, c.leftover(st.why))
	}
	sortLeftovers(out)
	return out
}

func (s *Shell) node(ch *child) messages.Node {
	v := ch.view(s)
	n := messages.Node{
		Name: v.Key, Kind: v.Kind, State: v.State, Epoch: v.Epoch, Since: v.Since, StartedAt: v.StartedAt,
		Restarts: v.TotalRestarts, Queue: v.Queue, Done: v.Done, Pinned: v.Pinned, Owner: v.Owner,
		PID: v.PID, RSS: v.RSS, Detail: v.Detail,
	}
	if n.State == "" {
		n.State = messages.ChildWaiting // for those that are started before it
	}
	if v.LastExit != nil {
		e := v.LastExit.Value()
		n.LastExit = &e
	}
	if n.Kind == "" && ch.isShell() {
		n.Kind = "supervisor"
	}
	if t, ok := s.o.Strategy.(strategy.TTLs); ok {
		s.protect(func() error { n.TTL = t.TTL(shellView{s}, v.Key); return nil })
	}
	return n
}

// Snapshot describes the whole tree. It takes at most a second, and not longer
// than ctx: a shell that does not answer in time is shown without children and
// with the detail "did not answer". The error is that of ctx, or [ErrStopped].
// Any goroutine may call it, but not an actor of this system that the snapshot
// would have to wait for.
func (s *System) Snapshot(ctx context.Context) (messages.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotPatience)
	defer cancel()
	node := s.root.node(s)
	p := &snap{of: &snapshot{}, round: newRound(), node: &node}
	sh := s.root.shell()
	if sh == nil {
		return node, ErrStopped
	}
	p.ask(sh)
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
