package kernel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// Errors that a kernel actor fails with; they are the causes in its Exit.
var (
	// ErrStart: the interpreter could not be started.
	ErrStart = errors.New("the kernel could not be started")
	// ErrUnresponsive: a cell did not end after an interrupt and its grace.
	ErrUnresponsive = errors.New("the kernel was ended: its cell did not stop when it was interrupted")
)

// Actor is the behaviour that owns one interpreter. All fields are used by the
// actor's own goroutine only, unless a comment says otherwise.
type Actor struct {
	o   Options
	ctx *supervisor.Ctx
	// life ends with the incarnation, at the latest when Terminate begins; the
	// actor's goroutines live under it.
	life context.Context
	end  context.CancelCauseFunc

	// made carries the interpreter from the goroutine that started it to started,
	// or to Terminate when the news came too late to be handled.
	made   chan Interpreter
	interp Interpreter // nil until started
	// init is when the incarnation began, up when its interpreter was ready.
	init, up time.Time
	// watching says that it will be looked at shortly how much processor a run gets.
	watching bool
	run      *run // the call in hand, nil when idle
	served   bool // a cell was begun on this interpreter
	// restored is what the interpreter began with, nil for nothing; written by the
	// goroutine that starts it, before started. asleep says that it is kept on disk.
	restored *messages.Restored
	asleep   bool
	// toTell is what is to be told of that to the one who has asked for it, nil for no one.
	toTell *slept
	// refused is why what the session has was not kept when that was tried last, nil when a
	// cell has run since.
	refused  *messages.HibernateRefused
	rounds   bool // it is seen after in rounds
	pinging  bool
	answered bool // a ping, since it last ran anything
	returned bool // from what it last ran
	looks    int  // how often it was looked at since, and not asked
	// silence measures the chance that the interpreter had since it left a ping without
	// an answer; nil while it answers. The goroutine of the ping owns it while there is one.
	silence *silence
	// rss is the interpreter's memory when it was last looked at, weighed when that
	// was; weighing says that it will be looked at again shortly. facts is what was
	// noted last.
	rss      int64
	weighed  time.Time
	weighing bool
	facts    supervisor.Facts

	// pumps counts the goroutines that the actor started; Terminate waits.
	pumps sync.WaitGroup
}

// New returns a kernel actor that is cold. It starts its interpreter in Init
// and reports Up when that is ready, so its Spec must say ManualUp.
func New(o Options) *Actor { return &Actor{o: o.withDefaults(), made: make(chan Interpreter, 1)} }

// Messages that the actor's own goroutines send to it.
type (
	started      struct{ err error }
	died         struct{ err error }
	callEnded    struct{ run *run }
	graceOver    struct{ run *run }
	confirmed    struct{ run *run }
	interruptDue struct{ run *run }
	hurryDue     struct{ run *run }
	enoughDue    struct{ run *run }
	// resumed says that the active time of a run goes on.
	resumed struct{ run *run }
	// activeDue comes when the active time that a run was owed is over.
	activeDue struct {
		run       *run
		interrupt messages.Interrupt
	}
	runtimeOver struct {
		run  *run
		cell int
	}
	weighDue struct{}
	watchDue struct{}
	pingDue  struct{}
	pong     struct {
		err     error
		rss     int64
		silence *silence
		// again says that the interpreter had no chance to answer, and is asked
		// again at once.
		again bool
	}
)

