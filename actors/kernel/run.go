package kernel

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// errKilled ends a run whose interpreter is given up.
var errKilled = errors.New("the interpreter is given up")

// run is one call in hand. Its goroutine runs the cells, one after the other,
// and sends callEnded when the sinks have taken everything. Fields without a
// comment are set before that goroutine starts and never change.
type run struct {
	exec   messages.Execute
	work   supervisor.Work
	interp Interpreter
	fresh  bool
	flush  time.Duration
	// runtime is how long one cell may run, 0 for no limit.
	runtime time.Duration
	// guard knows further limits, nil for none; mayPrint is how much a cell may print, 0
	// for no limit.
	guard    Guard
	mayPrint int64
	// explain adds the limit for which the interpreter was ended to an error about that.
	explain func(error) error

	// life ends the run early: the incarnation stops, or the interpreter is
	// given up. Only the actor calls kill.
	life context.Context
	kill context.CancelCauseFunc
	// output ends what waits for a sink's credit; only the actor calls discard.
	output  context.Context
	discard context.CancelCauseFunc
	// gathering ends the wait for what the sinks kept, whatever becomes of life;
	// hurry ends it.
	gathering context.Context
	hurry     context.CancelCauseFunc

	// pauses is the time that the run waits for its host.
	pauses pauses
	// repaid is how much of that was added to its active time, owed what is to be
	// added when the wait is over, and overdue the interrupt that then comes. They
	// belong to the actor.
	repaid, owed time.Duration
	overdue      *messages.Interrupt
	// grace measures the chance that the interpreter has had to heed the interrupt,
	// nil before there is one; the actor's too.
	grace *opportunity.Meter
	// asked is when the last interrupt was sent; the actor's.
	asked time.Time
	// unheard is why it is to be given up unless the end of its cell is found unread,
	// confirmed that it was asked for a sign of life since; the actor's.
	unheard   error
	confirmed bool
	// emitting is held while an event is handed to the sinks: those of host calls
	// come from goroutines of their own.
	emitting sync.Mutex

	// interrupted is written by the actor and read by the run's goroutine.
	interrupted atomic.Pointer[messages.Interrupt]
	// waited is what the call waited for, first that the session had no variables
	// before; watched measures what it runs on, nil for a short run, and stop is what
	// ended it when that was its kernel's end. They belong to the actor.
	waited  messages.Waited
	first   bool
	watched *opportunity.Meter
	stop    messages.Stop
	// waiting is true while a sink has no credit for the run; written by the
	// run's emitting goroutine, read by the actor.
	waiting atomic.Bool

	// current is the cell that runs, -1 between cells; written by the run's
	// goroutine, read by the actor.
	current atomic.Int64
	// overrun says that a cell ran for longer than it may; written by the actor,
	// read by the run's goroutine.
	overrun atomic.Bool
	// met is the limit for which the cell is interrupted; written by the actor and the
	// run's goroutine, the first counts.
	met atomic.Pointer[messages.ResourceLimitExceeded]
	// printed is how much the cell has printed, toldPrinted that this was too much; guarded
	// by emitting.
	printed     int64
	toldPrinted bool

	// record is where the call is written down for a later host, nil for nowhere, with news, what
	// its result tells of how the session began; from is how
	// far it came with an earlier one, nil for a call of this one. They belong to the run's
	// goroutine; the actor reads record once the run is there.
	record Record
	news   *News
	from   *Resumption

	// done is closed by the run's goroutine when it ends. The fields below are
	// its own until then, and the actor's from then on.
	done      chan struct{}
	cells     []messages.CellResult
	outcome   messages.Outcome
	lost      error // the interpreter is gone or given up
	exited    bool  // the code ended its interpreter
	cutOff    bool  // the incarnation was stopped while a cell ran
	unsent    bool  // nothing of it was begun: the interpreter is left to the next host
	exceeded  *messages.ResourceLimitExceeded
	stdin     bool
	notes     []string // why output may be missing
	delay     string   // that the machine has delayed it, "" for not
	delayed   delayed  // sees that
	out       messages.Output
	dropped   int
	lastIndex int
}

