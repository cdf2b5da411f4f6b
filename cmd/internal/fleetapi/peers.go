package fleetapi

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/cmd/internal/fleetapi/relay"
	"github.com/coppice-run/coppice/fleet"
)

// errOther is why what was sent to a node did not reach it: the server of another life of it
// has said so.
const errOther = relay.NotDone("another life of the node answers at its address")

// peer is another node that is up or draining. gone ends, with relay.ErrGone, when it is no more.
type peer struct {
	fleet.Node
	gone context.Context
	end  context.CancelCauseFunc
}

// watching sees the other nodes come and go, until ctx ends.
func (n *Node) watching(ctx context.Context) {
	told := sync.OnceFunc(func() { close(n.told) })
	_ = n.roster.Watch(ctx, func(nodes []fleet.Node) {
		n.saw(nodes)
		told()
		if n.o.Seen != nil {
			n.o.Seen(slices.DeleteFunc(slices.Clone(nodes), func(one fleet.Node) bool { return one.URL == n.url }))
		}
	}) // it ends with ctx, or with the roster after it
	n.saw(nil)
}

func (n *Node) saw(nodes []fleet.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		seen[node.ID] = true
		p := n.peers[node.ID]
		if p == nil {
			p = &peer{}
			p.gone, p.end = context.WithCancelCause(context.Background())
		} else {
			p = &peer{gone: p.gone, end: p.end}
		}
		p.Node = node
		n.peers[node.ID] = p
	}
	for id, p := range n.peers {
		if !seen[id] {
			delete(n.peers, id)
			p.end(relay.ErrGone)
		}
	}
}

// peer is a node, nil when none of that ID is up or draining as far as is known.
func (n *Node) peer(id string) *peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peers[id]
}

// others are the nodes but this one, by ID. A life of this process that is over is none.
func (n *Node) others() []*peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []*peer
	for _, p := range n.peers {
		if p.URL != n.url {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *peer) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// place notes where an execution is, and placeOf says it: "" when it is not known.
func (n *Node) place(execution, node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.placed.Put(execution, node)
}

func (n *Node) placeOf(execution string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.placed.Of(execution)
}
