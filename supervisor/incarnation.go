package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anthdm/hollywood/actor"

	"github.com/coppice-run/coppice/messages"
)

// phase is how far an incarnation has come. It only grows.
type phase uint32

const (
	phaseLive     phase = iota
	phaseStopping       // no more messages are taken; Terminate is to come, or runs
	phaseOver           // it has ended, or was abandoned
)

// maxStash bounds the messages that a suspended incarnation keeps.
const maxStash = 1024

// incarnation is one life of a child: the Receiver that Hollywood sees, and the
// only caller of the behaviour.
type incarnation struct {
	// Set before the incarnation is visible, never changed.
	sys    *commons
	parent *ctlBox
	slot   *slot
	spec   *Spec
	epoch  uint64
	prev   *Exit
	pid    *actor.PID
	ctx    Ctx
	served bool
	depth  uint8 // how many supervisors are above

	// The incarnation's own goroutine only. The flags share a word with those
	// above, because there are as many of these as there are sessions.
	inited    bool // Init was entered, so Terminate is owed
	suspended bool
	ended     bool // Terminate was called, or is not owed
	behaviour Behaviour
	stash     []stashed

	// entry is what the parent knows the child by; the parent's goroutine only.
	entry any

	// Any goroutine.
	handling atomic.Int64 // when the call of the behaviour began, +1; 0: none
	beat     atomic.Int64 // the last beat, +1; 0: none
	held     atomic.Bool
	facts    atomic.Pointer[Facts]
	above    atomic.Pointer[overseer] // the behaviour, if it is a supervisor
	waits    atomic.Pointer[waits]    // nil: it has never said that it waits
	dropped  atomic.Int32

	// mu makes "taken" exact: a message is in the mailbox before the request
	// to stop, or was refused. Tell holds it for reading.
	mu        sync.RWMutex
	phase     atomic.Uint32 // written under mu
	abandoned bool          // phaseOver without the incarnation's consent
	left      bool          // leave has run
	exit      *Exit         // why, from phaseStopping on
	taken     uint64        // number of the last work that was begun; written by the own goroutine under RLock
	earlier   uint64        // what taken was before; likewise
	rare      *rare         // what most incarnations never have; see extra
}

// overseer is a behaviour that has incarnations below it: a supervisor, as its
// own incarnation sees it, which calls control and failed. seal and disown are
// for whoever abandons that.
type overseer interface {
	Behaviour
	// claim takes the supervisor for one incarnation; false: it has one already.
	claim() bool
	// control handles the messages that go before all others.
	control() error
	// failed returns what went wrong since the last call.
	failed() error
	// finished reports whether Terminate has come to its end.
	finished() bool
	// seal keeps what is below from reporting. Any goroutine may call it.
	seal()
	// disown answers all work that the supervisor has, and says how much that
	// was. Any goroutine may call it.
	disown() int
}

// overseer is the behaviour if it is a supervisor, otherwise nil.
func (c *incarnation) overseer() overseer {
	if o := c.above.Load(); o != nil {
		return *o
	}
	return nil
}

// rare is what an incarnation has only when it is asked for. incarnation.mu
// guards it.
type rare struct {
	life     context.Context
	cancel   context.CancelCauseFunc
	timers   map[*time.Timer]struct{}
	watchers []*watcher
	// explained is what Terminate has added to the reason of the exit.
	explained string
	over      chan struct{} // closed when the incarnation is over
}

// stashed is a message that came while the incarnation was suspended.
type stashed struct {
	msg        any
	dispatched bool
}

// watcher hears once why an incarnation ended. fn must not block.
type watcher struct{ fn func(Exit) }

var noProcess = Exit{Kind: messages.ExitKilled, Err: ErrNoProcess}

// Messages that an incarnation itself understands. They are not subject to the
// phase.
type (
	beginMsg  struct{}
	wakeMsg   struct{}
	resumeMsg struct{}
	stopMsg   struct{}
	// built is a message that is made in the goroutine of its receiver.
	built struct {
		make func(Exit) any
		exit Exit
	}
)

// spawn makes the actor. It returns before any code of the child has run.
func (c *incarnation) spawn() {
	c.ctx.c = c
	c.sys.incarnations.Add(1)
	id := "#" + strconv.FormatUint(c.epoch, 10) + "~" + strconv.FormatInt(c.sys.serial.Add(1), 10) // unique, whatever the keys look like
	c.pid = c.sys.engine.Spawn(func() actor.Receiver { return c }, c.slot.path,
		actor.WithID(id), actor.WithMaxRestarts(-1), actor.WithInboxSize(c.spec.inbox()))
	c.send(beginMsg{})
	c.slot.live.Store(c)
}

func (c *incarnation) send(msg any) { c.sys.engine.SendLocal(c.pid, msg, nil) }

// Receive is what Hollywood calls, from the incarnation's own goroutine.
func (c *incarnation) Receive(hc *actor.Context) {
	warm(false)
	switch m := hc.Message().(type) {
	case actor.Initialized, actor.Started:
		// These run in the goroutine of the spawner: nothing may happen here.
	case actor.Stopped:
		c.endBySelf(&Exit{Kind: messages.ExitKilled, Err: errPoisoned})
	case beginMsg:
		c.begin()
	case wakeMsg:
		c.wake()
	case resumeMsg:
		c.resume()
	case stopMsg:
		c.end()
	default:
		c.deliver(m, hc.Sender() == c.pid)
	}
}

