package repl

import (
	"context"
	"errors"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// entry is one call and what it showed.
type entry struct {
	n        int
	code     string
	events   []messages.Event // bounded: what is older than keepBytes is let go
	bytes    int
	dropped  bool
	result   *messages.Result
	begun    time.Time
	took     time.Duration
	rendered []string // nil: to be drawn anew
}

// keepBytes bounds what is kept of the output of one call for drawing it again.
const keepBytes = 4 << 20

// model is the screen.
type model struct {
	o    Options
	send func(tea.Msg)
	ctx  context.Context //nolint:containedctx // the life of the screen; its calls end with it

	width, height int
	editor        editor
	history       *history
	entries       []*entry
	running       *entry
	asking        *messages.InputRequest // what the running cell waits for
	expand, tree  bool
	node          messages.Node
	note          string   // one line about what just happened
	help          []string // what an inspection or a completion has to say
	leaving       bool     // Ctrl-C was pressed once
	scroll        int      // lines above the end of the transcript
	calls         group
}

// The messages of the loop.
type (
	eventMsg struct {
		of *entry
		e  messages.Event
	}
	endMsg struct {
		of     *entry
		result messages.Result
		err    error
	}
	treeMsg     struct{ node messages.Node }
	completeMsg struct {
		code string
		at   int
		c    coppice.Completion
		err  error
	}
	inspectMsg struct {
		text string
		err  error
	}
	noteMsg struct{ text string }
	tickMsg struct{}
)

func (m *model) Init() tea.Cmd { return tick() }

func tick() tea.Cmd {
	return tea.Tick(500*time.Millisecond, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update handles one message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.redraw()
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		m.editor.insert(msg.Content)
	case eventMsg:
		msg.of.add(msg.e)
		if ask, ok := msg.e.(messages.InputRequest); ok && msg.of == m.running {
			m.asking = &ask
		}
	case endMsg:
		m.ended(msg)
	case treeMsg:
		m.node = msg.node
	case completeMsg:
		m.completed(msg)
	case inspectMsg:
		m.inspected(msg)
	case noteMsg:
		m.note = msg.text
	case tickMsg:
		m.look()
		return m, tick()
	}
	return m, nil
}

func (m *model) key(msg tea.KeyPressMsg) tea.Cmd {
	name := msg.String()
	if name != "ctrl+c" {
		m.leaving = false
	}
	if name != "pgup" && name != "pgdown" {
		m.note, m.scroll = "", 0
	}
	if name != "tab" {
		m.help = nil
	}
	switch name {
	case "ctrl+c":
		return m.interrupt()
	case "ctrl+d":
		if m.editor.String() == "" && m.running == nil {
			return tea.Quit
		}
		m.editor.deleteForward()
	case "ctrl+o":
		m.expand = !m.expand
		m.redraw()
	case "ctrl+t":
		m.tree = !m.tree
		m.redraw()
		m.look()
	case "ctrl+l":
		m.entries = nil
		if m.running != nil {
			m.entries = []*entry{m.running}
		}
	case "pgup":
		m.scroll += max(1, m.height/2)
	case "pgdown":
		m.scroll = max(0, m.scroll-m.height/2)
	case "enter":
		m.enter()
	case "alt+enter", "shift+enter", "ctrl+j":
		m.editor.newline()
	case "tab":
		m.tab()
	case "shift+tab", "f1":
		m.inspect()
	default:
		m.edit(name, msg.Text)
	}
	return nil
}

// edit handles the keys that change the text or move in it.
func (m *model) edit(name, text string) {
	e := &m.editor
	switch name {
	case "up":
		if !e.up() {
			if s, ok := m.history.back(e.String()); ok {
				e.set(s)
			}
		}
	case "down":
		if !e.down() {
			if s, ok := m.history.forward(); ok {
				e.set(s)
			}
		}
	case "left":
		e.move(-1)
	case "right":
		e.move(1)
	case "home", "ctrl+a":
		e.cursor = e.lineStart()
	case "end", "ctrl+e":
		e.cursor = e.lineEnd()
	case "backspace", "ctrl+h":
		e.backspace()
	case "delete":
		e.deleteForward()
	case "ctrl+u":
		e.replace(e.lineStart(), "")
	case "ctrl+k":
		end := e.lineEnd()
		e.text = append(e.text[:e.cursor:e.cursor], e.text[end:]...)
	default:
		if text != "" {
			e.insert(text)
		}
	}
}

// interrupt stops the cell; without one it empties the text, and then leaves.
func (m *model) interrupt() tea.Cmd {
	switch {
	case m.running != nil:
		m.note = "interrupting the cell"
		if err := m.o.Session.Interrupt(m.ctx); err != nil {
			m.note = err.Error()
		}
	case m.editor.String() != "":
		m.editor.set("")
	case m.leaving:
		return tea.Quit
	default:
		m.leaving = true
		m.note = "Ctrl-C once more leaves"
	}
	return nil
}

// enter runs the text if it is complete.
func (m *model) enter() {
	code := strings.TrimRight(m.editor.String(), " \n")
	switch {
	case m.asking != nil:
		m.answer()
		return
	case strings.TrimSpace(code) == "":
		m.editor.set("")
		return
	case m.running != nil:
		m.note = "a cell runs; Ctrl-C interrupts it"
		return
	case !m.editor.complete():
		m.editor.newline()
		return
	}
	m.editor.set("")
	if err := m.history.add(code); err != nil {
		m.note = err.Error()
	}
	x := &entry{n: len(m.entries) + 1, code: code, begun: m.o.now()}
	if n := len(m.entries); n > 0 {
		x.n = m.entries[n-1].n + 1
	}
	m.entries = append(m.entries, x)
	m.running = x
	m.calls.run(func() {
		var end endMsg
		end.of = x
		for e, err := range m.o.Session.Stream(m.ctx, coppice.Request{Cells: []messages.Cell{{Code: code}}, AllowStdin: true}) {
			if err != nil {
				end.err = err
				break
			}
			if final, ok := e.(messages.Final); ok {
				end.result = final.Result
			}
			m.send(eventMsg{x, e})
		}
		m.send(end)
	})
}

// answer hands the text to the cell that asked for it. It is not kept in the
// history: it may be a secret.
func (m *model) answer() {
	id, text := m.asking.ID, m.editor.String()
	m.calls.run(func() {
		if _, err := m.o.Session.SubmitInput(m.ctx, id, text); err != nil {
			m.send(noteMsg{err.Error()})
		}
	})
	m.asking = nil
	m.editor.set("")
}

func (m *model) ended(msg endMsg) {
	x := msg.of
	x.took = m.o.now().Sub(x.begun)
	x.result, x.rendered = &msg.result, nil
	if msg.err != nil {
		m.note = msg.err.Error()
	}
	if m.running == x {
		m.running, m.asking = nil, nil
		if m.note == "interrupting the cell" {
			m.note = ""
		}
	}
	m.look()
}

// look asks for the tree: the status line and the pane show it.
func (m *model) look() {
	m.calls.run(func() {
		ctx, cancel := context.WithTimeout(m.ctx, time.Second)
		defer cancel()
		node, err := m.o.Snapshot(ctx)
		if err == nil {
			m.send(treeMsg{node})
		} else if !errors.Is(err, context.Canceled) {
			m.send(treeMsg{})
		}
	})
}

// add keeps one event.
func (x *entry) add(e messages.Event) {
	x.rendered = nil
	x.events = append(x.events, e)
	for x.bytes += e.Size(); x.bytes > keepBytes && len(x.events) > 1; {
		x.bytes -= x.events[0].Size()
		x.events = x.events[1:]
		x.dropped = true
	}
}

func (m *model) redraw() {
	for _, x := range m.entries {
		x.rendered = nil
	}
}
