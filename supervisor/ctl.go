package supervisor

import (
	"sync"
	"sync/atomic"
)

// ctlOp is what a cell, a timer or the system tells a shell.
type ctlOp uint8

const (
	ctlUp       ctlOp = iota // the cell is ready for work
	ctlFinished              // the cell has finished the work t
	ctlFail                  // the cell has failed and is suspended
	ctlDying                 // the cell ends by itself; gone follows
	ctlGone                  // the cell has ended: its last word
	ctlBack                  // the cell was abandoned, and has ended after all
	ctlTimer                 // the shell's timer has fired
	ctlDrain                 // take no new work
	ctlSnapshot              // describe the children
)

// ctl is one control message to a shell.
type ctl struct {
	op    ctlOp
	c     *cell
	t     *ticket
	exit  *Exit
	round *round // with ctlDrain
	snap  *snap  // with ctlSnapshot
}

// ctlBox carries control messages from children to their shell. It is not the
// shell's Hollywood mailbox, for three reasons: control overtakes data, so that
// a finished work is known before the next one is looked at; the shell can wait
// for it while it terminates; and it goes on working when the mailbox is gone,
// after runtime.Goexit or a poison pill. Any goroutine may post.
type ctlBox struct {
	mu     sync.Mutex
	q      []ctl
	closed bool
	// wake is called after the box stopped being empty. The owner sets it
	// before anybody posts, or while holding mu.
	wake func()
}

// post adds m; false: nobody will ever read it.
func (b *ctlBox) post(m ctl) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.q = append(b.q, m)
	var wake func()
	if len(b.q) == 1 {
		wake = b.wake
	}
	b.mu.Unlock()
	if wake != nil {
		wake()
	}
	return true
}

// take returns what was posted and leaves spare, emptied, in its place.
func (b *ctlBox) take(spare []ctl) []ctl {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.q
	b.q = again(spare)
	return q
}

// again returns a slice for reuse: empty, and not one that a burst has left
// large.
func again[T any](l []T) []T {
	if cap(l) > 1024 {
		return nil
	}
	clear(l)
	return l[:0]
}

// rewire changes who is woken. What is in the box already wakes the new one.
func (b *ctlBox) rewire(wake func()) {
	b.mu.Lock()
	b.wake = wake
	full := len(b.q) > 0
	b.mu.Unlock()
	if full && wake != nil {
		wake()
	}
}

// close refuses what comes, and ends the rounds that wait in the box.
func (b *ctlBox) close() {
	b.mu.Lock()
	b.closed = true
	q := b.q
	b.q = nil
	b.mu.Unlock()
	for _, m := range q {
		m.refuse()
	}
}

// refuse lets go of whoever waits for the message to be handled.
func (m ctl) refuse() {
	switch m.op {
	case ctlDrain:
		m.round.leave()
	case ctlSnapshot:
		m.snap.round.leave()
	}
}

// round is a question that runs down the tree: every shell leaves it when it
// has handled it, after the shells below were entered.
type round struct {
	n    atomic.Int64
	done chan struct{} // closed when everybody has left
}

// newRound returns a round that the caller is in.
func newRound() *round {
	r := &round{done: make(chan struct{})}
	r.n.Store(1)
	return r
}

func (r *round) enter() { r.n.Add(1) }

func (r *round) leave() {
	if r.n.Add(-1) == 0 {
		close(r.done)
	}
}

// latch is an event that happens once. The channel is made only for those who
// wait, because most cells end with nobody waiting.
type latch struct {
	mu  sync.Mutex
	ch  chan struct{}
	set bool
}

func (l *latch) wait() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ch == nil {
		l.ch = make(chan struct{})
		if l.set {
			close(l.ch)
		}
	}
	return l.ch
}

func (l *latch) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set {
		return
	}
	l.set = true
	if l.ch != nil {
		close(l.ch)
	}
}