// Init begins the start of the interpreter; it does not wait for it.
func (a *Actor) Init(ctx *supervisor.Ctx) error {
	a.ctx, a.init = ctx, time.Now()
	a.life, a.end = context.WithCancelCause(ctx.Context())
	ctx.Note(supervisor.Facts{Detail: "starting " + a.o.Backend.Name() + " kernel"})
	epoch := ctx.Epoch()
	a.pump(func() {
		supervisor.Warm()
		c, cancel := context.WithCancelCause(a.life)
		defer cancel(nil)
		p := &patience{ctx: ctx, life: c, budget: opportunity.Starting(a.o.StartTimeout, a.o.StartCeiling), cancel: cancel}
		p.wait(Waiting{})
		defer p.end()
		interp, err := a.o.Backend.Start(c, StartOptions{
			Key: a.o.Key, Epoch: epoch, Env: a.o.Env, Once: a.o.Once,
			Progress: func(stage string) { ctx.Note(supervisor.Facts{Detail: stage}) }, Waiting: p.wait,
		})
		if err == nil {
			if err = a.wake(c, interp); err == nil {
				a.guarded(interp)
				a.made <- interp
			}
		}
		ctx.Tell(started{a.o.explain(err, 0, a.init)})
	})
	return nil
}

// Handle serves one message.
func (a *Actor) Handle(_ *supervisor.Ctx, msg any) error {
	switch m := msg.(type) {
	case supervisor.Work:
		return a.begin(m)
	case started:
		return a.started(m)
	case callEnded:
		return a.callEnded(m)
	case died:
		return a.died(m)
	case copied:
		return a.copied(m)
	case slept:
		return a.slept(m)
	case saved:
		a.ctx.Finish(m.work, m.answer)
	case messages.Interrupt:
		a.interrupt(m)
	case interruptDue:
		a.interruptAgain(m)
	case hurryDue:
		a.hurry(m)
	case enoughDue:
		a.enough(m)
	case runtimeOver:
		a.runtimeOver(m)
	case limitMet:
		a.limitMet(m)
	case confirmed:
		a.isConfirmed(m)
	case graceOver:
		a.graceOver(m)
	case resumed:
		a.resumed(m)
	case activeDue:
		a.activeDue(m)
	case watchDue:
		a.watch()
	case weighDue:
		a.weighing = false
		a.note()
	case pingDue:
		a.ctx.After(untilRound(time.Now(), a.o.HeartbeatEvery), pingDue{})
		a.ping()
	case pong:
		a.pong(m)
	default:
		return supervisor.Unknown(msg)
	}
	return nil
}

func (a *Actor) started(m started) error {
	if m.err != nil {
		return fmt.Errorf("%w: %w", ErrStart, m.err)
	}
	interp := <-a.made
	a.interp, a.up = interp, time.Now()
	info := interp.Info()
	a.served = info.Copy || info.Kept && info.News == nil // what was done before is there
	a.note()
	a.pump(func() {
		select {
		case <-interp.Done():
			a.ctx.Tell(died{interp.Err()})
		case <-a.life.Done():
		}
	})
	a.ctx.Beat()
	a.ctx.Up()
	if a.o.HeartbeatEvery > 0 {
		a.rounds = true
		seenAfter.Add(1)
		a.ctx.After(untilRound(time.Now(), a.o.HeartbeatEvery), pingDue{})
	}
	return nil
}

// died hears that the interpreter is gone. While a call is in hand its run
// learns the same from Execute and ends the call, with all output that came
// before; between calls nothing else has to learn of it.
func (a *Actor) died(m died) error {
	if a.run != nil {
		return nil
	}
	return a.explain(m.err)
}

// explain adds the limit for which the interpreter was ended to what it says itself.
func (a *Actor) explain(err error) error { return a.o.explain(err, a.interp.Info().PID, a.init) }

