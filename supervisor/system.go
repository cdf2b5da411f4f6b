package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anthdm/hollywood/actor"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// SystemOptions say what a system consists of. The zero value is a system
// without actors.
type SystemOptions struct {
	// Name is the root's name in snapshots. "": "supervisor".
	Name string
	// Children are the top of the tree: started in order, each up before the
	// next, and stopped in reverse.
	Children []Spec
	// Strategy decides about them. nil: a child that fails is stopped.
	Strategy strategy.Strategy
	// OnEscalate is called once, from a goroutine of its own, when the root
	// itself fails. The tree is shut down at the same time, in any case.
	OnEscalate func(Exit)
	// OnEvent is called with every lifecycle event, in order, from one
	// goroutine. It must not block.
	OnEvent func(messages.Lifecycle)
	// Tick is the root's Options.Tick. 0: 1 s.
	Tick time.Duration
	// Drain is how long Shutdown lets running work finish before it stops the
	// children, and at most half of the time that its ctx has left. 0: 1 s;
	// negative: not at all.
	Drain time.Duration
}

// System is a running tree: a root shell, everything below it, and the Hollywood
// engine that carries the messages. Any goroutine may use it, but Shutdown and
// Snapshot not from within an actor of the system.
type System struct {
	o      SystemOptions
	engine *actor.Engine
	began  time.Time
	events *events
	root   *guardian
	trip   *tripwire

	serial  atomic.Int64 // makes actor ids unique
	cells   atomic.Int64 // incarnations that are not over
	stopped atomic.Int64 // incarnations that ended in order

	// inHand counts the work in the hands of children. quiet is rung when it
	// becomes zero while the system shuts down.
	inHand     atomic.Int64
	closing    atomic.Bool
	quiet      chan struct{}
	unanswered atomic.Int64 // work that was not answered by a child since closing

	hurry latch // the shutdown has no time left

	mu      sync.Mutex
	zombies map[*cell]*Exit       // abandoned, and their goroutine has not come back
	orphans map[*cell]*time.Timer // below an abandoned shell, and asked to end
	less    chan struct{}         // rung when one of these ends
	bugs    []string

	once   sync.Once // starts the shutdown
	done   chan struct{}
	report messages.ShutdownReport // set before done is closed
}

// Start starts a tree. It returns when every static child of the root is up;
// on error, which is the start's failure or the cause of ctx, everything that
// was started has been stopped. The system does not end with ctx.
func Start(ctx context.Context, o SystemOptions) (*System, error) {
	if o.Name == "" {
		o.Name = "supervisor"
	}
	switch {
	case o.Drain == 0:
		o.Drain = time.Second
	case o.Drain < 0:
		o.Drain = 0
	}
	engine, err := actor.NewEngine(actor.NewEngineConfig())
	if err != nil {
		return nil, fmt.Errorf("make the actor engine: %w", err)
	}
	s := &System{
		o: o, engine: engine, began: time.Now(), events: startEvents(),
		quiet: make(chan struct{}, 1), less: make(chan struct{}, 1), done: make(chan struct{}),
		zombies: make(map[*cell]*Exit), orphans: make(map[*cell]*time.Timer),
	}
	if o.OnEvent != nil {
		s.events.watch(o.OnEvent)
	}
	s.trip = newTripwire(s)
	s.root = newGuardian(s)
	s.root.start()
	select {
	case <-s.root.up:
		return s, nil
	case <-s.root.failed:
		err = s.root.failure
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.shorten(0)
	s.Shutdown(context.WithoutCancel(ctx)) // what was started ends in order, within its timeouts
	return nil, fmt.Errorf("start %s: %w", o.Name, err)
}

// Ref addresses the actor at path: the names from the root down. It is the
// zero Ref when there is no such place now.
func (s *System) Ref(path ...string) Ref {
	at := s.root.slot
	for _, name := range path {
		if at = at.child(name); at == nil {
			return Ref{}
		}
	}
	return Ref{at}
}

// Monitor returns a channel that gets, exactly once, why the incarnation that
// lives at path now has ended; see [Ref.Monitor].
func (s *System) Monitor(path ...string) <-chan Exit { return s.Ref(path...).Monitor() }

// Watch calls fn with every lifecycle event from now on, in order and from one
// goroutine, which all watchers share: fn must not block. Events that arrive
// while more than 65,536 wait are dropped, and counted in a Dropped event.
func (s *System) Watch(fn func(messages.Lifecycle)) (stop func()) { return s.events.watch(fn) }

// Bugs returns what must never happen and did: Hollywood restarting an actor,
// or finding two with one name. It is empty.
func (s *System) Bugs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bugs...)
}

