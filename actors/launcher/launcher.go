package launcher

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coppice-run/coppice/internal/toolbox"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// ErrClosed is returned by everything that needs a launcher that has been shut down,
// or whose host has.
var ErrClosed = errors.New("the launcher is shut down")

// Launcher keeps the tools of a folder warm: processes that answer HTTP on the
// loopback interface, one for each tool, started by the first run and ended when
// no run has come for a while. A run gives a tool its inputs and nothing of a session;
// what a tool keeps in its process, all who run it share. Any goroutine may use it.
//
// It has a supervision tree of its own, from [Start], or is a part of a host's, with
// Options.Launcher of package coppice.
type Launcher struct {
	o      Options
	box    *toolbox.Box
	system *supervisor.System
	actor  supervisor.Ref
	hosted bool // the tree is the host's

	shutdown sync.Once
	report   messages.ShutdownReport
}

// Start makes a launcher with a supervision tree of its own. No tool is started but by
// a run or [Launcher.Prewarm]. ctx bounds Start only. The error matches [ErrOptions]
// when an option is wrong.
func Start(ctx context.Context, o Options) (*Launcher, error) {
	o, box, err := o.open()
	if err != nil {
		return nil, err
	}
	c := &Child{o, box}
	system, err := supervisor.Start(ctx, supervisor.SystemOptions{Name: "supervisor", OnEvent: o.OnEvent, Logger: o.Logger, Drain: -1, Children: []supervisor.Spec{c.Spec()}})
	if err != nil {
		return nil, fmt.Errorf("start the launcher: %w", err)
	}
	return c.attach(ctx, system, false), nil
}

// Dir is the folder of tools.
func (l *Launcher) Dir() string { return l.o.Dir }

// List lists the tools of the folder as it is now, by the names of their
// folders; a broken one is listed with its error.
func (l *Launcher) List(ctx context.Context) ([]Entry, error) { return l.box.List(ctx) }

// Find returns one tool. The error is a *messages.ToolError when no tool has the
// id, or the tool is broken.
func (l *Launcher) Find(ctx context.Context, id string) (Entry, error) {
	return l.box.Find(ctx, id)
}

// Cancel ends a run early; its result says cancelled. A run that is not known
// is not an error. It returns when the request was handed over.
func (l *Launcher) Cancel(_ context.Context, run string) error {
	if !l.actor.Tell(messages.ToolCancel{Run: run}) {
		return ErrClosed
	}
	return nil
}

// Prewarm starts a tool, unless that would cost another one its place, and
// returns at once. A start that fails is only seen in State.
func (l *Launcher) Prewarm(ctx context.Context, id string) (messages.ToolQueued, error) {
	entry, err := l.box.Find(ctx, id)
	if err != nil {
		return messages.ToolQueued{}, err
	}
	return askTools[messages.ToolQueued](ctx, l, prewarm{l.planOf(entry)})
}

// Stop ends the process of a tool, and its runs as cancelled. It returns when
// the process has ended; false: there was none.
func (l *Launcher) Stop(ctx context.Context, id string) (bool, error) {
	return askTools[bool](ctx, l, messages.ToolStop{Tool: id})
}

// State says what is warm, and what failed last.
func (l *Launcher) State(ctx context.Context) (messages.ToolsState, error) {
	return askTools[messages.ToolsState](ctx, l, messages.ToolsQuery{})
}

// Log is the end of a tool's standard error.
type Log struct {
	Text string
	// Live says that the process runs; if not, it is that of the last one.
	Live bool
	// Known says that the tool had a process since the launcher was started.
	Known bool
}

// Logs returns the end of a tool's standard error, of its process or of the last one.
func (l *Launcher) Logs(ctx context.Context, id string) (Log, error) {
	return askTools[Log](ctx, l, logs{Tool: id})
}

// Watch calls fn for every change in the tree, from one goroutine at a time, until
// stop is called. fn must not block. If it panics, that is logged and it is not called
// again.
func (l *Launcher) Watch(fn func(messages.Lifecycle)) (stop func()) { return l.system.Watch(fn) }

// Shutdown ends all tools at the same time, running runs as cancelled, and says
// what did not end before ctx did. Every call returns the same report. The
// launcher of a host ends with the host: its own Shutdown does nothing.
func (l *Launcher) Shutdown(ctx context.Context) messages.ShutdownReport {
	if l.hosted {
		return messages.ShutdownReport{}
	}
	l.shutdown.Do(func() { l.report = l.system.Shutdown(ctx) })
	return l.report
}

func askTools[T any](ctx context.Context, l *Launcher, msg any) (T, error) {
	v, err := supervisor.Ask[T](ctx, l.actor, msg)
	if errors.Is(err, supervisor.ErrNoProcess) || errors.Is(err, supervisor.ErrGone) {
		return v, ErrClosed
	}
	return v, err
}
