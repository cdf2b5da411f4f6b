package sinks

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/artifact"
	"github.com/coppice-run/coppice/sinks/budget"
	"github.com/coppice-run/coppice/sinks/result"
	"github.com/coppice-run/coppice/supervisor"
)

// Attachment is a sink of the host that takes the events of all calls.
type Attachment struct {
	// Name is the name of its actor in the tree. Required, and unique.
	Name string
	// For makes the sink that takes the events of one call. It is called by
	// [Hub.Open], from any goroutine, with its context, of which the values count: the
	// span that the call belongs to. All sinks that it makes are used by one actor, one
	// at a time. nil from it: not this call.
	For func(ctx context.Context, exec messages.Execute) Sink
	// Lossy lets it drop and count events instead of holding calls back.
	Lossy bool
	// Credit is how many bytes of events of all calls may be on their way. 0: 1
	// MiB.
	Credit int64
	// Final gives it a [messages.Final] with the call's result as the last event of
	// each call that was made, also of one that never ran.
	Final bool
}

// HubOptions make a [Hub]. The zero value of each field is its default.
type HubOptions struct {
	// Name is the hub's key in the tree. "": "sinks".
	Name string
	// Brand names the MIME type of status events. "": coppice.
	Brand string
	// Artifacts is the folder for the raw output of calls whose text is cut. "":
	// it is not kept. Store takes its place if it is set.
	Artifacts string
	Store     *artifact.Store
	// Budget bounds the text of one call.
	Budget budget.Options
	// Result has the other bounds of what a result keeps; its Brand, Budget and
	// Store are the hub's.
	Result result.Options
	// Credit is how many bytes of events may be on their way to the result sink
	// of one call. 0: 1 MiB.
	Credit int64
	// Shards is how many actors share the result sinks of all sessions. 0: 8.
	Shards int
	// Sinks take the events of all calls.
	Sinks []Attachment
	// Metrics counts the events of all calls. nil: they are not counted.
	Metrics *Metrics
	// Logger hears of each of Sinks that failed for a call, or when it was closed: the
	// call itself does not fail with it. nil: it is not logged.
	Logger *slog.Logger
}

// Hub owns the sinks of a host: a supervisor in the tree, and the calls that are
// open. Any goroutine may use it.
type Hub struct {
	o      HubOptions
	shards []*sinkActor // not changed
	shared []*sinkActor // of o.Sinks, in order; not changed
	credit []*supervisor.Credit
	seed   maphash.Seed

	actor  atomic.Pointer[supervisor.Ref] // nil while no calls can be opened
	serial atomic.Uint64

	mu      sync.Mutex
	singles map[*sinkActor]struct{}
}

