package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/bench/record"
	"github.com/coppice-run/coppice/bench/scenario"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
)

// benchFlags are those of bench.
type benchFlags struct {
	scenario.Setup
	name   string
	out    string
	list   bool
	asJSON bool
}

func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	cmd := console.Command{
		Use:   "bench",
		Short: "Measure this machine with many simultaneous sessions",
		Long: `Run one scenario against a host of its own and print what it measured. Arrival
times are fixed beforehand and latencies are counted from them, so that a stall is
seen by every call that it would have hit. Every answer is checked: a call that is
lost, wrong or out of order fails the scenario.

Figures of a busy machine say little; compare within one run.`,
		Example: `  coppice bench --scenario exec --sessions 1000
  coppice bench --scenario burst --sessions 500 --backend runner
  coppice bench --scenario crashy --backend fake --sessions 10000
  coppice bench --list`,
		Run: func(ctx context.Context, _ []string) error { return a.bench(ctx, f) },
	}.Make()
	flags := cmd.Flags()
	flags.StringVar(&f.name, "scenario", "exec", "what to measure; --list shows all")
	flags.StringVar(&f.Backend, "backend", "", "runner, gateway, or fake: real supervision, pretended interpreters (default: the scenario's first)")
	flags.IntVar(&f.Sessions, "sessions", 0, "how many sessions live at once (default: the scenario's)")
	flags.Var((*console.Time)(&f.Duration), "duration", "how long the load lasts: seconds, or a time such as 1m (default: the scenario's)")
	flags.Float64Var(&f.Rate, "rate", 0, "calls in a second, of all sessions together (default: the scenario's)")
	flags.Uint64Var(&f.Seed, "seed", 0, "makes the arrival times (default: 1)")
	flags.StringVar(&f.Python, "python", "", "the Python interpreter (default: as for run)")
	flags.StringVar(&f.out, "out", "", "write the result to this file too, as JSON")
	flags.BoolVar(&f.list, "list", false, "list the scenarios")
	flags.BoolVar(&f.asJSON, "json", false, "print the result as one JSON object")
	return cmd
}

func (a *app) bench(ctx context.Context, f benchFlags) error {
	if f.list {
		return a.listScenarios(f.asJSON)
	}
	s, err := scenario.Find(f.name)
	if err != nil {
		return console.UsageError{Err: err}
	}
	setup, err := s.Check(f.Setup)
	if err != nil {
		return console.UsageError{Err: err}
	}
	if f.out != "" {
		if err := record.Writable(f.out); err != nil {
			return console.UsageError{Err: err}
		}
	}
	for _, w := range scenario.Warnings(setup) {
		a.Err.Lines("coppice: warning: " + w)
	}
	if load := record.Load(); load > 1 {
		a.Err.Lines(fmt.Sprintf("coppice: warning: the load average of this machine is %.1f already: the figures will contain what else it does", load))
	}
	waiting := a.StartProgress("starting "+s.Name, f.asJSON)
	setup.Progress = func(text string) { waiting.Stage(s.Name, text) }
	r, err := s.Run(ctx, setup)
	waiting.Done()
	if f.out != "" {
		file := record.File{Made: time.Now().UTC(), Commit: record.Commit(), Machine: record.ThisMachine(ctx, setup.Python), Command: "coppice bench", Results: []record.Result{r}}
		if e := file.Write(f.out); e != nil {
			err = errors.Join(err, e)
		}
	}
	switch {
	case ctx.Err() != nil:
		return &console.Exit{Code: console.Cancelled}
	case err != nil && len(r.Metrics) == 0:
		return err
	}
	if f.asJSON {
		return errors.Join(err, a.WriteJSON(r))
	}
	a.Out.Lines(benchLines(a.Style(a.Out), s, r)...)
	return err
}

// benchLines shows a result.
func benchLines(s render.Style, what scenario.Scenario, r record.Result) []string {
	lines := []string{
		fmt.Sprintf("%s on %s, %d sessions, %s: %s", r.Scenario, r.Backend, r.Sessions, r.Took.Round(100*time.Millisecond), what.About),
		"",
	}
	rows := [][]string{{"metric", "value", ""}}
	for _, m := range r.Metrics {
		value, unit := shown(m)
		rows = append(rows, []string{m.Name, value, unit})
	}
	lines = append(lines, render.Table(s, rows, true)...)
	if r.LoadBefore >= 0 {
		lines = append(lines, "", fmt.Sprintf("load average %.1f before, %.1f after", r.LoadBefore, r.LoadAfter))
	}
	for _, n := range r.Notes {
		lines = append(lines, "! "+n)
	}
	return lines
}

// shown writes a value with a unit that keeps it short.
func shown(m record.Metric) (value, unit string) {
	v, unit := m.Value, m.Unit
	if unit == "us" && v >= 10_000 {
		v, unit = v/1000, "ms"
	}
	if unit == "KiB/session" && v >= 10_000 {
		v, unit = v/1024, "MiB/session"
	}
	digits := 0
	if v < 10 && v != float64(int64(v)) {
		digits = 2
	}
	return strconv.FormatFloat(v, 'f', digits, 64), unit
}

func (a *app) listScenarios(asJSON bool) error {
	type entry struct {
		Name     string   `json:"name"`
		About    string   `json:"about"`
		Backends []string `json:"backends"`
	}
	var all []entry
	rows := [][]string{{"scenario", "backends", "what it does"}}
	for _, s := range scenario.All() {
		backends := slices.Clone(s.Backends)
		all = append(all, entry{s.Name, s.About, backends})
		rows = append(rows, []string{s.Name, strings.Join(backends, " "), s.About})
	}
	if asJSON {
		return a.WriteJSON(all)
	}
	a.Out.Lines(render.Table(a.Style(a.Out), rows, true)...)
	return nil
}