func (s *System) bug(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bugs = append(s.bugs, fmt.Sprintf(format, args...))
}

// now is the time as the shells count it.
func (s *System) now() instant { return instant(time.Since(s.began)) + 1 }

// at turns an instant back into a time; never is the zero time.
func (s *System) at(i instant) time.Time {
	if i == 0 {
		return time.Time{}
	}
	return s.began.Add(time.Duration(i - 1))
}

func (s *System) dispatched() { s.inHand.Add(1) }

func (s *System) finished() {
	if s.inHand.Add(-1) == 0 && s.closing.Load() {
		select {
		case s.quiet <- struct{}{}:
		default:
		}
	}
}

// unserved counts work that a shutdown ended.
func (s *System) unserved() {
	if s.closing.Load() {
		s.unanswered.Add(1)
	}
}

// emitDropped tells the watchers how many messages a cell has dropped.
func (s *System) emitDropped(c *cell) {
	if !s.events.watched() {
		return
	}
	if n := c.dropped.Swap(0); n > 0 {
		s.events.emit(messages.Dropped{At: time.Now(), Path: c.slot.path, Epoch: c.epoch, Count: int(n), What: "messages"})
	}
}

// guardian is the parent of the root: it hears how the root does, and ends the
// system when the root ends.
type guardian struct {
	sys  *System
	slot *slot
	spec Spec
	cell *cell
	box  ctlBox
	ring chan struct{}

	up      chan struct{} // closed when the root is up
	failed  chan struct{} // closed when the root has failed, or ended, after failure was set
	failure Exit
	gone    chan struct{} // closed when the root is over
	since   time.Time
}

func newGuardian(s *System) *guardian {
	o := s.o
	g := &guardian{
		sys: s, slot: &slot{name: o.Name, static: true}, ring: make(chan struct{}, 1),
		up: make(chan struct{}), failed: make(chan struct{}), gone: make(chan struct{}), since: time.Now(),
	}
	g.spec = Spec{Key: o.Name, Kind: "supervisor", New: func() Behaviour {
		return NewShell(Options{Name: o.Name, Strategy: o.Strategy, Tick: o.Tick, Children: o.Children})
	}}
	g.box.wake = func() {
		select {
		case g.ring <- struct{}{}:
		default:
		}
	}
	return g
}

// start spawns the root, and the goroutine that hears from it; that ends when
// the root is over.
func (g *guardian) start() {
	g.cell = &cell{sys: g.sys, parent: &g.box, slot: g.slot, spec: &g.spec, epoch: 1}
	go g.run()
	g.cell.spawn()
}

func (g *guardian) run() {
	defer close(g.gone)
	isUp, hasFailed := false, false
	fail := func(exit Exit) {
		if hasFailed {
			return
		}
		hasFailed = true
		g.failure = exit
		close(g.failed)
		if isUp {
			g.escalate(exit)
		}
	}
	over := g.cell.over()
	for {
		for _, m := range g.box.take(nil) {
			switch m.op {
			case ctlUp:
				if !isUp {
					isUp = true
					close(g.up)
				}
			case ctlFail, ctlDying:
				fail(*m.exit)
			}
		}
		select {
		case <-g.ring:
		case <-over:
			fail(Exit{Kind: messages.ExitKilled, Err: errors.New("the root has ended")})
			return
		}
	}
}

// escalate tells the host that the root has failed, and ends the tree.
func (g *guardian) escalate(exit Exit) {
	if g.sys.closing.Load() {
		return
	}
	if fn := g.sys.o.OnEscalate; fn != nil {
		// The goroutine is the host's own, and ends when its function does: it
		// may well wait for the shutdown that begins here.
		go fn(exit)
	}
	g.sys.beginShutdown()
}

// why is what the root is stopped with: its own failure, if it has failed.
func (g *guardian) why() *Exit {
	select {
	case <-g.failed:
		exit := g.failure
		return &exit
	default:
		return &Exit{Kind: messages.ExitShutdown, Err: ErrStopped}
	}
}

// shell is the root's behaviour; nil when it has ended.
func (g *guardian) shell() *Shell {
	if g.cell.phaseNow() == phaseOver {
		return nil
	}
	return g.cell.shell.Load()
}

// node describes the root.
func (g *guardian) node(s *System) messages.Node {
	n := messages.Node{Name: s.o.Name, Kind: "supervisor", Epoch: 1, Since: g.since, StartedAt: s.began, State: messages.ChildStarting}
	select {
	case <-g.up:
		n.State = messages.ChildIdle
	default:
	}
	switch g.cell.phaseNow() {
	case phaseStopping:
		n.State = messages.ChildStopping
	case phaseOver:
		n.State = messages.ChildGone
	}
	return n
}
