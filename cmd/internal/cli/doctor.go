package cli

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/environment"
)

type doctorFlags struct {
	hostFlags
	cwd   string
	json  bool
	fix   bool
	quick bool
}

func (a *app) doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
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
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), f) },
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.cwd, "cwd", "", "the working directory of the sessions asked about (default: this one)")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	flags.BoolVar(&f.fix, "fix", false, "end and remove what is left behind and nobody claims")
	flags.BoolVar(&f.quick, "quick", false, "start no kernel: leave out the cells and the isolation")
	return cmd
}

func (a *app) doctor(ctx context.Context, f doctorFlags) error {
	waiting := a.startProgress("looking for what is wrong", f.json)
	defer waiting.done()
	d, err := environment.Doctor(ctx, environment.DoctorOptions{
		Settings: environment.Settings{Env: a.env, Backend: f.backend, Python: f.python}, Trial: coppice.Trial{},
		Cwd: f.cwd, Fix: f.fix, Quick: f.quick, Progress: func(check string) { waiting.stage("checking: "+check, "") },
	})
	waiting.done()
	switch {
	case errors.Is(err, coppice.ErrOptions), errors.Is(err, environment.ErrOptions):
		return usageError{err}
	case ctx.Err() != nil:
		return &codeError{code: codeCancelled}
	case err != nil:
		return failure(err)
	}
	if f.json {
		err = a.writeJSON(d)
	} else {
		a.out.lines(doctorLines(a.style(a.out), d)...)
	}
	if err == nil && !d.Healthy {
		return &codeError{code: codeRaised}
	}
	return failure(err)
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
