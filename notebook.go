package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// The tags by which Jupyter's own tools know what to do with a cell.
const (
	// TagRaises marks a cell whose exception is expected: the run goes on.
	TagRaises = "raises-exception"
	// TagSkip marks a cell that is not run.
	TagSkip = "skip-execution"
)

// The defaults of [NotebookOptions].
const (
	DefaultSaveEvery = 2 * time.Second
	DefaultMaxOutput = 64 << 20
)

// NotebookOptions say how a notebook is run. The zero value runs all code
// cells, saves nothing, and stops at the first error.
type NotebookOptions struct {
	// Cells are the cells to run, by index in the document as it is before
	// parameters are put into it. nil: all.
	Cells *notebook.CellSet
	// Parameters are put into a cell of their own, which runs whatever Cells
	// says, see notebook.Document.SetParameters.
	Parameters []notebook.Parameter
	// Timeout bounds each cell. 0: none.
	Timeout time.Duration
	// AllowErrors goes on after a cell that raised.
	AllowErrors bool
	// Save writes the document: the Save of a notebook.File. Its context does
	// not end with that of the run. nil: nothing is written.
	Save func(ctx context.Context) (written bool, err error)
	// SaveEvery is how long output of a running cell may stay unsaved; a
	// document that takes long to save is saved less often. 0: 2 s.
	SaveEvery time.Duration
	// MaxOutput is how many bytes of output a cell may leave in the document;
	// what it shows beyond is left out, and the document says so. 0: 64 MiB.
	MaxOutput int64
	// FoldProgress keeps of a progress bar, which returns the carriage, only
	// the last state. Without it streams are kept as they were written.
	FoldProgress bool
	// Owner and Env are those of each call, see [Request].
	Owner string
	Env   map[string]string
	// Input answers the questions of cells, input() and getpass; each waits for as
	// long as the host's InputTimeout says, which is no part of Timeout. nil:
	// nobody does, and they raise. Neither questions nor answers are recorded.
	Input InputHandler
	// Progress hears what happens, from the goroutine that runs the notebook;
	// the run waits for it. nil: nobody.
	Progress func(NotebookStep)
}

// NotebookStepKind says what a [NotebookStep] tells.
type NotebookStepKind int

// The kinds of steps, in the order in which they come.
const (
	// NotebookPlanned comes once, before the first cell: Plan is set.
	NotebookPlanned NotebookStepKind = iota
	// NotebookCellBegins: a cell is about to run.
	NotebookCellBegins
	// NotebookCellEvent: the cell sent Event.
	NotebookCellEvent
	// NotebookCellEnded: the cell has ended and was saved; Ended is set.
	NotebookCellEnded
)

// NotebookStep is a piece of progress.
type NotebookStep struct {
	Kind NotebookStepKind
	// Plan are the cells that will run, in order; Index are their indices in
	// the document.
	Plan  []*notebook.Cell
	Index []int
	// Place is the cell's place in the plan, from 0; Cell is its index in the
	// document.
	Place, Cell int
	// Event is what the session sent.
	Event messages.Event
	// Ended tells how the cell ended.
	Ended NotebookCell
}

// NotebookReport tells how a run ended. Its JSON form is that of `coppice
// notebook run --json`.
type NotebookReport struct {
	// Outcome is ok when every chosen cell ran, or raised where that was
	// allowed; else it is that of the cell that ended the run.
	Outcome messages.Outcome `json:"outcome"`
	// Reason says more about an outcome that is neither ok nor error.
	Reason string `json:"reason,omitempty"`
	// Backend is gateway or runner; empty when nothing was run.
	Backend string `json:"backend"`
	// Cells has an entry for each cell that was chosen, in order.
	Cells []NotebookCell `json:"cells"`
	// Next is the index of the first chosen cell that did not complete, from
	// which a later run can go on; -1 when all did.
	Next int `json:"next"`
	// Duration is how long all of it took; in JSON, duration_ms.
	Duration time.Duration `json:"-"`
	// Last is the result of the last call; zero when nothing was run.
	Last messages.Result `json:"-"`
}

// MarshalJSON writes the report with its cells as [] when there are none.
func (r NotebookReport) MarshalJSON() ([]byte, error) {
	type plain NotebookReport
	if r.Cells == nil {
		r.Cells = []NotebookCell{}
	}
	return json.Marshal(struct {
		plain
		DurationMS int64 `json:"duration_ms"`
	}{plain(r), r.Duration.Milliseconds()})
}

