package tools

import (
	"context"

	"github.com/coppice-run/coppice/internal/toolcheck"
	"github.com/coppice-run/coppice/internal/toolenv"
	"github.com/coppice-run/coppice/internal/toolnew"
)

type (
	// Report is how the checks of the validator went.
	Report = toolcheck.Report
	// Check is how one check went.
	Check = toolcheck.Check
	// EnvOptions say which environment to make.
	EnvOptions = toolenv.Options
	// EnvResult says what was made.
	EnvResult = toolenv.Result
)

// Validate makes the checks of one folder. Progress hears each as it is done;
// nil: nobody.
func (c *Catalogue) Validate(ctx context.Context, dir string, progress func(Check)) (Report, error) {
	return toolcheck.Validate(ctx, toolcheck.Options{Dir: dir, Env: c.o.Env, StartTimeout: c.o.StartTimeout, Progress: progress})
}

// Setup makes the virtual environment of a tool, or finds it ready.
func Setup(ctx context.Context, o EnvOptions) (EnvResult, error) { return toolenv.Setup(ctx, o) }

// New writes the files of a new tool and returns its folder.
func New(dir, id string) (string, error) { return toolnew.Write(dir, id) }
