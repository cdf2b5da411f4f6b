package repl

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

const (
	// previewLines are shown of an output that is not expanded.
	previewLines = 20
	helpLines    = 10
)

// View draws the screen: transcript, help, tree, text, status.
func (m *model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if m.width == 0 {
		return v
	}
	typed, row, column := m.typed()
	var below []string
	if len(m.help) > 0 {
		below = append(below, fitAll(m.style(), clip(m.help, min(helpLines, m.height/3)))...)
	}
	if m.tree && m.node.Name != "" {
		below = append(below, clip(render.Tree(m.node, render.TreeOptions{Style: m.style(), Fold: func(n messages.Node) bool { return n.Kind == "sinks" }}), m.height/3)...)
	}
	room := max(m.height-len(below)-len(typed)-1, 0)
	lines := m.transcript()
	if len(m.entries) == 0 {
		lines = m.first()
	}
	m.scroll = min(m.scroll, max(0, len(lines)-room))
	end := len(lines) - m.scroll
	lines = lines[max(0, end-room):end]
	above := len(lines)
	lines = append(append(append(lines, below...), typed...), m.status())
	v.Content = sanitise.ForTerminal(strings.Join(lines, "\n"))
	v.Cursor = tea.NewCursor(min(column, m.width-1), above+len(below)+row)
	return v
}

func clip(lines []string, most int) []string {
	if len(lines) > most {
		return append(lines[:max(0, most-1):max(0, most-1)], "…")
	}
	return lines
}

func fitAll(s render.Style, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = s.Fit(s.Quiet(l))
	}
	return out
}

// typed returns the lines of the text with their prompts, and where the cursor
// is in them.
func (m *model) typed() (lines []string, row, column int) {
	s := m.style()
	text, first := render.Code(s, m.editor.String()), ">>> "
	if m.asking != nil {
		first = "  ? "
		if text = m.editor.String(); m.asking.Password {
			text = strings.Repeat("•", len(m.editor.text))
		}
	}
	for i, l := range strings.Split(text, "\n") {
		prompt := "... "
		if i == 0 {
			prompt = first
		}
		lines = append(lines, s.Quiet(prompt)+l)
	}
	before := string(m.editor.text[:m.editor.cursor])
	row = strings.Count(before, "\n")
	column = 4 + ansi.StringWidth(before[strings.LastIndex(before, "\n")+1:])
	if most := max(1, m.height/2); len(lines) > most { // the part with the cursor
		first := min(max(0, row-most/2), len(lines)-most)
		lines, row = lines[first:first+most], row-first
	}
	for i := range lines {
		lines[i] = s.Fit(lines[i])
	}
	return lines, row, column
}

// first is what the screen shows before the first call: where one is, and what to press.
func (m *model) first() []string {
	key, s := m.o.Session.Key(), m.style()
	text := fmt.Sprintf("Python in the session %s, on the %s backend, in %s\n\nenter runs a cell · tab completes · ctrl+d leaves, and ends the session", key.Session, m.o.Backend, key.Cwd)
	return append(fitAll(s, strings.Split(ansi.Wrap(text, max(s.Width, 1), ""), "\n")), "")
}

// transcript returns the lines of all calls.
func (m *model) transcript() []string {
	var lines []string
	for _, x := range m.entries {
		if x.rendered == nil {
			x.rendered = m.draw(x)
		}
		lines = append(lines, x.rendered...)
	}
	return lines
}

// draw returns the lines of one call: its code, what it showed, how it ended.
func (m *model) draw(x *entry) []string {
	s := m.style()
	var lines []string
	for i, l := range strings.Split(render.Code(s, x.code), "\n") {
		prompt := "... "
		if i == 0 {
			prompt = ">>> "
		}
		lines = append(lines, s.Fit(s.Quiet(prompt)+l))
	}
	body := render.Interactive(render.RunOptions{Style: s, Expand: m.expand, Cells: []messages.Cell{{Code: x.code}}}, x.events)
	if x.dropped {
		body = append([]string{s.Quiet("… earlier output is not shown here; the result's artifact has it")}, body...)
	}
	if m.expand {
		lines = append(lines, render.Clamp(s, body)...)
	} else {
		lines = append(lines, render.Collapse(s, body, previewLines, "ctrl+o to expand")...)
	}
	if x.result != nil {
		lines = append(lines, render.Closing(s, *x.result, x.took)...)
	}
	return append(lines, "")
}

// status is the last line: the session, its kernel's state, what waits, memory.
func (m *model) status() string {
	s := m.style()
	state, queue, memory := "no kernel yet", 0, int64(0)
	if n, ok := find(m.node, m.o.Session.Key()); ok {
		state, queue, memory = string(n.State), n.Queue, n.RSS
	}
	switch {
	case m.asking != nil:
		state = "waiting for input"
	case m.running != nil:
		state = "running " + render.Duration(m.o.now().Sub(m.running.begun))
	}
	parts := []string{m.o.Session.Key().Session, m.o.Backend, state, fmt.Sprintf("queue %d", queue)}
	if memory > 0 {
		parts = append(parts, render.Bytes(memory))
	}
	return s.Quiet(statusLine(s, parts, m.note))
}

// statusLine fits the parts of the status and a note into one line. What changes
// is shown before the names, and a note before all.
func statusLine(s render.Style, parts []string, note string) string {
	text := " " + strings.Join(parts, " · ")
	for range 2 {
		if ansi.StringWidth(text) <= s.Width {
			break
		}
		parts = parts[1:]
		text = " " + strings.Join(parts, " · ")
	}
	switch full := text + "  │ " + note; {
	case note == "":
		return s.Fit(text + hints(s.Width-ansi.StringWidth(text)))
	case ansi.StringWidth(full) > s.Width:
		return s.Fit(" " + note)
	default:
		return full
	}
}

// hints are the keys that there is room for.
func hints(room int) string {
	text, between := "", "  │ "
	for _, hint := range []string{"tab completes", "f1 inspects", "ctrl+o expands", "ctrl+t tree", "ctrl+d leaves"} {
		if ansi.StringWidth(text+between+hint) > room {
			break
		}
		text, between = text+between+hint, " · "
	}
	return text
}

// find returns the kernel of the session in the tree.
func find(n messages.Node, key messages.SessionKey) (messages.Node, bool) {
	if n.Kind == "kernel" && n.Name == key.String() {
		return n, true
	}
	for _, c := range n.Children {
		if found, ok := find(c, key); ok {
			return found, true
		}
	}
	return messages.Node{}, false
}