// begin takes a call in hand.
func (a *Actor) begin(w supervisor.Work) error {
	exec, ok := w.Msg.(messages.Execute)
	if !ok {
		switch m := w.Msg.(type) {
		case messages.Fork:
			return a.fork(w, m)
		case messages.Hibernate:
			return a.hibernate(w, m)
		case messages.SaveCheckpoint:
			return a.save(w, m)
		default:
			return supervisor.Unknown(w.Msg)
		}
	}
	if a.interpGone() { // and the news of it is still under way
		a.ctx.Return(w)
		return a.explain(a.interp.Err())
	}
	r := &run{exec: exec, work: w, interp: a.interp, explain: a.explain, fresh: !a.served, flush: a.o.FlushTimeout, runtime: a.o.CellRuntime, guard: a.o.Guard, mayPrint: a.o.CellOutput, done: make(chan struct{}), lastIndex: -1}
	r.life, r.kill = context.WithCancelCause(a.life)
	r.output, r.discard = context.WithCancelCause(r.life)
	r.gathering, r.hurry = context.WithCancelCause(context.WithoutCancel(a.life))
	r.cells = messages.Pending(exec.Cells)
	if !a.o.Once {
		r.record = recordOf(a.interp, exec)
	}
	r.waited, r.first = a.waitedFor(exec), r.fresh && a.freshReason(r) == ""
	if r.fresh {
		r.news = &News{Restored: a.restored, Reason: a.freshReason(r)}
	}
	a.run, a.answered, a.returned = r, false, false
	a.o.Served.Add(exec.Owner)
	a.watchSoon()
	ctx := a.ctx
	a.pump(func() {
		supervisor.Warm()
		r.delayed.watch(r.interp, ctx.Stalls())
		r.serve(ctx)
		r.tell()
		r.delay = r.delayed.notice()
		close(r.done)
		ctx.Tell(callEnded{r})
	})
	return nil
}

// tell notes that the result tells how the session began, where it does.
func (r *run) tell() {
	if teller, ok := r.interp.(Teller); ok && r.news != nil && r.lastIndex >= 0 && r.lost == nil {
		teller.Told()
	}
}

// serve runs the cells and gathers what the sinks kept.
func (r *run) serve(ctx *supervisor.Ctx) {
	defer r.kill(nil)
	r.outcome = messages.OutcomeOK
	first := 0
	if r.exec.Resumed {
		first = r.resume(ctx)
	} else if !r.note() {
		r.gather()
		return
	}
	if r.exec.ResetNames && (r.from == nil || first == 0 && !r.from.Begun) {
		r.resetNames()
	}
	for i := first; i < len(r.exec.Cells); i++ {
		if r.outcome != messages.OutcomeOK {
			break
		}
		if cause := r.endsBefore(i); cause != "" {
			r.outcome = outcomeOf(cause)
			break
		}
		if r.from != nil && r.from.Bare && r.resumed(i) == nil {
			r.outcome, r.notes = messages.OutcomeCancelled, append(r.notes, errBare.Error())
			break
		}
		r.cell(ctx, i)
		if r.outcome != messages.OutcomeOK {
			break
		}
		if r.exited && i < len(r.exec.Cells)-1 {
			r.outcome, r.lost = messages.OutcomeLost, &LostError{Reason: "the code ended its own interpreter (exit)"}
			break
		}
	}
	r.gather()
}

// flushMost is how long the result of a call is waited for.
const flushMost = 5 * time.Minute

// gather waits for what the sinks kept. A sink that is slow on a busy machine is not
// taken to be stuck: until the run has to end, there is time.
func (r *run) gather() {
	most := time.AfterFunc(max(flushMost, r.flush), func() { r.hurry(errFlushMost) })
	r.out = r.exec.Out.Flush(r.gathering)
	most.Stop()
	r.hurry(nil)
}

// wantEnd bounds the wait for the sinks: the run has to end. The actor calls it.
func (r *run) wantEnd() { time.AfterFunc(r.flush, func() { r.hurry(errFlushHurried) }) }

// Why a flush was cut short.
var (
	errFlushMost    = errors.New("it took too long")
	errFlushHurried = errors.New("the call had to end")
)

// resetNames clears what earlier calls have defined. A kernel that cannot do so
// is given up: either way nothing of them is there afterwards.
func (r *run) resetNames() {
	reply, err := r.interp.Execute(r.life, CellRequest{Exec: r.exec.ID, Index: -1, ResetNames: true}, func(context.Context, messages.Event) error { return nil })
	switch {
	case err != nil:
		r.outcome, r.lost = messages.OutcomeLost, r.ended(err)
	case !reply.OK:
		why := ""
		if reply.Error != nil {
			why = " (" + reply.Error.Name + ": " + reply.Error.Message + ")"
		}
		r.outcome, r.lost = messages.OutcomeLost, &LostError{Reason: "the session's names could not be reset" + why + ", and its kernel was ended"}
	}
	if cause := r.cause(); cause != "" {
		r.outcome = outcomeOf(cause)
	}
}

