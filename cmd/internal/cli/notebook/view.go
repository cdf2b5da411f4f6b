package notebook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/internal/shell"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/notebook/run"
)

// How much of a failed cell's traceback is shown.
const tracebackLines = 30

// view draws a notebook run like a test runner: a line for each cell that has
// ended, and for the one that runs where lines can be repainted.
//
//	✓ [1/3] cell 1  import pandas as pd (312 ms)
//	✗ [2/3] cell 3  df.plot() (4 ms)
//	    NameError: name 'df' is not defined
//	· [3/3] cell 4  df.head()
//
// It belongs to the goroutine that runs the notebook.
type view struct {
	app      *app
	flags    runFlags
	style    render.Style
	starting *console.Progress
	running  *console.Progress
	drawing  *render.Run // with --outputs
	titles   []string
}

func newView(a *app, f runFlags, starting *console.Progress) *view {
	return &view{app: a, flags: f, style: a.Style(a.Out), starting: starting}
}

// step hears what happens.
func (v *view) step(s run.Step) {
	if s.Kind == run.Planned {
		v.plan(s)
	}
	if v.flags.json {
		return
	}
	switch s.Kind {
	case run.Planned:
	case run.CellBegins:
		if v.drawing == nil && s.Place > 0 {
			v.running = v.app.StartProgress(render.Plain(v.label(s.Place, s.Cell)), true)
		}
	case run.CellEvent:
		v.starting.Done()
		_, final := s.Event.(messages.Final)
		_, asks := s.Event.(messages.InputRequest) // who answers shows it
		if v.drawing != nil && !final && !asks {
			v.app.Out.Draw(v.drawing.Event(s.Event.At(messages.Position{Cell: s.Place})))
		}
	case run.CellEnded:
		v.ended(s)
	}
}

func (v *view) plan(s run.Step) {
	cells := make([]messages.Cell, len(s.Plan))
	for i, c := range s.Plan {
		v.titles = append(v.titles, firstLine(c.Source()))
		cells[i] = messages.Cell{Title: strings.TrimSpace("cell " + strconv.Itoa(s.Index[i]) + "  " + v.titles[i]), Code: c.Source()}
	}
	if v.flags.outputs && !v.flags.json {
		v.drawing = render.NewRun(render.RunOptions{Style: v.style, Cells: cells, Now: time.Now})
	}
}

// label names a cell of the plan.
func (v *view) label(place, cell int) string {
	return "[" + strconv.Itoa(place+1) + "/" + strconv.Itoa(len(v.titles)) + "] cell " + strconv.Itoa(cell) + "  " + render.OneLine(v.titles[place])
}

func (v *view) ended(s run.Step) {
	v.done()
	c := s.Ended
	if v.drawing != nil || c.Outcome == messages.OutcomeNotStarted {
		return
	}
	icon := v.style.Good("✓ ")
	switch {
	case c.Outcome == messages.OutcomeOK:
	case c.Expected:
		icon = v.style.Warn("! ")
	default:
		icon = v.style.Bad("✗ ")
	}
	time := " (" + render.Duration(c.Duration) + ")"
	line := icon + v.label(s.Place, s.Cell)
	if v.style.Width > len(time) {
		fit := v.style
		fit.Width -= len(time)
		line = fit.Fit(line)
	}
	v.app.Out.Lines(line + v.style.Quiet(time))
	switch {
	case c.Error != nil && c.Expected:
		v.app.Out.Lines(v.style.Fit("    " + render.OneLine(c.Error.Name+": "+c.Error.Message)))
	case c.Error != nil:
		for _, line := range render.Cut(render.Traceback(v.style, *c.Error), tracebackLines) {
			v.app.Out.Lines(strings.TrimRight("    "+line, " "))
		}
	}
}

// done removes what is repainted.
func (v *view) done() {
	v.running.Done()
	v.running = nil
}

// summary tells how the run ended.
func (v *view) summary(r run.Report, path, out string) {
	for i, c := range r.Cells {
		if c.Outcome == messages.OutcomeNotStarted {
			v.app.Out.Lines(v.style.Fit(v.style.Quiet("· " + v.label(i, c.Index))))
		}
	}
	var parts []string
	expected := 0
	for _, c := range r.Cells {
		if c.Expected {
			expected++
		}
	}
	for _, p := range []struct {
		n    int
		what string
	}{
		{r.Count(messages.OutcomeOK), "ok"},
		{expected, "raised"},
		{r.Count(messages.OutcomeError) - expected, "failed"},
		{r.Count(messages.OutcomeTimeout), "timed out"},
		{r.Count(messages.OutcomeCancelled), "cancelled"},
		{r.Count(messages.OutcomeLost), "lost"},
		{r.Count(messages.OutcomeNotStarted), "not run"},
	} {
		if p.n > 0 {
			parts = append(parts, strconv.Itoa(p.n)+" "+p.what)
		}
	}
	line := render.Number(len(r.Cells), "cell")
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	line += " in " + render.Duration(r.Duration) + "; outputs are in " + out
	if r.Outcome == messages.OutcomeOK {
		v.app.Out.Lines(v.style.Good("✓ ") + line)
		return
	}
	v.app.Out.Lines(v.style.Bad("✗ ") + line)
	if r.Reason != "" {
		v.app.Out.Lines("  " + render.OneLine(r.Reason))
	}
	switch {
	case r.Next < 0:
	case r.Next == v.flags.from && r.Next > 0: // the same again would come to the same
		v.app.Out.Lines(v.style.Quiet("  if it needs cells before it, name them: coppice notebook run " + v.again(path) + fmt.Sprintf(" --cells 0,%d-", r.Next)))
	default:
		v.app.Out.Lines(v.style.Quiet("  go on with: coppice notebook run " + v.again(path) + fmt.Sprintf(" --from %d", r.Next)))
		if r.Next > r.Cells[0].Index {
			v.app.Out.Lines(v.style.Quiet(fmt.Sprintf("  the kernel will be a new one: name the cells that it needs, as in --cells %d,%d-", r.Cells[0].Index, r.Next)))
		}
	}
}

// again is how the same notebook is run again, for a shell.
func (v *view) again(path string) string {
	words := []string{path}
	switch {
	case v.flags.inPlace:
		words = append(words, "--in-place")
	case v.flags.output != "":
		words = append(words, "--output", v.flags.output)
	}
	words = append(words, v.flags.again...)
	for i, word := range words {
		words[i] = shell.Quote(word)
	}
	return strings.Join(words, " ")
}

// once are the flags that a run which goes on has no use for, or which again names itself: the
// parameters are in the notebook by then.
var once = []string{"cells", "from", "output", "in-place", "param", "watch", "json"}

// given are the other flags that were given, as words of a command line.
func given(flags *pflag.FlagSet) []string {
	var words []string
	flags.Visit(func(f *pflag.Flag) {
		if slices.Contains(once, f.Name) {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			words = append(words, "--"+f.Name, strings.Join(list.GetSlice(), ","))
			return
		}
		if f.NoOptDefVal == f.Value.String() {
			words = append(words, "--"+f.Name)
			return
		}
		if f.NoOptDefVal != "" { // its value stands behind an equals sign
			words = append(words, "--"+f.Name+"="+f.Value.String())
			return
		}
		words = append(words, "--"+f.Name, f.Value.String())
	})
	return words
}
