package supervisor

import (
	"sync"

	"github.com/coppice-run/coppice/messages"
)

// unanswered is the detail of a supervisor that did not describe its children in
// time.
const unanswered = "did not answer"

// snapshot is one question for the whole tree.
type snapshot struct {
	mu     sync.Mutex
	closed bool // the nodes are not written to any more
}

// snap is the part of a snapshot that one supervisor answers: the children of
// node.
type snap struct {
	of    *snapshot
	round *round
	node  *messages.Node
	// only are the names on the way down to the one child that is asked for. nil: all.
	only []string
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

// rest is what a supervisor below is asked for.
func (p *snap) rest() []string {
	if p.only == nil {
		return nil
	}
	return p.only[1:]
}
