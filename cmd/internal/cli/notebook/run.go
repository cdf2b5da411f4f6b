package notebook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
)

// maxCellTimeout is the most that --timeout of a notebook may say: a week.
const maxCellTimeout = 7 * 24 * time.Hour

// runFlags are those of notebook run.
type runFlags struct {
	console.HostFlags
	cells, output, session, cwd, timeout string
	from                                 int
	params                               []string
	inPlace, allowErrors, watch          bool
	outputs, json, fold, stdin           bool
	again                                []string // what else was given that says how cells are run, as words
}

func (a *app) runCommand() *cobra.Command {
	f := runFlags{from: -1}
	var cmd *cobra.Command
	cmd = console.Command{
		Use: "run FILE", Short: "Run the cells of a notebook, and keep what they show",
		Long: `Run the code cells of a notebook in one session, in order, and write what they
show into a notebook: FILE itself with --in-place, else --output, else
NAME.executed.ipynb beside FILE. It is written after every cell and while a cell
shows something, but for at most a tenth of the time: a run that is killed loses what
was shown in ten times the length of a save; --from goes on where one ended, in the notebook that it wrote. The kernel is a new one then:
name the cells that it needs with --cells, as in --cells 0-2,7-.

The session runs in the folder of FILE. The first cell that does not complete
ends the run, unless it is tagged raises-exception or --allow-errors is given.
Cells tagged skip-execution are left out. input() asks on a terminal, reads
lines with --stdin, and raises elsewhere, as it does for other runners. A parameter becomes a variable in a
cell below the one tagged parameters, or at the top; its value is JSON, True,
False or None, or else a text.

A FILE that is saved by someone else while --in-place runs its cells keeps those
edits, and what the cells showed is merged into it.

With --watch, FILE is run again whenever it changes, from the first code cell
that changed on, in the same session, until Ctrl-C.

The exit code is 0 when all is well, 1 when a cell raised, 2 when the command
line or the notebook is wrong, or what cells show cannot be written, 124 on a
timeout, 130 when cancelled, and 70 when the kernel was lost or never reached.`,
		Example: `  coppice notebook run report.ipynb --in-place
  coppice notebook run report.ipynb --param year=2026 --output report-2026.ipynb
  coppice notebook run report.ipynb --in-place --from 7
  coppice notebook run report.ipynb --watch --outputs`,
		Args: console.Arguments{Least: 1, Most: 1}, Errors: failure,
		Run: func(ctx context.Context, args []string) error {
			f.again = given(cmd.Flags())
			return a.run(ctx, args[0], f)
		},
	}.Make()
	flags := cmd.Flags()
	flags.StringVar(&f.cells, "cells", "", "the cells to run: 3, 2-5, 7- or 0,2-5 (default: all)")
	flags.IntVar(&f.from, "from", -1, "run this cell and all after it")
	flags.StringVarP(&f.output, "output", "o", "", "the notebook to write")
	flags.BoolVar(&f.inPlace, "in-place", false, "write FILE itself")
	flags.StringArrayVarP(&f.params, "param", "p", nil, "set a parameter, NAME=VALUE; may be repeated")
	flags.StringVar(&f.timeout, "timeout", "", "how long each cell may take: seconds, or a time such as 5m (default: no limit)")
	flags.BoolVar(&f.allowErrors, "allow-errors", false, "go on after a cell that raised")
	flags.BoolVar(&f.fold, "fold-progress", false, "keep only the last state of progress bars")
	flags.BoolVar(&f.outputs, "outputs", false, "show what cells print while they run")
	flags.BoolVar(&f.stdin, "stdin", false, "answer input() with the lines of standard input (on a terminal it is asked anyway)")
	flags.BoolVar(&f.watch, "watch", false, "run again when FILE changes")
	flags.BoolVar(&f.json, "json", false, "print the report as one JSON object")
	flags.StringVar(&f.session, "session", "default", "the session to run in")
	flags.StringVar(&f.cwd, "cwd", "", "the working directory of the session (default: the folder of FILE)")
	f.AddBounded(cmd)
	cmd.MarkFlagsMutuallyExclusive("cells", "from")
	cmd.MarkFlagsMutuallyExclusive("output", "in-place")
	cmd.MarkFlagsMutuallyExclusive("watch", "json")
	return cmd
}

