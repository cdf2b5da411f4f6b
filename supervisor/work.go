package supervisor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Work is something that is to be answered exactly once. Make one with
// [NewWork] and hand it to a supervisor (Supervisor.Submit), or let [Ask] make
// one.
//
// Work is a value: copies stand for the same work. The zero Work is not
// waited for; settling it does nothing.
type Work struct {
	// Msg is what is to be done.
	Msg any
	// Fresh asks for an incarnation that no work was dispatched to before: a
	// reset, if there is one that has served.
	Fresh bool
	// Last ends the child after this work, and forgets its key.
	Last bool
	// Owner is a label for whoever makes the child's Spec.
	Owner string

	at  *place  // the child's place; set by Submit
	seq uint64  // set by Submit
	t   *ticket // nil only in the zero Work
}

// ticket is the part of a work that all its copies share.
type ticket struct {
	settled atomic.Bool
	answer  any // written by the one that won settled, before done is closed
	done    chan struct{}

	// ledger is the account of the supervisor that has the work; nil before
	// Submit.
	ledger atomic.Pointer[ledger]
	// next and prev are guarded by the ledger's mutex.
	next, prev *ticket
}

// NewWork returns a work, and the side of it that waits for an answer of type
// T.
func NewWork[T any](msg any) (Work, Reply[T]) {
	t := &ticket{done: make(chan struct{})}
	return Work{Msg: msg, t: t}, Reply[T]{t: t}
}

// Settle answers the work. It returns true for the first call of all, and
// false, without any effect, for every other. An answer that is an error is
// what the waiting side gets as its error, and nil is the zero value of what it
// waits for. Any goroutine may call it.
func (w Work) Settle(answer any) bool {
	if w.t == nil {
		return false
	}
	return w.t.settle(answer)
}

func (t *ticket) settle(answer any) bool {
	if !t.settled.CompareAndSwap(false, true) {
		return false
	}
	if l := t.ledger.Load(); l != nil {
		l.remove(t)
	}
	t.answer = answer
	close(t.done)
	return true
}

// Settled reports whether the work was answered. A supervisor does not dispatch
// work that was answered while it waited, so settling a work is a way to
// cancel it.
func (w Work) Settled() bool { return w.t != nil && w.t.settled.Load() }

// Seq is the work's number among those that were submitted to its supervisor,
// from 1; 0 before that.
func (w Work) Seq() uint64 { return w.seq }

// Key is the child that the work was submitted to; empty before that.
func (w Work) Key() string {
	if w.at == nil {
		return ""
	}
	return w.at.name
}

// same reports whether both stand for the same work.
func (w Work) same(o Work) bool { return w.t != nil && w.t == o.t }

// Reply is the waiting side of a work. Copies wait for the same answer. Any
// goroutine may use it.
type Reply[T any] struct {
	t     *ticket
	asked mortal // who was asked, if it was a question
}

// mortal is whoever may end without an answer.
type mortal interface {
	// over returns a channel that is closed when it has ended.
	over() <-chan struct{}
}

// Done is closed when the work was answered. A question's Done is not closed
// by the death of the actor that was asked; Wait knows about that.
func (r Reply[T]) Done() <-chan struct{} { return r.t.done }

// Wait waits for the answer. It returns the answer's error if the answer is an
// error, [ErrGone] if the work is a question and the actor that was asked
// ended without an answer, and the cause of ctx if ctx ends first: the work
// then stays open, and its answer may still be waited for.
func (r Reply[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-r.t.done: // an answer that is there counts, even if ctx has ended
		return r.result()
	default:
	}
	var over <-chan struct{}
	if r.asked != nil {
		over = r.asked.over()
	}
	select {
	case <-r.t.done:
	case <-over:
		r.t.settle(ErrGone) // does nothing when the answer was on its way
		<-r.t.done
	case <-ctx.Done():
		var zero T
		return zero, context.Cause(ctx)
	}
	return r.result()
}

// Value returns the answer if it is there and of type T.
func (r Reply[T]) Value() (T, bool) {
	var zero T
	select {
	case <-r.t.done:
		v, err := r.result()
		return v, err == nil
	default:
		return zero, false
	}
}

func (r Reply[T]) result() (T, error) {
	var zero T
	switch v := r.t.answer.(type) {
	case nil:
		return zero, nil
	case error:
		return zero, v
	case T:
		return v, nil
	}
	return zero, fmt.Errorf("answer of type %T where %T was expected", r.t.answer, zero)
}

// ask is how a question travels, so that an actor which will not handle it can
// answer it.
type ask struct{ w Work }

// typeName names what a message is, for people.
func typeName(v any) string {
	switch v := v.(type) {
	case Work:
		return typeName(v.Msg)
	case ask:
		return typeName(v.w)
	default:
		return fmt.Sprintf("%T", v)
	}
}

// place is what a slot is called.
type place struct {
	name string
	path string // from the root, names joined by /
}

// ledger is the account of all works that a supervisor has taken and that are
// not settled yet. It is what makes "every work is settled" true even when the
// supervisor itself hangs and its own tables cannot be read any more.
type ledger struct {
	mu     sync.Mutex
	head   *ticket
	closed bool
}

// add takes t into the account; false: the ledger is closed.
func (l *ledger) add(t *ticket) bool {
	if old := t.ledger.Load(); old == l {
		return true // submitted again by the same supervisor
	} else if old != nil {
		old.remove(t)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	t.ledger.Store(l)
	t.prev, t.next = nil, l.head
	if l.head != nil {
		l.head.prev = t
	}
	l.head = t
	// A settle between the caller's check and the store above did not see the
	// ledger, so this side has to take t out again.
	if t.settled.Load() {
		l.unlink(t)
	}
	return true
}

func (l *ledger) remove(t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.ledger.CompareAndSwap(l, nil) { // not if it has moved to another ledger
		l.unlink(t)
	}
}

// unlink tolerates a ticket that is not in the list. The mutex is held.
func (l *ledger) unlink(t *ticket) {
	switch {
	case t.prev != nil:
		t.prev.next = t.next
	case l.head == t:
		l.head = t.next
	default:
		return
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.prev, t.next = nil, nil
}

// close settles everything that is open with answer, and refuses the rest. It
// returns how many works that were.
func (l *ledger) close(answer error) int {
	l.mu.Lock()
	l.closed = true
	var open []*ticket
	for t := l.head; t != nil; t = t.next {
		open = append(open, t)
	}
	l.mu.Unlock()
	n := 0
	for _, t := range open {
		if t.settle(answer) {
			n++
		}
	}
	return n
}
