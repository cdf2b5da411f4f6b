package coppice

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
)

// notebookRun is one run. It belongs to the goroutine that called RunNotebook.
type notebookRun struct {
	stream   stream
	doc      *notebook.Document
	o        NotebookOptions
	recorder *notebook.Recorder
	plan     []*notebook.Cell
	report   NotebookReport
	// saved is when the document was last saved, saving how long that took.
	saved  time.Time
	saving time.Duration
}

func runNotebook(ctx context.Context, s stream, doc *notebook.Document, o NotebookOptions) (NotebookReport, error) {
	if o.SaveEvery <= 0 {
		o.SaveEvery = DefaultSaveEvery
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = DefaultMaxOutput
	}
	if o.Progress == nil {
		o.Progress = func(NotebookStep) {}
	}
	r := &notebookRun{stream: s, doc: doc, o: o, recorder: notebook.NewRecorder(doc), report: NotebookReport{Outcome: messages.OutcomeOK, Next: -1}}
	r.recorder.FoldProgress = o.FoldProgress
	began := time.Now()
	err := r.cells(ctx)
	r.report.Duration = time.Since(began)
	return r.report, err
}

// cells plans and runs.
func (r *notebookRun) cells(ctx context.Context) error {
	if err := r.choose(ctx); err != nil {
		r.report.Outcome = messages.OutcomeNotStarted
		return err
	}
	index := make([]int, len(r.plan))
	for i, c := range r.report.Cells {
		index[i] = c.Index
	}
	r.o.Progress(NotebookStep{Kind: NotebookPlanned, Plan: r.plan, Index: index})
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
func (r *notebookRun) choose(ctx context.Context) error {
	if r.doc == nil {
		return &RequestError{"notebook", "there is no notebook; open one with notebook.Open, or make it with notebook.New"}
	}
	if err := CheckNotebook(r.doc); err != nil {
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
		if chosen[c] && RunnableCell(c) {
			r.plan = append(r.plan, c)
			r.report.Cells = append(r.report.Cells, NotebookCell{Index: i, ID: c.ID(), Outcome: messages.OutcomeNotStarted})
		}
	}
	return nil
}

// cell runs one cell and reports whether the next one may run.
func (r *notebookRun) cell(ctx context.Context, place int) (goOn bool, err error) {
	c, report := r.plan[place], &r.report.Cells[place]
	r.o.Progress(NotebookStep{Kind: NotebookCellBegins, Place: place, Cell: report.Index})
	call := &notebookCall{run: r, place: place, cell: report.Index}
	timeout := r.o.Timeout
	if timeout == 0 {
		timeout = NoTimeout // for a Request 0 is the host's
	}
	began := time.Now()
	err = call.make(ctx, Request{
		Cells:   []messages.Cell{{Title: fmt.Sprintf("cell %d", report.Index), Code: c.Source()}},
		Timeout: timeout, Owner: r.o.Owner, Env: r.o.Env, Count: true, Input: r.o.Input,
	})
	report.Duration, report.Omitted = time.Since(began), call.omitted
	if t := call.timing; !t.Busy.IsZero() && t.Idle.After(t.Busy) { // else it did not run to its end
		report.Duration = t.Idle.Sub(t.Busy)
	}
	r.ended(call, report)
	if call.recording != nil {
		call.recording.Finish(report.Count, call.timing)
		if saveErr := r.save(ctx); err == nil {
			err = saveErr
		}
	}
	if err != nil {
		return false, err
	}
	report.Expected = report.Outcome == messages.OutcomeError && (r.o.AllowErrors || c.HasTag(TagRaises))
	r.o.Progress(NotebookStep{Kind: NotebookCellEnded, Place: place, Cell: report.Index, Ended: *report})
	if report.Outcome == messages.OutcomeOK || report.Expected {
		return true, nil
	}
	r.report.Outcome = report.Outcome
	return false, nil
}

// ended notes how a call ended, and leaves in the notebook what its reader
// would else not know.
func (r *notebookRun) ended(call *notebookCall, report *NotebookCell) {
	if call.omitted > 0 {
		call.recording.Stream(string(messages.StderrStream), fmt.Sprintf("\n[coppice: %d bytes of output left out]\n", call.omitted))
	}
	if call.final == nil {
		return
	}
	r.report.Last, r.report.Backend = *call.final, call.final.Backend
	report.Outcome = call.final.Outcome
	if len(call.final.Cells) > 0 {
		report.Error, report.Count = call.final.Cells[0].Error, call.final.Cells[0].ExecutionCount
	}
	switch report.Outcome {
	case messages.OutcomeTimeout, messages.OutcomeLost:
		r.report.Reason = call.final.Reason
		if r.report.Reason == "" && report.Outcome == messages.OutcomeTimeout {
			r.report.Reason = fmt.Sprintf("the cell ran longer than %v", r.o.Timeout)
		}
		if call.recording != nil {
			call.recording.Stream(string(messages.StderrStream), fmt.Sprintf("\n[coppice: %s: %s]\n", report.Outcome, r.report.Reason))
		}
	case messages.OutcomeNotStarted, messages.OutcomeCancelled:
		r.report.Reason = call.final.Reason
	case messages.OutcomeOK, messages.OutcomeError:
	}
}

// save writes the document, also when the run's context has ended.
func (r *notebookRun) save(ctx context.Context) error {
	began := time.Now()
	if r.o.Save != nil {
		if _, err := r.o.Save(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("save the notebook: %w", err)
		}
	}
	r.saved = time.Now()
	r.saving = r.saved.Sub(began)
	return nil
}