// options reads what the flags say of the run itself.
func (f runFlags) options() (run.Options, error) {
	o := run.Options{AllowErrors: f.allowErrors, FoldProgress: f.fold}
	if f.timeout != "" {
		limit, err := console.ParseTime(f.timeout)
		if err != nil || limit <= 0 || limit > maxCellTimeout {
			return o, console.Usagef("--timeout must be a number of seconds up to %d, or a time such as 90s or 5m, not %q", maxCellTimeout/time.Second, f.timeout)
		}
		o.Timeout = limit
	}
	switch {
	case f.cells != "":
		set, err := notebook.ParseCells(f.cells)
		if err != nil {
			return o, err
		}
		o.Cells = set
	case f.from >= 0:
		o.Cells = notebook.CellsFrom(f.from)
	case f.from != -1:
		return o, console.Usagef("--from must be the index of a cell, not %d", f.from)
	}
	for _, text := range f.params {
		p, err := parseParameter(text)
		if err != nil {
			return o, err
		}
		o.Parameters = append(o.Parameters, p)
	}
	return o, nil
}

// parseParameter reads NAME=VALUE.
func parseParameter(text string) (notebook.Parameter, error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return notebook.Parameter{}, console.Usagef("--param must be NAME=VALUE, not %q", text)
	}
	p := notebook.Parameter{Name: strings.TrimSpace(name)}
	switch value {
	case "True":
		p.Value = true
	case "False":
		p.Value = false
	case "None":
		p.Value = json.RawMessage("null")
	default:
		p.Value = rawJSON(value)
	}
	return p, nil
}

// target opens the notebook to run, and says where what it shows is written.
func (f runFlags) target(ctx context.Context, path string) (*notebook.File, error) {
	file, err := notebook.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	if f.inPlace {
		return file, nil
	}
	out := f.out(path)
	if same, _ := sameFile(path, out); same {
		return nil, console.Usagef("--output is %s itself; say --in-place to write it", path)
	}
	// A later run of some cells goes on in what an earlier one wrote.
	if f.from >= 0 || f.cells != "" {
		earlier, err := notebook.Open(ctx, out)
		switch {
		case err == nil && sameSources(file.Document, earlier.Document):
			return earlier, nil
		case err == nil:
			return nil, fmt.Errorf("%s holds other cells than %s: remove it, or run without --from and --cells", out, path)
		case !errors.Is(err, notebook.ErrNotFound):
			return nil, err
		}
	}
	return notebook.NewFile(ctx, out, file.Document)
}

// out is where a run that is not in place writes.
func (f runFlags) out(path string) string {
	if f.output != "" {
		return f.output
	}
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + ".executed" + ext
}

func sameFile(a, b string) (bool, error) {
	a, err := filepath.Abs(a)
	if err != nil {
		return false, err
	}
	if b, err = filepath.Abs(b); err != nil {
		return false, err
	}
	if real, err := filepath.EvalSymlinks(a); err == nil {
		a = real
	}
	if real, err := filepath.EvalSymlinks(b); err == nil {
		b = real
	}
	return a == b, nil
}

// sameSources says whether the cells of two notebooks hold the same, but for
// the cell of parameters.
func sameSources(a, b *notebook.Document) bool {
	x, y := plainCells(a), plainCells(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i].Type() != y[i].Type() || x[i].Source() != y[i].Source() {
			return false
		}
	}
	return true
}

func plainCells(d *notebook.Document) []*notebook.Cell {
	var cells []*notebook.Cell
	for _, c := range d.Cells() {
		if !c.HasTag(notebook.TagInjected) {
			cells = append(cells, c)
		}
	}
	return cells
}

