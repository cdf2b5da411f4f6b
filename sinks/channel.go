package sinks

import (
	"context"
	"iter"
	"sync"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// Channel hands the events of one call to a consumer that pulls them. What the
// consumer has not taken is bounded in bytes; beyond that it holds the call
// back. Make one with [NewChannel].
//
// [Hub.Open] serves it without an actor. Events has one consumer; the other
// methods may be called from any goroutine.
type Channel struct {
	credit *supervisor.Credit
	max    int64

	mu       sync.Mutex
	queue    []item
	head     int
	finished bool // nothing more comes
	left     bool // nobody takes anything
	bell     chan struct{}
}

// NewChannel returns a channel for so many bytes of events. 0: 1 MiB.
func NewChannel(bytes int64) *Channel {
	n := creditOf(bytes)
	return &Channel{credit: supervisor.NewCredit(n), max: n, bell: make(chan struct{}, 1)}
}

// Events yields the events in order, and ends when all were taken after
// [Channel.Finish] or Close. A consumer that leaves the loop frees the producer,
// as [Channel.Leave] does.
func (c *Channel) Events() iter.Seq[messages.Event] {
	return func(yield func(messages.Event) bool) {
		defer c.Leave()
		for {
			it, ok, over := c.pop()
			switch {
			case ok:
				if !yield(it.e) {
					return
				}
				c.credit.Release(it.n)
			case over:
				return
			default:
				<-c.bell
			}
		}
	}
}

func (c *Channel) pop() (it item, ok, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
		return item{}, false, c.finished || c.left
	}
	it = c.queue[c.head]
	c.queue[c.head] = item{}
	c.head++
	return it, true, false
}

// ring tells the consumer to look.
func (c *Channel) ring() {
	select {
	case c.bell <- struct{}{}:
	default:
	}
}

// push adds an event for which credit was taken.
func (c *Channel) push(it item) bool {
	c.mu.Lock()
	if c.left || c.finished {
		c.mu.Unlock()
		c.credit.Release(it.n)
		return false
	}
	c.queue = append(c.queue, it)
	c.mu.Unlock()
	c.ring()
	return true
}

// Consume adds an event, and blocks while there is no room. It returns
// [ErrConsumerGone] once the consumer has left.
func (c *Channel) Consume(ctx context.Context, e messages.Event) error {
	n := min(int64(e.Size()), c.max)
	if err := c.credit.Acquire(ctx, n); err != nil {
		return err
	}
	if !c.push(item{e: e, n: n}) {
		return ErrConsumerGone
	}
	return nil
}

// Flush does nothing: an event is there for the consumer when Consume returns.
func (c *Channel) Flush(context.Context) error { return nil }

// Close is Finish.
func (c *Channel) Close() error {
	c.Finish()
	return nil
}

// Finish says that no event follows. The consumer still gets those that are
// there.
func (c *Channel) Finish() {
	c.mu.Lock()
	c.finished = true
	c.mu.Unlock()
	c.ring()
}

// Leave says that the consumer takes nothing more: what waits is dropped, and a
// producer that is held back goes on.
func (c *Channel) Leave() {
	c.mu.Lock()
	c.left = true
	c.queue, c.head = nil, 0
	c.mu.Unlock()
	c.credit.Release(c.max)
	c.ring()
}

// gone reports whether the consumer has left.
func (c *Channel) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left || c.finished
}

// channelLane is the way from a call to a Channel.
type channelLane struct {
	ch    *Channel
	name  string
	lossy bool
	taken bool // the emitting goroutine's

	mu     sync.Mutex
	report LaneReport
}

func newChannelLane(ch *Channel, o Lane) *channelLane {
	return &channelLane{ch: ch, name: o.Name, lossy: o.Lossy}
}

func (l *channelLane) isLossy() bool { return l.lossy }

func (l *channelLane) acquire(ctx context.Context, n int64) error {
	l.taken = false
	n = min(n, l.ch.max)
	switch {
	case l.ch.gone():
		return nil
	case l.lossy:
		if l.taken = l.ch.credit.TryAcquire(n); !l.taken {
			l.count(1, 0)
		}
		return nil
	}
	if err := l.ch.credit.Acquire(ctx, n); err != nil {
		return err
	}
	l.taken = true
	return nil
}

func (l *channelLane) attempt(n int64) bool {
	l.taken = false
	if l.ch.gone() {
		return true
	}
	l.taken = l.ch.credit.TryAcquire(min(n, l.ch.max))
	return l.taken
}

func (l *channelLane) force(e messages.Event) {
	if !l.ch.push(item{e: e}) {
		l.count(0, 1)
	}
}

func (l *channelLane) drop() { l.count(1, 0) }

func (l *channelLane) cancel(n int64) {
	if l.taken {
		l.ch.credit.Release(min(n, l.ch.max))
	}
}

func (l *channelLane) put(e messages.Event, n int64) {
	if l.taken && !l.ch.push(item{e: e, n: min(n, l.ch.max)}) {
		l.count(0, 1)
	}
}

func (l *channelLane) count(dropped, lost uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report.Dropped += dropped
	l.report.Lost += lost
}

// ask has nothing to wait for: what was put is with the consumer.
func (l *channelLane) ask(b *barrier) {
	if b.close {
		l.ch.Finish()
	}
	b.resolve(messages.Output{}, nil)
}

func (l *channelLane) stats() LaneReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.report
	r.Name = l.name
	l.ch.mu.Lock()
	defer l.ch.mu.Unlock()
	if l.ch.left && !l.ch.finished {
		r.Err = ErrConsumerGone
	}
	return r
}

var _ Sink = (*Channel)(nil)
