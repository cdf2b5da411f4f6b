package top

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// Bounds of what is kept.
const (
	keptEvents = 200
	keptOutput = 64 << 10 // bytes
)

// model is the state of the screen.
type model struct {
	o     Options
	ctx   context.Context
	send  func(tea.Msg)
	calls sync.WaitGroup
	look  chan struct{}

	width, height int
	seen          looked
	old           error // why what is shown is old
	cpu           map[messages.SessionKey]reading
	selected      messages.SessionKey
	events        []client.Change
	held          []client.Change // while paused
	paused        bool
	tree          bool
	help          bool
	asking        bool
	said          string

	shown  string // the execution whose output is shown
	output string
	stop   func() // ends the watch of its events; nil when there is none
}

// reading is a session's processor time at an instant.
type reading struct {
	at      time.Time
	seconds float64
	percent float64
}

func newModel(ctx context.Context, o Options) *model {
	return &model{o: o, ctx: ctx, look: make(chan struct{}, 1), cpu: map[messages.SessionKey]reading{}}
}

// Init starts nothing: Run has.
func (m *model) Init() tea.Cmd { return nil }

// Update takes one message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	case looked:
		m.take(msg)
	case happened:
		m.note(msg.change)
	case lost:
		m.old = msg.err
	case printed:
		m.print(msg)
	case did:
		m.said = msg.text
	}
	return m, nil
}

func keyOf(s client.Session) messages.SessionKey {
	return messages.SessionKey{Session: s.Session, Cwd: s.Cwd}
}

// take shows what the server shows.
func (m *model) take(v looked) {
	if m.paused {
		return
	}
	m.old = v.err
	if v.err != nil {
		return
	}
	slices.SortFunc(v.sessions, func(a, b client.Session) int { return strings.Compare(keyOf(a).ID(), keyOf(b).ID()) })
	m.seen = v
	now := map[messages.SessionKey]reading{}
	for _, s := range v.sessions {
		r := reading{at: v.at, seconds: s.CPU}
		if before, known := m.cpu[keyOf(s)]; known {
			r.percent = before.percent
			switch gone := v.at.Sub(before.at); {
			case gone < 500*time.Millisecond:
				r.at, r.seconds = before.at, before.seconds
			case s.CPU >= before.seconds:
				r.percent = 100 * (s.CPU - before.seconds) / gone.Seconds()
			}
		}
		now[keyOf(s)] = r
	}
	m.cpu = now
	if m.index() < 0 && len(v.sessions) > 0 {
		m.selected = keyOf(v.sessions[0])
	}
	m.show()
}

// index is the place of the selected session, -1 when it is not there.
func (m *model) index() int {
	return slices.IndexFunc(m.seen.sessions, func(s client.Session) bool { return keyOf(s) == m.selected })
}

// show watches the newest execution of the selected session.
func (m *model) show() {
	id := ""
	for _, x := range m.seen.executions {
		if (messages.SessionKey{Session: x.Session, Cwd: x.Cwd}) == m.selected {
			id = x.ID
			break
		}
	}
	if id == m.shown {
		return
	}
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
	m.shown, m.output = id, ""
	if id != "" {
		m.stop = m.watch(id)
	}
}

func (m *model) note(c client.Change) {
	list := &m.events
	if m.paused {
		list = &m.held
	}
	*list = append(*list, c)
	if n := len(*list); n > keptEvents {
		*list = slices.Delete(*list, 0, n-keptEvents)
	}
}

// print adds an event to the output.
func (m *model) print(p printed) {
	if p.id != m.shown {
		return
	}
	switch e := p.event.(type) {
	case messages.Stream:
		m.output += e.Text
	case messages.ExecuteResult:
		m.output += plain(e.Data) + "\n"
	case messages.Display:
		m.output += plain(e.Data) + "\n"
	case messages.Error:
		m.output += e.Name + ": " + e.Message + "\n"
	case messages.ClearOutput:
		m.output = ""
	case messages.Notice:
		m.output += "[" + e.Text + "]\n"
	case messages.InputRequest:
		m.output += e.Prompt
	case messages.Final:
		m.output = strings.TrimRight(m.output, "\n") + fmt.Sprintf("\n(%s, state %s)\n", e.Result.Outcome, e.Result.State)
	}
	if over := len(m.output) - keptOutput; over > 0 {
		m.output = m.output[over:]
	}
}

// plain is a bundle as text.
func plain(b messages.Bundle) string {
	if text, ok := b.Text(messages.MIMEPlain); ok {
		return text
	}
	kinds := make([]string, 0, len(b))
	for k := range b {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	return "[" + strings.Join(kinds, ", ") + "]"
}

// key does what a key says.
func (m *model) key(k string) tea.Cmd {
	if m.asking {
		m.asking = false
		if k == "y" {
			m.act("stop")
		} else {
			m.said = "not stopped"
		}
		return nil
	}
	switch k {
	case "q", "ctrl+c", "ctrl+d", "esc":
		return tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "t":
		m.tree = !m.tree
	case "?", "h":
		m.help = !m.help
	case "space", " ":
		m.pause()
	case "i":
		m.act("interrupt")
	case "r":
		m.act("reset")
	case "p":
		m.act("pin")
	case "f":
		m.act("fork")
	case "x":
		if m.index() >= 0 {
			m.asking = true
		}
	}
	return nil
}

func (m *model) move(by int) {
	if n := len(m.seen.sessions); n > 0 {
		m.selected = keyOf(m.seen.sessions[min(max(m.index()+by, 0), n-1)])
		m.said = ""
		m.show()
	}
}

func (m *model) pause() {
	m.paused = !m.paused
	if m.paused {
		return
	}
	held := m.held
	m.held = nil
	for _, c := range held {
		m.note(c)
	}
	m.wake()
}

// act does something about the selected session.
func (m *model) act(what string) {
	i := m.index()
	if i < 0 {
		m.said = "no session is selected"
		return
	}
	key, pinned, server := m.selected, m.seen.sessions[i].Pinned, m.o.Server
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
