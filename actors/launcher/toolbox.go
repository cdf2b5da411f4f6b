package launcher

import (
	"context"
	"log/slog"

	"github.com/coppice-run/coppice/internal/toolbox"
	"github.com/coppice-run/coppice/internal/toolcheck"
	"github.com/coppice-run/coppice/internal/toolenv"
	"github.com/coppice-run/coppice/internal/toolnew"
	"github.com/coppice-run/coppice/internal/toolspec"
)

type (
	// Entry is one folder of a folder of tools.
	Entry = toolspec.Entry
	// Spec is a parsed tool.json.
	Spec = toolspec.Tool
	// Input is one value that a run of a tool is given.
	Input = toolspec.Input
	// Problem is one thing that is wrong with a tool, and where.
	Problem = toolspec.Problem
	// Report is how the twelve checks of the validator went.
	Report = toolcheck.Report
	// Check is how one check went: its status is pass, warn, fail or skip.
	Check = toolcheck.Check
	// Env says which virtual environment of a tool was made.
	Env = toolenv.Result
)

// Toolbox is a folder of tools without a launcher: what can be done with tools
// while none of them is kept warm. Any goroutine may use it.
type Toolbox struct {
	box    *toolbox.Box
	logger *slog.Logger
}

// OpenToolbox returns the folder that [Start] would use with these options. The error
// matches [ErrOptions]. Nothing is started, and the folder need not be there.
func OpenToolbox(o Options) (*Toolbox, error) {
	o, box, err := o.open()
	if err != nil {
		return nil, err
	}
	return &Toolbox{box: box, logger: o.Logger}, nil
}

// Dir is the folder of tools.
func (b *Toolbox) Dir() string { return b.box.Dir() }

// List is that of [Launcher].
func (b *Toolbox) List(ctx context.Context) ([]Entry, error) { return b.box.List(ctx) }

// Find is that of [Launcher].
func (b *Toolbox) Find(ctx context.Context, id string) (Entry, error) { return b.box.Find(ctx, id) }

// Pinned returns the tools that are pinned for hosts that are started later.
func (b *Toolbox) Pinned() ([]string, error) { return b.box.Pinned() }

// Pin pins a tool for hosts that are started later, or ends that. The error is a
// *messages.ToolError when a tool to be pinned does not exist, or is broken.
func (b *Toolbox) Pin(ctx context.Context, id string, on bool) error {
	return b.box.Pin(ctx, id, on, nil)
}

// ErrID is matched by the error of [Toolbox.New] about an id that no tool can have.
var ErrID = toolnew.ErrID

// New writes the files of a new tool into a folder named id, and returns it. It
// does not write over anything.
func (b *Toolbox) New(id string) (string, error) { return b.box.New(id) }

// Setup makes the virtual environment of the tool in a folder, or finds it
// ready: with the packages that its requirements.txt pins, or those that its
// pyproject.toml depends on. python is the interpreter to make it with; "":
// python3 on PATH. progress hears what pip prints, in the goroutine
// that called Setup; nil: nothing does.
func (b *Toolbox) Setup(ctx context.Context, dir, python string, force bool, progress func(line string)) (Env, error) {
	o := toolenv.Options{Dir: dir, Python: python, Force: force}
	if progress == nil {
		return b.box.Setup(ctx, o)
	}
	type answer struct {
		env Env
		err error
	}
	hear := func(line string) error { progress(line); return nil }
	a := hearing(ctx, hear, func(ctx context.Context, tell func(string) error) answer {
		o.Progress = func(line string) { _ = tell(line) } // the end of ctx ends the set-up
		env, err := b.box.Setup(ctx, o)
		return answer{env, err}
	})
	return a.env, a.err
}

// Validate makes the twelve checks of the tool in a folder, with a process of
// its own. progress hears each check as it is done; nil: nothing does. The error is
// only for the end of ctx.
//
// How it went is kept in the folder of tools, for [Toolbox.Validated].
func (b *Toolbox) Validate(ctx context.Context, dir string, progress func(Check)) (Report, error) {
	report, keepErr, err := b.box.Validate(ctx, dir, progress)
	if keepErr != nil {
		b.logger.Warn("validate a tool", "err", keepErr)
	}
	return report, err
}

// Validated returns how the last validation of each tool went: pass, warn or
// fail, by id. Tools that have changed since, or were validated more than 30 days
// ago, are not there.
func (b *Toolbox) Validated(entries []Entry) (map[string]string, error) {
	return b.box.Validated(entries)
}

// Toolbox returns the folder of the launcher.
func (l *Launcher) Toolbox() *Toolbox { return &Toolbox{box: l.box, logger: l.o.Logger} }
