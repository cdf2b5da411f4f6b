package supervisor

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// maxEvents bounds what waits for watchers that are slow. What does not fit is
// dropped and counted in a Dropped event.
const maxEvents = 1 << 16

// events hands lifecycle events to the watchers: from one goroutine, in order.
// The goroutine is started by startEvents and ends in close.
type events struct {
	watchers atomic.Int32 // how many there are, for the question whether to emit at all

	mu     sync.Mutex
	q      []messages.Lifecycle
	lost   int
	fns    []*eventWatcher // replaced, never changed
	closed bool
	ring   chan struct{} // capacity 1: there is something in q
	done   chan struct{} // closed when the goroutine has ended
}

type eventWatcher struct{ fn func(messages.Lifecycle) }

func startEvents() *events {
	e := &events{ring: make(chan struct{}, 1), done: make(chan struct{})}
	go e.run()
	return e
}

// watched reports whether anybody would hear an event.
func (e *events) watched() bool { return e.watchers.Load() > 0 }

// emit queues ev. It never blocks.
func (e *events) emit(ev messages.Lifecycle) {
	e.mu.Lock()
	if e.closed || len(e.fns) == 0 {
		e.mu.Unlock()
		return
	}
	if len(e.q) >= maxEvents {
		e.lost++
		e.mu.Unlock()
		return
	}
	e.q = append(e.q, ev)
	e.mu.Unlock()
	e.wake()
}

func (e *events) wake() {
	select {
	case e.ring <- struct{}{}:
	default:
	}
}

// run delivers until close was called and everything is delivered.
func (e *events) run() {
	defer close(e.done)
	var spare []messages.Lifecycle
	for {
		e.mu.Lock()
		q, lost, closed := e.q, e.lost, e.closed
		clear(spare)
		e.q, e.lost = spare[:0], 0
		e.mu.Unlock()
		if len(q) == 0 {
			if closed {
				return
			}
			spare = q
			<-e.ring
			continue
		}
		for _, ev := range q {
			e.deliver(ev)
		}
		if lost > 0 {
			e.deliver(messages.Dropped{At: time.Now(), Count: lost, What: "events"})
		}
		spare = q
	}
}

func (e *events) deliver(ev messages.Lifecycle) {
	e.mu.Lock()
	fns := e.fns
	e.mu.Unlock()
	for _, w := range fns {
		w.fn(ev)
	}
}

func (e *events) watch(fn func(messages.Lifecycle)) (stop func()) {
	w := &eventWatcher{fn}
	e.change(func(l []*eventWatcher) []*eventWatcher { return append(l, w) })
	return func() {
		e.change(func(l []*eventWatcher) []*eventWatcher {
			return slices.DeleteFunc(l, func(o *eventWatcher) bool { return o == w })
		})
	}
}

// change replaces the list of watchers by a changed copy, because deliver goes
// through it without the mutex.
func (e *events) change(f func([]*eventWatcher) []*eventWatcher) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fns = f(slices.Clone(e.fns))
	e.watchers.Store(int32(len(e.fns)))
}

// close delivers what is queued and ends the goroutine.
func (e *events) close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.wake()
	<-e.done
}
