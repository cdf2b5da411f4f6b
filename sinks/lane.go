package sinks

import (
	"context"
	"errors"
	"sync"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// batch is how many events a sink takes before another lane of the same actor
// gets its turn.
const batch = 256

// lane is the way from one call to one sink: the events that the sink has not
// taken yet, and the credit for them. It outlives the sink's actor.
type lane struct {
	name    string
	station *station
	lossy   bool
	final   bool // the sink gets the result, too
	credit  *supervisor.Credit
	max     int64 // the whole credit: no event counts more
	again   func() Sink
	onGone  func(error)
	// lazy says that nobody sees what the sink does before it is flushed: the actor
	// is told of a flush, and before that only when much waits. A short call then
	// wakes it once instead of with its first event, while its code would begin.
	lazy bool

	// taken says that the emitting goroutine holds credit for the event that it
	// is about to put in. Only that goroutine uses it.
	taken bool

	mu     sync.Mutex
	queue  []item // waiting, from head on
	head   int
	hand   item  // what the sink has in hand
	bytes  int64 // the credit of what waits
	busy   bool  // hand is something
	woken  bool  // the actor has been told, and will look
	inside bool  // an incarnation is in the sink
	dead   error
	ended  bool // closed in order; the lane can be forgotten
	report LaneReport

	// What follows belongs to the incarnation that is inside.
	sink     Sink
	failures int
	refused  bool // the sink gave the event in hand back, since its ctx ended
}

// item is what travels in a lane: an event with the credit that it holds, or a
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

// acquire takes credit for an event of n bytes. A lane that will not carry the
// event takes none, and that is no error.
func (l *lane) acquire(ctx context.Context, n int64) error {
	l.taken = false
	if l.gone() != nil {
		return nil
	}
	n = min(n, l.max)
	if l.lossy {
		l.taken = l.credit.TryAcquire(n)
		if !l.taken {
			l.mu.Lock()
			l.report.Dropped++
			l.mu.Unlock()
		}
		return nil
	}
	if l.credit.TryAcquire(n) {
		l.taken = true
		return nil
	}
	l.hasten()
	if err := l.credit.Acquire(ctx, n); err != nil {
		return err
	}
	l.taken = true
	return nil
}

// hasten tells the actor of what waits in a lazy lane.
func (l *lane) hasten() {
	l.mu.Lock()
	wake := !l.woken && l.head < len(l.queue)
	l.woken = l.woken || wake
	l.mu.Unlock()
	if wake {
		l.station.wake(l)
	}
}

// attempt is acquire for a lossless lane, without the wait.
func (l *lane) attempt(n int64) bool {
	l.taken = false
	if l.gone() != nil {
		return true
	}
	l.taken = l.credit.TryAcquire(min(n, l.max))
	return l.taken
}

// force hands over an event without credit.
func (l *lane) force(e messages.Event) {
	l.mu.Lock()
	if l.dead != nil {
		l.report.Lost++
		l.mu.Unlock()
		return
	}
	l.push(item{e: e})
}

// drop counts an event that is left out.
func (l *lane) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report.Dropped++
}

// cancel gives back what acquire took.
func (l *lane) cancel(n int64) {
	if l.taken {
		l.credit.Release(min(n, l.max))
	}
}

// put hands over the event that credit was acquired for.
func (l *lane) put(e messages.Event, n int64) {
	l.mu.Lock()
	if l.dead != nil {
		l.report.Lost++
		l.mu.Unlock()
		l.cancel(n)
		return
	}
	if !l.taken {
		l.mu.Unlock()
		return
	}
	l.push(item{e: e, n: min(n, l.max)})
}

// What may wait in a lazy lane before its actor is told, in events and in bytes.
const (
	lazyEvents = 32
	lazyBytes  = 16 << 10
)

// push appends to the queue and wakes the actor. The mutex is held, and
// released.
func (l *lane) push(it item) {
	l.queue = append(l.queue, it)
	l.bytes += it.n
	wake := !l.woken && (!l.lazy || it.b != nil || len(l.queue)-l.head >= lazyEvents || l.bytes >= lazyBytes)
	l.woken = l.woken || wake
	l.mu.Unlock()
	if wake {
		l.station.wake(l)
	}
}

