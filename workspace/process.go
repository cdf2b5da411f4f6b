package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/workspace/procs"
)

// How many processes of one workspace may run, and how many that have ended are
// remembered, the newest.
const (
	maxRunning = 64
	keptOver   = 64
)

// kindProcess is the kind of a process in the tree.
const kindProcess = "process"

// ErrUnknownProcess is matched when the workspace has no process of this id, or no longer knows it.
var ErrUnknownProcess = errors.New("there is no such process")

// ProcessOptions say what to start in a workspace. The zero value of each field but Args
// is its default.
type ProcessOptions struct {
	// Args are the program and its arguments; see procs.Options. No shell is in between. Required.
	Args []string
	// Env is set on top of the workspace's.
	Env map[string]string
	// Cwd is the working directory, relative to the folder. An absolute one, or one with "..", may
	// lie outside of it: what can be done there is up to the isolation. "": the folder.
	Cwd string
	// Input, Terminal and Keep are as of procs.Options.
	Input    bool
	Terminal *procs.Size
	Keep     int64
	// Timeout ends it after so much time, as does Limits.Runtime of the workspace, whichever is less. 0: never.
	Timeout time.Duration
	// Labels are the caller's own.
	Labels map[string]string
}

// Process is a process of a workspace: it keeps the workspace in use while it
// runs, and ends with it. Its output can be read until the workspace ends, or so many
// others have ended after it.
type Process struct {
	*procs.Process
	id      string
	o       ProcessOptions
	started time.Time
	part    process.Part // by which it and what it starts are known
}

// ID returns its name in the workspace, which no other process of it ever gets.
func (p *Process) ID() string { return p.id }

// Options returns what it was started with. They must not be changed.
func (p *Process) Options() ProcessOptions { return p.o }

// Started returns when it was started.
func (p *Process) Started() time.Time { return p.started }

// run is the work of a process's actor.
type run struct {
	p     *Process
	o     procs.Options
	after time.Duration // 0: it may run for ever
	w     *Workspace
	// left says that it does not run any more, or never did; calls after the first do nothing.
	left func()
	// up gets nil once it runs, or why it does not. It has room for one.
	up   chan error
	gone chan struct{} // closed when no one waits for that any more
}

// refuse answers whoever waits for a process that was not started.
func (r run) refuse() {
	err := r.w.Err()
	if err == nil {
		err = &EndedError{r.w.name, ReasonFailed, "it failed", time.Now()}
	}
	select {
	case r.up <- err:
	default: // it was answered
	}
	r.left()
}

// Dropped is called when the workspace ended before the message's turn.
func (r run) Dropped() { r.refuse() }

// Start starts a process in the workspace, with the isolation and, of its limits,
// Memory, Files and Runtime. The error is a *procs.StartError, an *EndedError, an
// *OptionsError, or matches ErrNoPlace when too many run.
func (w *Workspace) Start(ctx context.Context, o ProcessOptions) (*Process, error) {
	o.Args, o.Env, o.Labels = slices.Clone(o.Args), maps.Clone(o.Env), maps.Clone(o.Labels)
	if _, err := (Options{Env: o.Env, Labels: o.Labels}).settle(); err != nil {
		return nil, err
	}
	if o.Timeout < 0 || o.Keep < 0 {
		return nil, &OptionsError{"timeout", "the timeout or the bytes to keep are negative; use 0 for the default"}
	}
	dir := messages.SessionKey{Cwd: w.folder}.In(o.Cwd).Cwd
	leave, err := w.Enter()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.procNext++
	p := &Process{id: "p" + strconv.FormatUint(w.procNext, 10), o: o, started: time.Now(), part: w.newPart()}
	full := w.procRun >= maxRunning
	if !full {
		w.procRun++
	}
	self := w.self
	w.mu.Unlock()
	if full {
		leave()
		return nil, fmt.Errorf("%w: %d processes of the workspace run; end one", ErrNoPlace, maxRunning)
	}
	left := sync.OnceFunc(func() {
		w.mu.Lock()
		w.procRun--
		w.mu.Unlock()
		leave()
	})
	r := run{p: p, w: w, left: left, up: make(chan error, 1), gone: make(chan struct{}), after: o.Timeout, o: procs.Options{
		Args: o.Args, Dir: filepath.Clean(dir), Input: o.Input, Terminal: o.Terminal, Keep: o.Keep, Env: w.environment(o),
		Owner: w.owner(), Mark: w.mark, Part: p.part, Output: w.o.Total.Output, FileSize: uint64(max(w.o.Quota, 0)),
		Memory: uint64(max(w.o.Limits.Memory, 0)), Files: uint64(max(w.o.Limits.Files, 0)), Wall: w.wall(),
	}}
	if l := w.o.Limits.Runtime; l > 0 && (r.after == 0 || l < r.after) {
		r.after = l
	}
	if err := w.Begin(func() error {
		if !self.Tell(r) {
			return supervisor.ErrNoProcess
		}
		return nil
	}); err != nil {
		left()
		return nil, w.set.meaning(w, err)
	}
	select {
	case err := <-r.up:
		if err != nil {
			return nil, err
		}
		return p, nil
	case <-ctx.Done():
		close(r.gone) // the actor ends what no one waits for
		return nil, context.Cause(ctx)
	}
}

