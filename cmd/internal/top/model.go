package top

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// Bounds of what is kept.
const (
	keptEvents  = 200
	keptOutput  = 64 << 10 // bytes
	keptSamples = 360
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
	rows          []row // those that are found, in their order
	samples       []client.Sample
	newest        atomic.Uint64 // the number of the last of samples
	by            string        // a key of orders
	turned        bool
	filter        string
	typing        bool // the filter
	detail        bool
	story         client.Story
	selected      messages.SessionKey
	events        []client.Change
	held          []client.Change // while paused
	paused        bool
	tree          bool
	help          bool
	asking        string // what ends the session, when the user is asked
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
	return &model{o: o, ctx: ctx, by: "H", look: make(chan struct{}, 1), cpu: map[messages.SessionKey]reading{}}
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
	case told:
		m.story = msg.story
	case did:
		m.said = msg.text
	}
	return m, nil
}

func keyOf(s client.Session) messages.SessionKey {
	return messages.SessionKey{Session: s.Session, Cwd: s.Cwd, Workspace: s.Workspace, Kernel: s.Kernel}
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
	if !v.health.Started.Equal(m.seen.health.Started) { // another server, which counts from 1
		m.samples = nil
		m.newest.Store(0)
	}
	m.seen = v
	for _, s := range v.overview.Samples {
		if s.Seq > m.newest.Load() {
			m.samples = append(m.samples, s)
			m.newest.Store(s.Seq)
		}
	}
	m.samples = m.samples[max(0, len(m.samples)-keptSamples):]
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
	m.arrange()
	if m.detail {
		m.read(m.selected)
	}
}

// arrange finds and sorts the rows, and keeps what is selected on one of them.
func (m *model) arrange() {
	marks := make(map[messages.SessionKey]client.Mark, len(m.seen.overview.Marks))
	for _, mark := range m.seen.overview.Marks {
		marks[mark.Key] = mark
	}
	m.rows = m.rows[:0]
	for _, s := range m.seen.sessions {
		r := row{Session: s, mark: marks[keyOf(s)], cpu: m.cpu[keyOf(s)].percent}
		if r.matches(m.filter, m.seen.at) {
			m.rows = append(m.rows, r)
		}
	}
	sortRows(m.rows, m.by, m.turned)
	if m.index() < 0 && len(m.rows) > 0 {
		m.selected = keyOf(m.rows[0].Session)
	}
	m.show()
}

// index is the place of the selected session, -1 when it is not there.
func (m *model) index() int {
	return slices.IndexFunc(m.rows, func(r row) bool { return keyOf(r.Session) == m.selected })
}

// show watches the newest execution of the selected session.
func (m *model) show() {
	id := ""
	for _, x := range m.seen.executions {
		if (messages.SessionKey{Session: x.Session, Cwd: x.Cwd, Workspace: x.Workspace, Kernel: x.Kernel}) == m.selected {
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
