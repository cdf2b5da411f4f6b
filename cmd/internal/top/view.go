package top

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks/sanitise"
)

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if m.width > 0 {
		v.Content = sanitise.ForTerminal(strings.Join(m.lines(), "\n"))
	}
	return v
}

// keys is the last line; help is shown on demand.
const keys = "↑↓ select  enter detail  / find  n next problem  i interrupt  x stop  t tree  ? help  q leave"

// fewKeys take the place of keys where these have no room.
const fewKeys = "↑↓ enter  / find  n next  x stop  ? help  q leave"

var help = []string{
	"i  interrupts what runs, as Ctrl-C would; the session is kept",
	"r  ends the kernel; the next call gets a new one; asks first",
	"p  exempts the session from eviction, or ends the exemption",
	"f  copies the session with all that it has in memory (runner backend)",
	"x  ends the session, its kernel and what runs in it; asks first",
	"t  shows the supervision tree instead of the output, enter the session's facts and story",
	"/  finds: state:busy rss:>100M owner:x -pinned:yes age:>10m health:asks, or any words",
	"N name  M memory  C cpu  W waiting  D done  R restarts  S state  O owner  A age  E node  K workspace  H health sorts; again turns it",
	"pgup, pgdown, home, end move; n goes to the next session with a problem; space pauses",
}

// lines is the whole screen: head, sessions, tree or output, events, what was
// done, keys.
func (m *model) lines() []string {
	s := render.Style{Colour: m.o.Colour, Width: max(m.width, 20)}
	lines := m.wrapped(s, "== "+m.head(), "   ", s.Strong)
	if pulse := m.pulse(); pulse != "" && m.height > 12 {
		lines = append(lines, m.wrapped(s, pulse, "  ", s.Quiet)...)
	}
	lines = append(append(lines, m.problems(s)...), m.table(s)...)
	foot := []string{s.Quiet(s.Fit(keys))}
	if m.width < len([]rune(keys)) {
		foot[0] = s.Quiet(s.Fit(fewKeys))
	}
	switch {
	case m.asking != "":
		foot = append([]string{s.Fit(s.Warn(m.question()))}, foot...)
	case m.typing:
		foot = append([]string{s.Fit("find: " + m.filter + "▏ " + s.Quiet("enter keeps it, esc clears it"))}, foot...)
	case m.said != "":
		foot = append([]string{s.Fit(m.said)}, foot...)
	}
	if m.help {
		var text []string
		for _, l := range help {
			text = append(text, m.wrapped(s, l, "   ", s.Quiet)...)
		}
		foot = append(text, foot...)
	}
	if over := len(lines) + len(foot) - m.height; m.help && over > 0 { // the help is what one looks at
		lines = lines[:max(1, len(lines)-over)]
	}
	room := max(0, m.height-len(lines)-len(foot))
	events := min(8, room/3)
	lines = append(lines, clip(m.middle(s), room-events)...)
	for len(lines) < m.height-len(foot)-events {
		lines = append(lines, "")
	}
	lines = append(lines, m.timeline(s, events)...)
	lines = append(lines, foot...)
	return lines[:min(len(lines), max(m.height, 1))]
}

// question says what an end will cost.
func (m *model) question() string {
	text := m.asking + " " + m.selected.Session + " and all that it has in memory"
	if i := m.index(); i >= 0 {
		if r := m.rows[i]; r.RSS > 0 {
			text += " (" + render.Bytes(r.RSS) + ")"
		}
		if r := m.rows[i]; r.State == messages.ChildBusy {
			text += ", ending the call that runs"
		}
		if r := m.rows[i]; r.Queue > 0 {
			text += fmt.Sprintf(", with %s", render.Number(r.Queue, "waiting call"))
		}
	}
	return text + "? y/n"
}

