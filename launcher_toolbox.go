package coppice

import (
	"context"
	"path/filepath"

	"github.com/coppice-run/coppice/actors/tools"
)

type (
	// ToolReport is how the twelve checks of the validator went.
	ToolReport = tools.Report
	// ToolCheck is how one check went: its status is pass, warn, fail or skip.
	ToolCheck = tools.Check
	// ToolEnv says which virtual environment of a tool was made.
	ToolEnv = tools.EnvResult
)

// Toolbox is a folder of tools without a launcher: what can be done with tools
// while none of them is kept warm. Any goroutine may use it.
type Toolbox struct {
	o         LauncherOptions
	catalogue *tools.Catalogue
}

// OpenToolbox returns the folder that StartLauncher would use with these options.
// The error matches ErrOptions. Nothing is started, and the folder need not be
// there.
func OpenToolbox(o LauncherOptions) (*Toolbox, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, err
	}
	return &Toolbox{o: o, catalogue: o.catalogue()}, nil
}

// Dir is the folder of tools.
func (b *Toolbox) Dir() string { return b.o.Dir }

// List is that of Launcher.
func (b *Toolbox) List(ctx context.Context) ([]ToolEntry, error) { return b.catalogue.List(ctx) }

// Find is that of Launcher.
func (b *Toolbox) Find(ctx context.Context, id string) (ToolEntry, error) {
	return b.catalogue.Find(ctx, id)
}

// Pinned returns the tools that are pinned for hosts that are started later.
func (b *Toolbox) Pinned() ([]string, error) { return readPins(b.o.Dir) }

// Pin pins a tool for hosts that are started later, or ends that.
func (b *Toolbox) Pin(ctx context.Context, id string, on bool) error {
	if _, err := b.catalogue.Find(ctx, id); err != nil && on {
		return err
	}
	return savePin(b.o.Dir, id, on)
}

// New writes the files of a new tool into a folder named id, and returns it. It
// does not write over anything.
func (b *Toolbox) New(id string) (string, error) { return tools.New(b.o.Dir, id) }

// Setup makes the virtual environment of the tool in a folder, or finds it
// ready: with the packages that its requirements.txt pins, or those that its
// pyproject.toml depends on. python is the interpreter to make it with; "":
// python3 on PATH. progress hears what pip prints; nil: nobody.
func (b *Toolbox) Setup(ctx context.Context, dir, python string, force bool, progress func(line string)) (ToolEnv, error) {
	return tools.Setup(ctx, tools.EnvOptions{Dir: dir, Python: python, Env: b.o.Env, Force: force, Progress: progress})
}

// Validate makes the twelve checks of the tool in a folder, with a process of
// its own. progress hears each check as it is done; nil: nobody. The error is
// only for the end of ctx.
//
// How it went is kept in the folder of tools, for [Toolbox.Validated].
func (b *Toolbox) Validate(ctx context.Context, dir string, progress func(ToolCheck)) (ToolReport, error) {
	before, err := b.catalogue.List(ctx)
	if err != nil {
		before = nil // the report tells what is wrong
	}
	report, err := b.catalogue.Validate(ctx, dir, progress)
	if err != nil {
		return report, err
	}
	for _, e := range before {
		if e.Dir != filepath.Clean(dir) {
			continue
		}
		if err := b.keepCheck(e, report); err != nil {
			b.o.Logger.Warn("keep the report of a tool", "tool", e.ID, "err", err)
		}
	}
	return report, nil
}

// Toolbox returns the folder of the launcher.
func (t *Launcher) Toolbox() *Toolbox { return &Toolbox{o: t.o, catalogue: t.catalogue} }
