package sinks

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// station is the place of one sink actor in the tree, and the lanes that it
// serves. It outlives the actor's incarnations.
type station struct {
	hub *Hub
	key string
	// single says that the actor serves one lane and ends with it. A failure of
	// its sink is a failure of the actor.
	single bool

	lanes map[*lane]struct{} // guarded by hub.mu
	// at addresses the actor, once the first incarnation has begun.
	at atomic.Pointer[supervisor.Ref]
	// dead says why there will be no further incarnation.
	dead atomic.Pointer[error]
}

// wake tells the actor that l has something for it. When that fails, the actor
// is between two incarnations, or just about to be known at its place: the
// supervisor, which starts it, passes the message on.
func (st *station) wake(l *lane) {
	if st.tell(l) {
		return
	}
	if actor := st.hub.actor.Load(); actor == nil || !actor.Tell(l) {
		st.bury(l)
	}
}

// tell is false when there is no actor now.
func (st *station) tell(l *lane) bool {
	at := st.at.Load()
	return at != nil && at.Tell(l)
}

// bury ends l if its station has ended.
func (st *station) bury(l *lane) {
	err := st.dead.Load()
	if err == nil {
		return // an incarnation is to come, and its Init looks at all lanes
	}
	l.die(*err)
	if l.over() {
		st.hub.remove(l)
	}
}

// end kills all lanes, and those that are added later.
func (st *station) end(err error) {
	st.dead.Store(&err)
	for _, l := range st.hub.lanesOf(st) {
		st.bury(l)
	}
}

// serve is the work of an actor with a single lane: it is in hand for as long as
// the lane is open, so that a tree which drains waits for it.
type serve struct{ st *station }

// consumer is the actor of a station.
type consumer struct {
	st   *station
	ctx  context.Context
	hand supervisor.Work // serve, while it is in hand
}

// Init makes itself known, and looks at what an earlier incarnation left.
func (c *consumer) Init(ctx *supervisor.Ctx) error {
	c.ctx = ctx.Context()
	self := ctx.Self()
	c.st.at.Store(&self)
	for _, l := range c.st.hub.lanesOf(c.st) {
		if l.pending() {
			ctx.Tell(l)
		}
	}
	return nil
}

// Handle serves one lane for a while.
func (c *consumer) Handle(ctx *supervisor.Ctx, msg any) error {
	switch m := msg.(type) {
	case *lane:
		return c.drain(ctx, m)
	case supervisor.Work:
		if _, ok := m.Msg.(serve); !ok {
			return supervisor.Unknown(m.Msg)
		}
		c.hand = m
		lanes := c.st.hub.lanesOf(c.st)
		if len(lanes) == 0 { // it was closed before the actor was up
			c.finish(ctx)
			return nil
		}
		return c.drain(ctx, lanes[0])
	default:
		return supervisor.Unknown(msg)
	}
}

func (c *consumer) drain(ctx *supervisor.Ctx, l *lane) error {
	more, err := l.drain(c.ctx, batch)
	switch {
	case l.over():
		c.st.hub.remove(l)
		c.finish(ctx)
	case more:
		ctx.Tell(l)
	}
	if err != nil && c.st.single {
		return err
	}
	return nil
}

// finish ends an actor whose only lane is closed.
func (c *consumer) finish(ctx *supervisor.Ctx) {
	if c.hand.Msg != nil {
		ctx.Finish(c.hand, nil)
		c.hand = supervisor.Work{}
	}
}

// shutdownTime bounds what sinks may still do when the tree ends under an open
// call.
const shutdownTime = 3 * time.Second

// Terminate brings the open lanes to an end if the tree ends. In every other
// case they go on with the next incarnation.
func (c *consumer) Terminate(_ *supervisor.Ctx, exit supervisor.Exit) {
	if exit.Kind != messages.ExitShutdown {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	for _, l := range c.st.hub.lanesOf(c.st) {
		l.ask(&barrier{done: make(chan struct{})})
		l.ask(&barrier{close: true, done: make(chan struct{})})
		_, err := l.drain(ctx, -1)
		for err != nil { // the sink was replaced, which happens once
			_, err = l.drain(ctx, -1)
		}
		l.die(ErrClosed)
		c.st.hub.remove(l)
	}
}

// again restarts every actor that failed in a sink. It is the lane that counts:
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

// Handle starts the actor of a single lane, or passes a wake on. An actor that
// is not there when the supervisor looks is started later, and looks itself.
func (h *handler) Handle(s *supervisor.Supervisor, msg any) error {
	switch m := msg.(type) {
	case *lane:
		if !m.station.tell(m) {
			m.station.bury(m)
		}
		return nil
	case supervisor.Work:
		if w, ok := m.Msg.(serve); ok {
			s.Submit(w.st.key, m)
			return nil
		}
	}
	return supervisor.Unknown(msg)
}

// Spec makes the actor of a single lane.
func (h *handler) Spec(_ *supervisor.Supervisor, _ string, w supervisor.Work) (supervisor.Spec, error) {
	m, ok := w.Msg.(serve)
	if !ok {
		return supervisor.Spec{}, supervisor.Unknown(w.Msg)
	}
	return supervisor.Spec{Kind: "sink", New: func() supervisor.Behaviour { return &consumer{st: m.st} }}, nil
}

// Unserved starts the actor of a single lane again when it failed. The lane
// counts the failures of its sink, and is dead after the second.
func (h *handler) Unserved(s *supervisor.Supervisor, w supervisor.Work, e *supervisor.ServiceError) {
	m, ok := w.Msg.(serve)
	if !ok {
		w.Settle(e)
		return
	}
	if errors.Is(e, supervisor.ErrLost) && e.Exit.Failure() {
		s.Submit(m.st.key, w)
		return
	}
	m.st.end(e)
	w.Settle(e)
}

// Changed ends the lanes of a static actor that is gone for good.
func (h *handler) Changed(s *supervisor.Supervisor, ev messages.ChildChanged) {
	if ev.To != messages.ChildFailed && ev.To != messages.ChildGone {
		return
	}
	for _, st := range h.hub.static() {
		if ev.Path == s.Ctx().Self().Path()+"/"+st.key {
			st.end(fmt.Errorf("%w: the actor %s has ended", ErrClosed, ev.Path))
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
