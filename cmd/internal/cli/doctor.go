package cli

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/environment"
)

type doctorFlags struct {
	console.HostFlags
	cwd   string
	json  bool
	fix   bool
	quick bool
}

func (a *app) doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := console.Command{
		Use:   "doctor",
		Short: "Find what keeps sessions from working, and say how to mend it",
		Long: `Look for what keeps sessions from working: settings, folders, interpreters and
their packages, external and shared gateways, what programs that were killed left
behind, permissions, the limits of the machine, isolation, and a cell on each
backend. What is wrong is named together with the command that mends it.

With --fix, kernels and gateways that no program and no kept session claims, and
that programs of yours started, are ended, and their files removed. Nothing else
is changed.

The exit code is 0 when nothing failed, also with warnings, and 1 otherwise.`,
		Example: `  coppice doctor
  coppice doctor --fix
  coppice doctor --json --quick`,
		Run: func(ctx context.Context, _ []string) error { return a.doctor(ctx, f) },
	}.Make()
	f.Add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.cwd, "cwd", "", "the working directory of the sessions asked about (default: this one)")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	flags.BoolVar(&f.fix, "fix", false, "end and remove what is left behind and nobody claims")
	flags.BoolVar(&f.quick, "quick", false, "start no kernel: leave out the cells and the isolation")
	return cmd
}

func (a *app) doctor(ctx context.Context, f doctorFlags) error {
	waiting := a.StartProgress("looking for what is wrong", f.json)
	defer waiting.Done()
	d, err := environment.Doctor(ctx, environment.DoctorOptions{
		Settings: environment.Settings{Env: a.Env, Backend: f.Backend, Python: f.Python}, Trial: coppice.Trial{},
		Cwd: f.cwd, Fix: f.fix, Quick: f.quick, Progress: func(check string) { waiting.Stage("checking: "+check, "") },
	})
	waiting.Done()
	switch {
	case errors.Is(err, coppice.ErrOptions), errors.Is(err, environment.ErrOptions):
		return console.OptionsError(err)
	case ctx.Err() != nil:
		return &console.Exit{Code: console.Cancelled}
	case err != nil:
		return err
	}
	if f.json {
		err = a.WriteJSON(d)
	} else {
		a.Out.Lines(doctorLines(a.Style(a.Out), d)...)
	}
	if err == nil && !d.Healthy {
		return &console.Exit{Code: console.Raised}
	}
	return err
}

// doctorLines are the findings, and below them what to do.
func doctorLines(s render.Style, d environment.Diagnosis) []string {
	var findings []render.Finding
	failed, warned := 0, 0
	for _, f := range d.Findings {
		switch f.State {
		case environment.FindingFailed:
			failed++
		case environment.FindingWarning:
			warned++
		}
		findings = append(findings, render.Finding{What: f.Check, State: string(f.State), Detail: f.Detail, Mend: f.Mend})
	}
	lines := render.Findings(s, findings)
	sum := "all is well"
	switch {
	case failed > 0:
		sum = plural(failed, "check") + " failed, " + plural(warned, "warning")
	case warned > 0:
		sum = "it works, with " + plural(warned, "warning")
	}
	return append(lines, "", sum)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