func (a *app) run(ctx context.Context, path string, f runFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	file, err := f.target(ctx, path)
	if err == nil {
		err = file.CheckSave()
	}
	if err != nil && !console.Decided(err) {
		return &console.Exit{Code: console.Usage, Err: fmt.Errorf("%w; nothing was run", err)}
	}
	if err != nil {
		return err
	}
	if err := run.Check(file.Document); err != nil {
		return console.Usagef("%s: %w", path, err)
	}
	if err := o.Cells.Check(file.Len()); err != nil {
		return err
	}
	if f.cwd == "" {
		f.cwd = filepath.Dir(path)
	}
	r := &runner{app: a, flags: f, path: path, file: file, o: o, input: a.Answers(f.stdin, "")}
	if f.watch {
		r.loaded = r.content(ctx)
	}
	return r.run(ctx)
}

// runner is one notebook run. It belongs to one goroutine.
type runner struct {
	app     *app
	flags   runFlags
	path    string
	file    *notebook.File
	o       run.Options
	session *coppice.Session
	input   coppice.InputHandler
	loaded  []byte // what FILE held when it was read; for --watch
	behind  bool   // what the last cells showed is not in FILE, which was saved meanwhile
}

func (r *runner) run(ctx context.Context) error {
	a := r.app
	starting := a.StartProgress("starting", r.flags.json)
	defer starting.Done()
	options := coppice.Options{OnEvent: func(e messages.Lifecycle) {
		starting.Stage(console.StageOf(e), "")
	}}
	if r.flags.watch {
		options.IdleTTL = -1
	}
	host, err := a.StartHost(ctx, r.flags.HostFlags, console.ColdGateway, options)
	if err != nil {
		return err
	}
	r.session = host.Session(r.flags.session, coppice.In(r.flags.cwd))
	report, err := r.once(ctx, starting)
	if r.flags.watch {
		report, err = r.watch(ctx, report, err)
	}
	starting.Done()
	ending := a.StartProgress("ending the kernel", r.flags.json)
	host.End()
	ending.Done()
	return runError(report, err)
}

// once runs the notebook once and tells of it.
func (r *runner) once(ctx context.Context, starting *console.Progress) (run.Report, error) {
	view := newView(r.app, r.flags, starting)
	o := r.o
	merging, save := newMerging(r.file), r.file.Save
	if r.flags.inPlace && !r.flags.watch { // a watch runs what was changed
		save = merging.save
	}
	o.Progress, o.Input = view.step, r.input
	o.Save = func(ctx context.Context) (bool, error) {
		written, err := save(ctx)
		if err != nil {
			err = unsavedError{err}
		}
		return written, err
	}
	report, err := r.session.RunNotebook(ctx, r.file.Document, o)
	starting.Done()
	view.done()
	if r.flags.json {
		out := map[string]any{"file": r.path, "output": r.file.Path, "report": report}
		if merging.merged {
			out["merged"], out["conflicts"] = true, merging.conflicts
		}
		return report, errors.Join(err, r.app.WriteJSON(out))
	}
	if merging.merged {
		r.app.Err.Lines("coppice: " + r.path + " was saved while its cells ran: the edits were kept, and what the cells showed was added; " + render.Number(merging.conflicts, "conflict"))
	}
	if err == nil {
		view.summary(report, r.path, r.file.Path)
	}
	return report, err
}

// unsavedError says that what cells showed could not be written.
type unsavedError struct{ error }

// Unwrap returns why.
func (e unsavedError) Unwrap() error { return e.error }

// runError is how the command ends after a run.
func runError(report run.Report, err error) error {
	_, wrong := errors.AsType[*coppice.RequestError](err)
	_, unsaved := errors.AsType[unsavedError](err)
	switch {
	case wrong:
		return console.UsageError{Err: err}
	case unsaved, errors.Is(err, notebook.ErrChanged):
		return &console.Exit{Code: console.Usage, Err: fmt.Errorf("%w; the run was stopped, and what the last cell showed was not written", err)}
	case err != nil:
		return err
	}
	return console.Ended(report.Outcome)
}
