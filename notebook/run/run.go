package run

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// Execute makes one call in a session that stays the same for the whole run, and
// yields its events as they happen; the last one is a messages.Final. A call that
// could not be made yields its error alone. When ctx ends the call is to be ended,
// and the stream with it, which is always read to its end. Notebook makes one call
// at a time, from a goroutine of its own.
type Execute func(ctx context.Context, c Call) iter.Seq2[messages.Event, error]

// Call is what a run asks of its session: the execution of one cell.
type Call struct {
	// Cell has the cell's source; its title is "cell N", with the index in the
	// document. The session is to number it, as a notebook does, and to yield what
	// widgets tell a frontend (messages.Comm), if it has any.
	Cell messages.Cell
	// Timeout bounds the call. 0: none.
	Timeout time.Duration
	// Owner, Env and Input are those of the [Options].
	Owner string
	Env   map[string]string
	Input func(context.Context, messages.InputRequest) (string, error)
}

// run is one run. It belongs to the goroutine that called Notebook.
type run struct {
	execute  Execute
	doc      *notebook.Document
	o        Options
	recorder *notebook.Recorder
	widgets  *widgets
	plan     []*notebook.Cell
	report   Report
	// saved is when the document was last saved, saving how long that took.
	saved  time.Time
	saving time.Duration
	// unsaved says that a cell has ended since then; waiting is about how many bytes
	// were shown since.
	unsaved bool
	waiting int64
}

// Notebook runs cells of doc with execute and records in doc what they show. With
// a host, that is Session.RunNotebook:
//
//	file, err := notebook.Open(ctx, "report.ipynb")
//	…
//	report, err := host.Session("report").RunNotebook(ctx, file.Document, run.Options{Save: file.Save})
//
// Cells run in the order of the document, one at a time, each as a call of its
// own. The first one that does not complete ends the run, unless its error was
// expected. Any goroutine may call Notebook. The document belongs to it until it
// returns, which it does when the session's call has ended and the document is
// saved, also when ctx ends.
//
// The error is about what is not the cells' doing: [ErrLanguage], one of kind
// notebook.ErrArgument about a parameter or about a document that is nil, one of
// kind notebook.ErrNoCell about Cells, one of Save, or one of execute. The report is
// complete up to it.
func Notebook(ctx context.Context, doc *notebook.Document, o Options, execute Execute) (Report, error) {
	if o.SaveEvery <= 0 {
		o.SaveEvery = DefaultSaveEvery
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = DefaultMaxOutput
	}
	if o.Progress == nil {
		o.Progress = func(Step) {}
	}
	r := &run{execute: execute, doc: doc, o: o, recorder: notebook.NewRecorder(doc), report: Report{Outcome: messages.OutcomeOK, Next: -1}}
	r.recorder.FoldProgress = o.FoldProgress
	r.widgets = newWidgets(o.MaxOutput)
	began := time.Now()
	err := r.cells(ctx)
	r.report.Duration = time.Since(began)
	return r.report, err
}

// cells plans and runs.
func (r *run) cells(ctx context.Context) error {
	if err := r.choose(ctx); err != nil {
		r.report.Outcome = messages.OutcomeNotStarted
		return err
	}
	index := make([]int, len(r.plan))
	for i, c := range r.report.Cells {
		index[i] = c.Index
	}
	r.o.Progress(Step{Kind: Planned, Plan: r.plan, Index: index})
	for place := range r.plan {
		goOn, err := r.cell(ctx, place)
		if err != nil || !goOn {
			r.report.Next = r.report.Cells[place].Index
			if err != nil {
				r.report.Outcome = messages.OutcomeNotStarted
			}
			return err
		}
	}
	return nil
}

// choose puts the parameters into the document and makes the plan.
func (r *run) choose(ctx context.Context) error {
	if r.doc == nil {
		return &notebook.Error{Kind: notebook.ErrArgument, Reason: "there is no notebook; open one with notebook.Open, or make it with notebook.New"}
	}
	if err := Check(r.doc); err != nil {
		return err
	}
	if err := r.o.Cells.Check(r.doc.Len()); err != nil {
		return err
	}
	chosen := map[*notebook.Cell]bool{}
	for i, c := range r.doc.Cells() {
		chosen[c] = r.o.Cells.Contains(i)
	}
	if len(r.o.Parameters) > 0 {
		injected, err := r.doc.SetParameters(r.o.Parameters...)
		if err != nil {
			return err
		}
		chosen[injected] = true
		if err := r.save(ctx); err != nil {
			return err
		}
	}
	for i, c := range r.doc.Cells() {
		if chosen[c] && Runnable(c) {
			r.plan = append(r.plan, c)
			r.report.Cells = append(r.report.Cells, Cell{Index: i, ID: c.ID(), Outcome: messages.OutcomeNotStarted})
		}
	}
	return nil
}

