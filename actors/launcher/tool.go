package launcher

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// tool is the actor of one process. Its fields belong to the actor's goroutine;
// the goroutines that it starts are in pumps, end with the actor's context or
// the process, and are joined in Terminate.
type tool struct {
	o      *Options
	plan   plan
	record *record
	tell   func(any) bool

	proc   process
	pumps  sync.WaitGroup
	lease  *supervisor.Work
	runs   map[string]*running
	first  bool // no run was answered yet
	over   bool // the process has ended
	killed bool // because we wanted it
	// why is what the process was ended for, when that is its own fault. nil: it is not.
	why error
	// looking says that a look at the process is under way; unlook stops the
	// timer of the next one.
	looking bool
	// mute measures the chance that the process had since it last said that it is well;
	// nil while it does. The look that is under way owns it.
	mute   *mute
	unlook func()
}

// running is one run in flight.
type running struct {
	flight *flight
	mark   int64
	began  time.Time       // when its time began to count
	limit  time.Duration   // of the caller, 0 for none
	life   context.Context // until the run has ended
	cancel context.CancelFunc
	stop   []func() // of its timers
	cause  cause    // "" while it is not to end
	hard   bool
}

func newTool(o *Options, plan plan, record *record, tell func(any) bool) *tool {
	return &tool{o: o, plan: plan, record: record, tell: tell, runs: map[string]*running{}, first: true, unlook: func() {}}
}

// Messages of a tool to itself.
type (
	started struct {
		proc process
		err  error
	}
	runEnded struct {
		run   string
		reply reply
	}
	overdue   struct{ run string }
	graceOver struct{ run string }
	look      struct{}
	looked    struct {
		memory  int64
		healthy error
		mute    *mute
		over    []string // runs that have written too much
	}
	procEnded struct{}
	giveUp    struct{}
	// report is what a goroutine of the actor has for the log, of a run or of the
	// process: the logger is the host's, and what it does is to happen where it is
	// guarded.
	report struct {
		run string
		err error
	}
)

// Dropped ends a process that would have no owner.
func (m started) Dropped() {
	if m.proc != nil {
		_ = m.proc.Stop(context.Background(), -1) // there is no one left to report to
	}
}

// Init starts the process; it does not wait for it.
func (a *tool) Init(ctx *supervisor.Ctx) error {
	life := ctx.Context()
	a.pumps.Go(func() {
		proc, err := a.plan.Start(life)
		if m := (started{proc, err}); !ctx.Tell(m) {
			m.Dropped()
		}
	})
	return nil
}

// Handle serves one message.
func (a *tool) Handle(ctx *supervisor.Ctx, msg any) error {
	switch m := msg.(type) {
	case started:
		return a.started(ctx, m)
	case supervisor.Work:
		return a.work(ctx, m)
	case release:
		a.release(ctx, m)
	case begin:
		a.begin(ctx, m.flight)
	case cut:
		a.cut(ctx, m)
	case overdue:
		a.end(ctx, a.runs[m.run], causeRuntime)
	case graceOver:
		a.force(ctx, a.runs[m.run])
	case runEnded:
		a.ended(a.runs[m.run], m.reply)
		return a.last()
	case look:
		a.look(ctx)
	case looked:
		a.looked(ctx, m)
	case procEnded:
		return a.procEnded(ctx)
	case report:
		if m.run != "" {
			a.o.Logger.Info("the tool did not take a cancel", "tool", a.plan.ID, "run", m.run, "err", m.err)
		} else {
			a.o.Logger.Warn("a tool does not end", "tool", a.plan.ID, "err", m.err)
		}
	case giveUp:
		for _, r := range a.runs {
			r.cancel()
		}
	default:
		return supervisor.Unknown(msg)
	}
	return nil
}

func (a *tool) started(ctx *supervisor.Ctx, m started) error {
	if m.err != nil {
		a.fail(ctx, m.err)
		return m.err
	}
	a.proc = m.proc
	if a.record.up(m.proc) {
		a.o.Logger.Warn("the tool does not describe itself as its tool.json does", "tool", a.plan.ID, "drift", m.proc.Drift())
	}
	ctx.Note(supervisor.Facts{PID: m.proc.PID()})
	a.pumps.Go(func() {
		<-m.proc.Done() // Terminate stops the process
		ctx.Tell(procEnded{})
	})
	ctx.Beat()
	ctx.Up()
	a.arm(ctx)
	return nil
}

// fail keeps the reason of a failure.
func (a *tool) fail(ctx *supervisor.Ctx, err error) {
	told, log := &messages.ToolError{Kind: messages.ToolErrorSpawn, Message: err.Error()}, ""
	if t, ok := errors.AsType[toolErrorer](err); ok {
		told, log = t.ToolError(), t.Log()
	}
	a.record.failed(ctx.Now(), told)
	if log != "" {
		a.record.down(log)
	}
}

func (a *tool) work(ctx *supervisor.Ctx, w supervisor.Work) error {
	switch m := w.Msg.(type) {
	case touch:
		ctx.Finish(w, true)
	case serve:
		a.lease = &w
		a.tell(leased(m))
	default:
		return supervisor.Unknown(w.Msg)
	}
	return nil
}

// release ends the lease, and answers the last run of it.
func (a *tool) release(ctx *supervisor.Ctx, m release) {
	if w := a.lease; w != nil {
		a.lease = nil
		ctx.Finish(*w, true)
	}
	m.last.settle()
}

