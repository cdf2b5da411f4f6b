package sinks

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// sinkActor is the place of one sink actor in the tree, and the subscriptions that
// it serves. It outlives the incarnations, which are consumers.
type sinkActor struct {
	hub *Hub
	key string
	// single says that the actor serves one subscription and ends with it. A failure of
	// its sink is a failure of the actor.
	single bool

	subs map[*subscription]struct{} // guarded by hub.mu
	// at addresses the actor, once the first incarnation has begun.
	at atomic.Pointer[supervisor.Ref]
	// dead says why there will be no further incarnation.
	dead atomic.Pointer[error]
}

// wake tells the actor that sub has something for it. When that fails, the actor
// is between two incarnations, or just about to be known at its place: the
// supervisor, which starts it, passes the message on.
func (sa *sinkActor) wake(sub *subscription) {
	if sa.tell(sub) {
		return
	}
	if actor := sa.hub.actor.Load(); actor == nil || !actor.Tell(sub) {
		sa.bury(sub)
	}
}

// tell is false when there is no actor now.
func (sa *sinkActor) tell(sub *subscription) bool {
	at := sa.at.Load()
	return at != nil && at.Tell(sub)
}

// bury ends sub if its actor has ended for good.
func (sa *sinkActor) bury(sub *subscription) {
	err := sa.dead.Load()
	if err == nil {
		return // an incarnation is to come, and its Init looks at all subscriptions
	}
	sub.die(*err)
	if sub.over() {
		sa.hub.remove(sub)
	}
}

// end kills all subscriptions, and those that are added later.
func (sa *sinkActor) end(err error) {
	sa.dead.Store(&err)
	for _, sub := range sa.hub.subscriptionsOf(sa) {
		sa.bury(sub)
	}
}

// serve is the work of an actor with a single subscription: it is in hand for as long
// as the subscription is open, so that a tree which drains waits for it.
type serve struct{ actor *sinkActor }

// consumer is one incarnation of a sink actor.
type consumer struct {
	actor *sinkActor
	ctx   context.Context
	hand  supervisor.Work // serve, while it is in hand
}

// Init makes itself known, and looks at what an earlier incarnation left.
func (c *consumer) Init(ctx *supervisor.Ctx) error {
	c.ctx = ctx.Context()
	self := ctx.Self()
	c.actor.at.Store(&self)
	for _, sub := range c.actor.hub.subscriptionsOf(c.actor) {
		if sub.pending() {
			ctx.Tell(sub)
		}
	}
	return nil
}

// Handle serves one subscription for a while.
func (c *consumer) Handle(ctx *supervisor.Ctx, msg any) error {
	switch m := msg.(type) {
	case *subscription:
		return c.drain(ctx, m)
	case supervisor.Work:
		if _, ok := m.Msg.(serve); !ok {
			return supervisor.Unknown(m.Msg)
		}
		c.hand = m
		subs := c.actor.hub.subscriptionsOf(c.actor)
		if len(subs) == 0 { // it was closed before the actor was up
			c.finish(ctx)
			return nil
		}
		return c.drain(ctx, subs[0])
	default:
		return supervisor.Unknown(msg)
	}
}

func (c *consumer) drain(ctx *supervisor.Ctx, sub *subscription) error {
	more, err := sub.drain(c.ctx, batch)
	switch {
	case sub.over():
		c.actor.hub.remove(sub)
		c.finish(ctx)
	case more:
		ctx.Tell(sub)
	}
	if err != nil && c.actor.single {
		return err
	}
	return nil
}

// finish ends an actor whose only subscription is closed.
func (c *consumer) finish(ctx *supervisor.Ctx) {
	if c.hand.Msg != nil {
		ctx.Finish(c.hand, nil)
		c.hand = supervisor.Work{}
	}
}

// shutdownTime bounds what sinks may still do when the tree ends under an open
// call, without what this process stands still.
const shutdownTime = 3 * time.Second

