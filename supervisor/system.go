package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/anthdm/hollywood/actor"

	"github.com/coppice-run/coppice/internal/opportunity"
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
	// itself fails. The tree is shut down at the same time, in any case. A panic of
	// it is logged.
	OnEscalate func(Exit)
	// OnEvent is called with every lifecycle event, in order, from one
	// goroutine at a time. It must not block. See [System.Watch].
	OnEvent func(messages.Lifecycle)
	// Logger hears of functions of the host that failed. nil: nothing is logged.
	Logger *slog.Logger
	// Tick is the root's Options.Tick. 0: 1 s.
	Tick time.Duration
	// Stalls tells when this process stood still. nil: the system looks itself, ten
	// times a second.
	Stalls Stalls
	// Drain is how long Shutdown lets running work finish before it stops the
	// children, and at most half of the time that its ctx has left. 0: 1 s;
	// negative: not at all.
	Drain time.Duration
}

// System is a running tree: its root, everything below that, and the Hollywood
// engine that carries the messages. Any goroutine may use it, but Shutdown and
// Snapshot not from within an actor of the system.
type System struct {
	*commons

	o    SystemOptions
	root *guardian
	trip *tripwire
	// unwatch ends what looks for stalls.
	unwatch func()

	once   sync.Once               // starts the shutdown
	report messages.ShutdownReport // set before done is closed
}

// Start starts a tree. It returns when every static child of the root is up;
// on error, which is the start's failure or the cause of ctx, everything that
// was started has been stopped. The system does not end with ctx.
func Start(ctx context.Context, o SystemOptions) (*System, error) {
	if o.Name == "" {
		o.Name = "supervisor"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
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
	s := &System{commons: newCommons(engine, o.Logger), o: o, unwatch: func() {}}
	if s.stalls = o.Stalls; s.stalls == nil {
		w := &opportunity.Watch{}
		w.Start()
		s.stalls, s.unwatch = w, w.Stop
	}
	if o.OnEvent != nil {
		s.events.watch(o.OnEvent)
	}
	s.trip = newTripwire(engine, s.bug)
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
// goroutine at a time, which all watchers share: fn must not block. Events that arrive
// while more than 65,536 wait are dropped, and counted in a Dropped event. If fn
// panics, or ends its goroutine, that is logged and fn is not called again.
func (s *System) Watch(fn func(messages.Lifecycle)) (stop func()) { return s.events.watch(fn) }

// Bugs returns what must never happen and did: Hollywood restarting an actor,
// or finding two with one name. It is empty.
func (s *System) Bugs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bugs...)
}

// guardian is the parent of the root: it hears how the root does, and ends the
// system when the root ends.
type guardian struct {
	sys  *System
	slot *slot
	spec Spec
	live *incarnation
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
		sys: s, slot: &slot{place: place{name: o.Name}, static: true}, ring: make(chan struct{}, 1),
		up: make(chan struct{}), failed: make(chan struct{}), gone: make(chan struct{}), since: time.Now(),
	}
	g.spec = Spec{Key: o.Name, Kind: "supervisor", New: func() Behaviour {
		return New(Options{Name: o.Name, Strategy: o.Strategy, Tick: o.Tick, Children: o.Children})
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
	g.live = &incarnation{sys: g.sys.commons, parent: &g.box, slot: g.slot, spec: &g.spec, epoch: 1}
	go g.run()
	g.live.spawn()
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
	over := g.live.over()
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
		go Guarded(func() error { fn(exit); return nil }, func(err error) {
			if err != nil {
				g.sys.o.Logger.Error("the function that hears of the end of the tree failed", "err", err)
			}
		})
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

// supervisor is the root's behaviour; nil when it has ended.
func (g *guardian) supervisor() *Supervisor {
	if g.live.phaseNow() == phaseOver {
		return nil
	}
	return supervisorOf(g.live)
}

// node describes the root.
func (g *guardian) node(s *System) messages.Node {
	n := messages.Node{Name: s.o.Name, Kind: "supervisor", Epoch: 1, Since: g.since, StartedAt: s.began, State: messages.ChildStarting, Busy: s.busy()}
	select {
	case <-g.up:
		n.State = messages.ChildIdle
	default:
	}
	switch g.live.phaseNow() {
	case phaseStopping:
		n.State = messages.ChildStopping
	case phaseOver:
		n.State = messages.ChildGone
	}
	return n
}
