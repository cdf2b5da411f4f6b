package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a launcher over tools that are made of nothing. It runs in a bubble.
type world struct {
	t      *testing.T
	system *supervisor.System
	o      launcher.Options

	mu     sync.Mutex
	kinds  map[string]*kind // by tool
	ids    int
	events []string // starts and ends of processes
}

// kind is how the processes of one tool behave.
type kind struct {
	launcher.Plan
	startTakes time.Duration
	startFails error
	deaf       bool // to a cancel
	hangs      bool // when it is asked to end: it takes all of its grace
	// ends is how long it takes to end when it is asked to, starved how long it then has no
	// processor.
	ends, starved time.Duration
	sick          bool // says that it is not well
	memory        int64
	written       int64
	drift         []string

	starts, live, most int
	procs              []*proc
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, o launcher.Options, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, kinds: map[string]*kind{}, o: o}
		var err error
		w.system, err = supervisor.Start(context.Background(), supervisor.SystemOptions{Name: "root", Drain: -1, Children: []supervisor.Spec{
			{Key: "launcher", New: func() supervisor.Behaviour { return launcher.New(o) }},
		}})
		require.NoError(t, err)
		test(w)
		report := w.system.Shutdown(context.Background())
		require.True(t, report.Clean(), "%+v", report)
		require.Empty(t, w.system.Bugs())
		for id, k := range w.kinds {
			require.Zero(t, k.live, "processes of %s are left", id)
		}
	})
}

// tool makes a kind of tool, with a minute to be kept.
func (w *world) tool(id string, change func(*kind)) {
	k := &kind{Plan: launcher.Plan{ID: id, Stamp: "1", WarmKeep: time.Minute, Concurrent: true}}
	if change != nil {
		change(k)
	}
	k.Start = func(ctx context.Context) (launcher.Process, error) { return w.start(ctx, k) }
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kinds[id] = k
}

func (w *world) start(ctx context.Context, k *kind) (launcher.Process, error) {
	w.mu.Lock()
	k.starts++
	takes, fails := k.startTakes, k.startFails
	w.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if fails != nil {
		return nil, fails
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	k.live++
	p := &proc{w: w, k: k, done: make(chan struct{}), runs: map[string]context.CancelFunc{}, pid: 1000 + len(k.procs)}
	k.procs = append(k.procs, p)
	w.events = append(w.events, "start "+k.ID)
	return p, nil
}

// proc is a process made of nothing.
type proc struct {
	w    *world
	k    *kind
	pid  int
	done chan struct{}

	mu   sync.Mutex
	over bool
	runs map[string]context.CancelFunc
}

// Do obeys the inputs: "for 3s", "fail", "crash".
func (p *proc) Do(ctx context.Context, run messages.ToolRun) launcher.Reply {
	soft, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.mu.Lock()
	p.runs[run.ID] = cancel
	p.w.mu.Lock()
	p.k.most = max(p.k.most, len(p.runs))
	p.w.mu.Unlock()
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.runs, run.ID)
	}()
	word, rest, _ := strings.Cut(string(run.Inputs), " ")
	switch word {
	case "fail":
		return launcher.Reply{Error: &messages.ToolError{Kind: messages.ToolErrorTool, Message: "failed"}}
	case "crash":
		p.end()
		return launcher.Reply{Error: p.Ended(0)}
	case "for":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return launcher.Reply{Error: &messages.ToolError{Kind: messages.ToolErrorInput, Message: err.Error()}}
		}
		select {
		case <-time.After(d):
		case <-soft.Done():
		case <-ctx.Done():
			return launcher.Reply{Error: &messages.ToolError{Kind: messages.ToolErrorCancelled, Message: "given up"}}
		case <-p.done:
			return launcher.Reply{Error: p.Ended(0)}
		}
	}
	return launcher.Reply{Outputs: messages.RawJSON(fmt.Sprintf(`{"pid":%d}`, p.pid))}
}