// cell runs one cell and reports whether the next one may run.
func (r *run) cell(ctx context.Context, place int) (goOn bool, err error) {
	c, report := r.plan[place], &r.report.Cells[place]
	r.o.Progress(Step{Kind: CellBegins, Place: place, Cell: report.Index})
	x := &execution{run: r, place: place, cell: report.Index}
	began := time.Now()
	err = x.make(ctx, Call{
		Cell:    messages.Cell{Title: fmt.Sprintf("cell %d", report.Index), Code: c.Source()},
		Timeout: r.o.Timeout, Owner: r.o.Owner, Env: r.o.Env, Input: r.o.Input,
	})
	report.Duration = time.Since(began)
	remarks := r.ended(x, report)
	if x.recording != nil {
		report.Omitted = x.recording.Omitted()
		if captured := r.widgets.ended(); captured > 0 {
			report.Omitted += captured
			remarks = append(remarks, fmt.Sprintf("%d bytes of captured output left out", captured))
		}
		if ran := x.recording.Duration(); ran > 0 { // else it did not run to its end
			report.Duration = ran
		}
		x.recording.Finish(report.Count, remarks...)
		if _, known := r.doc.Metadata("language_info", "name"); !known {
			// Editors colour cells by it before there is a kernel to ask.
			_ = r.doc.SetNotebookMetadata("python", "language_info", "name") // one that has no place for it runs all the same
		}
		r.unsaved = true
	}
	report.Expected = report.Outcome == messages.OutcomeError && (r.o.AllowErrors || c.HasTag(TagRaises))
	goOn = err == nil && (report.Outcome == messages.OutcomeOK || report.Expected)
	if r.unsaved && (!goOn || place == len(r.plan)-1 || !time.Now().Before(r.due())) {
		if saveErr := r.save(ctx); err == nil {
			err = saveErr
		}
	}
	if err != nil {
		return false, err
	}
	r.o.Progress(Step{Kind: CellEnded, Place: place, Cell: report.Index, Ended: *report})
	if !goOn {
		r.report.Outcome = report.Outcome
	}
	return goOn, nil
}

// due is when the document may be saved again.
func (r *run) due() time.Time { return r.saved.Add(slowSave * r.saving) }

// ended notes how a call ended, and returns what the reader of the notebook would
// else not know.
func (r *run) ended(x *execution, report *Cell) (remarks []string) {
	if x.final == nil {
		return nil
	}
	r.report.Last, r.report.Backend = *x.final, x.final.Backend
	report.Outcome = x.final.Outcome
	if len(x.final.Cells) > 0 {
		report.Error, report.Count = x.final.Cells[0].Error, x.final.Cells[0].ExecutionCount
	}
	switch report.Outcome {
	case messages.OutcomeTimeout, messages.OutcomeLost:
		r.report.Reason = x.final.Reason
		if r.report.Reason == "" && report.Outcome == messages.OutcomeTimeout {
			r.report.Reason = r.late(x.final.HowFar())
		}
		remarks = append(remarks, fmt.Sprintf("%s: %s", report.Outcome, r.report.Reason))
	case messages.OutcomeNotStarted, messages.OutcomeCancelled:
		r.report.Reason = x.final.Reason
	case messages.OutcomeOK, messages.OutcomeError:
	}
	return remarks
}

// late says whose time was up.
func (r *run) late(p messages.Progress) string {
	if after := p.After(); after != "" {
		return "the cell was stopped " + after
	}
	return fmt.Sprintf("the cell ran longer than %v", r.o.Timeout)
}

// save writes the document, also when the run's context has ended.
func (r *run) save(ctx context.Context) error {
	began := time.Now()
	if err := r.widgets.write(r.doc, r.o.Cells != nil); err != nil {
		return fmt.Errorf("note the state of widgets: %w", err)
	}
	if r.o.Save != nil {
		if _, err := r.o.Save(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("save the notebook: %w", err)
		}
	}
	r.saved = time.Now()
	r.saving = r.saved.Sub(began)
	r.unsaved, r.waiting = false, 0
	return nil
}