// wall puts a process behind the walls of the workspace; nil: there are none.
func (w *Workspace) wall() func(procs.Program) (procs.Behind, error) {
	if w.place.Wall == nil {
		return nil
	}
	return func(p procs.Program) (procs.Behind, error) {
		c, err := w.place.Wall.Confine(kernel.Program(p))
		return procs.Behind(c), err
	}
}

// environment is that of a process.
func (w *Workspace) environment(o ProcessOptions) []string {
	env := pyenv.Filter(w.o.Passing(w.set.o.Env))
	set := map[string]string{}
	if o.Terminal != nil {
		set["TERM"] = "xterm-256color"
	}
	maps.Copy(set, w.o.Env)
	maps.Copy(set, o.Env)
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, replaced := set[name]
		return replaced
	})
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env = append(env, name+"="+set[name])
	}
	return env
}

// Process returns a process of the workspace, also one that has ended. The error is an
// *EndedError, or matches ErrUnknownProcess.
func (w *Workspace) Process(id string) (*Process, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended != nil {
		return nil, w.ended
	}
	if i := slices.IndexFunc(w.procs, func(p *Process) bool { return p.id == id }); i >= 0 {
		return w.procs[i], nil
	}
	return nil, fmt.Errorf("%w: %.40q", ErrUnknownProcess, id)
}

// Processes returns the processes of the workspace, in the order in which they were
// started, with those that have ended and are remembered.
func (w *Workspace) Processes() []*Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.procs)
}

// keep remembers a process that runs, and forgets the oldest that have ended.
func (w *Workspace) keep(p *Process) {
	w.mu.Lock()
	w.procs = append(w.procs, p)
	over := len(w.procs) - keptOver - maxRunning
	var drop []*Process
	w.procs = slices.DeleteFunc(w.procs, func(p *Process) bool {
		if _, ended := p.Exit(); !ended || over <= 0 {
			return false
		}
		over--
		drop = append(drop, p)
		return true
	})
	w.mu.Unlock()
	for _, p := range drop {
		_ = p.Close() // it has ended; what could stay is a file in the folder for temporary ones
	}
}

// forgetProcesses removes what is kept of the processes, all of which have ended.
func (w *Workspace) forgetProcesses() error {
	w.mu.Lock()
	all := w.procs
	w.procs = nil
	w.mu.Unlock()
	var err error
	for _, p := range all {
		err = errors.Join(err, p.Close())
	}
	return err
}

// processStop bounds the end of one process: its grace, the kill, and the end of its output.
const processStop = 15 * time.Second

// processActor owns one process.
type processActor struct {
	w     *Workspace
	r     run
	work  supervisor.Work
	up    bool
	wait  chan struct{}  // closed when the goroutine that waits for the process has ended
	stops sync.WaitGroup // attempts to end it; Terminate joins them
}

// What a process's actor is told.
type (
	processEnded struct{}
	timeUp       struct{}
)

// Init does nothing: the process is started by the work.
func (a *processActor) Init(*supervisor.Ctx) error { return nil }

// Handle starts the process, and hears of its end.
func (a *processActor) Handle(ctx *supervisor.Ctx, msg any) error {
	switch m := msg.(type) {
	case supervisor.Work:
		a.work = m
		groups, err := a.w.groupFiles()
		var started *procs.Process
		if err == nil {
			a.r.o.Groups, a.r.o.Killed = groups, a.w.killed(time.Now())
			started, err = procs.Start(a.r.o)
			for _, f := range groups {
				_ = f.Close() // the process is in it
			}
		}
		if err != nil {
			a.over(ctx, err)
			return nil
		}
		a.r.p.Process, a.up, a.wait = started, true, make(chan struct{})
		a.w.keep(a.r.p)
		ctx.Note(supervisor.Facts{PID: started.PID(), Detail: filepath.Base(a.r.o.Args[0])})
		go func() { // ends with the process; Terminate joins it
			defer close(a.wait)
			<-started.Done()
			ctx.Tell(processEnded{})
		}()
		if a.r.after > 0 {
			ctx.After(a.r.after, timeUp{})
		}
		a.r.up <- nil
		select {
		case <-a.r.gone:
			a.stop("no one waited for it any more")
		default:
		}
	case timeUp:
		a.stop(fmt.Sprintf("its time of %v was up", a.r.after))
	case processEnded:
		a.over(ctx, nil)
	default:
		return supervisor.Unknown(msg)
	}
	return nil
}

// stop ends the process without waiting for it.
func (a *processActor) stop(reason string) {
	started := a.r.p.Process
	a.stops.Go(func() { _ = started.Stop(context.Background(), reason, 0) }) // Terminate ends what it could not
}

// over ends the work; with it, the actor ends.
func (a *processActor) over(ctx *supervisor.Ctx, err error) {
	if !a.up {
		a.r.up <- err
	}
	ctx.Finish(a.work, true)
}

// Terminate ends the process, if it still runs.
func (a *processActor) Terminate(_ *supervisor.Ctx, exit supervisor.Exit) {
	if !a.up {
		a.r.refuse()
		return
	}
	_, reason := reasonOf(exit.Value())
	if err := a.w.Err(); err != nil {
		reason = err.Error()
	}
	if err := a.r.p.Stop(context.Background(), reason, 0); err != nil {
		a.w.set.o.Logger.Warn("a process of a workspace did not end", "workspace", a.w.name, "process", a.r.p.id, "err", err)
		return
	}
	<-a.wait
	a.stops.Wait()
}

var (
	_ supervisor.Behaviour = (*processActor)(nil)
	_ supervisor.Droppable = run{}
)