func (p *proc) Cancel(_ context.Context, run string) error {
	if p.k.deaf {
		return errors.New("no")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.runs[run]; cancel != nil {
		cancel()
	}
	return nil
}

func (p *proc) Healthy(context.Context) error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.k.sick {
		return errors.New("sick")
	}
	return nil
}

func (p *proc) Memory() int64 { p.w.mu.Lock(); defer p.w.mu.Unlock(); return p.k.memory }
func (p *proc) Written(string) (int64, int) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.k.written, 1
}
func (p *proc) Mark() int64           { return 0 }
func (p *proc) PID() int              { return p.pid }
func (p *proc) Port() int             { return 40000 + p.pid }
func (p *proc) Drift() []string       { return p.k.drift }
func (p *proc) Stderr() string        { return fmt.Sprint("stderr of ", p.pid) }
func (p *proc) Done() <-chan struct{} { return p.done }
func (p *proc) Ended(int64) *messages.ToolError {
	return &messages.ToolError{Kind: messages.ToolErrorCrashed, Message: "the tool ended during the run", Stderr: p.Stderr()}
}

func (p *proc) Stop(ctx context.Context, grace time.Duration) error {
	asked := p.k.ends
	if p.k.hangs {
		asked = time.Hour
	}
	if grace > 0 && asked > 0 {
		select {
		case <-time.After(asked):
			p.w.note("in order " + p.k.ID)
		case <-time.After(grace):
		case <-ctx.Done():
		case <-p.done:
		}
	}
	p.end()
	return nil
}

// Subject is the process: it wants a processor from now on, and gets none for a while.
func (p *proc) Subject() opportunity.Subject { return starved{time.Now(), p.k.starved} }

// starved is who gets no processor for so long.
type starved struct {
	begun time.Time
	lasts time.Duration
}

func (s starved) Look(now time.Time) (opportunity.Sample, error) {
	if passed := now.Sub(s.begun); passed < s.lasts {
		return opportunity.Sample{Pending: passed, Known: opportunity.Waits}, nil
	}
	return opportunity.Sample{Waited: s.lasts, Known: opportunity.Waits}, nil
}

// note adds to the events.
func (w *world) note(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
}

func (p *proc) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	p.over = true
	p.w.mu.Lock()
	p.k.live--
	p.w.events = append(p.w.events, "end "+p.k.ID)
	p.w.mu.Unlock()
	close(p.done)
}

// begin asks for a run.
func (w *world) begin(tool, do string) (string, supervisor.Reply[messages.ToolResult]) {
	w.t.Helper()
	w.mu.Lock()
	w.ids++
	id, spec := fmt.Sprint("run", w.ids), w.kinds[tool].Plan
	w.mu.Unlock()
	_, reply, err := supervisor.Begin[messages.ToolResult](w.launcher(), launcher.Launch{ToolRun: messages.ToolRun{ID: id, Tool: tool, Inputs: messages.RawJSON(do)}, Plan: spec})
	require.NoError(w.t, err)
	return id, reply
}

func (w *world) launcher() supervisor.Ref { return w.system.Ref("launcher") }

// run makes a run to its end.
func (w *world) run(tool, do string) messages.ToolResult {
	w.t.Helper()
	_, reply := w.begin(tool, do)
	r, err := reply.Wait(context.Background())
	require.NoError(w.t, err)
	return r
}

func ask[T any](w *world, msg any) T {
	w.t.Helper()
	v, err := supervisor.Ask[T](context.Background(), w.launcher(), msg)
	require.NoError(w.t, err)
	return v
}

// warm are the tools that live, with the number of their process.
func (w *world) warm() string {
	w.t.Helper()
	synctest.Wait()
	var ids []string
	for _, t := range ask[messages.ToolsState](w, messages.ToolsQuery{}).Tools {
		if t.State != messages.ChildGone && t.State != messages.ChildWaiting {
			ids = append(ids, t.ID)
		}
	}
	return strings.Join(ids, " ")
}
