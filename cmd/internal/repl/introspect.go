package repl

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

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
	shared := sharedPrefix(found)
	if len(shared) > len(typed) && strings.HasPrefix(shared, typed) {
		m.editor.replace(start, shared)
	}
	m.help = nil
	if len(found) > 1 {
		m.help = render.Columns(m.style(), found)
	}
}

// sharedPrefix is what all texts begin with, in whole characters.
func sharedPrefix(texts []string) string {
	shared := texts[0]
	for _, t := range texts[1:] {
		for !strings.HasPrefix(t, shared) {
			_, last := utf8.DecodeLastRuneInString(shared)
			shared = shared[:len(shared)-last]
		}
	}
	return shared
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

// introspectWait is how long a person waits for a completion or an inspection, which
// keeps the session from the next cell.
const introspectWait = 15 * time.Second

// introspect asks the session something in the background.
func (m *model) introspect(f func(context.Context)) {
	m.calls.run(func() {
		ctx, cancel := context.WithTimeout(m.ctx, introspectWait)
		defer cancel()
		f(ctx)
	})
}
