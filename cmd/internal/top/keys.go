package top

import (
	"context"
	"slices"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// key does what a key says.
func (m *model) key(k string) tea.Cmd {
	switch {
	case k == "ctrl+c":
		return tea.Quit
	case m.asking != "":
		what := m.asking
		m.asking = ""
		if k == "y" {
			m.act(what)
		} else {
			m.said = "not done"
		}
		return nil
	case m.typing:
		m.typed(k)
		return nil
	}
	if _, ok := orders[k]; ok {
		m.turned = m.by == k && !m.turned
		m.by = k
		m.arrange()
		return nil
	}
	if m.moved(k) {
		return nil
	}
	switch k {
	case "esc":
		return m.back()
	case "q", "ctrl+d":
		return tea.Quit
	case "/":
		m.typing = true
	case "enter":
		m.detail = !m.detail
		m.open()
	case "t":
		m.tree = !m.tree
	case "?", "h":
		m.help = !m.help
	case "space", " ":
		m.pause()
	case "i":
		m.act("interrupt")
	case "p":
		m.act("pin")
	case "f":
		m.act("fork")
	case "r", "x":
		if m.index() >= 0 {
			m.asking = map[string]string{"r": "reset", "x": "stop"}[k]
		}
	}
	return nil
}

// moved moves to another session, if that is what a key is for.
func (m *model) moved(k string) bool {
	switch k {
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.page())
	case "pgdown":
		m.move(m.page())
	case "home", "g":
		m.move(-len(m.rows))
	case "end", "G":
		m.move(len(m.rows))
	case "n":
		m.nextProblem()
	default:
		return false
	}
	return true
}

// back leaves what was opened last, and the screen when nothing is open.
func (m *model) back() tea.Cmd {
	switch {
	case m.help:
		m.help = false
	case m.detail:
		m.detail = false
	case m.tree:
		m.tree = false
	case m.filter != "":
		m.filter = ""
		m.arrange()
	default:
		return tea.Quit
	}
	return nil
}

// typed changes the filter by a key.
func (m *model) typed(k string) {
	switch k {
	case "enter":
		m.typing = false
	case "esc":
		m.typing, m.filter = false, ""
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-size]
	case "ctrl+u":
		m.filter = ""
	case "space":
		m.filter += " "
	default:
		if r, size := utf8.DecodeRuneInString(k); size == len(k) && unicode.IsPrint(r) {
			m.filter += k
		}
	}
	m.arrange()
}

// open reads what the detail shows.
func (m *model) open() {
	m.story = client.Story{}
	if m.detail && m.index() >= 0 {
		m.read(m.selected)
	}
}

func (m *model) move(by int) {
	if n := len(m.rows); n > 0 {
		m.selectKey(keyOf(m.rows[min(max(m.index()+by, 0), n-1)].Session))
	}
}

func (m *model) selectKey(key messages.SessionKey) {
	m.selected, m.said = key, ""
	m.show()
	m.open()
}

// nextProblem selects the next session that has one, after the one that is selected.
func (m *model) nextProblem() {
	at := max(m.index(), 0)
	for i := range m.rows {
		if r := m.rows[(at+1+i)%len(m.rows)]; r.mark.Level != "" {
			m.selectKey(keyOf(r.Session))
			return
		}
	}
	m.said = "no session that is shown has a problem"
	if m.filter == "" || !slices.ContainsFunc(m.seen.overview.Marks, func(c client.Mark) bool { return c.Level != "" }) {
		m.said = "no session has a problem"
	}
}

// act does something about the selected session.
func (m *model) act(what string) {
	i := m.index()
	if i < 0 {
		m.said = "no session is selected"
		return
	}
	key, pinned, server := m.selected, m.rows[i].Pinned, m.o.Server
	m.said = what + " " + key.Session + " ..."
	done := func(text string, f func(context.Context) error) {
		m.do(what, func(ctx context.Context) (string, error) { return text + " " + key.Session, f(ctx) })
	}
	switch what {
	case "interrupt":
		done("interrupted", func(ctx context.Context) error { return server.Interrupt(ctx, key) })
	case "reset":
		done("reset", func(ctx context.Context) error { return server.Reset(ctx, key) })
	case "stop":
		done("stopped", func(ctx context.Context) error { return server.CloseSession(ctx, key) })
	case "pin":
		text := "pinned"
		if pinned {
			text = "unpinned"
		}
		done(text, func(ctx context.Context) error { return server.Pin(ctx, key, !pinned) })
	case "fork":
		m.do(what, func(ctx context.Context) (string, error) {
			made, err := server.Fork(ctx, key, 1, "")
			if err != nil || len(made) == 0 {
				return "", err
			}
			return "copied " + key.Session + " to " + made[0].Session, nil
		})
	}
}
