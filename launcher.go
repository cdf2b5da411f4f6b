package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/actors/tools"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

const nameLauncher = "launcher"

// LauncherOptions makes a [Launcher]. The zero value of each field is its default.
type LauncherOptions struct {
	// Dir is the folder of tools: each folder in it that has a tool.json is one.
	// "": COPPICE_TOOLS from Env, else <Home>/.<Brand>/tools.
	Dir string
	// Brand, Home and Env are as in Options. Of Env, tools see only PATH and a
	// few more names that hold no secret.
	Brand, Home string
	Env         []string
	// WarmMax is how many tools may be warm at once; for one more, the least
	// recently used idle one that is not pinned is ended. 0: 5.
	WarmMax int
	// MemoryBudgetMB bounds the sum of max_memory_mb over the warm tools. 0:
	// nothing does.
	MemoryBudgetMB int
	// Heartbeat is how often an idle tool is asked whether it is well. 0: 5 s.
	Heartbeat time.Duration
	// StartTimeout bounds the start of a tool. 0: 30 s.
	StartTimeout time.Duration
	// StopGrace is what a tool gets between the request to end and force. 0: 5 s.
	StopGrace time.Duration
	// CancelGrace is what a run gets to end when it was cancelled, before its
	// tool is ended. 0: 5 s.
	CancelGrace time.Duration
	// MaxParallel is how many runs of one tool go on at once. 0: 64.
	MaxParallel int
	// ArtifactBytes and ArtifactFiles bound what one run may write to its folder
	// for files. 0: 10 GiB and 10,000.
	ArtifactBytes int64
	ArtifactFiles int
	// Artifacts is the folder that holds the folders for files. "":
	// <Home>/.<Brand>/tool-runs.
	Artifacts string
	// Logger hears what the launcher gives up on, and of drift. nil: nobody.
	Logger *slog.Logger
	// OnEvent hears what happens in the tree; see Options.
	OnEvent func(messages.Lifecycle)
}

type (
	// ToolEntry is one folder of a folder of tools.
	ToolEntry = tools.Entry
	// ToolSpec is a parsed tool.json.
	ToolSpec = tools.Spec
	// ToolInput is one value that a run of a tool is given.
	ToolInput = tools.Input
	// ToolProblem is one thing that is wrong with a tool, and where.
	ToolProblem = tools.Problem
)

// Launcher keeps the tools of a folder warm: processes that answer HTTP on the
// loopback interface, one for each tool, started by the first run and ended when
// nobody uses them. Any goroutine may use it.
//
// It has a supervision tree of its own, from StartLauncher, or is a part of a
// host's, with Options.Launcher.
type Launcher struct {
	o         LauncherOptions
	catalogue *tools.Catalogue
	system    *supervisor.System
	actor     supervisor.Ref
	hosted    bool // the tree is the host's

	pins sync.Mutex // held while the file of pins is changed

	shutdown sync.Once
	report   messages.ShutdownReport
}

// StartLauncher makes a launcher with a supervision tree of its own. No tool is
// started but by a run or [Launcher.Prewarm]. ctx bounds StartLauncher only. The error
// matches ErrOptions when an option is wrong.
func StartLauncher(ctx context.Context, o LauncherOptions) (*Launcher, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	system, err := supervisor.Start(ctx, supervisor.SystemOptions{Name: "supervisor", OnEvent: o.OnEvent, Drain: -1, Children: []supervisor.Spec{o.spec()}})
	if err != nil {
		return nil, fmt.Errorf("start the launcher: %w", err)
	}
	return o.attach(ctx, system), nil
}

// spec is the launcher as a child of a tree.
func (o LauncherOptions) spec() supervisor.Spec {
	return supervisor.Spec{Key: nameLauncher, Kind: nameLauncher, New: func() supervisor.Behaviour { return launcher.New(o.launcher()) }}
}

// attach returns the launcher that stands in a tree, with its pins restored.
func (o LauncherOptions) attach(ctx context.Context, system *supervisor.System) *Launcher {
	t := &Launcher{o: o, catalogue: o.catalogue(), system: system, actor: system.Ref(nameLauncher)}
	if err := t.restorePins(ctx); err != nil {
		o.Logger.Warn("restore the pins of tools", "err", err)
	}
	return t
}

// within are the options of a launcher in a host's tree: what they do not say is
// as in the host's.
func (o LauncherOptions) within(h resolved) (LauncherOptions, error) {
	if o.OnEvent != nil {
		return o, fmt.Errorf("%w: the events of a launcher in a host's tree are those of the host: use Options.OnEvent", ErrOptions)
	}
	if o.Brand == "" {
		o.Brand = h.Brand
	}
	if o.Home == "" {
		o.Home = h.Home
	}
	if o.Env == nil {
		o.Env = h.Env
	}
	if o.Logger == nil {
		o.Logger = h.Logger
	}
	o, err := o.resolve()
	if err != nil {
		return o, fmt.Errorf("the launcher: %w", err)
	}
	return o, nil
}

