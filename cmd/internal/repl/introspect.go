package repl

import (
	"context"
	"strings"

	"github.com/coppice-run/coppice/cmd/internal/render"
)

// tab completes the word before the cursor, or indents.
func (m *model) tab() {
	e := &m.editor
	before := string(e.text[e.lineStart():e.cursor])
	if strings.TrimSpace(before) == "" {
		e.insert("    ")
		return
	}
	if m.running != nil {
		m.note = "a cell runs; completion asks the session and has to wait"
		return
	}
	code, at := e.String(), e.cursor
	m.introspect(func(ctx context.Context) {
		c, err := m.o.Session.Complete(ctx, code, len(string([]rune(code)[:at])))
		m.send(completeMsg{code, at, c, err})
	})
}

// completed puts in what all matches share, and lists them when that is nothing
// new. What came too late is dropped.
func (m *model) completed(msg completeMsg) {
	if msg.err != nil {
		m.note = msg.err.Error()
		return
	}
	if m.editor.String() != msg.code || m.editor.cursor != msg.at {
		return
	}
	found := msg.c.Matches
	if len(found) == 0 {
		m.note = "nothing completes this"
		return
	}
	start := len([]rune(msg.code[:msg.c.Start]))
	typed := string(m.editor.text[start:m.editor.cursor])
	shared := found[0]
	for _, f := range found[1:] {
		for !strings.HasPrefix(f, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	if len(shared) > len(typed) && strings.HasPrefix(shared, typed) {
		m.editor.replace(start, shared)
	}
	m.help = nil
	if len(found) > 1 {
		m.help = render.Columns(m.style(), found)
	}
}

func (m *model) inspect() {
	if m.running != nil {
		m.note = "a cell runs; inspection asks the session and has to wait"
		return
	}
	code, at := m.editor.String(), m.editor.cursor
	m.introspect(func(ctx context.Context) {
		text, err := m.o.Session.Inspect(ctx, code, len(string([]rune(code)[:at])))
		m.send(inspectMsg{text, err})
	})
}

func (m *model) inspected(msg inspectMsg) {
	switch {
	case msg.err != nil:
		m.note = msg.err.Error()
	case msg.text == "":
		m.note = "there is nothing to inspect here"
	default:
		m.help = strings.Split(msg.text, "\n")
	}
}
