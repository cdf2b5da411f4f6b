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

// Options say how a shell supervises. The zero value is a shell without
// children. NewShell copies them.
type Options struct {
	// Name says what the shell is, in errors; it need not be its key.
	Name string
	// Strategy decides about the children. nil: a child that fails is stopped.
	Strategy strategy.Strategy
	// Tick is how often the strategy gets a [strategy.Tick]. 0: 1 s.
	Tick time.Duration
	// Children are the static children. They are started in order, each up
	// before the next, and stopped in reverse. The shell is up when they all
	// are; if one does not come up and the strategy does not start it again,
	// the shell fails.
	Children []Spec
	// Door is the application's part. nil: the shell has static children only,
	// and drops messages.
	Door Door
	// MaxQueue is how much work may wait for one key; more is unserved with
	// ErrOverloaded. 0: 1024.
	MaxQueue int
	// MaxAbandoned is how many abandoned incarnations may still have a
	// goroutine that does not return. Go cannot end them; with more, the shell
	// escalates. 0: 64.
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

// Shell is a supervisor: a behaviour that owns a table of children, their
// queues of work, one timer, and a strategy. Being a behaviour it lives in a
// cell itself, under another shell or under the system, and nests to any
// depth.
//
// Its methods, except Init, Handle and Terminate, are for its [Door], in the
// shell's own goroutine. Everything in it belongs to that goroutine, except
// what its comment says otherwise.
type Shell struct {
	o       Options
	claimed atomic.Bool // it has a cell
	ctx     *Ctx
	sys     *System

	// box takes control messages from any goroutine; ledger has its own lock.
	box    ctlBox
	ledger ledger
	bell   chan struct{} // rung by box while Terminate waits

	table       map[string]*child
	first, last *child // the table in order
	order       int
	seq         uint64
	now         instant // of the present event

	reading []ctl // control messages that were taken out of box; those before read are done
	read    int
	kicks   []*child // children that may have something to do
	notes   []note   // what the Door is to be told; those before noted are done
	noted   int
	line    line   // keys that wait for capacity
	room    bool   // something happened that waiting keys wait for
	batch   *batch // the operation on several static children, nil without
	initial bool   // the static children are being started for the first time
	failure error  // what the shell fails with at the end of its turn
	live    int    // incarnations
	endings int    // how many incarnations were ever asked to end

	due      dueHeap
	timer    *time.Timer
	armed    instant // when the timer fires, 0: not armed
	nextTick instant

	idle, failures childList // dynamic children in these states
	tallies        tallies   // how many dynamic children take a place

	groupFailures []instant
	strays        map[*cell]stray // abandoned, and not back; nil without
	draining      *Exit           // no new work is taken
	ending        *Exit           // Terminate runs
	opened        bool            // Door.Open was entered, so Door.Close is owed
	hurried       bool            // the shutdown has run out of time
	closed        bool            // Terminate has come to its end
}

// note is something that the Door is told when the tables are in order: that a
// child changed, or that w is unserved.
type note struct {
	changed messages.ChildChanged
	w       Work
	err     *ServiceError
}

// NewShell returns a shell. It serves one incarnation: make it in Spec.New.
func NewShell(o Options) *Shell {
	return &Shell{o: o.withDefaults(), table: make(map[string]*child), tallies: make(tallies), bell: make(chan struct{}, 1)}
}

// Init opens the Door and starts the static children. It does not wait for
// them.
func (s *Shell) Init(ctx *Ctx) error {
	s.ctx, s.sys = ctx, ctx.c.sys
	self := ctx.c
	s.box.rewire(func() { self.send(wakeMsg{}) })
	s.now = s.sys.now()
	s.nextTick = s.now + instant(s.o.Tick)
	if s.o.Door != nil {
		s.opened = true
		if !s.protect(func() error { return s.o.Door.Open(s) }) {
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

// Handle gives the message to the Door.
func (s *Shell) Handle(_ *Ctx, msg any) error {
	s.now = s.sys.now()
	if s.o.Door == nil {
		s.ctx.c.drop(msg, false)
		return nil
	}
	s.protect(func() error { return s.o.Door.Handle(s, msg) })
	s.settle()
	return s.failed()
}

// fail remembers the first failure of a turn.
func (s *Shell) fail(err error) {
	if s.failure == nil {
		s.failure = err
	}
}

func (s *Shell) failed() error {
	err := s.failure
	s.failure = nil
	return err
}

// Ctx is the shell's own context.
func (s *Shell) Ctx() *Ctx { return s.ctx }

// Now is the time of the present event.
func (s *Shell) Now() time.Time { return s.sys.at(s.now) }

// Ref addresses the child of key; the zero Ref when there is none.
func (s *Shell) Ref(key string) Ref {
	if ch := s.table[key]; ch != nil {
		return Ref{ch.slot}
	}
	return Ref{}
}

// Child describes the child of key.
func (s *Shell) Child(key string) (strategy.ChildView, bool) {
	ch := s.table[key]
	if ch == nil {
		return strategy.ChildView{}, false
	}
	return ch.view(s), true
}

// Children ranges over all children, in the order in which their keys became
// known.
func (s *Shell) Children() iter.Seq[strategy.ChildView] {
	return func(yield func(strategy.ChildView) bool) {
		for ch := s.first; ch != nil; ch = ch.behind {
			if !yield(ch.view(s)) {
				return
			}
		}
	}
}

// add makes an entry for a key.
func (s *Shell) add(spec *Spec, static bool) *child {
	s.order++
	ch := &child{spec: spec, static: static, order: s.order, slot: s.ctx.c.slot.grow(spec.Key), index: -1, before: s.last}
	ch.since = s.now
	ch.slot.static = static
	if s.last != nil {
		s.last.behind = ch
	} else {
		s.first = ch
	}
	s.last = ch
	s.table[spec.Key] = ch
	return ch
}

// remove takes the entry of a key out.
func (s *Shell) remove(ch *child) {
	if ch.before != nil {
		ch.before.behind = ch.behind
	} else {
		s.first = ch.behind
	}
	if ch.behind != nil {
		ch.behind.before = ch.before
	} else {
		s.last = ch.before
	}
	delete(s.table, ch.spec.Key)
	s.ctx.c.slot.prune(ch.slot)
}

var _ Behaviour = (*Shell)(nil)
