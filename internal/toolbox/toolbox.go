package toolbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/coppice-run/coppice/internal/toolproc"
	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
)

// Options say where tools are, and how their processes are made.
type Options struct {
	// Dir is the folder of tools. Required, and absolute.
	Dir string
	// Env is the environment of the host.
	Env []string
	// Artifacts is the folder for the files of runs; "": runs get none.
	Artifacts string
	// Cache is a folder for what Python compiles; "": nothing is kept.
	Cache string
	// MaxOpenFiles bounds the files that a tool has open at once, on Linux. 0: what
	// its tool.json says.
	MaxOpenFiles int
	// StartTimeout bounds a start. 0: 60 s.
	StartTimeout time.Duration
}

// Box is a folder of tools.
type Box struct{ o Options }

// Open returns the folder, which need not be there. The error says that something
// else has its name.
func Open(o Options) (*Box, error) {
	if info, err := os.Stat(o.Dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder of tools", o.Dir)
	}
	return &Box{o}, nil
}

// Dir is the folder.
func (b *Box) Dir() string { return b.o.Dir }

// List lists the tools, the broken ones with their error.
func (b *Box) List(ctx context.Context) ([]toolspec.Entry, error) {
	return toolspec.Discover(ctx, b.o.Dir)
}

// Find returns the tool of an id, or a *messages.ToolError of kind not_found or
// spec.
func (b *Box) Find(ctx context.Context, id string) (toolspec.Entry, error) {
	e, err := toolspec.Find(ctx, b.o.Dir, id)
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

// Start starts a process of a tool that Find returned. It returns when the process
// is healthy; ctx bounds the start.
func (b *Box) Start(ctx context.Context, e toolspec.Entry) (*toolproc.Process, error) {
	return toolproc.Start(ctx, toolproc.Options{Tool: e.Tool, Dir: e.Dir, Env: b.o.Env, Artifacts: b.o.Artifacts, Cache: b.o.Cache, StartTimeout: b.o.StartTimeout, MaxOpenFiles: b.o.MaxOpenFiles})
}

// OpenRunFile opens a file that a run left in its folder. The error matches
// fs.ErrNotExist when there is none.
func (b *Box) OpenRunFile(tool, run, name string) (*os.File, error) {
	return toolproc.OpenRunFile(b.o.Artifacts, tool, run, name)
}
