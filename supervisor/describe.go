package supervisor

import (
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// askFor has the supervisor describe what is below the node of p. Any goroutine
// may call it; it does not wait.
func (s *Supervisor) askFor(p *snap) {
	p.node.Detail = unanswered
	p.round.enter()
	if !s.box.post(ctl{op: ctlSnapshot, snap: p}) {
		p.round.leave()
	}
}

// describe answers a snapshot: with this supervisor's children, and by asking
// those that are supervisors.
func (s *Supervisor) describe(p *snap) {
	defer p.round.leave()
	var nodes []messages.Node
	var below []*Supervisor
	var at []int
	add := func(ch *child) {
		nodes = append(nodes, s.node(ch))
		if sh := supervisorOf(ch.live); sh != nil {
			below, at = append(below, sh), append(at, len(nodes)-1)
		}
	}
	if p.only != nil {
		if ch := s.table[p.only[0]]; ch != nil {
			add(ch)
		}
		if len(p.only) == 1 {
			below = nil
		}
	} else {
		nodes = make([]messages.Node, 0, len(s.table))
		for ch := s.first; ch != nil; ch = ch.behind {
			add(ch)
		}
	}
	for i, sh := range below {
		sh.askFor(&snap{of: p.of, round: p.round, node: &nodes[at[i]], only: p.rest()})
	}
	p.answer(nodes, s.abandoned())
}

// abandoned names the incarnations that were given up and have not come back.
func (s *Supervisor) abandoned() []messages.Leftover {
	var out []messages.Leftover
	for c, st := range s.strays {
		out = append(out, c.leftover(st.why))
	}
	sortLeftovers(out)
	return out
}

func (s *Supervisor) node(ch *child) messages.Node {
	v := ch.view(s.clock)
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
	if n.Kind == "" && ch.supervises() {
		n.Kind = "supervisor"
	}
	if t, ok := s.o.Strategy.(strategy.TTLs); ok {
		s.protect(func() error { n.TTL = t.TTL(tableView{&s.children}, v.Key); return nil })
	}
	return n
}
