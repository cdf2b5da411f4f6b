package render

import (
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

// RunOptions says how a call is drawn.
type RunOptions struct {
	Style
	// Expand shows the code of each cell, whole tracebacks, and more of status
	// events and JSON.
	Expand bool
	// Cells are those of the call.
	Cells []messages.Cell
	// Shown is the rich output of each cell, by the cell's index, for [CellView]: a
	// result does not say which cell its images and its JSON are from. nil: they are
	// drawn after all cells.
	Shown map[int][]messages.Bundle
	// Prefix stands before every line: calls that are drawn side by side on one
	// terminal tell each other apart by it.
	Prefix string
	// Timeout is what the user has asked for, 0 for none.
	Timeout time.Duration
	// Now tells the time; cells are timed by it. Nil leaves durations out.
	Now func() time.Time
}

// Run draws one call as it happens:
//
//	▸ [1/2] load
//	what the cell printed
//	✓ [1/2] load (12 ms)
type Run struct {
	o       RunOptions
	text    *text
	started time.Time
	// cell is the one that runs, -1 between cells.
	cell int
	// ops are the status events of the cell.
	ops  []messages.RawJSON
	json []messages.RawJSON
}

// NewRun makes the drawing of one call.
func NewRun(o RunOptions) *Run {
	return &Run{o: o, text: newText(o.Style, o.Prefix), cell: -1}
}

// Event returns what is to be written for e, which may be nothing.
func (r *Run) Event(e messages.Event) string {
	switch e := e.(type) {
	case messages.Status:
		r.status(e)
	case messages.Stream:
		r.text.output(e.Name, e.Text)
	case messages.Display:
		r.bundle(e.Data)
	case messages.ExecuteResult:
		r.bundle(e.Data)
	case messages.Error:
		r.raise(e)
	case messages.InputRequest:
		r.text.line(r.o.in(yellow, "? the code asks for input: ") + sanitise.Clean(e.Prompt))
	case messages.Notice:
		for line := range strings.SplitSeq(strings.TrimRight(sanitise.Clean(e.Text), "\n"), "\n") {
			for _, l := range r.o.wrap(yellow, "! "+line) {
				r.text.line(l)
			}
		}
	case messages.Final:
		r.final(e.Result)
	case messages.ClearOutput:
		// What was printed cannot be taken back from a stream of text.
	}
	return r.text.take()
}

func (r *Run) status(e messages.Status) {
	if len(e.Data) > 0 {
		r.ops = append(r.ops, e.Data)
		return
	}
	switch e.Status {
	case messages.CellRunning:
		r.cell, r.ops = e.Cell, nil
		r.started = r.now()
		r.text.line(r.o.Fit(r.o.in(cyan, "▸ ") + r.o.in(bold, r.label(e.Cell))))
		if r.o.Expand {
			r.code(e.Cell)
		}
	case messages.CellComplete:
		r.end(e.Cell, "✓", green)
	case messages.CellError:
		r.end(e.Cell, "✗", red)
	case messages.CellPending:
	}
}

// end writes the footer of a cell.
func (r *Run) end(cell int, icon string, in paint) {
	r.text.finish()
	for _, line := range StatusLines(r.o.Style, r.ops, r.o.Expand) {
		r.text.line(line)
	}
	footer := r.o.in(in, icon+" ") + r.label(cell)
	if r.o.Now != nil && r.cell == cell {
		footer += r.o.in(dim, " ("+Duration(r.now().Sub(r.started))+")")
	}
	r.text.line(r.o.Fit(footer))
	r.cell, r.ops = -1, nil
}

func (r *Run) now() time.Time {
	if r.o.Now == nil {
		return time.Time{}
	}
	return r.o.Now()
}

// label is [i/n] and the title.
func (r *Run) label(cell int) string {
	label := "[" + strconv.Itoa(cell+1) + "/" + strconv.Itoa(len(r.o.Cells)) + "]"
	if cell >= 0 && cell < len(r.o.Cells) && r.o.Cells[cell].Title != "" {
		label += " " + oneLine(r.o.Cells[cell].Title)
	}
	return label
}

func (r *Run) code(cell int) {
	if cell < 0 || cell >= len(r.o.Cells) {
		return
	}
	for line := range strings.SplitSeq(Code(r.o.Style, strings.TrimRight(r.o.Cells[cell].Code, "\n")), "\n") {
		r.text.line(r.o.Fit(r.o.in(dim, "│ ") + line))
	}
}

func (r *Run) bundle(b messages.Bundle) {
	if op, ok := statusOf(b); ok {
		r.ops = append(r.ops, op)
		return
	}
	if data, ok := b[messages.MIMEJSON]; ok {
		r.json = append(r.json, data)
	}
	s := r.o.Style
	if r.o.Prefix != "" { // an image beside the lines of another call would cover them
		s.Images = NoImages
	}
	for _, line := range Bundle(s, b) {
		r.text.line(line)
	}
}

// raise draws an exception: its traceback as the kernel sent it, without the
// rule at its head.
func (r *Run) raise(e messages.Error) {
	lines := tracebackLines(r.o.Style, e.Traceback)
	if e.UserTraceback != "" && !r.o.Expand { // the frames that are the user's
		lines = tracebackLines(r.o.Style, strings.Split(e.UserTraceback, "\n"))
	}
	switch {
	case r.o.Expand:
	case e.Name == "KeyboardInterrupt":
		lines = nil // someone stopped it; where it stood is seldom the question
	default:
		lines = middleCut(lines, tracebackHead, tracebackTail)
	}
	for _, line := range lines {
		r.text.line(line)
	}
	if len(lines) == 0 {
		r.text.line(r.o.in(red, strings.TrimSuffix(oneLine(e.Name+": "+e.Message), ":")))
	}
}

// A collapsed traceback shows so many lines of both ends.
const (
	tracebackHead = 8
	tracebackTail = 16
)

func tracebackLines(s Style, traceback []string) []string {
	lines := strings.Split(strings.TrimRight(s.still(strings.Join(traceback, "\n")), "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	if strings.Trim(Plain(lines[0]), "-") == "" {
		lines = lines[1:]
	}
	return lines
}

// middleCut keeps the first and last lines of many.
func middleCut(lines []string, head, tail int) []string {
	cut := len(lines) - head - tail
	if cut < 2 { // a line that says "1 more line" is no shorter
		return lines
	}
	out := append([]string(nil), lines[:head]...)
	out = append(out, "… "+Number(cut, "more line")+" (--expand shows them)")
	return append(out, lines[len(lines)-tail:]...)
}

// final writes what only the result knows.
func (r *Run) final(res messages.Result) {
	r.text.finish()
	for _, c := range res.Cells {
		if c.Status == messages.CellPending && len(res.Cells) > 1 {
			r.text.line(r.o.Fit(r.o.in(dim, "· "+r.label(c.Index)+" not run")))
		}
	}
	for i, data := range r.json {
		title := "JSON output"
		if len(r.json) > 1 {
			title += " " + strconv.Itoa(i+1)
		}
		r.text.line(r.o.in(dim, title))
		for _, line := range JSONTree(r.o.Style, data, r.o.Expand) {
			r.text.line(line)
		}
	}
	for _, line := range Ending(r.o.Style, res, r.o.Timeout) {
		r.text.line(line)
	}
}

// Ending says how a call ended, in at most four sentences, each on lines of its own;
// nothing when there is nothing to say beyond the cells. timeout is what the user has
// asked for, 0 for none: to the call itself that may have been a deadline of its caller.
func Ending(s Style, res messages.Result, timeout time.Duration) []string {
	var lines []string
	add := func(p paint, text string) { lines = append(lines, s.wrap(p, oneLine(text))...) }
	far := res.HowFar()
	if timeout > 0 && (far.Stop == "" || far.Stop == messages.StopDeadline) {
		far.Stop, far.Limit = messages.StopTimeout, timeout
	}
	because := ""
	if res.Reason != "" {
		because = ": " + res.Reason
	}
	stopped := because
	if res.State == messages.StateFresh || res.State == messages.StateRestored {
		stopped = "" // the reason is why the session had to begin anew
	}
	if by := far.By(); stopped == "" && by != "" {
		stopped = ": " + by
	}
	if not := far.NotRun(); not != "" && !strings.HasPrefix(res.Reason, not) {
		stopped = ": " + not + strings.Replace(stopped, ":", ";", 1)
	}
	if res.Exceeded != nil && res.Outcome == messages.OutcomeTimeout && !strings.Contains(stopped, res.Exceeded.Error()) {
		// Whose time it was: that of a cell, not of the call.
		stopped = ": " + res.Exceeded.Error() + strings.Replace(stopped, ":", ";", 1)
	}
	switch res.Outcome {
	case messages.OutcomeTimeout:
		add(red, "✗ "+strings.TrimSpace("timed out "+far.AfterIn(Duration))+stopped)
	case messages.OutcomeCancelled:
		add(yellow, "✗ cancelled"+stopped)
	case messages.OutcomeLost:
		add(red, "✗ the kernel was lost"+because)
	case messages.OutcomeNotStarted:
		add(red, "✗ not started"+because)
	case messages.OutcomeError:
		if limit := overLimit(res); limit != "" {
			add(red, "✗ "+limit)
		}
	case messages.OutcomeOK:
		if res.Exceeded != nil { // it was met, and stopped nothing
			add(yellow, "! "+res.Exceeded.Error())
		}
	default:
	}
	switch {
	case res.State == messages.StateLost:
		if len(lines) > 0 { // it was told why
			res.Reason = ""
		}
		add(yellow, "! state lost: "+gone(res))
	case res.State == messages.StateRestored && res.Restored != nil:
		if r := res.Restored; len(r.Changed)+len(r.Lost)+len(r.Notes) > 0 {
			add(yellow, "! "+r.String())
		} else {
			add(dim, "· "+r.String())
		}
	case res.Variables() != "":
		add(yellow, "! new kernel"+because)
	}
	if waited := far.Waited.String(); waited != "" && (res.Outcome == messages.OutcomeTimeout || res.Outcome == messages.OutcomeNotStarted) {
		add(dim, "· it waited "+waited)
	}
	if res.StdinRequested {
		add(yellow, "! the code asked for input, and there was none")
	}
	return lines
}

// overLimit names the limit that ended code which raised, with its value where the cell
// has that; "" when none did. What the code itself shows is a MemoryError, or that it was
// interrupted.
func overLimit(res messages.Result) string {
	if res.Exceeded == nil {
		return ""
	}
	name := res.Exceeded.Error()
	for _, c := range res.Cells {
		if c.Error != nil && strings.HasPrefix(c.Error.Name+": "+c.Error.Message, name) {
			return c.Error.Name + ": " + c.Error.Message
		}
	}
	return name
}

// gone is what became of the variables, as a clause.
func gone(res messages.Result) string {
	text := strings.TrimSuffix(res.Variables(), ".")
	if text == "" { // nothing of the call ran
		return "the kernel is gone"
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// oneLine makes text fit for one line.
func oneLine(text string) string {
	return strings.Join(strings.Fields(sanitise.Clean(text)), " ")
}