func (m *model) head() string {
	h := m.seen.health
	text := "coppice top"
	if h.PID != 0 {
		text = fmt.Sprintf("coppice %s, %s backend, pid %d, %s, %s", h.Version, h.Backend, h.PID, render.Number(len(m.seen.sessions), "session"), render.Number(h.Executions, "call"))
	}
	if n := m.seen.overview.Hibernated; n > 0 {
		text += fmt.Sprintf(", %d hibernated", n)
	}
	if busy := busy(m.seen.tree.Busy); busy != "" {
		text += ", " + busy
	}
	if n := len(m.rows); m.filter != "" {
		text += fmt.Sprintf(", %d found", n)
	}
	switch {
	case m.paused:
		text += fmt.Sprintf(", paused (%d new)", len(m.held))
	case m.old != nil:
		text += ", OLD: no answer from the server; trying again"
	}
	return text
}

// pressed is the pressure from which on a machine counts as busy.
const pressed = .3

// busy says that the machine has too much to do, and what was put off for that; "" when
// it has not.
func busy(b *messages.Busy) string {
	if b == nil || b.Pressure < pressed {
		return ""
	}
	text := fmt.Sprintf("machine busy %.0f %%", 100*b.Pressure)
	if b.Postponed > 0 {
		text += fmt.Sprintf(", %d ends put off", b.Postponed)
	}
	return text
}

// table is a row for each session, around the selected one when there are too
// many.
func (m *model) table(s render.Style) []string {
	switch {
	case len(m.seen.sessions) == 0:
		return []string{"", s.Fit("no session has a kernel: coppice run --session NAME -c CODE starts one"), ""}
	case len(m.rows) == 0:
		return []string{"", s.Fit("no session is like " + line(m.filter) + "; esc clears it"), ""}
	}
	rows := [][]string{m.titles()}
	most, list := m.page(), m.rows
	first := max(0, min(m.index()-most/2, len(list)-most))
	for _, one := range list[first:min(len(list), first+most)] {
		rows = append(rows, m.row(one))
	}
	alignRight(rows, "queue", "done", "memory", "cpu", "restarts")
	lines := append([]string{""}, render.Table(s, rows, true)...)
	if hidden := len(list) - (len(rows) - 1); hidden > 0 {
		lines = append(lines, s.Fit(s.Quiet(fmt.Sprintf("  %d to %d of %d", first+1, first+len(rows)-1, len(list)))))
	}
	return append(lines, "")
}

// alignRight moves what stands in columns with these titles to their right ends.
func alignRight(rows [][]string, titles ...string) {
	for i, title := range rows[0] {
		if !slices.Contains(titles, strings.TrimRight(title, " ▾▴")) {
			continue
		}
		width := 0
		for _, r := range rows {
			width = max(width, len([]rune(r[i])))
		}
		for _, r := range rows {
			r[i] = strings.Repeat(" ", width-len([]rune(r[i]))) + r[i]
		}
	}
}

// page is how many rows of sessions there is room for.
func (m *model) page() int { return max(3, m.height/2) }

// titles are the heads of the columns; the one that the rows are sorted by has an arrow.
func (m *model) titles() []string {
	list := []string{"", "session", "health", "state", "queue", "done", "memory", "cpu", "restarts"}
	workspaces, nodes := m.placed()
	if workspaces {
		list = append(list, "workspace")
	}
	if nodes {
		list = append(list, "node")
	}
	list = append(list, "last exit")
	arrow := " ▾"
	if m.turned {
		arrow = " ▴"
	}
	for i, title := range list {
		if title == orders[m.by].name {
			list[i] += arrow
		}
	}
	return list
}

// placed says whether any session is in a workspace, and whether any is at a node of a fleet.
func (m *model) placed() (workspaces, nodes bool) {
	for _, one := range m.seen.sessions {
		workspaces, nodes = workspaces || one.Workspace != "", nodes || one.Node != ""
	}
	return workspaces, nodes
}

// twin says whether another session that is shown has the same name.
func (m *model) twin(one row) bool {
	return slices.ContainsFunc(m.rows, func(other row) bool { return other.Session.Session == one.Session.Session && other.Cwd != one.Cwd })
}

