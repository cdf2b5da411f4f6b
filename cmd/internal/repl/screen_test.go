package repl

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

// session is one that does what the test says.
type session struct {
	events   func(ctx context.Context, code string, yield func(messages.Event) bool)
	complete coppice.Completion
	inspect  string
	fail     error

	mu       sync.Mutex
	asked    []string // guarded by mu
	stopped  chan struct{}
	answered chan string
}

func (s *session) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, what)
}

func (s *session) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked, ", ")
}

func (s *session) Key() messages.SessionKey { return messages.SessionKey{Session: "s", Cwd: "/w"} }

func (s *session) Stream(ctx context.Context, r coppice.Request) iter.Seq2[messages.Event, error] {
	s.note("run " + r.Cells[0].Code)
	return func(yield func(messages.Event, error) bool) {
		if s.fail != nil {
			yield(nil, s.fail)
			return
		}
		if s.events != nil {
			s.events(ctx, r.Cells[0].Code, func(e messages.Event) bool { return yield(e, nil) })
		}
	}
}

func (s *session) SubmitInput(id, value string) (messages.InputStatus, error) {
	s.note("answer " + id)
	s.answered <- value
	return "", s.fail
}

func (s *session) Interrupt() error {
	s.note("interrupt")
	close(s.stopped)
	return s.fail
}

func (s *session) Complete(_ context.Context, code string, cursor int) (coppice.Completion, error) {
	s.note("complete " + code[:cursor])
	return s.complete, s.fail
}

func (s *session) Inspect(_ context.Context, code string, cursor int) (string, error) {
	s.note("inspect " + code[:cursor])
	return s.inspect, s.fail
}

// screen is a model whose messages the test hands on.
type screen struct {
	*model
	t    *testing.T
	msgs chan tea.Msg
	end  context.CancelFunc
}

func newScreen(t *testing.T, s *session) *screen {
	t.Helper()
	s.stopped, s.answered = make(chan struct{}), make(chan string, 1)
	ctx, end := context.WithCancel(t.Context())
	sc := &screen{t: t, msgs: make(chan tea.Msg, 64), end: end}
	sc.model = &model{ctx: ctx, history: loadHistory(""), send: func(m tea.Msg) { sc.msgs <- m }, o: Options{
		Session: s, Backend: "fake",
		Snapshot: func(context.Context) (messages.Node, error) {
			return messages.Node{Name: "supervisor", Children: []messages.Node{{Name: s.Key().String(), Kind: "kernel", State: messages.ChildIdle, Queue: 2, RSS: 3 << 20}}}, nil
		},
	}}
	sc.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	return sc
}

// keys presses keys: a word in angle brackets is one key, all else is typed.
func (s *screen) keys(text string) tea.Cmd {
	s.t.Helper()
	var cmd tea.Cmd
	for text != "" {
		if rest, is := strings.CutPrefix(text, "<"); is {
			name, after, _ := strings.Cut(rest, ">")
			text = after
			key, known := named[name]
			require.True(s.t, known, name)
			require.Equal(s.t, name, key.String())
			_, cmd = s.Update(key)
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		_, cmd = s.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	return cmd
}

var named = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}, "tab": {Code: tea.KeyTab}, "f1": {Code: tea.KeyF1},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
	"home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd}, "backspace": {Code: tea.KeyBackspace}, "delete": {Code: tea.KeyDelete},
	"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown},
	"ctrl+a": ctrl('a'), "ctrl+c": ctrl('c'), "ctrl+d": ctrl('d'), "ctrl+k": ctrl('k'), "ctrl+l": ctrl('l'), "ctrl+o": ctrl('o'), "ctrl+t": ctrl('t'), "ctrl+u": ctrl('u'),
}

func ctrl(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r, Mod: tea.ModCtrl} }

// settle hands on what goroutines have sent until nothing more comes.
func (s *screen) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-s.msgs:
			s.Update(msg)
		default:
			return
		}
	}
}

// shown is the screen as text.
func (s *screen) shown() string { return render.Plain(s.View().Content) }

// status is its last line.
func (s *screen) status() string {
	lines := strings.Split(s.shown(), "\n")
	return lines[len(lines)-1]
}

// inScreen runs f with a screen, in a bubble of its own.
func inScreen(t *testing.T, s *session, f func(*screen)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sc := newScreen(t, s)
		f(sc)
		sc.end()
		sc.calls.wait()
	})
}
