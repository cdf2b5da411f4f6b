package sinks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// lossyFlush is how long a flush waits for the sinks that may lose events.
const lossyFlush = 250 * time.Millisecond

// outgoing is a lane as the emitting side sees it.
type outgoing interface {
	acquire(ctx context.Context, n int64) error
	cancel(n int64)
	put(e messages.Event, n int64)
	ask(b *barrier)
	isLossy() bool
	stats() LaneReport
}

func (l *lane) isLossy() bool { return l.lossy }

// Call is the outlet of one call: what its kernel emits goes to the result sink
// and to the other sinks of the call. Make one with [Hub.Open].
//
// Emit and Flush are called from one goroutine at a time; Close and Lanes from
// any.
type Call struct {
	hub    *Hub
	result *lane
	lanes  []outgoing // the result's is the first
	seq    uint64     // of the last event; the emitting goroutine's
	once   sync.Once
}

// Emit numbers e and hands it to all sinks. It blocks while a lossless one has
// no credit, and gives up with the cause of ctx: then e went to none of them.
func (c *Call) Emit(ctx context.Context, e messages.Event) error {
	n := int64(e.Size())
	for i, l := range c.lanes {
		if err := l.acquire(ctx, n); err != nil {
			for _, l := range c.lanes[:i] {
				l.cancel(n)
			}
			return err
		}
	}
	c.seq++
	e = e.At(messages.Position{Seq: c.seq, Cell: e.Pos().Cell})
	for _, l := range c.lanes {
		l.put(e, n)
	}
	c.hub.o.Metrics.emitted(e, n)
	return nil
}

// Flush waits until every sink has handled what was emitted, and returns what
// the result sink kept. For sinks that may lose events it waits 250 ms at most.
// When ctx ends first, what the other sinks have not handled stays on its way to
// them; if it is the result sink that is late, the Output says Lost.
func (c *Call) Flush(ctx context.Context) messages.Output {
	barriers := make([]barrier, len(c.lanes))
	for i, l := range c.lanes {
		barriers[i].done = make(chan struct{})
		l.ask(&barriers[i])
	}
	out := c.output(ctx, &barriers[0])
	for i, l := range c.lanes[1:] {
		b := &barriers[i+1]
		select {
		case <-b.done:
			continue
		default:
		}
		wait, cancel := ctx, context.CancelFunc(func() {})
		if l.isLossy() {
			wait, cancel = context.WithTimeout(ctx, lossyFlush)
		}
		select {
		case <-b.done:
		case <-wait.Done():
		}
		cancel()
	}
	return out
}

// output waits for the result sink.
func (c *Call) output(ctx context.Context, b *barrier) messages.Output {
	select {
	case <-b.done:
	default:
		select {
		case <-b.done:
		case <-ctx.Done():
			return messages.Output{Cells: []messages.CellOutput{}, Lost: fmt.Sprintf("the result sink did not finish: %v", context.Cause(ctx))}
		}
	}
	out := b.out
	switch r := c.result.stats(); {
	case b.err != nil:
		out.Lost = fmt.Sprintf("the result sink failed: %v", b.err)
	case r.Lost > 0:
		out.Lost = fmt.Sprintf("the result sink failed on %d of the events, and went on", r.Lost)
	}
	if out.Cells == nil {
		out.Cells = []messages.CellOutput{}
	}
	return out
}

// Close ends the call's sinks, once they have handled what was emitted. It does
// not wait for them. Calls after the first do nothing.
func (c *Call) Close() {
	c.once.Do(func() {
		for _, l := range c.lanes {
			l.ask(&barrier{close: true, done: make(chan struct{})})
		}
		c.hub.o.Metrics.closed(c.Lanes())
	})
}

// Lanes says how the sinks of the call fared so far, the result sink first.
func (c *Call) Lanes() []LaneReport {
	all := make([]LaneReport, len(c.lanes))
	for i, l := range c.lanes {
		all[i] = l.stats()
	}
	return all
}

var _ messages.Outlet = (*Call)(nil)
