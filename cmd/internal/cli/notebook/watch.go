package notebook

import (
	"bytes"
	"context"
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
// the end of a watch that was interrupted while it waited.
func (r *runner) watch(ctx context.Context, report run.Report) (run.Report, error) {
	ran := sourcesOf(r.file.Document, report.Next)
	seen := r.known()
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
			continue
		}
		r.o.Cells = notebook.CellsFrom(from)
		var err error
		if report, err = r.once(ctx, nil); err != nil || report.Outcome == messages.OutcomeCancelled {
			return report, err
		}
		ran = sourcesOf(r.file.Document, report.Next)
		seen = r.known()
	}
}

// known is what FILE held when it was read, or what the run wrote into it: what
// somebody changed while the notebook ran is news.
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
	if !r.flags.inPlace {
		r.carryOutputs(in.Document)
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
// complete; -1 is none.
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
