package render

import (
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-run/coppice/messages"
)

// TreeOptions says how a tree is drawn.
type TreeOptions struct {
	Style
	// Now is the instant that ages are counted to. Zero leaves them out.
	Now time.Time
	// Home is written as ~ in names that end in a path.
	Home string
	// Fold, if not nil, says of which nodes the children are only counted.
	Fold func(messages.Node) bool
	// Names, if not nil, gives a node a shorter name; "" keeps its own.
	Names func(messages.Node) string
}

// stateIcons are what stands before a name.
var stateIcons = map[messages.ChildState]struct {
	icon string
	in   paint
}{
	messages.ChildWaiting:    {"◌", dim},
	messages.ChildStarting:   {"◔", cyan},
	messages.ChildIdle:       {"○", green},
	messages.ChildBusy:       {"●", yellow},
	messages.ChildSuspended:  {"◍", red},
	messages.ChildRestarting: {"↻", cyan},
	messages.ChildStopping:   {"◖", dim},
	messages.ChildFailed:     {"✗", red},
	messages.ChildGone:       {"·", dim},
}

// Tree draws a supervision tree, one line for each actor:
//
//	○ supervisor
//	├─ ○ sinks    idle
//	└─ ○ gateway  idle
//	   └─ ● a@~   busy for 1.20 s · pid 4711 · 53.0 MiB
func Tree(root messages.Node, o TreeOptions) []string {
	type row struct{ head, tail string }
	var rows []row
	var walk func(n messages.Node, first, rest string)
	walk = func(n messages.Node, first, rest string) {
		icon := stateIcons[n.State]
		if icon.icon == "" {
			icon.icon = "?"
		}
		head := o.in(dim, first) + o.in(icon.in, icon.icon) + " " + o.in(bold, o.name(n))
		rows = append(rows, row{head, o.describe(n)})
		if o.folds(n) {
			return
		}
		for i, c := range n.Children {
			if i == len(n.Children)-1 {
				walk(c, rest+"└─ ", rest+"   ")
			} else {
				walk(c, rest+"├─ ", rest+"│  ")
			}
		}
	}
	walk(root, "", "")
	width := 0
	for _, r := range rows {
		width = max(width, ansi.StringWidth(r.head))
	}
	if o.Width > 0 {
		width = min(width, max(o.Width-24, 16))
	}
	lines := make([]string, len(rows))
	for i, r := range rows {
		head := r.head
		if ansi.StringWidth(head) > width {
			head = ansi.Truncate(head, width, "…")
		}
		lines[i] = strings.TrimRight(o.Fit(pad(head, width)+"  "+r.tail), " ")
	}
	return lines
}

func (o TreeOptions) folds(n messages.Node) bool {
	return o.Fold != nil && len(n.Children) > 0 && o.Fold(n)
}

func (o TreeOptions) name(n messages.Node) string {
	if o.Names != nil {
		if name := o.Names(n); name != "" {
			return name
		}
	}
	if session, path, ok := strings.Cut(n.Name, "@"); ok {
		return session + "@" + ShortPath(path, o.Home, 24)
	}
	return n.Name
}

// describe says in what state an actor is and what is worth knowing of it.
func (o TreeOptions) describe(n messages.Node) string {
	state := string(n.State)
	if n.Detail != "" {
		state += " (" + n.Detail + ")"
	}
	if timed(n.State) && !n.Since.IsZero() && !o.Now.IsZero() {
		state += " for " + Duration(o.Now.Sub(n.Since))
	}
	parts := []string{o.in(stateIcons[n.State].in, state)}
	note := func(p paint, s string) { parts = append(parts, o.in(p, s)) }
	if o.folds(n) {
		note(dim, childCounts(n))
	}
	if n.Queue > 0 {
		note(yellow, strconv.Itoa(n.Queue)+" waiting")
	}
	if n.Pinned {
		note(cyan, "pinned")
	}
	if n.Restarts > 0 {
		text := Number(n.Restarts, "restart")
		if n.LastExit != nil {
			text += " (" + exit(*n.LastExit) + ")"
		}
		note(yellow, text)
	}
	if n.PID > 0 {
		note(dim, "pid "+strconv.Itoa(n.PID))
	}
	if n.RSS > 0 {
		note(dim, Bytes(n.RSS))
	}
	return strings.Join(parts, o.in(dim, " · "))
}

// childCounts counts children by state: 7 idle, 1 busy.
func childCounts(n messages.Node) string {
	var order []messages.ChildState
	counts := map[messages.ChildState]int{}
	for _, c := range n.Children {
		if counts[c.State] == 0 {
			order = append(order, c.State)
		}
		counts[c.State]++
	}
	text := make([]string, len(order))
	for i, state := range order {
		text[i] = strconv.Itoa(counts[state]) + " " + string(state)
	}
	return strings.Join(text, ", ")
}

// timed reports whether it matters how long a state has lasted.
func timed(s messages.ChildState) bool {
	switch s {
	case messages.ChildStarting, messages.ChildBusy, messages.ChildStopping, messages.ChildSuspended, messages.ChildRestarting, messages.ChildWaiting:
		return true
	default:
		return false
	}
}

func exit(e messages.Exit) string {
	if e.Reason == "" {
		return string(e.Kind)
	}
	return string(e.Kind) + ": " + e.Reason
}

// Lifecycle writes what happened in a tree on one line.
func Lifecycle(s Style, e messages.Lifecycle) string {
	line := s.in(bold, e.Subject()) + "  "
	switch e := e.(type) {
	case messages.ChildChanged:
		if e.From != "" {
			line += string(e.From) + " → "
		}
		line += s.in(stateIcons[e.To].in, string(e.To))
		if e.Exit != nil {
			line += s.in(dim, " ("+exit(*e.Exit)+")")
		}
	case messages.Decided:
		line += "decided: " + e.Directive
		if e.After > 0 {
			line += " after " + Duration(e.After)
		}
		if e.Exit != nil {
			line += s.in(dim, " ("+exit(*e.Exit)+")")
		}
	case messages.Dropped:
		line += s.in(yellow, "dropped "+strconv.Itoa(e.Count)+" "+e.What)
	}
	return s.Fit(line)
}

// Shutdown writes how the end of a tree went.
func Shutdown(s Style, r messages.ShutdownReport) []string {
	line := Number(r.Stopped, "actor") + " stopped in " + Duration(r.Duration)
	if r.Unanswered > 0 {
		line += ", " + Number(r.Unanswered, "call") + " ended by it"
	}
	if r.Clean() {
		return []string{s.in(green, "✓") + " clean shutdown: " + line}
	}
	lines := []string{s.in(red, "✗") + " shutdown: " + line + ", " + Number(len(r.Leftovers), "actor") + " left over"}
	for _, l := range r.Leftovers {
		text := "  " + l.Path + ": " + exit(l.Exit)
		if l.PID > 0 {
			text += ", pid " + strconv.Itoa(l.PID)
		}
		lines = append(lines, s.Fit(text))
	}
	return lines
}

// Repaint returns what draws lines over the frame that was drawn before, which
// had as many lines as old says. For a terminal only.
func Repaint(lines []string, old int) string {
	var b strings.Builder
	if old > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(old) + "A")
	}
	b.WriteString("\x1b[J")
	for _, l := range lines {
		b.WriteString(l)
		b.WriteString("\n")
	}
	return b.String()
}
