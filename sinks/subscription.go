package sinks

import (
	"context"
	"errors"
	"sync"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// batch is how many events a sink takes before another subscription of the same actor
// gets its turn.
const batch = 256

// subscription is the way from one call to one sink: the events that the sink has not
// taken yet, and the credit for them. It outlives the sink's actor.
type subscription struct {
	name   string
	actor  *sinkActor
	lossy  bool
	final  bool // the sink gets the result, too
	credit *supervisor.Credit
	max    int64 // the whole credit: no event counts more
	again  func() Sink
	onGone func(error)
	// unclosed hears of a sink that could not be closed; nil: nobody does.
	unclosed func(error)
	// lazy says that what the sink does cannot be seen before it is flushed: the
	// actor is woken by a flush, and before that only when much waits. A short call
	// then wakes it once, and not with its first event, just as its code begins.
	lazy bool
	// brief says that little output can be flushed by who asks, see flushHere.
	brief bool

	// taken says that the emitting goroutine holds credit for the event that it
	// is about to put in. Only that goroutine uses it.
	taken bool

	mu     sync.Mutex
	queue  []item // waiting, from head on
	head   int
	hand   item  // what the sink has in hand
	bytes  int64 // the credit of what waits
	busy   bool  // hand is something
	woken  bool  // the actor has been woken, and will look
	inside bool  // an incarnation is in the sink
	// here is closed when who asked for a flush has left the sink; nil: nobody is there.
	here   chan struct{}
	dead   error
	ended  bool // closed in order; the subscription can be forgotten
	report SinkReport

	// What follows belongs to the incarnation that is inside.
	sink     Sink
	failures int
	refused  bool // the sink gave the event in hand back, since its ctx ended
}

// item is what travels in a subscription: an event with the credit that it holds, or a
// barrier.
type item struct {
	e messages.Event
	n int64
	b *barrier
}

// barrier asks the sink, once everything before was handled, to flush or to
// close.
type barrier struct {
	close bool
	done  chan struct{} // closed when out and err are set
	out   messages.Output
	err   error
}

func (b *barrier) resolve(out messages.Output, err error) {
	b.out, b.err = out, err
	close(b.done)
}

// acquire takes credit for an event of n bytes. A subscription that will not carry the
// event takes none, and that is not an error.
func (sub *subscription) acquire(ctx context.Context, n int64) error {
	sub.taken = false
	if sub.gone() != nil {
		return nil
	}
	n = min(n, sub.max)
	if sub.lossy {
		sub.taken = sub.credit.TryAcquire(n)
		if !sub.taken {
			sub.mu.Lock()
			sub.report.Dropped++
			sub.mu.Unlock()
		}
		return nil
	}
	if sub.credit.TryAcquire(n) {
		sub.taken = true
		return nil
	}
	sub.hasten()
	if err := sub.credit.Acquire(ctx, n); err != nil {
		return err
	}
	sub.taken = true
	return nil
}

// hasten wakes the actor for what waits in a lazy subscription.
func (sub *subscription) hasten() {
	sub.mu.Lock()
	wake := !sub.woken && sub.head < len(sub.queue)
	sub.woken = sub.woken || wake
	sub.mu.Unlock()
	if wake {
		sub.actor.wake(sub)
	}
}

// attempt is acquire for a lossless subscription, without the wait.
func (sub *subscription) attempt(n int64) bool {
	sub.taken = false
	if sub.gone() != nil {
		return true
	}
	sub.taken = sub.credit.TryAcquire(min(n, sub.max))
	return sub.taken
}

// force hands over an event without credit.
func (sub *subscription) force(e messages.Event) {
	sub.mu.Lock()
	if sub.dead != nil {
		sub.report.Lost++
		sub.mu.Unlock()
		return
	}
	sub.push(item{e: e})
}

// drop counts an event that is left out.
func (sub *subscription) drop() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	sub.report.Dropped++
}

// cancel gives back what acquire took.
func (sub *subscription) cancel(n int64) {
	if sub.taken {
		sub.credit.Release(min(n, sub.max))
	}
}

// put hands over the event that credit was acquired for.
func (sub *subscription) put(e messages.Event, n int64) {
	sub.mu.Lock()
	if sub.dead != nil {
		sub.report.Lost++
		sub.mu.Unlock()
		sub.cancel(n)
		return
	}
	if !sub.taken {
		sub.mu.Unlock()
		return
	}
	sub.push(item{e: e, n: min(n, sub.max)})
}

// What may wait in a lazy subscription before its actor is woken, in events and in
// bytes.
const (
	lazyEvents = 32
	lazyBytes  = 16 << 10
)

// push appends to the queue and wakes the actor. The mutex is held, and
// released.
func (sub *subscription) push(it item) {
	sub.queue = append(sub.queue, it)
	sub.bytes += it.n
	wake := !sub.woken && (!sub.lazy || it.b != nil || len(sub.queue)-sub.head >= lazyEvents || sub.bytes >= lazyBytes)
	sub.woken = sub.woken || wake
	sub.mu.Unlock()
	if wake {
		sub.actor.wake(sub)
	}
}

