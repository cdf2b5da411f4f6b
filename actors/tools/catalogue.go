package tools

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/internal/toolproc"
	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
)

// The types of internal/toolspec.
type (
	// Spec is a parsed tool.json.
	Spec = toolspec.Tool
	// Input is one value that a run is given.
	Input = toolspec.Input
	// Entry is one folder of a folder of tools.
	Entry = toolspec.Entry
	// Problem is one thing that is wrong, and where.
	Problem = toolspec.Problem
	// SpecError says what is wrong with a tool.json.
	SpecError = toolspec.Error
)

// ErrNotFound is matched by the error for an id that no tool has.
var ErrNotFound = toolspec.ErrNotFound

// IsID reports whether s can be the id of a tool.
func IsID(s string) bool { return toolspec.IsID(s) }

// Options say where tools are, and how their processes are made.
type Options struct {
	// Dir is the folder of tools.
	Dir string
	// Env is the environment of the host.
	Env []string
	// Artifacts is the folder for the files of runs; "": runs get none.
	Artifacts string
	// Cache is a folder for what Python compiles; "": nothing is kept.
	Cache string
	// StartTimeout bounds a start. 0: 30 s.
	StartTimeout time.Duration
}

// Catalogue is a folder of tools. It holds nothing: each question looks at the
// disk.
type Catalogue struct{ o Options }

// NewCatalogue returns the catalogue of a folder.
func NewCatalogue(o Options) *Catalogue { return &Catalogue{o} }

// Dir is the folder.
func (c *Catalogue) Dir() string { return c.o.Dir }

// List lists the tools, the broken ones with their error.
func (c *Catalogue) List(ctx context.Context) ([]Entry, error) {
	return toolspec.Discover(ctx, c.o.Dir)
}

// Find returns the tool of an id, or a *messages.ToolError of kind not_found or
// spec.
func (c *Catalogue) Find(ctx context.Context, id string) (Entry, error) {
	e, err := toolspec.Find(ctx, c.o.Dir, id)
	switch {
	case errors.Is(err, toolspec.ErrNotFound):
		return e, &messages.ToolError{Kind: messages.ToolErrorNotFound, Message: err.Error(), Hint: "coppice tool list shows the tools"}
	case err != nil:
		return e, err
	case e.Err != nil:
		return e, &messages.ToolError{Kind: messages.ToolErrorSpec, Message: "the tool " + id + " cannot be used: " + e.Err.Error(), Hint: "coppice tool validate " + id}
	}
	return e, nil
}

// Launch describes a tool to the launcher.
func (c *Catalogue) Launch(e Entry) launcher.Tool {
	t := e.Tool
	return launcher.Tool{
		ID: t.ID, Stamp: e.Stamp, WarmKeep: time.Duration(t.WarmKeepSeconds) * time.Second,
		MaxRuntime: time.Duration(t.MaxRuntimeSeconds) * time.Second, MemoryMB: t.MaxMemoryMB, Concurrent: t.Concurrent,
		Start: func(ctx context.Context) (launcher.Process, error) {
			p, err := toolproc.Start(ctx, c.process(e))
			if err != nil {
				return nil, err // not a nil *toolproc.Process in an interface
			}
			return &running{Process: p, dirs: map[string]string{}}, nil
		},
	}
}

func (c *Catalogue) process(e Entry) toolproc.Options {
	return toolproc.Options{Tool: e.Tool, Dir: e.Dir, Env: c.o.Env, Artifacts: c.o.Artifacts, Cache: c.o.Cache, StartTimeout: c.o.StartTimeout}
}

// running is a process as the launcher sees it.
type running struct {
	*toolproc.Process

	mu   sync.Mutex
	dirs map[string]string // guarded by mu: the folders of the runs in flight
}

// Do makes a run.
func (r *running) Do(ctx context.Context, run messages.ToolRun) launcher.Reply {
	if run.Fetch != "" {
		fetched, a := r.Fetch(ctx, run.Fetch)
		return launcher.Reply{Fetched: fetched, Error: a.Error}
	}
	dir := r.RunDir(run.ID, time.Now())
	r.mu.Lock()
	r.dirs[run.ID] = dir
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.dirs, run.ID)
	}()
	call := toolproc.Call{Run: run.ID, Inputs: run.Inputs, Dir: dir}
	if run.Out != nil {
		call.Emit = run.Out.Emit
	}
	a := r.Process.Do(ctx, call)
	u := toolproc.Measure(dir)
	return launcher.Reply{
		Outputs: a.Outputs, Error: a.Error, Warnings: a.Warnings, Artifacts: dir, Files: a.Files, Bytes: u.Bytes, Count: u.Files,
	}
}

// Written is how much a run has written.
func (r *running) Written(run string) (bytes int64, files int) {
	r.mu.Lock()
	dir := r.dirs[run]
	r.mu.Unlock()
	u := toolproc.Measure(dir)
	return u.Bytes, u.Files
}

var _ launcher.Process = (*running)(nil)

// OpenRunFile opens a file that a run left in its folder. The error matches
// fs.ErrNotExist when there is none.
func (c *Catalogue) OpenRunFile(tool, run, name string) (*os.File, error) {
	return toolproc.OpenRunFile(c.o.Artifacts, tool, run, name)
}

// AutocompletePath is the path of a tool's suggestions.
func AutocompletePath(endpoint, text string) string { return toolproc.AutocompletePath(endpoint, text) }

// FilePath is the path of a file that a tool serves itself.
func FilePath(run, name string) string { return toolproc.FilePath(run, name) }
