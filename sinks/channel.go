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
	left     bool // the consumer takes no more
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

// channelSubscription is the way from a call to a Channel.
type channelSubscription struct {
	ch    *Channel
	name  string
	lossy bool
	taken bool // the emitting goroutine's

	mu     sync.Mutex
	report SinkReport
}

func newChannelSubscription(ch *Channel, o Subscription) *channelSubscription {
	return &channelSubscription{ch: ch, name: o.Name, lossy: o.Lossy}
}

func (sub *channelSubscription) isLossy() bool { return sub.lossy }

func (sub *channelSubscription) acquire(ctx context.Context, n int64) error {
	sub.taken = false
	n = min(n, sub.ch.max)
	switch {
	case sub.ch.gone():
		return nil
	case sub.lossy:
		if sub.taken = sub.ch.credit.TryAcquire(n); !sub.taken {
			sub.count(1, 0)
		}
		return nil
	}
	if err := sub.ch.credit.Acquire(ctx, n); err != nil {
		return err
	}
	sub.taken = true
	return nil
}

func (sub *channelSubscription) attempt(n int64) bool {
	sub.taken = false
	if sub.ch.gone() {
		return true
	}
	sub.taken = sub.ch.credit.TryAcquire(min(n, sub.ch.max))
	return sub.taken
}

func (sub *channelSubscription) force(e messages.Event) {
	if !sub.ch.push(item{e: e}) {
		sub.count(0, 1)
	}
}

func (sub *channelSubscription) drop() { sub.count(1, 0) }

func (sub *channelSubscription) cancel(n int64) {
	if sub.taken {
		sub.ch.credit.Release(min(n, sub.ch.max))
	}
}

func (sub *channelSubscription) put(e messages.Event, n int64) {
	if sub.taken && !sub.ch.push(item{e: e, n: min(n, sub.ch.max)}) {
		sub.count(0, 1)
	}
}

func (sub *channelSubscription) count(dropped, lost uint64) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	sub.report.Dropped += dropped
	sub.report.Lost += lost
}

// ask has nothing to wait for: what was put is with the consumer.
func (sub *channelSubscription) ask(b *barrier) {
	if b.close {
		sub.ch.Finish()
	}
	b.resolve(messages.Output{}, nil)
}

func (sub *channelSubscription) stats() SinkReport {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	r := sub.report
	r.Name = sub.name
	sub.ch.mu.Lock()
	defer sub.ch.mu.Unlock()
	if sub.ch.left && !sub.ch.finished {
		r.Err = ErrConsumerGone
	}
	return r
}

var _ Sink = (*Channel)(nil)