// Terminate brings the open subscriptions to an end if the tree ends. In every other
// case they go on with the next incarnation.
func (c *consumer) Terminate(_ *supervisor.Ctx, exit supervisor.Exit) {
	if exit.Kind != messages.ExitShutdown {
		return
	}
	ctx, done := opportunity.Within(context.Background(), opportunity.Budget{Opportunity: shutdownTime}, nil)
	defer done()
	for _, sub := range c.actor.hub.subscriptionsOf(c.actor) {
		sub.ask(&barrier{done: make(chan struct{})})
		sub.ask(&barrier{close: true, done: make(chan struct{})})
		_, err := sub.drain(ctx, -1)
		for err != nil { // the sink was replaced, which happens once
			_, err = sub.drain(ctx, -1)
		}
		sub.die(ErrClosed)
		c.actor.hub.remove(sub)
	}
}

// again restarts every actor that failed in a sink. It is the subscription that counts:
// a sink that fails twice is not called again, so one bad sink cannot keep its
// actor from serving the others, nor make it fail for ever. An actor that does
// not come up is not tried again.
type again struct{}

// Decide answers failures.
func (again) Decide(v strategy.View, ev strategy.Event) []strategy.Directive {
	f, ok := ev.(strategy.Fail)
	if !ok {
		return nil
	}
	if c, ok := v.Child(f.Key); !ok || c.UpAt.IsZero() {
		return nil
	}
	return []strategy.Directive{strategy.Restart(f.Key, 0)}
}

// handler is the hub's part of its supervisor. Its methods run in the
// supervisor's goroutine.
type handler struct {
	supervisor.BaseHandler
	hub *Hub
}

// Open lets calls be opened.
func (h *handler) Open(s *supervisor.Supervisor) error {
	h.hub.opened(s.Ctx().Self())
	return nil
}

// Handle starts the actor of a single subscription, or passes a wake on. An actor that
// is not there when the supervisor looks is started later, and looks itself.
func (h *handler) Handle(s *supervisor.Supervisor, msg any) error {
	switch m := msg.(type) {
	case *subscription:
		if !m.actor.tell(m) {
			m.actor.bury(m)
		}
		return nil
	case supervisor.Work:
		if w, ok := m.Msg.(serve); ok {
			s.Submit(w.actor.key, m)
			return nil
		}
	}
	return supervisor.Unknown(msg)
}

// Spec makes the actor of a single subscription.
func (h *handler) Spec(_ *supervisor.Supervisor, _ string, w supervisor.Work) (supervisor.Spec, error) {
	m, ok := w.Msg.(serve)
	if !ok {
		return supervisor.Spec{}, supervisor.Unknown(w.Msg)
	}
	return supervisor.Spec{Kind: "sink", New: func() supervisor.Behaviour { return &consumer{actor: m.actor} }}, nil
}

// Unserved starts the actor of a single subscription again when it failed. The
// subscription counts the failures of its sink, and is dead after the second.
func (h *handler) Unserved(s *supervisor.Supervisor, w supervisor.Work, e *supervisor.ServiceError) {
	m, ok := w.Msg.(serve)
	if !ok {
		w.Settle(e)
		return
	}
	if errors.Is(e, supervisor.ErrLost) && e.Exit.Failure() {
		s.Submit(m.actor.key, w)
		return
	}
	m.actor.end(e)
	w.Settle(e)
}

// Changed ends the subscriptions of a static actor that is gone for good.
func (h *handler) Changed(s *supervisor.Supervisor, ev messages.ChildChanged) {
	if ev.To != messages.ChildFailed && ev.To != messages.ChildGone {
		return
	}
	for _, sa := range h.hub.static() {
		if ev.Path == s.Ctx().Self().Path()+"/"+sa.key {
			sa.end(fmt.Errorf("%w: the actor %s has ended", ErrClosed, ev.Path))
		}
	}
}

// Close ends what is still open.
func (h *handler) Close(*supervisor.Supervisor, supervisor.Exit) { h.hub.closed() }

var (
	_ supervisor.Behaviour = (*consumer)(nil)
	_ strategy.Strategy    = again{}
	_ supervisor.Handler   = (*handler)(nil)
)
