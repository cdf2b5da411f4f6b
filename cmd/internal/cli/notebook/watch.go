package notebook

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook"
	"github.com/coppice-run/coppice/notebook/run"
)

// watchEvery is how often a watched file is looked at.
const watchEvery = 300 * time.Millisecond

// watch runs the notebook again whenever it changes. It ends with ctx; the
// report is that of the last run, and that of a run which ended well counts as
// the end of a watch that was interrupted while it waited. err is that of the first
// run.
func (r *runner) watch(ctx context.Context, report run.Report, err error) (run.Report, error) {
	if err != nil && !r.overtaken(err) {
		return report, err
	}
	ran, seen := r.after(report, err)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	r.app.Err.Lines("coppice: watching " + r.path + "; Ctrl-C ends it")
	for {
		select {
		case <-ctx.Done():
			return report, nil
		case <-tick.C:
		}
		now := r.content(ctx)
		if now == nil || bytes.Equal(now, seen) {
			continue
		}
		seen, r.loaded = now, now
		from, ok := r.reload(ctx, ran)
		if !ok {
			continue
		}
		if from < 0 {
			r.app.Err.Lines("coppice: no code has changed")
			if seen, err = r.keep(ctx, seen); err != nil {
				return report, err
			}
			continue
		}
		r.o.Cells = notebook.CellsFrom(from)
		if report, err = r.once(ctx, nil); err != nil && !r.overtaken(err) || report.Outcome == messages.OutcomeCancelled {
			return report, err
		}
		ran, seen = r.after(report, err)
	}
}

// overtaken reports whether a run ended because someone saved FILE while a cell ran:
// for a watch that is news like any other.
func (r *runner) overtaken(err error) bool {
	return r.flags.inPlace && errors.Is(err, notebook.ErrChanged)
}

// after returns the sources that have run and what is known of FILE, after a run that
// ended with err.
func (r *runner) after(report run.Report, err error) (ran []string, seen []byte) {
	ran = sourcesOf(r.file.Document, report.Next)
	if r.behind = err != nil; !r.behind {
		return ran, r.known()
	}
	for _, c := range report.Cells {
		if c.Index == report.Next && c.Outcome == messages.OutcomeOK { // only its save failed
			ran = append(ran, r.file.Cell(c.Index).Source())
		}
	}
	return ran, nil // whatever FILE holds now is read
}

// keep writes what cells showed whose own save came too late, and returns what is known
// of FILE then.
func (r *runner) keep(ctx context.Context, seen []byte) ([]byte, error) {
	if !r.behind {
		return seen, nil
	}
	switch _, err := r.file.Save(ctx); {
	case r.overtaken(err):
		return nil, nil
	case err != nil:
		return nil, unsavedError{err}
	}
	r.behind = false
	return r.known(), nil
}

// known is what FILE held when it was read, or what the run wrote into it: what
// someone changed while the notebook ran is news.
func (r *runner) known() []byte {
	if r.flags.inPlace {
		return r.file.Bytes()
	}
	return r.loaded
}

// content is what is in the file, nil when it cannot be read now.
func (r *runner) content(ctx context.Context) []byte {
	data, err := file.Read(ctx, r.path, notebook.MaxFile)
	if err != nil {
		return nil
	}
	return data
}

// reload reads the changed file, and returns the first cell whose source is not
// the one that ran, -1 when there is none. A file that is no notebook now is
// waited for.
func (r *runner) reload(ctx context.Context, ran []string) (from int, ok bool) {
	in, err := notebook.Open(ctx, r.path)
	if err != nil {
		r.app.Err.Lines("coppice: " + err.Error())
		return 0, false
	}
	if err := run.Check(in.Document); err != nil {
		r.app.Err.Lines("coppice: " + err.Error())
		return 0, false
	}
	if !r.flags.inPlace || r.behind {
		r.carryOutputs(in.Document)
	}
	if !r.flags.inPlace {
		out, err := notebook.NewFile(ctx, r.file.Path, in.Document)
		if err != nil {
			r.app.Err.Lines("coppice: " + err.Error())
			return 0, false
		}
		in = out
	}
	r.file = in
	n := 0
	for i, c := range in.Cells() {
		if !run.Runnable(c) || c.HasTag(notebook.TagInjected) {
			continue
		}
		if n >= len(ran) || ran[n] != c.Source() {
			return i, true
		}
		n++
	}
	return -1, true
}

// carryOutputs gives the code cells of a changed notebook what the last run
// showed, up to the first one that differs.
func (r *runner) carryOutputs(d *notebook.Document) {
	before := codeCells(r.file.Document)
	for i, c := range codeCells(d) {
		if i >= len(before) || before[i].Source() != c.Source() {
			return
		}
		count, _ := before[i].ExecutionCount()
		_ = d.SetOutputs(notebook.At(d.Index(c)), count, before[i].Outputs()...) // a code cell that is there takes them
	}
}

// codeCells are the code cells but for that of parameters, which a run makes.
func codeCells(d *notebook.Document) []*notebook.Cell {
	return slices.DeleteFunc(plainCells(d), func(c *notebook.Cell) bool { return c.Type() != notebook.Code })
}

// sourcesOf are the sources of the cells that a run runs, up to one that did not
// complete; -1: none is.
func sourcesOf(d *notebook.Document, until int) []string {
	var all []string
	for i, c := range d.Cells() {
		if until >= 0 && i >= until {
			break
		}
		if run.Runnable(c) && !c.HasTag(notebook.TagInjected) {
			all = append(all, c.Source())
		}
	}
	return all
}
