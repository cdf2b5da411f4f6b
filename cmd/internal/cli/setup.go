package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/environment"
)

type setupFlags struct {
	dir    string
	python string
	check  bool
	json   bool
	quiet  bool
}

func (a *app) setupCommand() *cobra.Command {
	var f setupFlags
	cmd := console.Command{
		Use:   "setup",
		Short: "Make the Python environment that kernels run in",
		Long: `Make a virtual environment with a Jupyter Kernel Gateway and an IPython kernel
in pinned versions, checked by hash. It is used by sessions that have no virtual
environment of their own. When it is there already nothing is done; an
interrupted set-up is started over by the next one.

With --check nothing is changed, and the exit code is 1 unless it is ready.`,
		Run: func(ctx context.Context, _ []string) error { return a.setup(ctx, f) },
	}.Make()
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "dir", "", "the environment to make (default: ~/.coppice/python-env)")
	flags.StringVar(&f.python, "python", "", "the Python interpreter to make it with (default: python3)")
	flags.BoolVar(&f.check, "check", false, "only say whether it is ready")
	flags.BoolVar(&f.json, "json", false, "print the result as one JSON object")
	flags.BoolVar(&f.quiet, "quiet-if-ready", false, "print nothing when there is nothing to do")
	return cmd
}

func (a *app) setup(ctx context.Context, f setupFlags) error {
	if err := console.CheckPython(f.python); err != nil {
		return err
	}
	waiting := a.StartProgress("looking at the environment", f.json)
	defer waiting.Done()
	o := environment.SetupOptions{Dir: f.dir, Python: f.python, Env: a.Env, Progress: func(s environment.Stage) {
		waiting.Stage(setupStage(s))
	}}
	do := environment.Setup
	if f.check {
		do = environment.CheckSetup
	}
	result, err := do(ctx, o)
	waiting.Done()
	switch {
	case errors.Is(err, environment.ErrOptions):
		return console.OptionsError(err)
	case ctx.Err() != nil:
		return &console.Exit{Code: console.Cancelled, Err: errors.New("the set-up was interrupted; run coppice setup again")}
	case err != nil:
		return err
	}
	if f.json {
		err = a.WriteJSON(result)
	} else if result.Changed || !f.quiet || result.State != environment.Ready {
		a.Out.Lines(setupLines(a.Style(a.Out), result)...)
	}
	if err == nil && result.State != environment.Ready {
		return &console.Exit{Code: console.Raised}
	}
	return err
}

// setupStage says in words what the set-up is doing, and where it stands.
func setupStage(s environment.Stage) (text, detail string) {
	switch s.Name {
	case environment.StageCollecting:
		if s.Total > 0 {
			detail = fmt.Sprintf("%d of %d", s.Done, s.Total)
		}
		return "collecting packages", detail
	case environment.StageInstalling:
		return "installing packages", ""
	case environment.StageCreating:
		return "making a virtual environment " + s.Detail, ""
	case environment.StageRemoving:
		return "removing what is in " + s.Detail, ""
	case environment.StageFinding:
		return "looking for an interpreter", ""
	case environment.StageChecking:
		return "checking what was installed", ""
	case environment.StageWaiting:
		return "waiting " + s.Detail, ""
	default:
		return string(s.Name), s.Detail
	}
}

func setupLines(s render.Style, r environment.SetupResult) []string {
	if r.State != environment.Ready {
		return render.Checks(s, []render.Check{{What: r.Dir, Detail: string(r.State) + ": " + r.Why}})
	}
	detail := "Python " + r.Version
	for _, p := range r.Packages {
		if p.Version != "" {
			detail += ", " + p.Dist + " " + p.Version
		}
	}
	verb := "ready, nothing to do"
	if r.Changed {
		verb = "ready after " + render.Duration(r.Elapsed)
	}
	lines := render.Checks(s, []render.Check{{What: r.Dir, OK: true, Detail: verb}})
	return append(lines, s.Fit(strings.Repeat(" ", 8)+detail))
}
