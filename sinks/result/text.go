package result

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/budget"
)

// BuildText returns the text of a result, which is what a model reads. It uses
// every field of r but Text. What it says of time, of what ran and of the variables
// comes from [messages.Result.HowFar]. Cells are counted from 1. Any goroutine may call
// it.
//
// The text has these parts, each that there is, with a blank line between:
//
//   - the output: of a call with one cell as it is, of one with several as
//     blocks "[i/n] title", "(ok)" for a cell that completed without any;
//   - what went wrong, and whether the code was run;
//   - in brackets, of a call that was stopped, which cells were not run and what it waited for;
//   - in brackets, what is not shown and where to read it;
//   - in brackets, what became of the variables, when that is not what a caller
//     expects;
//   - in brackets, each of the notices, but that of a busy machine.
func BuildText(r messages.Result) string {
	parts := []string{body(r)}
	if r.StdinRequested {
		parts = append(parts, "Kernel requested stdin; interactive input is not supported.")
	}
	parts = append(parts, failure(r), exceeded(r), course(r), showing(r), bracketed(variables(r)))
	for _, n := range r.Notices {
		if strings.HasPrefix(n, messages.BusyNotice) {
			continue // the text of the same code is the same on any machine
		}
		parts = append(parts, "["+n+"]")
	}
	var b strings.Builder
	for _, p := range parts {
		if p == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(p)
	}
	return b.String()
}

// body is the output of all cells that were started.
func body(r messages.Result) string {
	if len(r.Cells) > 1 {
		var blocks []string
		for i, c := range r.Cells {
			if c.Status != messages.CellPending {
				blocks = append(blocks, block(c, i+1, len(r.Cells)))
			}
		}
		return strings.Join(blocks, "\n\n")
	}
	text := ""
	if len(r.Cells) == 1 {
		text = trim(r.Cells[0].Output)
	}
	switch {
	case text != "" || r.Outcome != messages.OutcomeOK:
		return text
	case len(r.JSON) > 0 || len(r.Images) > 0:
		return "(no text output)"
	default:
		return "(no output)"
	}
}

// block is the output of one cell of several.
func block(c messages.CellResult, i, n int) string {
	head := fmt.Sprintf("[%d/%d]", i, n)
	if title := strings.Join(strings.Fields(c.Title), " "); title != "" {
		head += " " + title
	}
	switch text := trim(c.Output); {
	case text != "":
		return head + "\n" + text
	case c.Status == messages.CellComplete && c.Outcome == messages.OutcomeOK:
		return head + " (ok)"
	default:
		return head + " (no output)"
	}
}

// trim removes empty lines before the text and white space after it. Blanks
// before the first word stay: they hold the columns of a table together.
func trim(s string) string {
	s = strings.TrimRight(s, " \t\r\n")
	for {
		line, rest, ok := strings.Cut(s, "\n")
		if !ok || strings.TrimSpace(line) != "" {
			return s
		}
		s = rest
	}
}

// failure says what went wrong.
func failure(r messages.Result) string {
	at := failed(r)
	switch r.Outcome {
	case messages.OutcomeError:
		return raised(r, at)
	case messages.OutcomeTimeout:
		return stopped(r, at, strings.TrimSpace("Command timed out "+r.HowFar().After()))
	case messages.OutcomeCancelled:
		return stopped(r, at, "Command aborted")
	case messages.OutcomeLost:
		return r.Died()
	case messages.OutcomeNotStarted:
		if p := r.HowFar(); p.Begun > 0 && p.Begun < p.Cells { // one of several calls that are told as one
			return fmt.Sprintf("Cell %d was not run: %s.%s", p.Begun+1, reason(r), earlier(r, p.Begun))
		}
		if why := reason(r); why != "" {
			return "The code was not run: " + why + "."
		}
		return "The code was not run."
	}
	return ""
}

// failed returns the index of the last cell that was started and did not
// complete, -1 if there is none.
func failed(r messages.Result) int {
	for i, v := range slices.Backward(r.Cells) {
		if s := v.Status; s == messages.CellError || s == messages.CellRunning {
			return i
		}
	}
	return -1
}

// earlier says that the cells before the failed one count, if they do.
func earlier(r messages.Result, at int) string {
	if at < 1 || r.State == messages.StateLost {
		return ""
	}
	return " Earlier cells succeeded—their state persists."
}

func raised(r messages.Result, at int) string {
	code := 1
	if at >= 0 && r.Cells[at].ExitCode != nil {
		code = *r.Cells[at].ExitCode
	}
	if len(r.Cells) < 2 || at < 0 {
		return fmt.Sprintf("Command exited with code %d", code)
	}
	if code == 0 { // of code that ended itself, as with sys.exit(0)
		return fmt.Sprintf("Cell %d ended the call (exit code 0).%s", at+1, earlier(r, at))
	}
	return fmt.Sprintf("Cell %d failed (exit code %d).%s Fix only cell %d.", at+1, code, earlier(r, at), at+1)
}

