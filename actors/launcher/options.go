package launcher

import (
	"context"
	"log/slog"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// KindTool is the kind of the children in a launcher's tree.
const KindTool = "tool"

// Tool is what the launcher has to know of a tool.
type Tool struct {
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
	Start func(ctx context.Context) (Process, error)
}

// Process is the mechanism behind a tool. Its methods may be called from any
// goroutine.
type Process interface {
	// Do makes a run and returns what came of it; ctx ends it.
	Do(ctx context.Context, run messages.ToolRun) Reply
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

// Reply is what came of a run.
type Reply struct {
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

// Options makes a launcher. The zero value of a field is its default.
type Options struct {
	Policy Policy
	// StartTimeout bounds what a child takes to start, beyond the limit that
	// Tool.Start has itself. 0: 45 s.
	StartTimeout time.Duration
	// StopGrace is what a process gets between the request to end and force.
	// 0: 5 s.
	StopGrace time.Duration
	// CancelGrace is what a run gets to end after it was cancelled. 0: 5 s.
	CancelGrace time.Duration
	// MaxParallel is how many runs of one tool go on at once; more wait. 0: 64.
	MaxParallel int
	// MaxWaiting is how many runs of one tool may wait; more are refused. 0: 1024.
	MaxWaiting int
	// ArtifactBytes and ArtifactFiles bound what one run may write to its
	// folder. 0: 10 GiB and 10,000.
	ArtifactBytes int64
	ArtifactFiles int
	// Tick is how often time-based policies are applied. 0: 1 s.
	Tick time.Duration
	// Logger hears what nobody is told otherwise: drift, a cancel that the tool
	// did not take. nil: nobody.
	Logger *slog.Logger
}

const (
	startTimeout  = 45 * time.Second
	stopGrace     = 5 * time.Second
	cancelGrace   = 5 * time.Second
	hardGrace     = time.Second     // for a process that did not cancel a run
	stopMargin    = 7 * time.Second // what a killed process may take to be reaped
	maxParallel   = 64
	maxWaiting    = 1024
	artifactBytes = 10 << 30
	artifactFiles = 10_000
)

func (o Options) withDefaults() Options {
	o.Policy = o.Policy.withDefaults()
	o.StartTimeout = positive(o.StartTimeout, startTimeout)
	o.StopGrace = positive(o.StopGrace, stopGrace)
	o.CancelGrace = positive(o.CancelGrace, cancelGrace)
	o.MaxParallel = positive(o.MaxParallel, maxParallel)
	o.MaxWaiting = positive(o.MaxWaiting, maxWaiting)
	o.ArtifactBytes = positive(o.ArtifactBytes, artifactBytes)
	o.ArtifactFiles = positive(o.ArtifactFiles, artifactFiles)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func positive[T int | int64 | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// New returns the launcher as a behaviour for a supervisor's tree. It serves
// one incarnation.
func New(o Options) *supervisor.Supervisor {
	o = o.withDefaults()
	d := &handler{o: o, tools: map[string]*entry{}, byRun: map[string]*flight{}}
	return supervisor.New(supervisor.Options{Name: "launcher", Strategy: o.Policy.strategy(d), Handler: d, Tick: o.Tick})
}
