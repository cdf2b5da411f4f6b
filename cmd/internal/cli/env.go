package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
)

func (a *app) envCommand() *cobra.Command {
	var (
		f      console.HostFlags
		cwd    string
		asJSON bool
	)
	cmd := console.Command{
		Use:   "env",
		Short: "Show what a run would use: the backend, the interpreter, the environment",
		Long: `Show which backend and which Python interpreter a run in this folder would use,
where the interpreter was looked for, and which variables of the environment
kernels can see. All sessions of a run have that interpreter, whatever their
--cwd: the report says when the folder of --cwd holds another. Nothing is started but the interpreters that are tried.

The exit code is 1 when no run is possible.`,
		Run: func(ctx context.Context, _ []string) error { return a.showEnv(ctx, f, cwd, asJSON) },
	}.Make()
	f.Add(cmd)
	cmd.Flags().StringVar(&cwd, "cwd", "", "the working directory of the session (default: this one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) showEnv(ctx context.Context, f console.HostFlags, cwd string, asJSON bool) error {
	waiting := a.StartProgress("looking for an interpreter", asJSON)
	o, err := f.Options(coppice.GatewayOptions{}, coppice.Options{Env: a.Env})
	if err != nil {
		waiting.Done()
		return err
	}
	report, err := coppice.Environment(ctx, o, cwd)
	waiting.Done()
	_, wrong := errors.AsType[*coppice.RequestError](err)
	switch {
	case wrong, errors.Is(err, coppice.ErrOptions):
		return console.OptionsError(err)
	case ctx.Err() != nil:
		return &console.Exit{Code: console.Cancelled}
	case err != nil:
		return err
	}
	if asJSON {
		err = a.WriteJSON(report)
	} else {
		a.Out.Lines(envLines(a.Style(a.Out), report)...)
	}
	if err == nil && report.Backend == "" {
		return &console.Exit{Code: console.Raised}
	}
	return err
}

func envLines(s render.Style, r coppice.EnvReport) []string {
	backend := r.Backend
	if backend == "" {
		backend = "none"
	}
	rows := [][]string{
		{"setting", "value", "from"},
		{"home", r.Dir, ""},
		{"backend", backend, r.BackendWhy},
	}
	if r.GatewayURL != "" {
		rows = append(rows, []string{"gateway", r.GatewayURL, "COPPICE_PYTHON_GATEWAY_URL"})
	}
	if r.Python != nil {
		rows = append(rows, []string{"python", r.Python.Path, string(r.Python.Source) + ", Python " + r.Python.Version})
		if r.Python.Venv != "" {
			rows = append(rows, []string{"venv", r.Python.Venv, ""})
		}
	} else {
		rows = append(rows, []string{"python", "none", ""})
	}
	for _, p := range r.Packages {
		version := p.Version
		if !p.Found {
			version = "missing"
		}
		rows = append(rows, []string{"package", p.Dist, version})
	}
	rows = append(rows, []string{"variables", strconv.Itoa(len(r.Passed)) + " passed to kernels", strconv.Itoa(len(r.Withheld)) + " withheld"})
	lines := render.Table(s, rows, true)
	if len(r.Steps) > 0 {
		lines = append(lines, "", "interpreters, in the order in which they were tried:")
		var steps [][]string
		for _, step := range r.Steps {
			steps = append(steps, []string{"  " + string(step.Name), step.Path, strings.TrimSpace(string(step.Outcome) + " " + step.Why)})
		}
		lines = append(lines, render.Table(s, steps, false)...)
	}
	if r.Problem != "" {
		lines = append(lines, "", "! "+r.Problem)
	}
	if r.Unused != "" {
		lines = append(lines, "", "! "+r.Unused+" is not used: all sessions have one Python, looked for in the folder where coppice is started; name it with --python")
	}
	return lines
}