func (o LauncherOptions) resolve() (LauncherOptions, error) {
	r, err := Options{Brand: o.Brand, Home: o.Home, Env: o.Env, Logger: o.Logger}.resolve()
	if err != nil {
		return o, err
	}
	if o.WarmMax < 0 || o.MemoryBudgetMB < 0 || o.MaxParallel < 0 || o.ArtifactBytes < 0 || o.ArtifactFiles < 0 {
		return o, fmt.Errorf("%w: a limit is negative", ErrOptions)
	}
	o.Env, o.Logger, o.Home, o.Brand = r.Env, r.Logger, r.Home, r.Brand
	if o.Dir == "" {
		o.Dir = home.Lookup(r.Env, "COPPICE_TOOLS")
	}
	if o.Dir == "" {
		o.Dir = filepath.Join(r.dir, "tools")
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, fmt.Errorf("%w: the folder of tools: %w", ErrOptions, err)
	}
	if info, err := os.Stat(o.Dir); err == nil && !info.IsDir() {
		return o, fmt.Errorf("%w: %s is not a folder of tools", ErrOptions, o.Dir)
	}
	if o.Artifacts == "" {
		o.Artifacts = filepath.Join(r.dir, "tool-runs")
	}
	if o.Artifacts, err = filepath.Abs(o.Artifacts); err != nil {
		return o, fmt.Errorf("%w: the folder for files: %w", ErrOptions, err)
	}
	return o, nil
}

func (o LauncherOptions) cache() string { return filepath.Join(o.Home, "."+o.Brand, "cache") }

func (o LauncherOptions) catalogue() *tools.Catalogue {
	return tools.NewCatalogue(tools.Options{Dir: o.Dir, Env: o.Env, Artifacts: o.Artifacts, Cache: o.cache(), StartTimeout: o.StartTimeout})
}

func (o LauncherOptions) launcher() launcher.Options {
	start := o.StartTimeout
	if start > 0 {
		start += 15 * time.Second // beyond the limit of the process itself
	}
	return launcher.Options{
		Policy:       launcher.Policy{WarmMax: o.WarmMax, MemoryBudgetMB: o.MemoryBudgetMB, Heartbeat: o.Heartbeat},
		StartTimeout: start, StopGrace: o.StopGrace, CancelGrace: o.CancelGrace, MaxParallel: o.MaxParallel,
		ArtifactBytes: o.ArtifactBytes, ArtifactFiles: o.ArtifactFiles, Logger: o.Logger,
	}
}

// Dir is the folder of tools.
func (t *Launcher) Dir() string { return t.o.Dir }

// List lists the tools of the folder as it is now, by the names of their
// folders; a broken one is listed with its error.
func (t *Launcher) List(ctx context.Context) ([]ToolEntry, error) { return t.catalogue.List(ctx) }

// Find returns one tool. The error is a *messages.ToolError when no tool has the
// id, or the tool is broken.
func (t *Launcher) Find(ctx context.Context, id string) (ToolEntry, error) {
	return t.catalogue.Find(ctx, id)
}

// ToolRequest is one run of a tool.
type ToolRequest struct {
	Tool string
	// Inputs is a JSON object by the keys of the tool's inputs; what is missing
	// gets its default. nil: no inputs.
	Inputs json.RawMessage
	// ID names the run, for Cancel. "": a new one.
	ID string
	// Timeout shortens what the tool allows a run. 0: it does not.
	Timeout time.Duration

	fetch string // see messages.ToolRun
}

// Run makes one run and returns its result. When ctx ends first the run is
// cancelled, and Run waits for its result for no longer than the grace of a
// cancel and the end of the process. The error is ErrClosed after Shutdown; what
// went wrong with the tool or the run is in the result.
func (t *Launcher) Run(ctx context.Context, r ToolRequest) (messages.ToolResult, error) {
	return t.run(ctx, r, nil)
}

// Stream is Run with what the tool returns as it comes. emit is called from one
// goroutine at a time and not after Stream has returned; while it blocks the
// tool waits, and its error cancels the run.
func (t *Launcher) Stream(ctx context.Context, r ToolRequest, emit func(messages.ToolEvent) error) (messages.ToolResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return t.run(ctx, r, &outlet{emit: emit, cancel: cancel})
}

// outlet passes events on until the caller has its result.
type outlet struct {
	emit   func(messages.ToolEvent) error
	cancel context.CancelFunc

	mu   sync.Mutex
	over bool // guarded by mu
}

var errOver = errors.New("the run is over")

// Emit passes an event on.
func (o *outlet) Emit(e messages.ToolEvent) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return errOver
	}
	err := o.emit(e)
	if err != nil {
		o.over = true
		o.cancel()
	}
	return err
}

func (o *outlet) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}