func (m *model) row(r row) []string {
	one := r.Session
	mark, name, exit := "", one.Session, ""
	if keyOf(one) == m.selected {
		mark = "▸"
	}
	if m.twin(r) {
		name += " in " + filepath.Base(one.Cwd)
	}
	if one.Pinned {
		name += " (pinned)"
	}
	if e := one.LastExit; e != nil {
		exit = string(e.Kind)
		if e.Reason != "" {
			exit += ": " + e.Reason
		}
	}
	memory, cpu := "", ""
	if one.RSS > 0 {
		memory = render.Bytes(one.RSS)
	}
	if one.PID != 0 {
		cpu = strconv.Itoa(int(r.cpu+.5)) + " %"
	}
	cells := []string{mark, name, levels[r.mark.Level], string(one.State), strconv.Itoa(one.Queue), strconv.FormatUint(one.Done, 10), memory, cpu, strconv.Itoa(one.Restarts)}
	workspaces, nodes := m.placed()
	if workspaces {
		cells = append(cells, one.Workspace)
	}
	if nodes {
		cells = append(cells, one.Node)
	}
	return append(cells, exit)
}

// middle is the tree, or the end of the selected session's output.
func (m *model) middle(s render.Style) []string {
	if m.detail {
		return m.details(s)
	}
	if m.tree {
		return render.Tree(m.seen.tree, render.TreeOptions{Style: s, Fold: func(n messages.Node) bool { return n.Kind == "sinks" }})
	}
	if m.shown == "" {
		return nil
	}
	lines := []string{s.Fit(s.Quiet("output of " + m.selected.Session))}
	text := strings.Split(strings.TrimRight(render.Plain(m.output), "\n"), "\n")
	const most = 200
	for _, l := range text[max(0, len(text)-most):] {
		l = l[strings.LastIndexByte(strings.TrimRight(l, "\r"), '\r')+1:]
		lines = append(lines, s.Fit(sanitise.ForTerminal(strings.ReplaceAll(l, "\t", " "))))
	}
	return lines
}

// timeline is the newest events.
func (m *model) timeline(s render.Style, most int) []string {
	var lines []string
	for _, c := range m.events[max(0, len(m.events)-most):] {
		lines = append(lines, s.Fit(s.Quiet(c.At.Local().Format(time.TimeOnly))+" "+words(s, c)))
	}
	for len(lines) < most {
		lines = append(lines, "")
	}
	return lines
}

// words tells of a change.
func words(s render.Style, c client.Change) string {
	switch {
	case c.Execution != nil && c.Execution.State == client.Running:
		return c.Execution.Session + " runs: " + line(c.Execution.Title)
	case c.Execution != nil:
		return c.Execution.Session + " ended " + string(c.Execution.Outcome) + ": " + line(c.Execution.Title)
	case c.Missed > 0:
		return fmt.Sprintf("%d events were missed", c.Missed)
	}
	e, err := messages.ParseLifecycle(c.Tree)
	if err != nil {
		return "an event that this version does not know"
	}
	return line(render.Lifecycle(s, e))
}

func line(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// clip keeps the first line and the end of what follows.
func clip(lines []string, most int) []string {
	if most <= 0 || len(lines) == 0 {
		return nil
	}
	if len(lines) <= most {
		return lines
	}
	return append(lines[:1:1], lines[len(lines)-most+1:]...)
}

// tall is from how many lines on a text that is wider than the terminal may have a second line.
const tall = 20

// wrapped is a text in its style, on a second line, too, where the terminal has room for it.
func (m *model) wrapped(s render.Style, text, indent string, in func(string) string) []string {
	lines := []string{text}
	if m.height >= tall && ansi.StringWidth(text) > s.Width {
		first, _, _ := strings.Cut(ansi.Wordwrap(text, s.Width, ""), "\n")
		if rest, ok := strings.CutPrefix(text, first); ok {
			lines = []string{first, indent + strings.TrimLeft(rest, " ")}
		}
	}
	for i, l := range lines {
		lines[i] = in(s.Fit(l))
	}
	return lines
}
