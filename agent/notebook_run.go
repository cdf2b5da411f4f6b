package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
	"github.com/coppice-run/coppice/sinks/budget"
)

// notebookLimits are those of one cell.
var notebookLimits = limits{def: 600, least: 1, most: 3600}

const notebookRunDescription = `Runs cells of a Jupyter notebook (.ipynb) in order and saves their outputs in it.

- It runs in a session whose working directory is the notebook's folder: calls for Python with the same session and that cwd share its variables.
- The first cell that fails ends the run; the notebook is saved up to it. Mend the cell and go on from there with cells: "3-".
- timeout bounds each cell.`

func (k kit) callNotebookRun(ctx context.Context, c Call) (Result, error) {
	var a struct {
		Path        *string                    `json:"path"`
		Cells       string                     `json:"cells"`
		Timeout     *float64                   `json:"timeout"`
		AllowErrors bool                       `json:"allow_errors"`
		Reset       bool                       `json:"reset"`
		Parameters  map[string]json.RawMessage `json:"parameters"`
		Session     string                     `json:"session"`
	}
	if err := arguments(c, &a); err != nil {
		return Result{}, err
	}
	o := run.Options{AllowErrors: a.AllowErrors, FoldProgress: true, Owner: c.Owner, Input: c.Input}
	var err error
	if o.Timeout, err = notebookLimits.timeout(a.Timeout); err != nil {
		return Result{}, err
	}
	path, err := notebookPath(c, a.Path)
	if err != nil {
		return Result{}, err
	}
	file, err := notebook.Open(ctx, path)
	if err != nil {
		return Result{}, notebookProblem("path", err)
	}
	if err := run.Check(file.Document); err != nil {
		return Result{}, &Error{Argument: "path", Problem: err.Error()}
	}
	if o.Cells, err = cellsOf(file.Document, a.Cells); err != nil {
		return Result{}, err
	}
	for name, value := range a.Parameters {
		o.Parameters = append(o.Parameters, notebook.Parameter{Name: name, Value: value})
	}
	slices.SortFunc(o.Parameters, func(a, b notebook.Parameter) int { return strings.Compare(a.Name, b.Name) })
	s, err := k.session(c, a.Session, filepath.Dir(path))
	if err != nil {
		return Result{}, err
	}
	if a.Reset {
		if err := s.Reset(ctx); err != nil {
			return Result{}, err
		}
	}
	o.Save = file.Save
	told := notebookTold{onEvent: c.OnEvent}
	o.Progress = told.step
	report, err := s.RunNotebook(ctx, file.Document, o)
	switch {
	case errors.Is(err, notebook.ErrArgument):
		return Result{}, notebookProblem("parameters", err)
	case err != nil && len(told.results) == 0:
		return Result{}, notebookProblem("path", err)
	}
	return told.result(s, report, err), nil
}

// notebookTold gathers what a run shows. It belongs to the goroutine of the run.
type notebookTold struct {
	onEvent func(messages.Event)
	results []messages.Result // of each cell that was called
	cells   []int             // their indices in the document
	seq     uint64
}

func (n *notebookTold) step(s run.Step) {
	if s.Kind != run.CellEvent {
		return
	}
	if final, ok := s.Event.(messages.Final); ok {
		n.results, n.cells = append(n.results, final.Result), append(n.cells, s.Cell)
		return
	}
	if n.onEvent != nil {
		n.seq++
		p := s.Event.Pos()
		p.Seq, p.Cell = n.seq, s.Cell
		n.onEvent(s.Event.At(p))
	}
}

// result is what a model gets of a run: what each cell showed, and how it ended.
func (n *notebookTold) result(s *coppice.Session, report run.Report, problem error) Result {
	window := budget.New(budget.Options{Bytes: budget.DefaultBytes})
	all := messages.Result{Outcome: report.Outcome, Session: s.Key().Session, Cwd: s.Key().Cwd, Backend: report.Backend, Cells: []messages.CellResult{}}
	for i, r := range n.results {
		for j := range r.Cells {
			r.Cells[j].Index = n.cells[i]
		}
		outcome := string(r.Outcome)
		if r.Outcome == messages.OutcomeError && n.expected(report, n.cells[i]) {
			outcome = "error, which was expected"
		}
		window.Write([]byte(fmt.Sprintf("[cell:%d] %s\n%s\n\n", n.cells[i], outcome, r.Text)))
		if i > 0 {
			r = joined(all, r)
		}
		all = r
	}
	all.Outcome = report.Outcome
	ran := 0
	for _, c := range report.Cells {
		if c.Outcome != messages.OutcomeNotStarted {
			ran++
		}
	}
	all.Progress.Begun, all.Progress.Cells = ran, len(report.Cells)
	last := fmt.Sprintf("Ran %d of %d cells", ran, len(report.Cells))
	switch {
	case problem != nil:
		last += ", then: " + problem.Error()
		all.Outcome = messages.OutcomeError
	case report.Next >= 0:
		last += fmt.Sprintf(`; cell %d ended the run. Mend it and go on with cells: "%d-".`, report.Next, report.Next)
	default:
		last += "; the notebook is saved."
	}
	window.Write([]byte(last))
	all.Text = window.Text()
	return Result{Text: all.Text, Images: all.Images, IsError: all.Outcome != messages.OutcomeOK, Result: &all}
}

func (n *notebookTold) expected(report run.Report, cell int) bool {
	return slices.ContainsFunc(report.Cells, func(c run.Cell) bool { return c.Index == cell && c.Expected })
}