func (t *Launcher) run(ctx context.Context, r ToolRequest, out *outlet) (messages.ToolResult, error) {
	run := launcher.Run{ToolRun: messages.ToolRun{ID: r.ID, Tool: r.Tool, Inputs: r.Inputs, Timeout: r.Timeout, Fetch: r.fetch}}
	if run.ID == "" {
		run.ID = messages.NewID()
	}
	if out != nil {
		run.Out = out
		defer out.close()
	}
	refused := messages.ToolResult{Run: run.ID, Tool: r.Tool, Outcome: messages.OutcomeNotStarted}
	if err := r.check(run.ID); err != nil {
		refused.Error = err
		return refused, nil
	}
	entry, err := t.catalogue.Find(ctx, r.Tool)
	if err != nil {
		told, ok := errors.AsType[*messages.ToolError](err)
		if !ok {
			return refused, err
		}
		refused.Error = told
		return refused, nil
	}
	run.Spec, run.Tool = t.catalogue.Launch(entry), entry.ID
	_, reply, err := supervisor.Begin[messages.ToolResult](t.actor, run)
	if err != nil {
		refused.Error = &messages.ToolError{Kind: messages.ToolErrorDraining, Message: ErrClosed.Error()}
		return refused, ErrClosed
	}
	result, err := reply.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		cause := messages.CauseCancelled
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			cause = messages.CauseTimeout
		}
		t.actor.Tell(messages.ToolCancel{Tool: run.Tool, Run: run.ID, Cause: cause})
		result, err = reply.Wait(context.WithoutCancel(ctx))
	}
	if err != nil {
		refused.Error = &messages.ToolError{Kind: messages.ToolErrorDraining, Message: ErrClosed.Error()}
		return refused, errors.Join(ErrClosed, err)
	}
	return result, nil
}

// check refuses what no tool should see.
func (r ToolRequest) check(id string) *messages.ToolError {
	wrong := func(text string) *messages.ToolError {
		return &messages.ToolError{Kind: messages.ToolErrorInput, Message: text}
	}
	if !tools.IsID(id) {
		return wrong(fmt.Sprintf("the run id %q is not a name of letters, digits, dots, dashes and underscores", id))
	}
	if r.Timeout < 0 {
		return wrong(fmt.Sprintf("the timeout %v is negative; use 0 for none", r.Timeout))
	}
	if len(r.Inputs) > 0 {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(r.Inputs, &object); err != nil {
			return wrong(fmt.Sprintf("the inputs are not a JSON object: %v", err))
		}
	}
	return nil
}

// Cancel ends a run early; its result says cancelled. A run that is not known
// is no error. It returns when the request was handed over.
func (t *Launcher) Cancel(_ context.Context, run string) error {
	if !t.actor.Tell(messages.ToolCancel{Run: run}) {
		return ErrClosed
	}
	return nil
}

// Prewarm starts a tool, unless that would cost another one its place, and
// returns at once. A start that fails is only seen in State.
func (t *Launcher) Prewarm(ctx context.Context, id string) (messages.ToolQueued, error) {
	entry, err := t.catalogue.Find(ctx, id)
	if err != nil {
		return messages.ToolQueued{}, err
	}
	return askTools[messages.ToolQueued](ctx, t, launcher.Prewarm{Spec: t.catalogue.Launch(entry)})
}

// Stop ends the process of a tool, and its runs as cancelled. It returns when
// the process has ended; false: there was none.
func (t *Launcher) Stop(ctx context.Context, id string) (bool, error) {
	return askTools[bool](ctx, t, messages.ToolStop{Tool: id})
}

// State says what is warm, and what failed last.
func (t *Launcher) State(ctx context.Context) (messages.ToolsState, error) {
	return askTools[messages.ToolsState](ctx, t, messages.ToolsQuery{})
}

// Logs returns the end of a tool's standard error, of its process or of the
// last one; live says which. known is false when it had none.
func (t *Launcher) Logs(ctx context.Context, id string) (text string, live, known bool, err error) {
	log, err := askTools[launcher.Log](ctx, t, launcher.Logs{Tool: id})
	return log.Text, log.Live, log.Known, err
}

// Watch calls fn for every change in the tree; see Host.Watch.
func (t *Launcher) Watch(fn func(messages.Lifecycle)) (stop func()) { return t.system.Watch(fn) }

// Shutdown ends all tools at the same time, running runs as cancelled, and says
// what did not end before ctx did. Every call returns the same report. The
// launcher of a host ends with the host: its own Shutdown does nothing.
func (t *Launcher) Shutdown(ctx context.Context) messages.ShutdownReport {
	if t.hosted {
		return messages.ShutdownReport{}
	}
	t.shutdown.Do(func() { t.report = t.system.Shutdown(ctx) })
	return t.report
}

func askTools[T any](ctx context.Context, t *Launcher, msg any) (T, error) {
	v, err := supervisor.Ask[T](ctx, t.actor, msg)
	if errors.Is(err, supervisor.ErrNoProcess) || errors.Is(err, supervisor.ErrGone) {
		return v, ErrClosed
	}
	return v, err
}
