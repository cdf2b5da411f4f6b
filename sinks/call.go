package sinks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
)

// lossyFlush is how long a flush waits for the sinks that may lose events.
const lossyFlush = 250 * time.Millisecond

// patientFlush is how long it waits for the others, once the result is there. What
// they have not handled by then stays on its way to them.
const patientFlush = 10 * time.Second

// hurriedFlush is how long it waits for each other one after Hurry.
const hurriedFlush = 20 * time.Millisecond

// outgoing is a subscription as the emitting side sees it.
type outgoing interface {
	acquire(ctx context.Context, n int64) error
	cancel(n int64)
	put(e messages.Event, n int64)
	ask(b *barrier)
	isLossy() bool
	stats() SinkReport
	// attempt is acquire without the wait; false: there is no credit.
	attempt(n int64) bool
	// force hands over an event without credit, drop counts one that is left out.
	force(e messages.Event)
	drop()
}

func (sub *subscription) isLossy() bool { return sub.lossy }

// Call is the outlet of one call: what its kernel emits goes to the result sink
// and to the other sinks of the call. Make one with [Hub.Open].
//
// Emit and Flush are called from one goroutine at a time; Close, Hurry and Reports
// from any.
type Call struct {
	hub    *Hub
	result *subscription
	subs   []outgoing // the result's is the first
	once   sync.Once
	// metrics counts it; nil: it is not counted.
	metrics *Metrics

	// stalls replaces a watch of Flush in tests. nil: it does not.
	stalls opportunity.Stalls

	// mu guards hurried, after which slow sinks are not waited for, and stop, which
	// ends the present wait.
	mu      sync.Mutex
	hurried bool
	stop    context.CancelCauseFunc

	// The rest belongs to the emitting goroutine: what a flush measures that waits for a
	// late sink, the number of the last event, which subscriptions go without the one in
	// hand, and which of them know it.
	late    *flushing
	seq     uint64
	without []bool
	told    []bool
}

// Hurry makes the call go on without sinks that are slow: a lossless one that has
// no credit gets a notice in place of output from now on, and Flush waits for
// it as for a lossy one. The result sink is waited for as before.
func (c *Call) Hurry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hurried = true
	if c.stop != nil {
		c.stop(errHurried)
	}
}

// inHurry reports whether Hurry was called; if not, stop is what it will call.
func (c *Call) inHurry(stop context.CancelCauseFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = stop
	return c.hurried
}

// Emit numbers e and hands it to all sinks. It blocks while a lossless one has
// no credit, and gives up with the cause of ctx: then e went to none of them.
func (c *Call) Emit(ctx context.Context, e messages.Event) error {
	n := int64(e.Size())
	for i := range c.subs {
		if err := c.acquire(ctx, i, n); err != nil {
			for _, sub := range c.subs[:i] {
				sub.cancel(n)
			}
			return err
		}
	}
	c.seq++
	e = e.At(messages.Position{Seq: c.seq, Cell: e.Pos().Cell})
	for i, sub := range c.subs {
		if c.without != nil && c.without[i] {
			c.leaveOut(i, e)
			continue
		}
		sub.put(e, n)
	}
	c.metrics.emitted(e, n)
	return nil
}

// acquire takes the credit of subscription i. Once the call is in a hurry, a lossless
// sink that has none goes without the event.
func (c *Call) acquire(ctx context.Context, i int, n int64) error {
	sub := c.subs[i]
	if i == 0 || sub.isLossy() {
		return sub.acquire(ctx, n)
	}
	if sub.attempt(n) {
		if c.without != nil {
			c.without[i], c.told[i] = false, false
		}
		return nil
	}
	wait, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !c.inHurry(cancel) {
		err := sub.acquire(wait, n)
		c.inHurry(nil)
		if err == nil || !errors.Is(context.Cause(wait), errHurried) {
			return err
		}
	}
	if c.without == nil {
		c.without, c.told = make([]bool, len(c.subs)), make([]bool, len(c.subs))
	}
	c.without[i] = true
	return nil
}

// errHurried ends the wait for the credit of a slow sink.
var errHurried = errors.New("the call goes on without the sink")

// NoticeSkipped is the code of the notice that a sink gets in place of
// output that it did not take in time.
const NoticeSkipped = "output-skipped"