// ask puts a barrier in. On a dead subscription it is resolved at once.
func (sub *subscription) ask(b *barrier) {
	sub.mu.Lock()
	if sub.dead == nil {
		sub.push(item{b: b})
		return
	}
	err := sub.dead
	sub.ended = sub.ended || b.close
	sub.mu.Unlock()
	b.resolve(messages.Output{}, err)
	if b.close {
		sub.actor.wake(sub) // the actor may have to end with the subscription
	}
}

// retire closes the subscription of a result that has handled everything and holds no
// file, as after nearly every call, without its actor. False: the actor has to.
func (sub *subscription) retire() bool {
	sub.mu.Lock()
	if sub.inside || sub.here != nil || sub.woken || sub.busy || sub.dead != nil || sub.head < len(sub.queue) {
		sub.mu.Unlock()
		return false
	}
	if s, ok := sub.sink.(*resultSink); !ok || s.fold.Held() { // no incarnation is inside, so the sink is ours
		sub.mu.Unlock()
		return false
	}
	sub.dead, sub.ended, sub.sink = ErrClosed, true, deadSink{}
	sub.mu.Unlock()
	sub.actor.hub.remove(sub)
	return true
}

// gone returns why the subscription is dead, nil while it is not.
func (sub *subscription) gone() error {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.dead
}

// over reports whether the subscription can be forgotten.
func (sub *subscription) over() bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.ended && !sub.inside
}

// stats returns the subscription's counters.
func (sub *subscription) stats() SinkReport {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	r := sub.report
	r.Name, r.Err = sub.name, sub.dead
	if sub.ended && errors.Is(sub.dead, ErrClosed) {
		r.Err = nil
	}
	return r
}

// die ends the subscription: what waits in it is lost, and whoever waits for its
// credit is released. It returns false if it was dead already.
func (sub *subscription) die(err error) bool {
	sub.mu.Lock()
	if sub.dead != nil {
		sub.mu.Unlock()
		return false
	}
	sub.dead = err
	rest := sub.queue[sub.head:]
	sub.queue, sub.head, sub.bytes = nil, 0, 0
	if sub.busy && !sub.inside { // an incarnation inside finishes what it has in hand
		rest = append([]item{sub.hand}, rest...)
		sub.hand, sub.busy = item{}, false
	}
	var held int64
	for _, it := range rest {
		held += it.n
		if it.b == nil {
			sub.report.Lost++
		} else if it.b.close {
			sub.ended = true
		}
	}
	// Whoever sees a dead subscription is answered at once, and finds its credit
	// given back.
	sub.credit.Release(held)
	sub.mu.Unlock()
	for _, it := range rest {
		if it.b != nil {
			it.b.resolve(messages.Output{}, err)
		}
	}
	if sub.onGone != nil {
		sub.onGone(err)
	}
	return true
}

// pending prepares the subscription for a new incarnation: it returns whether there is
// something to do, and if not, lets the next event wake the actor.
func (sub *subscription) pending() bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	sub.woken = sub.ended || len(sub.queue) > sub.head || sub.busy
	return sub.woken
}

// enter begins a stay in the sink. It returns false when another incarnation
// has not come back from there: the subscription then is dead.
func (sub *subscription) enter() bool {
	sub.mu.Lock()
	for sub.here != nil { // it runs nothing that waits
		here := sub.here
		sub.mu.Unlock()
		<-here
		sub.mu.Lock()
	}
	if sub.inside {
		sub.mu.Unlock()
		sub.die(errAbandoned)
		return false
	}
	sub.inside = true
	sub.mu.Unlock()
	return true
}

// leave ends it, however it ends.
func (sub *subscription) leave() {
	sub.mu.Lock()
	sub.inside = false
	sub.mu.Unlock()
}

// pop takes the next item in hand. It returns false when there is none; the
// next one that comes wakes the actor then.
func (sub *subscription) pop() (item, bool) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.head == len(sub.queue) {
		sub.queue, sub.head, sub.woken = sub.queue[:0], 0, false
		if cap(sub.queue) > 4*batch {
			sub.queue = nil
		}
		return item{}, false
	}
	it := sub.queue[sub.head]
	sub.queue[sub.head] = item{}
	sub.head++
	sub.bytes -= it.n
	sub.hand, sub.busy = it, true
	return it, true
}

// done ends the handling of what is in hand, and gives its credit back.
func (sub *subscription) done(lost bool) {
	sub.mu.Lock()
	n := sub.hand.n
	sub.hand, sub.busy = item{}, false
	if lost {
		sub.report.Lost++
	}
	sub.mu.Unlock()
	sub.credit.Release(n)
}

// inHand returns what an incarnation left in hand that ended in the sink.
func (sub *subscription) inHand() (item, bool) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	return sub.hand, sub.busy
}