// Terminate ends what runs and closes the interpreter. It tries until the
// interpreter is known to be gone; its Spec's StopTimeout bounds that.
func (a *Actor) Terminate(ctx *supervisor.Ctx, exit supervisor.Exit) {
	if a.rounds {
		seenAfter.Add(-1)
	}
	idle := a.run == nil
	if a.interp != nil {
		endForGood(a.interp, exit)
	}
	if m := a.toTell; m != nil {
		m.work.Settle(m.kept)
	}
	if r := a.run; r != nil {
		a.run = nil
		a.end(exit)
		r.wantEnd()
		<-r.done
		outcome := r.outcome // it had ended by itself; only the news was still under way
		if r.cutOff {
			outcome = stoppedOutcome(exit)
		}
		if outcome != messages.OutcomeOK {
			r.stop = exit.Value().Stop()
		}
		r.work.Settle(a.stopped(r, outcome, exit))
	}
	a.end(exit)
	if a.interp == nil {
		a.pumps.Wait() // the start is cancelled, or it was done a moment ago
		select {
		case a.interp = <-a.made:
			endForGood(a.interp, exit)
		default:
		}
	}
	if a.interp != nil {
		if !leaving(a.interp) {
			a.sleepAtLast(ctx, exit, idle)
		}
		ctx.Note(supervisor.Facts{Detail: "closing", PID: a.interp.Info().PID})
		if k, ok := a.interp.(Killer); ok && exit.Failure() && !leaving(a.interp) {
			k.Kill()
		}
		a.close(a.interp)
	}
	a.pumps.Wait()
}

// close closes interp and returns when it is gone. What cannot be confirmed is
// tried again, less and less often, for as long as the host lives: by then the
// supervisor has abandoned the actor, and keeps its place until this returns.
func (a *Actor) close(interp Interpreter) {
	all, cancel := context.WithCancel(context.WithoutCancel(a.life))
	defer cancel()
	a.pump(func() {
		select {
		case <-a.ctx.Over():
			cancel()
		case <-all.Done():
		}
	})
	const least, most = time.Second, 30 * time.Second
	var late *silence // it is the same in all attempts
	begin := func() *opportunity.Meter {
		if late == nil {
			late = &silence{meter: a.meter(interp)}
		}
		return late.meter
	}
	patience := opportunity.Budget{Opportunity: a.o.CloseTimeout, Ceiling: closeCeilings * a.o.CloseTimeout}
	for wait := least; ; wait = min(2*wait, most) {
		c, cancel := opportunity.Context(all, patience, begin, func(m opportunity.Measure) { late.tell(a.ctx.Waited)(m) })
		err := interp.Close(c)
		cancel()
		if err == nil {
			return
		}
		a.ctx.Note(supervisor.Facts{Detail: "closing: " + err.Error(), PID: interp.Info().PID})
		select {
		case <-time.After(wait):
		case <-all.Done():
			return
		}
	}
}

// closeCeilings is how often CloseTimeout fits into the time that an interpreter without
// a processor has to end.
const closeCeilings = 5

// pump runs f in a goroutine that Terminate joins.
func (a *Actor) pump(f func()) { a.pumps.Go(f) }

// weighEvery is how often the memory of an interpreter is looked at, at most, while
// calls come one after the other: that takes three system calls, and whoever waits
// for an answer would wait for them.
const weighEvery = 100 * time.Millisecond

// note reports what snapshots and strategies see. When the memory was looked at a
// moment ago, it is looked at once more after weighEvery, so that what the last
// call did is seen too.
func (a *Actor) note() {
	switch {
	case time.Since(a.weighed) >= weighEvery:
		a.rss, a.weighed = a.interp.RSS(), time.Now()
	case !a.weighing:
		a.weighing = true
		a.ctx.After(weighEvery, weighDue{})
	}
	a.publish()
}

// publish notes what is known, when that has changed.
func (a *Actor) publish() {
	f := supervisor.Facts{PID: a.interp.Info().PID, RSS: a.rss, Detail: a.detail(), CopyOf: a.interp.Info().Of}
	if f != a.facts {
		a.facts = f
		a.ctx.Note(f)
	}
}

func (a *Actor) detail() string {
	switch {
	case a.run == nil:
		return ""
	case a.run.cause() != "":
		return "interrupting"
	default:
		return "running"
	}
}

var _ supervisor.Behaviour = (*Actor)(nil)