// begin starts a run. A process that has ended begins none: the launcher gives the
// run to the next one.
func (a *tool) begin(ctx *supervisor.Ctx, f *flight) {
	if a.over || a.killed {
		return
	}
	select {
	case <-a.proc.Done():
		return // the message that says so is on its way
	default:
	}
	f.begun.Store(true)
	life, cancel := context.WithCancel(ctx.Context())
	r := &running{flight: f, mark: a.proc.Mark(), life: life, cancel: cancel, began: time.Now(), limit: f.run.Timeout}
	a.runs[f.run.ID] = r
	if a.plan.MaxRuntime > 0 {
		r.stop = append(r.stop, ctx.After(a.plan.MaxRuntime, overdue{f.run.ID}))
	}
	if r.limit > 0 {
		r.stop = append(r.stop, ctx.After(r.limit, cut{f.run.ID, causeTimeout, r.limit}))
	}
	if len(a.runs) == 1 {
		a.arm(ctx) // sooner than for an idle tool
	}
	proc := a.proc
	a.pumps.Go(func() {
		defer cancel()
		reply := proc.Do(life, f.run.ToolRun)
		ctx.Tell(runEnded{f.run.ID, reply})
	})
}

// ended answers a run.
func (a *tool) ended(r *running, reply reply) {
	if r == nil {
		return
	}
	f := r.flight
	if r.cause == "" && (reply.Bytes > a.o.ArtifactBytes || reply.Count > a.o.ArtifactFiles) {
		r.cause = causeArtifacts // it was over before the check
	}
	res := messages.ToolResult{
		Run: f.run.ID, Tool: f.run.Tool, Outcome: outcomeOf(reply.Error), Outputs: reply.Outputs, Error: reply.Error, Warnings: reply.Warnings,
		Artifacts: reply.Artifacts, Files: reply.Files, Cold: f.cold, Hard: r.hard, Duration: time.Since(f.arrived), Fetched: reply.Fetched,
	}
	if len(res.Files) == 0 {
		res.Artifacts = ""
	}
	if a.over && r.cause == "" && res.Outcome == messages.OutcomeCancelled {
		res.Error = a.proc.Ended(r.mark) // it was given up because the process had ended
		res.Outcome = outcomeOf(res.Error)
	}
	if r.cause != "" {
		res.Outcome, res.Error = r.cause.error(&a.plan, a.o, r.times())
		if reply.Error != nil {
			res.Error.Stderr = reply.Error.Stderr
		}
	}
	if f.run.Fetch == "" {
		if drift := a.proc.Drift(); a.first && len(drift) > 0 {
			res.Warnings = append(res.Warnings, "schema drift: "+strings.Join(drift, "; "))
		}
		a.first = false
	}
	a.settle(r, res)
}

// settle forgets a run and has it answered by the launcher; at once when the process
// ends, since then the launcher may hear of that first.
func (a *tool) settle(r *running, res messages.ToolResult) {
	delete(a.runs, r.flight.run.ID)
	for _, stop := range r.stop {
		stop()
	}
	r.cancel()
	m := ended{r.flight, res}
	if a.over || a.killed {
		m.settle()
	}
	if !a.tell(m) {
		m.settle()
	}
}

// reapWait is what runs get to notice that their process has ended.
const reapWait = time.Second

func (a *tool) procEnded(ctx *supervisor.Ctx) error {
	a.over = true
	if len(a.runs) > 0 {
		ctx.After(reapWait, giveUp{})
	}
	if !a.killed {
		told := a.proc.Ended(0)
		if len(a.runs) == 0 {
			told.Message = strings.TrimSuffix(told.Message, " during the run")
		}
		a.record.failed(ctx.Now(), told)
	}
	return a.last()
}

// last ends the actor when its process has, and the last run was answered.
func (a *tool) last() error {
	switch {
	case !a.over || len(a.runs) > 0:
		return nil
	case a.why != nil:
		return a.why
	case a.killed:
		return supervisor.ErrDone
	default:
		return fmt.Errorf("the tool %s ended: %w", a.plan.ID, a.proc.Ended(0))
	}
}

// Terminate ends the process and answers what is in flight. The runs are given
// up first, since a server that ends in order waits for them.
func (a *tool) Terminate(ctx *supervisor.Ctx, exit supervisor.Exit) {
	for _, r := range a.runs {
		r.cancel()
	}
	if a.proc != nil {
		if err := a.stop(ctx, a.o.StopGrace, stopCeilings); err != nil {
			a.o.Logger.Warn("a tool does not end", "tool", a.plan.ID, "err", err)
		}
		a.record.down(a.proc.Stderr())
		if exit.Kind == messages.ExitHung {
			a.record.failed(ctx.Now(), &messages.ToolError{Kind: messages.ToolErrorCrashed, Message: "the tool " + a.plan.ID + " did not answer /healthz and was ended", Stderr: a.proc.Stderr()})
		}
	}
	a.pumps.Wait()
	a.over = true
	for _, r := range a.runs {
		a.settle(r, a.cutOff(r, exit))
	}
}

// cutOff is the result of a run that the end of its actor ended.
func (a *tool) cutOff(r *running, exit supervisor.Exit) messages.ToolResult {
	f := r.flight
	res := messages.ToolResult{
		Run: f.run.ID, Tool: f.run.Tool, Outcome: messages.OutcomeCancelled, Cold: f.cold, Hard: true, Duration: time.Since(f.arrived),
		Error: &messages.ToolError{Kind: messages.ToolErrorCancelled, Message: "the tool was stopped during the run"},
	}
	switch {
	case r.cause != "":
		res.Outcome, res.Error = r.cause.error(&a.plan, a.o, r.times())
	case exit.Failure():
		res.Outcome, res.Error = messages.OutcomeLost, a.proc.Ended(r.mark)
	}
	return res
}

var _ supervisor.Behaviour = (*tool)(nil)