// exceeded names the limit that ended the code.
func exceeded(r messages.Result) string {
	if r.Exceeded == nil || r.Outcome == messages.OutcomeNotStarted { // why nothing ran names it
		return ""
	}
	if at := failed(r); r.Exceeded.Detail == "" && at >= 0 && r.Cells[at].Error != nil && r.Outcome == messages.OutcomeError {
		return "[" + r.Cells[at].Error.Name + ": " + r.Cells[at].Error.Message + "]"
	}
	return "[" + r.Exceeded.Error() + "]"
}

// stopped is for a call that was ended from outside: line, and where it was.
func stopped(r messages.Result, at int, line string) string {
	switch {
	case !r.Ran():
		return line + ": " + notRun(r) + "."
	case at < 0 && len(r.Cells) > r.HowFar().Begun:
		at = r.HowFar().Begun
		return fmt.Sprintf("Cell %d was not run: %s.%s", at+1, line, earlier(r, at))
	case len(r.Cells) < 2 || at < 0:
		return line
	default:
		return fmt.Sprintf("Cell %d aborted: %s.%s", at+1, line, earlier(r, at))
	}
}

// showing says what is not shown, and where to read it.
func showing(r messages.Result) string {
	read := ""
	if r.Artifact != nil && *r.Artifact != "" {
		read = "Read " + *r.Artifact + " for full output"
	}
	t := r.Truncation
	if t != nil && t.TruncatedBy == "tokens" {
		return reminder(*t, r.NotKept)
	}
	if r.NotKept != "" {
		read = r.NotKept
	}
	if t == nil {
		if read == "" {
			return ""
		}
		return "[" + read + "]"
	}
	limit := t.MaxBytes
	if limit == 0 {
		limit = t.OutputBytes
	}
	text := fmt.Sprintf("Showing %s (%s limit)", ranges(*t), budget.Size(limit))
	if t.TruncatedBy == "lines" {
		text = "Showing " + ranges(*t)
	}
	if read != "" {
		text += ". " + read
	}
	return "[" + text + "]"
}

// ranges says which lines are shown, or how much of them.
func ranges(t messages.Truncation) string {
	head := t.OutputLines - (t.ShownEnd - t.ShownStart + 1)
	switch {
	case t.OutputBytes > 0 && t.TotalBytes > t.OutputBytes && t.OutputLines >= t.TotalLines: // what is missing is within lines
		return fmt.Sprintf("%s of %s, in %s", budget.Size(t.OutputBytes), budget.Size(t.TotalBytes), plural(t.TotalLines, "line"))
	case t.ShownStart <= 0 || t.ShownEnd < t.ShownStart:
		return fmt.Sprintf("%d of %d lines", t.OutputLines, t.TotalLines)
	case t.Direction == "middle" && head > 0:
		return fmt.Sprintf("lines 1-%d and %d-%d of %d", head, t.ShownStart, t.ShownEnd, t.TotalLines)
	default:
		return fmt.Sprintf("lines %d-%d of %d", t.ShownStart, t.ShownEnd, t.TotalLines)
	}
}

// notRun is why nothing ran: what the result says of that begins so, or says more.
func notRun(r messages.Result) string {
	where, why := r.HowFar().NotRun(), reason(r)
	switch {
	case why == "":
		return where
	case strings.HasPrefix(why, where):
		return why
	default:
		return where + "; " + why
	}
}

// course says of a call that did not end by itself which cells were not run, and what
// it waited for.
func course(r messages.Result) string {
	p := r.HowFar()
	var lines []string
	if r.Outcome != messages.OutcomeOK && r.Outcome != messages.OutcomeError { // that says which one to mend
		if left := p.Left(); left != "" {
			lines = append(lines, "["+strings.ToUpper(left[:1])+left[1:]+".]")
		}
	}
	switch r.Outcome {
	case messages.OutcomeTimeout, messages.OutcomeCancelled, messages.OutcomeNotStarted:
		if waited := p.Waited.String(); waited != "" {
			lines = append(lines, "[It waited "+waited+".]")
		}
	default:
	}
	return strings.Join(lines, "\n\n")
}

// variables says what became of them; a lost kernel was told already.
func variables(r messages.Result) string {
	if r.Outcome == messages.OutcomeLost {
		return ""
	}
	return r.Variables()
}

func bracketed(s string) string {
	if s == "" {
		return ""
	}
	return "[" + s + "]"
}

// reason is the result's reason without a full stop.
func reason(r messages.Result) string { return strings.TrimRight(strings.TrimSpace(r.Reason), ".") }
