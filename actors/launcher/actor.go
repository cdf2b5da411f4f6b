package launcher

import (
	"context"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// nameLauncher is what the launcher is called in a tree, and kindTool the kind of its
// children.
const (
	nameLauncher = "launcher"
	kindTool     = "tool"
)

// plan is what the actor has to know of a tool.
type plan struct {
	ID string
	// Stamp changes with the tool's files: a process of another stamp is
	// replaced when it is idle.
	Stamp string
	// WarmKeep is how long an idle process is kept. 0: it is ended at once.
	WarmKeep time.Duration
	// MaxRuntime bounds one run. 0: nothing does.
	MaxRuntime time.Duration
	// MemoryMB is the memory that a process may use, 0 for any amount.
	MemoryMB int
	// Concurrent lets runs overlap.
	Concurrent bool
	// Start starts a process and returns when it is up. It ends with ctx, and
	// leaves nothing behind when it fails. Required.
	Start func(ctx context.Context) (process, error)
}

// process is the mechanism behind a tool. Its methods may be called from any
// goroutine.
type process interface {
	// Do makes a run and returns what came of it; ctx ends it.
	Do(ctx context.Context, run messages.ToolRun) reply
	// Cancel asks the process to end a run, until it says that it does or ctx, the
	// life of the run, ends.
	Cancel(ctx context.Context, run string) error
	// Healthy asks the process whether it is well.
	Healthy(ctx context.Context) error
	// Memory is what the process uses, in bytes; 0: not known.
	Memory() int64
	// Written is how much a run has written to its folder.
	Written(run string) (bytes int64, files int)
	// Ended explains the end of the process to a run; mark is Mark at its
	// beginning.
	Ended(mark int64) *messages.ToolError
	Mark() int64
	PID() int
	Port() int
	// Drift says where the process does not describe itself as its file does.
	Drift() []string
	// Stderr is the end of its standard error.
	Stderr() string
	// Done is closed when the process has ended.
	Done() <-chan struct{}
	// Stop ends the process: a request, grace, force. Negative: by force.
	Stop(ctx context.Context, grace time.Duration) error
}

// reply is what came of a run.
type reply struct {
	Outputs   messages.RawJSON
	Error     *messages.ToolError
	Warnings  []string
	Artifacts string
	Files     []string
	// Bytes and Count are what the run has written, Files that are not listed
	// included.
	Bytes int64
	Count int
	// Fetched is the answer to messages.ToolRun.Fetch, nil of a run.
	Fetched *messages.ToolFetched
}

const (
	// startMargin is what a start may take beyond the limit of the process itself.
	startMargin = 15 * time.Second
	// mostHardGrace is what a process that did not cancel a run gets of the grace to
	// end in order.
	mostHardGrace = time.Second
	stopMargin    = 7 * time.Second // what a killed process may take to be reaped
	// stopCeilings and hardCeilings are how often StopGrace, and the end of the grace of a
	// run, fit into the time after which a process is killed that has no processor to end
	// with.
	stopCeilings = 6
	hardCeilings = 10
)

// newActor returns the launcher as a behaviour for a supervisor's tree. It serves one
// incarnation. o has its defaults.
func newActor(o Options) *supervisor.Supervisor {
	d := &handler{o: o, tools: map[string]*entry{}, byRun: map[string]*flight{}}
	return supervisor.New(supervisor.Options{Name: nameLauncher, Strategy: policy(o, d), Handler: d})
}
