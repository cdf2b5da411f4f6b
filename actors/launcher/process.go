package launcher

import (
	"context"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/toolproc"
	"github.com/coppice-run/coppice/messages"
)

// planOf describes a tool of the folder to the actor.
func (l *Launcher) planOf(e Entry) plan {
	t := e.Tool
	return plan{
		ID: t.ID, Stamp: e.Stamp, WarmKeep: time.Duration(t.WarmKeepSeconds) * time.Second,
		MaxRuntime: time.Duration(t.MaxRuntimeSeconds) * time.Second, MemoryMB: t.MaxMemoryMB, Concurrent: t.Concurrent,
		Start: func(ctx context.Context) (process, error) {
			p, err := l.box.Start(ctx, e)
			if err != nil {
				return nil, err // not a nil *toolproc.Process in an interface
			}
			return &toolProcess{Process: p, dirs: map[string]string{}}, nil
		},
	}
}

// toolProcess is a process of the machine as the actor sees it.
type toolProcess struct {
	*toolproc.Process

	mu   sync.Mutex
	dirs map[string]string // guarded by mu: the folders of the runs in flight
}

// Do makes a run.
func (p *toolProcess) Do(ctx context.Context, run messages.ToolRun) reply {
	if run.Fetch != "" {
		fetched, a := p.Fetch(ctx, run.Fetch)
		return reply{Fetched: fetched, Error: a.Error}
	}
	dir := p.RunDir(run.ID, time.Now())
	p.mu.Lock()
	p.dirs[run.ID] = dir
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.dirs, run.ID)
	}()
	call := toolproc.Call{Run: run.ID, Inputs: run.Inputs, Dir: dir}
	if run.Out != nil {
		call.Emit = run.Out.Emit
	}
	a := p.Process.Do(ctx, call)
	u := toolproc.Measure(dir)
	return reply{
		Outputs: a.Outputs, Error: a.Error, Warnings: a.Warnings, Artifacts: dir, Files: a.Files, Bytes: u.Bytes, Count: u.Files,
	}
}

// Written is how much a run has written.
func (p *toolProcess) Written(run string) (bytes int64, files int) {
	p.mu.Lock()
	dir := p.dirs[run]
	p.mu.Unlock()
	u := toolproc.Measure(dir)
	return u.Bytes, u.Files
}

var (
	_ process = (*toolProcess)(nil)
	_ witness = (*toolProcess)(nil)
)