// cell runs cell i and fills in its result.
func (r *run) cell(ctx *supervisor.Ctx, i int) {
	cell := &r.cells[i]
	r.lastIndex = i
	r.prints()
	begin := time.Now()
	emit := func(c context.Context, e messages.Event) error { return r.emit(c, ctx, i, e, false) }
	from := r.resumed(i)
	if from == nil || !from.Said {
		_ = emit(r.life, messages.Status{Status: messages.CellRunning}) // the flush reports a sink that is gone
	}
	cell.Status = messages.CellRunning

	host := r.hosting(ctx, emit)
	req := CellRequest{
		Exec: r.exec.ID, Index: i, Code: r.exec.Cells[i].Code,
		AllowStdin: r.exec.AllowStdin && r.exec.HostCalls != nil, Call: host.call, Count: r.exec.Count, Comms: r.exec.Comms,
		CallEnv: r.exec.CallEnv, Resume: from != nil,
	}
	if i == 0 {
		req.Env, req.Introspect = r.exec.Env, r.exec.Introspect
	}
	begun := true
	reply, err := r.limited(ctx, i, func() (CellReply, error) {
		if from != nil && from.Stop != "" { // nobody has seen it heed the interrupt of the earlier host
			ctx.Tell(messages.Interrupt{Key: r.exec.Key, Exec: r.exec.ID, Cause: from.Stop})
		} else if r.cause() != "" && from == nil { // the interrupt has found nothing that ran
			begun = false
			return CellReply{Interrupted: true}, nil
		}
		return r.interp.Execute(r.life, req, func(c context.Context, e messages.Event) error {
			if q, ok := e.(messages.InputRequest); ok {
				return host.ask(q)
			}
			return r.emit(c, ctx, i, e, true)
		})
	})
	host.close()
	if !begun { // its sinks took the news of it too late: it is taken back
		r.lastIndex, r.outcome = i-1, outcomeOf(r.cause())
		cell.Status = messages.CellPending
		_ = emit(r.life, messages.Status{Status: messages.CellPending})
		return
	}
	cell.DurationMS = time.Since(begin).Milliseconds()
	r.judge(cell, reply, err)
	r.judgeLimit(cell, reply, err, begin)
	if from == nil || !from.Over {
		_ = emit(r.life, messages.Status{Status: cell.Status})
	}
	r.noteEnd(i)
}

// limited runs a cell and tells the actor when it has run for as long as it may.
func (r *run) limited(ctx *supervisor.Ctx, i int, execute func() (CellReply, error)) (CellReply, error) {
	r.current.Store(int64(i))
	if r.runtime <= 0 {
		defer r.current.Store(-1)
		return execute()
	}
	timer := time.AfterFunc(r.runtime, func() { ctx.Tell(runtimeOver{r, i}) })
	reply, err := execute()
	timer.Stop()
	r.current.Store(-1)
	if r.overrun.Load() && reply.Exceeded == nil {
		reply.Exceeded = &messages.ResourceLimitExceeded{Limit: messages.LimitRuntime, Stderr: reply.Stderr}
	}
	return reply, err
}

// judge decides what became of a cell. An interrupt that was asked for while
// the cell ran decides the outcome, however the cell ended: the caller has already
// learned that its time was up.
func (r *run) judge(cell *messages.CellResult, reply CellReply, err error) {
	cause := r.cause()
	r.stdin = r.stdin || reply.StdinRequested
	r.exited = r.exited || reply.Exited
	if reply.Exceeded != nil {
		r.exceeded = reply.Exceeded
	}
	if reply.Incomplete != "" {
		r.notes = append(r.notes, reply.Incomplete)
	}
	if err == nil {
		cell.Error, cell.ExecutionCount = reply.Error, reply.ExecutionCount
	}
	var stop supervisor.Exit
	r.cutOff = err != nil && errors.As(context.Cause(r.life), &stop)
	switch {
	case err != nil && cause == "":
		cell.Outcome, r.lost = messages.OutcomeLost, err
	case err != nil:
		cell.Outcome, r.lost = outcomeOf(cause), err
	case cause != "":
		cell.Outcome = outcomeOf(cause)
	case reply.OK && !reply.StdinRequested:
		cell.Outcome = messages.OutcomeOK
	default:
		cell.Outcome = messages.OutcomeError
	}
	code := 0
	switch cell.Outcome {
	case messages.OutcomeOK:
		cell.Status, cell.ExitCode = messages.CellComplete, &code
	case messages.OutcomeError:
		if code = reply.Error.ExitStatus(); reply.ExitCode != nil {
			code = *reply.ExitCode
		}
		cell.Status, cell.ExitCode = messages.CellError, &code
	default:
		cell.Status = messages.CellError
	}
	r.outcome = cell.Outcome
}

// cause returns why the run was interrupted, "" when it was not.
func (r *run) cause() messages.InterruptCause {
	if i := r.interrupted.Load(); i != nil {
		return i.Cause
	}
	return ""
}

func outcomeOf(c messages.InterruptCause) messages.Outcome {
	switch c {
	case messages.CauseTimeout:
		return messages.OutcomeTimeout
	case messages.CauseLimit:
		return messages.OutcomeError
	default:
		return messages.OutcomeCancelled
	}
}
