package toolbox

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/coppice-run/coppice/internal/toolcheck"
	"github.com/coppice-run/coppice/internal/toolenv"
	"github.com/coppice-run/coppice/internal/toolnew"
)

// Validate makes the checks of the tool in a folder. progress hears each as it is
// done; nil: nothing does. How it went is kept, for [Box.Validated]; keepErr says
// why it could not be. err is only for the end of ctx.
func (b *Box) Validate(ctx context.Context, dir string, progress func(toolcheck.Check)) (report toolcheck.Report, keepErr, err error) {
	before, err := b.List(ctx)
	if err != nil {
		before = nil // the report says what is wrong
	}
	report, err = toolcheck.Validate(ctx, toolcheck.Options{Dir: dir, Env: b.o.Env, StartTimeout: b.o.StartTimeout, Progress: progress})
	if err != nil {
		return report, nil, err
	}
	for _, e := range before {
		if e.Dir != filepath.Clean(dir) {
			continue
		}
		if err := b.keepCheck(ctx, e, report); err != nil {
			keepErr = fmt.Errorf("keep the report of the tool %s: %w", e.ID, err)
		}
	}
	return report, keepErr, nil
}

// Setup makes the virtual environment of the tool in a folder, or finds it ready.
// Env of o is that of the box.
func (b *Box) Setup(ctx context.Context, o toolenv.Options) (toolenv.Result, error) {
	o.Env = b.o.Env
	return toolenv.Setup(ctx, o)
}

// New writes the files of a new tool and returns its folder. It does not write over
// anything.
func (b *Box) New(id string) (string, error) { return toolnew.Write(b.o.Dir, id) }