// leaveOut lets subscription i go without e, if that is output: what is small and tells
// how the call goes is handed over all the same.
func (c *Call) leaveOut(i int, e messages.Event) {
	switch e.(type) {
	case messages.Stream, messages.Display, messages.ExecuteResult, messages.Comm:
	default:
		c.subs[i].force(e)
		return
	}
	c.subs[i].drop()
	if !c.told[i] {
		c.told[i] = true
		c.subs[i].force(messages.Notice{Code: NoticeSkipped, Text: "output is left out here: it was not taken in time after the call was interrupted"}.At(e.Pos()))
	}
}

// Flush waits until every sink has handled what was emitted, and returns what
// the result sink kept. That one is waited for until ctx ends; then for sinks that
// may lose events it waits 250 ms at most, for others 10 s, and after Hurry for none.
// When ctx ends first, what the other sinks have not handled stays on its way to
// them; if it is the result sink that is late, the Output says Lost.
func (c *Call) Flush(ctx context.Context) messages.Output {
	barriers := make([]barrier, len(c.subs))
	for i := range barriers {
		barriers[i].done = make(chan struct{})
	}
	for i, sub := range c.subs[1:] {
		sub.ask(&barriers[i+1])
	}
	if !c.result.flushHere(&barriers[0]) {
		c.result.ask(&barriers[0])
	}
	out := c.output(ctx, &barriers[0])
	defer c.flushed()
	for i, sub := range c.subs[1:] {
		limit := patientFlush
		if sub.isLossy() {
			limit = lossyFlush
		}
		c.await(ctx, &barriers[i+1], limit)
	}
	return out
}

// flushing measures how long a flush waits for sinks that are late, without what this
// process stands still: sinks are a part of it.
type flushing struct {
	watch opportunity.Watch
	meter *opportunity.Meter
}

// isLate returns the meter of this flush, which begins with the first sink that is late.
func (c *Call) isLate() *opportunity.Meter {
	if c.late == nil {
		c.late = &flushing{}
		c.late.watch.Start()
		stalls := c.stalls
		if stalls == nil {
			stalls = &c.late.watch
		}
		c.late.meter = opportunity.Begin(nil, stalls)
	}
	return c.late.meter
}

// flushed gives back what a flush holds.
func (c *Call) flushed() {
	if c.late != nil {
		c.late.watch.Stop()
		c.late = nil
	}
}

// await waits for a sink other than that of the result, until the flush has waited for so
// long, and not after Hurry.
func (c *Call) await(ctx context.Context, b *barrier, limit time.Duration) {
	select {
	case <-b.done: // as nearly always
		return
	default:
	}
	wait, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	meter := c.isLate()
	if c.inHurry(cancel) {
		limit = meter.Opportunity() + hurriedFlush
	}
	defer c.inHurry(nil)
	_ = opportunity.Wait(wait, opportunity.Budget{Opportunity: limit}, meter, b.done) // what it has not handled stays on its way to it
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

// Finish hands the call's result to the sinks that asked for it, and returns when
// they have taken it, or with the cause of ctx. It is called once, after the last
// Flush and before Close.
func (c *Call) Finish(ctx context.Context, r messages.Result) error {
	c.metrics.finished(r)
	var waits []*barrier
	for _, o := range c.subs {
		sub, ok := o.(*subscription)
		if !ok || !sub.final {
			continue
		}
		c.seq++
		sub.force(messages.Final{Position: messages.Position{Seq: c.seq, Cell: -1}, Result: r})
		b := &barrier{done: make(chan struct{})}
		sub.ask(b)
		waits = append(waits, b)
	}
	for _, b := range waits {
		select {
		case <-b.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Close ends the call's sinks, once they have handled what was emitted. It does
// not wait for them. Calls after the first do nothing.
func (c *Call) Close() {
	c.once.Do(func() {
		for i, sub := range c.subs {
			if i > 0 || !c.result.retire() {
				sub.ask(&barrier{close: true, done: make(chan struct{})})
			}
		}
		c.metrics.closed(c.Reports())
	})
}

// Reports says how the sinks of the call fared so far, the result sink first.
func (c *Call) Reports() []SinkReport {
	all := make([]SinkReport, len(c.subs))
	for i, sub := range c.subs {
		all[i] = sub.stats()
	}
	return all
}

var (
	_ messages.Outlet  = (*Call)(nil)
	_ messages.Hurrier = (*Call)(nil)
)
