package repl

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-run/coppice/messages"
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
	case answeredMsg:
		msg.of.answered(msg.id, msg.text)
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

// goodbyes leave, as at the prompt of Python: the code of a session could not end the screen.
var goodbyes = []string{"exit", "exit()", "quit", "quit()"}

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
		if m.running == nil && slices.Contains(goodbyes, strings.TrimSpace(m.editor.String())) {
			return tea.Quit
		}
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
