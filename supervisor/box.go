package supervisor

import (
	"sync"
	"sync/atomic"
)

// box is a queue that wakes its reader. Any goroutine may post.
type box[T any] struct {
	mu     sync.Mutex
	q      []T
	closed bool
	// wake is called after the box stopped being empty. The owner sets it
	// before the first post, or while holding mu.
	wake func()
}

// post adds m; false: it would never be read.
func (b *box[T]) post(m T) bool {
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
func (b *box[T]) take(spare []T) []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.q
	b.q = again(spare)
	return q
}

// rewire changes who is woken. What is in the box already wakes the new one.
func (b *box[T]) rewire(wake func()) {
	b.mu.Lock()
	b.wake = wake
	full := len(b.q) > 0
	b.mu.Unlock()
	if full && wake != nil {
		wake()
	}
}

// close refuses what comes, and returns what was not taken.
func (b *box[T]) close() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	q := b.q
	b.q = nil
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

// round is a question that runs down the tree: every supervisor leaves it when
// it has handled it, after the supervisors below were entered.
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
// wait, because most incarnations end unobserved.
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