// NewHub makes a hub. It does nothing until its Spec was started.
func NewHub(o HubOptions) (*Hub, error) {
	if o.Name == "" {
		o.Name = "sinks"
	}
	if o.Shards <= 0 {
		o.Shards = 8
	}
	if o.Store == nil {
		o.Store = artifact.New(artifact.Options{Dir: o.Artifacts})
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Credit = creditOf(o.Credit)
	o.Result.Brand, o.Result.Budget, o.Result.Store = o.Brand, o.Budget, o.Store
	h := &Hub{o: o, seed: maphash.MakeSeed(), singles: make(map[*sinkActor]struct{})}
	names := make(map[string]bool)
	for i := range o.Shards {
		sa := h.newActor("result-"+strconv.Itoa(i), false)
		names[sa.key] = true
		h.shards = append(h.shards, sa)
	}
	for _, a := range o.Sinks {
		if a.Name == "" || a.For == nil {
			return nil, errors.New("a sink for all calls needs a name and a function that makes it")
		}
		if names[a.Name] {
			return nil, fmt.Errorf("two sinks for all calls are called %q", a.Name)
		}
		names[a.Name] = true
		h.shared = append(h.shared, h.newActor(a.Name, false))
		h.credit = append(h.credit, supervisor.NewCredit(creditOf(a.Credit)))
	}
	return h, nil
}

func creditOf(n int64) int64 {
	if n <= 0 {
		return DefaultCredit
	}
	return n
}

func (h *Hub) newActor(key string, single bool) *sinkActor {
	return &sinkActor{hub: h, key: key, single: single, subs: make(map[*subscription]struct{})}
}

// Artifacts returns the store of the raw outputs.
func (h *Hub) Artifacts() *artifact.Store { return h.o.Store }

// Spec returns how to make the hub's supervisor: a child for the root of a
// tree. It should be the first one there, so that it ends last.
func (h *Hub) Spec() supervisor.Spec {
	return supervisor.Spec{Key: h.o.Name, Kind: "sinks", New: func() supervisor.Behaviour {
		var children []supervisor.Spec
		for i, sa := range h.static() {
			kind := "result"
			if i >= len(h.shards) {
				kind = "sink"
			}
			children = append(children, supervisor.Spec{
				Key: sa.key, Kind: kind, New: func() supervisor.Behaviour { return &consumer{actor: sa} },
			})
		}
		return supervisor.New(supervisor.Options{
			Name: h.o.Name, Handler: &handler{hub: h}, Children: children, Strategy: again{},
		})
	}}
}

// opened is called when the supervisor is there.
func (h *Hub) opened(actor supervisor.Ref) {
	for _, sa := range h.static() {
		sa.dead.Store(nil)
	}
	h.actor.Store(&actor)
}

// closed is called when it has ended.
func (h *Hub) closed() {
	h.actor.Store(nil)
	for _, sa := range h.all() {
		sa.end(ErrClosed)
	}
}

// static returns the actors that are always there.
func (h *Hub) static() []*sinkActor { return slices.Concat(h.shards, h.shared) }

// all returns the actors that are in use.
func (h *Hub) all() []*sinkActor {
	all := h.static()
	h.mu.Lock()
	defer h.mu.Unlock()
	for sa := range h.singles {
		all = append(all, sa)
	}
	return all
}

// Open makes the outlet of one call, with the result sink, the sinks of the hub
// and extra ones. A [Subscription] says more about one of these; a [Channel] is served
// without an actor. ctx is for the opening alone.
//
// The caller closes the outlet when the call has ended, whether it was used or
// not. The error is [ErrClosed] when the hub is not part of a running tree, or
// the cause of ctx; the extra sinks are not touched then.
func (h *Hub) Open(ctx context.Context, exec messages.Execute, extra ...Sink) (*Call, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	actor := h.actor.Load()
	if actor == nil {
		return nil, ErrClosed
	}
	c := &Call{hub: h, subs: make([]outgoing, 0, 1+len(h.shared)+len(extra))}
	c.result = h.subscribeResult(exec)
	c.subs = append(c.subs, c.result)
	for i, a := range h.o.Sinks {
		if s := a.For(ctx, exec); s != nil {
			tell := h.failureOf(a.Name, exec.ID)
			c.subs = append(c.subs, h.add(h.shared[i], &subscription{name: a.Name, sink: s, lossy: a.Lossy, final: a.Final, credit: h.credit[i], max: creditOf(a.Credit), onGone: tell, unclosed: tell}))
		}
	}
	for _, s := range extra {
		c.subs = append(c.subs, h.subscribeExtra(*actor, s))
	}
	if len(exec.Cells) > 0 { // else it only gets a session its kernel, which is no call of anyone
		c.metrics = h.o.Metrics
	}
	c.metrics.opened()
	return c, nil
}

// failureOf is what logs the failure of a sink that takes the events of all calls.
func (h *Hub) failureOf(sink string, exec string) func(error) {
	return func(err error) {
		if !errors.Is(err, ErrClosed) && !errors.Is(err, ErrConsumerGone) {
			h.o.Logger.Error("a sink failed, and what the rest of the call shows does not get there", "sink", sink, "exec", exec, "err", err)
		}
	}
}

func (h *Hub) subscribeResult(exec messages.Execute) *subscription {
	o := h.o.Result
	if exec.Tokens > 0 {
		o.Tokens = exec.Tokens
	}
	s := &resultSink{fold: result.New(o, len(exec.Cells))}
	shard := maphash.Comparable(h.seed, exec.Key) % uint64(len(h.shards))
	return h.add(h.shards[shard], &subscription{
		name: "result", sink: s, credit: supervisor.NewCredit(h.o.Credit), max: h.o.Credit,
		lazy:  true,
		brief: len(exec.Cells) <= 1 && o.Tokens == 0 && o.Budget.Brief(briefBytes),
		again: func() Sink { return s }, // what it gathered is worth more than a clean start
	})
}

// subscribeExtra connects a sink of one call, and starts its actor.
func (h *Hub) subscribeExtra(actor supervisor.Ref, s Sink) outgoing {
	var o Subscription
	switch v := s.(type) {
	case Subscription:
		o = v
	case *Subscription:
		o = *v
	default:
		o.Sink = s
	}
	if o.Name == "" {
		o.Name = "sink"
	}
	if ch, ok := o.Sink.(*Channel); ok {
		return newChannelSubscription(ch, o)
	}
	sub := &subscription{name: o.Name, sink: o.Sink, lossy: o.Lossy, max: creditOf(o.Credit), again: o.Again, onGone: o.OnGone}
	sub.credit = supervisor.NewCredit(sub.max)
	sa := h.newActor(o.Name+"#"+strconv.FormatUint(h.serial.Add(1), 10), true)
	h.add(sa, sub)
	w, _ := supervisor.NewWork[any](serve{sa})
	w.Last = true
	if !actor.Tell(w) {
		sa.end(ErrClosed)
	}
	return sub
}

// add has an actor serve sub.
func (h *Hub) add(sa *sinkActor, sub *subscription) *subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	sub.actor = sa
	sa.subs[sub] = struct{}{}
	if sa.single {
		h.singles[sa] = struct{}{}
	}
	return sub
}

// remove takes a subscription out, and its actor if it served that one alone.
func (h *Hub) remove(sub *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(sub.actor.subs, sub)
	if sub.actor.single {
		delete(h.singles, sub.actor)
	}
}

func (h *Hub) subscriptionsOf(sa *sinkActor) []*subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	subs := make([]*subscription, 0, len(sa.subs))
	for sub := range sa.subs {
		subs = append(subs, sub)
	}
	return subs
}