// MarshalJSON writes the cell with its duration in milliseconds.
func (c NotebookCell) MarshalJSON() ([]byte, error) {
	type plain NotebookCell
	return json.Marshal(struct {
		plain
		DurationMS int64 `json:"duration_ms"`
	}{plain(c), c.Duration.Milliseconds()})
}

// Count returns how many cells had an outcome.
func (r NotebookReport) Count(o messages.Outcome) int {
	n := 0
	for _, c := range r.Cells {
		if c.Outcome == o {
			n++
		}
	}
	return n
}

// NotebookCell tells how one cell ended.
type NotebookCell struct {
	// Index is the cell's index in the document, ID its id if it has one.
	Index int    `json:"index"`
	ID    string `json:"id,omitempty"`
	// Outcome is not_started for a cell that the run did not get to.
	Outcome messages.Outcome `json:"outcome"`
	// Expected says that the cell raised and the run went on.
	Expected bool `json:"expected,omitempty"`
	// Count is the cell's prompt number, 0 when it has none.
	Count int `json:"execution_count,omitempty"`
	// Duration is how long it ran, without the start of its kernel; of a cell that
	// did not end, how long its call took. In JSON, duration_ms.
	Duration time.Duration `json:"-"`
	// Error is set when the cell raised.
	Error *messages.ErrorDetails `json:"error,omitempty"`
	// Omitted is how many bytes of output were over MaxOutput.
	Omitted int64 `json:"omitted_bytes,omitempty"`
}

// RunNotebook runs cells of a notebook in the session and records in the
// document what they show:
//
//	file, err := notebook.Open(ctx, "report.ipynb")
//	…
//	report, err := session.RunNotebook(ctx, file.Document, coppice.NotebookOptions{Save: file.Save})
//
// Cells run in the order of the document, one at a time, each as a call of its
// own. The first one that does not complete ends the run, unless its error was
// expected. Outputs are recorded by the rules of notebook.Recorder; a cell that
// is not run is not touched. The document is saved before the first cell when
// parameters changed it, after every cell, and while a cell shows something, so
// that a host that is killed loses at most the last seconds of output.
//
//	         ┌──── not chosen, no code, tagged skip-execution ──▶ skipped
//	chosen ──┤
//	         └▶ recording ──▶ saved ──┬─ ok, or an expected error ──▶ next cell
//	              │    ▲              └─ anything else ──▶ the run ends
//	              └────┘ saved now and then
//
// The document belongs to RunNotebook until it returns, which it does when the
// session's call has ended and the document is saved, also when ctx ends.
//
// The error is about what is not the cells' doing: [ErrLanguage], one of kind
// notebook.ErrArgument about a parameter or of kind notebook.ErrNoCell about
// Cells, one of Save, or those of [Session.Execute]. The report is complete up
// to it.
func (s *Session) RunNotebook(ctx context.Context, doc *notebook.Document, o NotebookOptions) (NotebookReport, error) {
	return runNotebook(ctx, s.Stream, doc, o)
}

// stream is Session.Stream.
type stream func(context.Context, Request) iter.Seq2[messages.Event, error]

// ErrLanguage is matched by the error about a notebook that is not Python.
var ErrLanguage = errors.New("not a Python notebook")

// foreign are the beginnings of the names of well-known kernels of other
// languages, for notebooks that name a kernel and no language.
var foreign = []string{
	"julia", "bash", "deno", "javascript", "jslab", "tslab", "java", "scala", "kotlin", "xcpp", "rust", "evcxr", ".net-", "gophernotes", "octave", "matlab", "sos", "wolfram", "ruby",
}

// CheckNotebook returns an error that matches [ErrLanguage] when the notebook's
// metadata names another language than Python, or a kernel that is known to be
// of another language. A notebook that names neither is taken for Python.
func CheckNotebook(d *notebook.Document) error {
	language, kernel := d.Language(), d.KernelName()
	switch {
	case language == "python" || language == "ipython":
		return nil
	case language != "":
	case kernel == "ir":
		language = "r"
	case slices.ContainsFunc(foreign, func(f string) bool { return strings.HasPrefix(strings.ToLower(kernel), f) }):
		language = kernel
	default:
		return nil
	}
	of := ""
	if kernel != "" {
		of = fmt.Sprintf(" (kernelspec %q)", kernel)
	}
	return fmt.Errorf("%w: its metadata says %s%s, and only Python cells can be run", ErrLanguage, language, of)
}

// RunnableCell reports whether a run of its notebook runs the cell: it is code,
// holds any, and is not tagged [TagSkip].
func RunnableCell(c *notebook.Cell) bool {
	return c.Type() == notebook.Code && !c.HasTag(TagSkip) && strings.TrimSpace(c.Source()) != ""
}
