package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-run/coppice/messages"
)

// How many status events of a cell are shown.
const (
	statusCollapsed = 3
	statusExpanded  = 10
)

// StatusLines draws the status events of a cell: the first three, or ten when
// expand is set.
func StatusLines(s Style, events []messages.RawJSON, expand bool) []string {
	limit := statusCollapsed
	if expand {
		limit = statusExpanded
	}
	shown := events[:min(len(events), limit)]
	var lines []string
	for i, e := range shown {
		branch := "├─ "
		if i == len(events)-1 {
			branch = "└─ "
		}
		lines = append(lines, s.Fit(s.in(dim, branch)+StatusLine(s, e)))
	}
	if more := len(events) - len(shown); more > 0 {
		lines = append(lines, s.in(dim, fmt.Sprintf("└─ … %d more", more)))
	}
	return lines
}

// statusOf returns the status event that a bundle is, of whatever brand. The
// events of a stream come before a sink has told them apart from displays.
func statusOf(b messages.Bundle) (messages.RawJSON, bool) {
	for mime, data := range b {
		if strings.HasPrefix(mime, "application/x-") && mime == messages.StatusMIME(strings.TrimSuffix(strings.TrimPrefix(mime, "application/x-"), "-status")) {
			return data, true
		}
	}
	return nil, false
}

// StatusLine writes one status event: its op and what it says of itself.
func StatusLine(s Style, event messages.RawJSON) string {
	var f fields
	if err := json.Unmarshal(event, &f.m); err != nil {
		return s.in(yellow, "unreadable status event")
	}
	op := f.text("op")
	if op == "" {
		op = "status"
	}
	if problem := f.text("error"); problem != "" {
		return s.in(bold, op) + s.in(yellow, ": "+problem)
	}
	form := statusForms[op]
	if form == nil {
		form = generalForm
	}
	var parts []string
	for _, part := range form(&f) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return s.in(bold, op)
	}
	return s.in(bold, op) + " " + strings.Join(parts, " · ")
}

// statusForms says how the events of an op are described; others take generalForm.
var statusForms = map[string]func(*fields) []string{
	"read":   func(f *fields) []string { return []string{f.count("chars", "char"), f.after("from ", "path")} },
	"write":  written,
	"append": written,
	"find":   searched,
	"glob":   searched,
	"grep":   func(f *fields) []string { return append(searched(f), f.after("in ", "path")) },
	"ls":     func(f *fields) []string { return []string{f.count("count", "entry"), f.text("path")} },
	"env":    environment,
	"stat":   statted,
	"mv":     moved, "cp": moved, "rm": func(f *fields) []string { return []string{f.text("path")} },
	"wc": func(f *fields) []string {
		return []string{strings.Join([]string{f.text("lines") + "L", f.text("words") + "W", f.text("chars") + "C"}, " ")}
	},
	"sort": func(f *fields) []string { return []string{f.count("lines", "line")} },
	"diff": func(f *fields) []string {
		return []string{pick(f.text("identical") == "true", "files identical", "files differ")}
	},
	"sh":    ran,
	"run":   ran,
	"log":   func(f *fields) []string { return []string{f.text("message")} },
	"phase": func(f *fields) []string { return []string{f.text("title")} },
}

func written(f *fields) []string {
	return []string{f.count("chars", "char"), f.after("to ", "path")}
}

func searched(f *fields) []string {
	what := f.text("pattern")
	if what != "" {
		what = ` for "` + ansi.Truncate(what, 20, "…") + `"`
	}
	return []string{f.count("count", "match") + what}
}

func environment(f *fields) []string {
	switch {
	case f.text("key") != "":
		return []string{ansi.Truncate(f.text("key")+"="+f.text("value"), 30, "…")}
	default:
		return []string{f.count("count", "variable")}
	}
}

func statted(f *fields) []string {
	if f.text("is_dir") == "true" {
		return []string{"directory", f.text("path")}
	}
	return []string{f.count("size", "byte"), f.text("path")}
}

func moved(f *fields) []string { return []string{f.text("src") + " → " + f.text("dst")} }

func ran(f *fields) []string {
	out := []string{f.text("cmd")}
	if code := f.text("code"); code != "" && code != "0" {
		out = append(out, "exit code "+code)
	}
	return out
}

func generalForm(f *fields) []string { return []string{f.text("count"), f.text("path")} }

func pick(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// fields reads the members of a status event.
type fields struct{ m map[string]json.RawMessage }

// text returns a member as text on one line, "" when it is not there.
func (f *fields) text(name string) string {
	raw, ok := f.m[name]
	if !ok || string(raw) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s = string(raw)
	}
	return oneLine(s)
}

// after returns a member behind a word, "" when it is not there.
func (f *fields) after(word, name string) string {
	if v := f.text(name); v != "" {
		return word + v
	}
	return ""
}

// count returns a number with what it counts, "" when it is not there.
func (f *fields) count(name, what string) string {
	var n int
	if json.Unmarshal(f.m[name], &n) != nil {
		return ""
	}
	return Number(n, what)
}
