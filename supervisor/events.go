package supervisor

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// maxEvents bounds what waits for watchers that are slow. What does not fit is
// dropped and counted in a Dropped event.
const maxEvents = 1 << 16

// events hands lifecycle events to the watchers: from one goroutine at a time, in
// order. The goroutine is started by startEvents and ends in close. A watcher is code
// of the host: one that panics or ends the goroutine is taken off the list.
type events struct {
	log *slog.Logger

	watchers atomic.Int32 // how many there are, for the question whether to emit at all

	mu     sync.Mutex
	q      []messages.Lifecycle
	lost   int
	fns    []*eventWatcher // replaced, never changed
	closed bool
	ring   chan struct{} // capacity 1: there is something in q
	done   chan struct{} // closed when the goroutine has ended

	// The rest belongs to the goroutine, and to the next one after a watcher has
	// ended it: the events in hand, which of them is next, and the watchers that this
	// one has not reached yet.
	hand []messages.Lifecycle
	next int
	rest []*eventWatcher
}

type eventWatcher struct{ fn func(messages.Lifecycle) }

func startEvents(log *slog.Logger) *events {
	e := &events{log: log, ring: make(chan struct{}, 1), done: make(chan struct{})}
	go e.run()
	return e
}

// watched reports whether there is a watcher.
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
	over := false
	defer func() {
		if over {
			close(e.done)
			return
		}
		go e.run() // a watcher has ended this goroutine
	}()
	e.deliver()
	for e.take() {
		e.deliver()
	}
	over = true
}

// take waits for events and takes them in hand. It returns false when everything is
// delivered and no more will come.
func (e *events) take() bool {
	for {
		clear(e.hand)
		spare := e.hand[:0]
		e.mu.Lock()
		q, lost, closed := e.q, e.lost, e.closed
		e.q, e.lost, e.rest = spare, 0, e.fns
		e.mu.Unlock()
		if lost > 0 {
			q = append(q, messages.Dropped{At: time.Now(), Count: lost, What: "events"})
		}
		if e.hand, e.next = q, 0; len(q) > 0 {
			return true
		}
		if closed {
			return false
		}
		<-e.ring
	}
}

// deliver hands on what is in hand.
func (e *events) deliver() {
	for e.next < len(e.hand) {
		for len(e.rest) > 0 {
			w := e.rest[0]
			e.rest = e.rest[1:]
			e.call(w, e.hand[e.next])
		}
		e.next++
		e.mu.Lock()
		e.rest = e.fns
		e.mu.Unlock()
	}
}

// call lets w hear of ev.
func (e *events) call(w *eventWatcher, ev messages.Lifecycle) {
	Guarded(func() error { w.fn(ev); return nil }, func(err error) {
		if err != nil {
			e.remove(w)
			e.log.Error("a function that watches the tree failed and is not called again", "event", ev.Type(), "err", err)
		}
	})
}

func (e *events) watch(fn func(messages.Lifecycle)) (stop func()) {
	w := &eventWatcher{fn}
	e.change(func(l []*eventWatcher) []*eventWatcher { return append(l, w) })
	return func() { e.remove(w) }
}

func (e *events) remove(w *eventWatcher) {
	e.change(func(l []*eventWatcher) []*eventWatcher {
		return slices.DeleteFunc(l, func(o *eventWatcher) bool { return o == w })
	})
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