func (c *incarnation) begin() {
	if c.phaseNow() != phaseLive {
		return // a stop message follows
	}
	exit := c.guarded(opNew, nil)
	if exit == nil {
		exit = c.guarded(opInit, nil)
	}
	switch {
	case exit != nil:
		c.failed(exit)
	case !c.spec.ManualUp && c.above.Load() == nil:
		c.reportUp()
	}
}

func (c *incarnation) reportUp() { c.parent.post(ctl{op: ctlUp, c: c}) }

// deliver gives one message to the behaviour, keeps it while the incarnation is
// suspended, or drops it when its time is over. Work that the supervisor
// dispatched differs from a Work that anyone else tells by its sender, which is
// the incarnation itself: that costs nothing.
func (c *incarnation) deliver(m any, dispatched bool) {
	switch {
	case c.ended || c.phaseNow() != phaseLive:
		c.drop(m, dispatched)
	case c.suspended:
		if len(c.stash) >= maxStash && !dispatched {
			c.drop(m, false)
			return
		}
		c.stash = append(c.stash, stashed{m, dispatched})
	default:
		c.handle(m, dispatched)
	}
}

func (c *incarnation) handle(m any, dispatched bool) {
	if c.above.Load() != nil {
		// Control overtakes data: what is reported is known before the next
		// message is looked at.
		if c.wake(); c.suspended || c.ended {
			c.deliver(m, dispatched)
			return
		}
	}
	if dispatched && !c.take(m.(Work).seq) {
		return // the incarnation was fenced; its supervisor has the work
	}
	if exit := c.guarded(opHandle, m); exit != nil {
		c.failedIn(m, exit)
	}
}

// failedIn is failed for a call that had m in hand.
//
//go:noinline
func (c *incarnation) failedIn(m any, exit *Exit) {
	if a, ok := m.(ask); ok {
		a.w.Settle(fmt.Errorf("%w: %w", ErrGone, *exit))
	}
	c.failed(exit)
}

// take notes that the work seq is begun. From then on it counts as lost when
// the incarnation ends; before that it goes to the next incarnation.
func (c *incarnation) take(seq uint64) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if phase(c.phase.Load()) != phaseLive {
		return false
	}
	c.earlier, c.taken = c.taken, seq
	return true
}

// giveBack takes the note back: nothing of the work seq was done.
func (c *incarnation) giveBack(seq uint64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.taken == seq {
		c.taken = c.earlier
	}
}

// begun returns the number of the last work that was begun; 0: none.
func (c *incarnation) begun() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
}

// call runs below the guard.
func (c *incarnation) call(o op, msg any) error {
	switch o {
	case opNew:
		if c.spec.New == nil {
			return errors.New("its Spec has no New")
		}
		c.behaviour = c.spec.New()
		if c.behaviour == nil {
			return errors.New("the New of its Spec returned nil")
		}
		if o, ok := c.behaviour.(overseer); ok {
			if !o.claim() {
				return errors.New("a Supervisor serves one incarnation; the New of its Spec has to make a new one")
			}
			c.above.Store(&o)
		}
	case opInit:
		c.inited = true
		return c.behaviour.Init(&c.ctx)
	case opHandle:
		switch m := msg.(type) {
		case ask:
			msg = m.w
		case built:
			msg = m.make(m.exit)
		}
		return c.behaviour.Handle(&c.ctx, msg)
	case opWake:
		return c.overseer().control()
	case opDrop:
		msg.(Droppable).Dropped()
	case opTerminate:
		c.behaviour.Terminate(&c.ctx, *c.exit) // exit is fixed since phaseStopping
		if o := c.overseer(); o != nil {
			return o.failed()
		}
	}
	return nil
}

// wake lets a supervisor look at its control messages. While it is suspended
// they wait.
func (c *incarnation) wake() {
	if c.ended || c.suspended || c.phaseNow() != phaseLive || !c.inited {
		return
	}
	if exit := c.guarded(opWake, nil); exit != nil {
		c.failed(exit)
	}
}

// resume goes on after a failure: first with what was kept, until that fails
// again.
func (c *incarnation) resume() {
	if !c.suspended || c.ended {
		return
	}
	c.suspended = false
	if c.above.Load() != nil {
		c.wake()
	}
	stash := c.stash
	c.stash = nil
	for i, m := range stash {
		if c.suspended {
			c.stash = append(c.stash, stash[i:]...)
			return
		}
		c.deliver(m.msg, m.dispatched)
	}
}

// failed handles the exit that a call ended with: an end in order, or a failure
// to report.
func (c *incarnation) failed(exit *Exit) {
	if !exit.Failure() {
		c.endBySelf(exit)
		return
	}
	c.suspended = true
	c.parent.post(ctl{op: ctlFail, c: c, exit: exit})
}

// drop lets go of a message that will not be handled. Work that the supervisor
// dispatched stays the supervisor's.
func (c *incarnation) drop(m any, dispatched bool) {
	if dispatched {
		return
	}
	switch m := m.(type) {
	case Work:
		m.Settle(ErrGone)
	case ask:
		m.w.Settle(ErrGone)
		if d, ok := m.w.Msg.(Droppable); ok {
			_ = c.guarded(opDrop, d)
		}
	case Droppable:
		_ = c.guarded(opDrop, m)
	}
	c.dropped.Add(1)
	if c.phaseNow() == phaseOver {
		c.emitDropped()
	}
}

func (c *incarnation) phaseNow() phase { return phase(c.phase.Load()) }

var _ actor.Receiver = (*incarnation)(nil)
