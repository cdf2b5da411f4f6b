package run

import (
	"context"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// The defaults of [Options].
const (
	DefaultSaveEvery = 2 * time.Second
	DefaultMaxOutput = 64 << 20
)

// Options say how a notebook is run. The zero value runs all code cells, saves
// nothing, and stops at the first error.
type Options struct {
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
	// Owner is the agent or tenant that each call is made for, and Env is set in
	// os.environ before each cell, and stays.
	Owner string
	Env   map[string]string
	// Input answers the questions of cells, input() and getpass, with a line. How
	// long each waits is the host's to say, and no part of Timeout. It may be called
	// from any goroutine. nil: questions raise. Neither questions nor answers are
	// recorded.
	Input func(context.Context, messages.InputRequest) (string, error)
	// Progress hears what happens, from the goroutine that runs the notebook;
	// the run waits for it. nil: what happens is not reported.
	Progress func(Step)
}

// StepKind says what a [Step] tells.
type StepKind int

// The kinds of steps, in the order in which they come.
const (
	// Planned comes once, before the first cell: Plan is set.
	Planned StepKind = iota
	// CellBegins: a cell is about to run.
	CellBegins
	// CellEvent: the cell sent Event.
	CellEvent
	// CellEnded: the cell has ended and was saved, or is saved soon; Ended is set.
	CellEnded
)

// Step is a piece of progress.
type Step struct {
	Kind StepKind
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
	Ended Cell
}
