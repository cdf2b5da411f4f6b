package repl

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

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

// hidden stands for an answer that is not shown, however long it is.
const hidden = "••••"

// answer hands the text to the cell that asked for it. It is not kept in the
// history: it may be a secret.
func (m *model) answer() {
	x, id, text := m.running, m.asking.ID, strings.TrimRight(m.editor.String(), "\n")
	if strings.Contains(text, "\n") { // of a text that was pasted; it would be refused, and the question be gone from the screen
		m.note = "an answer is one line; Ctrl-C interrupts the cell"
		return
	}
	shown := text
	if m.asking.Password {
		shown = hidden
	}
	m.calls.run(func() {
		if _, err := m.o.Session.SubmitInput(id, text); err != nil {
			m.send(noteMsg{err.Error()})
			return
		}
		m.send(answeredMsg{x, id, shown})
	})
	m.asking = nil
	m.editor.set("")
}

// answered puts an answer behind its question.
func (x *entry) answered(id, shown string) {
	for i, e := range x.events {
		if q, ok := e.(messages.InputRequest); ok && q.ID == id {
			q.Prompt = strings.TrimRight(q.Prompt, " ") + " " + shown
			x.events[i], x.rendered = q, nil
		}
	}
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

// interrupt stops the cell; without one it empties the text, and then leaves.
func (m *model) interrupt() tea.Cmd {
	switch {
	case m.running != nil:
		m.note = "interrupting the cell"
		if err := m.o.Session.Interrupt(); err != nil {
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
