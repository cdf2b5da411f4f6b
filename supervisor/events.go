package supervisor

import (
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
	fns    map[int]func(messages.Lifecycle)
	order  []int
	serial int
	closed bool
	ring   chan struct{} // capacity 1: there is something in q
	done   chan struct{} // closed when the goroutine has ended
}

func startEvents() *events {
	e := &events{
		fns:  make(map[int]func(messages.Lifecycle)),
		ring: make(chan struct{}, 1), done: make(chan struct{}),
	}
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
	fns := make([]func(messages.Lifecycle), 0, len(e.order))
	for _, id := range e.order {
		if fn := e.fns[id]; fn != nil {
			fns = append(fns, fn)
		}
	}
	e.mu.Unlock()
	for _, fn := range fns {
		fn(ev)
	}
}

func (e *events) watch(fn func(messages.Lifecycle)) (stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.serial++
	id := e.serial
	e.fns[id] = fn
	e.order = append(e.order, id)
	e.watchers.Add(1)
	var once sync.Once
	return func() {
		once.Do(func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.fns, id)
			for i, o := range e.order {
				if o == id {
					e.order = append(e.order[:i:i], e.order[i+1:]...)
					break
				}
			}
			e.watchers.Add(-1)
		})
	}
}

// close delivers what is queued and ends the goroutine.
func (e *events) close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.wake()
	<-e.done
}