// ask puts a barrier in. On a dead lane it is resolved at once.
func (l *lane) ask(b *barrier) {
	l.mu.Lock()
	if l.dead == nil {
		l.push(item{b: b})
		return
	}
	err := l.dead
	l.ended = l.ended || b.close
	l.mu.Unlock()
	b.resolve(messages.Output{}, err)
	if b.close {
		l.station.wake(l) // the actor may have to end with the lane
	}
}

// retire closes the lane of a result that has handled everything and holds no file,
// as after nearly every call, without its actor. False: the actor has to.
func (l *lane) retire() bool {
	l.mu.Lock()
	if l.inside || l.woken || l.busy || l.dead != nil || l.head < len(l.queue) {
		l.mu.Unlock()
		return false
	}
	if s, ok := l.sink.(*resultSink); !ok || s.fold.Held() { // nobody is inside, so nobody else uses it
		l.mu.Unlock()
		return false
	}
	l.dead, l.ended, l.sink = ErrClosed, true, deadSink{}
	l.mu.Unlock()
	l.station.hub.remove(l)
	return true
}

// gone returns why the lane is dead, nil while it is not.
func (l *lane) gone() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// over reports whether the lane can be forgotten.
func (l *lane) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended && !l.inside
}

// stats returns the lane's counters.
func (l *lane) stats() LaneReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.report
	r.Name, r.Err = l.name, l.dead
	if l.ended && errors.Is(l.dead, ErrClosed) {
		r.Err = nil
	}
	return r
}

// die ends the lane: what waits in it is lost, and nobody waits for its credit
// any more. It returns false if it was dead already.
func (l *lane) die(err error) bool {
	l.mu.Lock()
	if l.dead != nil {
		l.mu.Unlock()
		return false
	}
	l.dead = err
	rest := l.queue[l.head:]
	l.queue, l.head, l.bytes = nil, 0, 0
	if l.busy && !l.inside { // who is inside finishes what it has in hand
		rest = append([]item{l.hand}, rest...)
		l.hand, l.busy = item{}, false
	}
	var held int64
	for _, it := range rest {
		held += it.n
		if it.b == nil {
			l.report.Lost++
		} else if it.b.close {
			l.ended = true
		}
	}
	// Who sees a dead lane is answered at once, and finds its credit given back.
	l.credit.Release(held)
	l.mu.Unlock()
	for _, it := range rest {
		if it.b != nil {
			it.b.resolve(messages.Output{}, err)
		}
	}
	if l.onGone != nil {
		l.onGone(err)
	}
	return true
}

// pending prepares the lane for an actor that looks anew: it returns whether
// there is something to do, and lets the next event wake it if not.
func (l *lane) pending() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.woken = l.ended || len(l.queue) > l.head || l.busy
	return l.woken
}

// enter begins a stay in the sink. It returns false when another incarnation
// has not come back from there: the lane then is dead.
func (l *lane) enter() bool {
	l.mu.Lock()
	if l.inside {
		l.mu.Unlock()
		l.die(errAbandoned)
		return false
	}
	l.inside = true
	l.mu.Unlock()
	return true
}

// leave ends it, however it ends.
func (l *lane) leave() {
	l.mu.Lock()
	l.inside = false
	l.mu.Unlock()
}

// pop takes the next item in hand. It returns false when there is none; the
// next one that comes wakes the actor then.
func (l *lane) pop() (item, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == len(l.queue) {
		l.queue, l.head, l.woken = l.queue[:0], 0, false
		if cap(l.queue) > 4*batch {
			l.queue = nil
		}
		return item{}, false
	}
	it := l.queue[l.head]
	l.queue[l.head] = item{}
	l.head++
	l.bytes -= it.n
	l.hand, l.busy = it, true
	return it, true
}

// done ends the handling of what is in hand, and gives its credit back.
func (l *lane) done(lost bool) {
	l.mu.Lock()
	n := l.hand.n
	l.hand, l.busy = item{}, false
	if lost {
		l.report.Lost++
	}
	l.mu.Unlock()
	l.credit.Release(n)
}

// inHand returns what an incarnation left in hand that ended in the sink.
func (l *lane) inHand() (item, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hand, l.busy
}
