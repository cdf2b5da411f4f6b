package supervisor

import (
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// Options make a [Supervisor]. The zero value is one without children. New
// copies them.
type Options struct {
	// Name says what the supervisor is, in errors; it need not be its key.
	Name string
	// Strategy decides about the children. nil: a child that fails is stopped.
	Strategy strategy.Strategy
	// Tick is how often the strategy gets a [strategy.Tick]. 0: 1 s.
	Tick time.Duration
	// Children are the static children. They are started in order, each up
	// before the next, and stopped in reverse. The supervisor is up when they
	// all are; if one does not come up and the strategy does not start it
	// again, the supervisor fails.
	Children []Spec
	// Handler is the application's part. nil: the supervisor has static children
	// only, and drops messages.
	Handler Handler
	// MaxQueue is how much work may wait for one key; more is unserved with
	// ErrOverloaded. What was settled while it waited takes no place. 0: 1024.
	MaxQueue int
	// MaxAbandoned is how many abandoned incarnations may still have a
	// goroutine that does not return. Go cannot end them; with more, the
	// supervisor escalates. 0: 64.
	MaxAbandoned int
}

func (o Options) withDefaults() Options {
	if o.Tick <= 0 {
		o.Tick = time.Second
	}
	if o.MaxQueue <= 0 {
		o.MaxQueue = 1024
	}
	if o.MaxAbandoned <= 0 {
		o.MaxAbandoned = 64
	}
	o.Children = slices.Clone(o.Children)
	return o
}

// Supervisor is a behaviour that owns a table of children, their queues of
// work, one timer, and a strategy. Being a behaviour it has incarnations
// itself, under another supervisor or under the system, and nests to any depth.
//
// Its methods, except Init, Handle and Terminate, are for its [Handler], in the
// supervisor's own goroutine. Everything in it belongs to that goroutine, except
// what its comment says otherwise.
type Supervisor struct {
	o       Options
	claimed atomic.Bool // it has an incarnation
	ctx     *Ctx
	sys     *commons

	// box takes control messages from any goroutine; ledger has its own lock.
	box    ctlBox
	ledger ledger
	bell   chan struct{} // rung by box while Terminate waits

	children
	seq uint64

	reading []ctl // control messages that were taken out of box; those before read are done
	read    int
	kicks   []*child // children that may have something to do
	notes   []note   // what the Handler is to hear; those before noted are done
	noted   int
	room    bool   // something happened that waiting keys wait for
	batch   *batch // the operation on several static children, nil without
	initial bool   // the static children are being started for the first time
	failure error  // what the supervisor fails with at the end of its turn
	live    int    // incarnations
	endings int    // how many incarnations were ever asked to end

	due      dueHeap
	timer    *time.Timer
	armed    instant // when the timer fires, 0: not armed
	nextTick instant

	resumed time.Time // when this process last came back from standing still, as far as a tick has told

	lent time.Duration // how much longer than its StopTimeout a child was waited for, at most

	draining *Exit // no new work is taken
	ending   *Exit // Terminate runs
	opened   bool  // Handler.Open was entered, so Handler.Close is owed
	hurried  bool  // the shutdown has run out of time
	closed   bool  // Terminate has come to its end
}

// note is something that the Handler hears when the tables are in order: that
// a child changed, or that w is unserved.
type note struct {
	changed messages.ChildChanged
	w       Work
	err     *ServiceError
}

// New returns a supervisor. It serves one incarnation: make it in Spec.New.
func New(o Options) *Supervisor {
	return &Supervisor{o: o.withDefaults(), children: children{table: make(map[string]*child), tallies: make(tallies)}, bell: make(chan struct{}, 1)}
}

// Init opens the Handler and starts the static children. It does not wait for
// them.
func (s *Supervisor) Init(ctx *Ctx) error {
	s.ctx, s.sys = ctx, ctx.c.sys
	s.clock, s.stalls, s.home = s.sys.clock, s.sys.stalls, ctx.c.slot
	self := ctx.c
	s.box.rewire(func() { self.send(wakeMsg{}) })
	s.now = s.sys.now()
	s.nextTick = s.now + instant(s.o.Tick)
	if s.o.Handler != nil {
		s.opened = true
		if !s.protect(func() error { return s.o.Handler.Open(s) }) {
			return s.failed()
		}
	}
	s.initial = true
	s.batch = &batch{moved: true}
	for i := range s.o.Children {
		if key := s.o.Children[i].Key; s.table[key] != nil {
			return fmt.Errorf("two children are called %q", key)
		}
		s.join(s.add(&s.o.Children[i], true), nil)
	}
	s.settle()
	return s.failed()
}

// Handle gives the message to the Handler.
func (s *Supervisor) Handle(_ *Ctx, msg any) error {
	s.now = s.sys.now()
	if s.o.Handler == nil {
		s.ctx.c.drop(msg, false)
		return nil
	}
	s.protect(func() error { return s.o.Handler.Handle(s, msg) })
	s.settle()
	return s.failed()
}

// protect calls a function of the Handler or of the Strategy. A panic or an
// error becomes the failure of the supervisor, which reports it at the end of
// its turn: its tables are in order by then.
func (s *Supervisor) protect(f func() error) (ok bool) { return protect(f, s.fail) }

// fail remembers the first failure of a turn.
func (s *Supervisor) fail(err error) {
	if s.failure == nil {
		s.failure = err
	}
}

func (s *Supervisor) failed() error {
	err := s.failure
	s.failure = nil
	return err
}

func (s *Supervisor) claim() bool         { return s.claimed.CompareAndSwap(false, true) }
func (s *Supervisor) finished() bool      { return s.closed }
func (s *Supervisor) seal()               { s.box.close() }
func (s *Supervisor) disown() int         { return s.ledger.close(ErrGone) }
func (s *Supervisor) itself() *Supervisor { return s }

// supervisorOf returns the behaviour of c if that is a Supervisor, otherwise
// nil; c may be nil.
func supervisorOf(c *incarnation) *Supervisor {
	if c == nil {
		return nil
	}
	if o, ok := c.overseer().(interface{ itself() *Supervisor }); ok {
		return o.itself() // also when a behaviour embeds its Supervisor
	}
	return nil
}

// Ctx is the supervisor's own context.
func (s *Supervisor) Ctx() *Ctx { return s.ctx }

// Now is the time of the present event.
func (s *Supervisor) Now() time.Time { return s.clock.at(s.now) }

// Ref addresses the child of key; the zero Ref when there is none.
func (s *Supervisor) Ref(key string) Ref {
	if ch := s.table[key]; ch != nil {
		return Ref{ch.slot}
	}
	return Ref{}
}

// Child describes the child of key.
func (s *Supervisor) Child(key string) (strategy.ChildView, bool) {
	ch := s.table[key]
	if ch == nil {
		return strategy.ChildView{}, false
	}
	return ch.view(s.clock), true
}

// Children ranges over all children, in the order in which their keys became
// known.
func (s *Supervisor) Children() iter.Seq[strategy.ChildView] {
	return func(yield func(strategy.ChildView) bool) {
		for ch := s.first; ch != nil; ch = ch.behind {
			if !yield(ch.view(s.clock)) {
				return
			}
		}
	}
}

var _ overseer = (*Supervisor)(nil)
