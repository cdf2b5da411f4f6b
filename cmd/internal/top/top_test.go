package top

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is one that does what the test says and notes what it was asked to do.
type server struct {
	mu   sync.Mutex
	did  []string // guarded by mu
	fail error    // guarded by mu
	list []client.Session
	over client.Overview
	told client.Story
}

func (s *server) Overview(_ context.Context, after uint64) (client.Overview, error) {
	o := s.over
	o.Samples = nil
	for _, one := range s.over.Samples {
		if one.Seq > after {
			o.Samples = append(o.Samples, one)
		}
	}
	return o, nil
}

func (s *server) Story(context.Context, messages.SessionKey) (client.Story, error) {
	return s.told, nil
}

func (s *server) asked(what string, key messages.SessionKey) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, what+" "+key.Session)
	return s.fail
}

func (s *server) calls() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.did, ", ")
}

func (s *server) Health(context.Context) (client.Health, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return client.Health{Version: "1.0", Backend: "runner", PID: 42, Executions: 1}, s.fail
}
func (s *server) Tree(context.Context) (messages.Node, error) { return tree, nil }
func (s *server) Sessions(context.Context) ([]client.Session, error) {
	return s.list, nil
}

func (s *server) Executions(context.Context, messages.SessionKey) ([]client.Execution, error) {
	return []client.Execution{{ID: "x1", Session: "a", Cwd: "/w", State: client.Running, Title: "work()"}}, nil
}

func (s *server) Changes(ctx context.Context, _ uint64) iter.Seq2[client.Change, error] {
	return func(yield func(client.Change, error) bool) {
		if yield(client.Change{Seq: 1, Type: "execution", Execution: &client.Execution{Session: "a", State: client.Running, Title: "work()\nmore"}}, nil) {
			<-ctx.Done()
			yield(client.Change{}, context.Cause(ctx))
		}
	}
}

func (s *server) Events(_ context.Context, id string, _ uint64) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		_ = yield(messages.Stream{Name: messages.StdoutStream, Text: "output of " + id + "\n"}, nil)
	}
}

func (s *server) Interrupt(_ context.Context, k messages.SessionKey) error {
	return s.asked("interrupt", k)
}

func (s *server) Reset(_ context.Context, k messages.SessionKey) error { return s.asked("reset", k) }

func (s *server) CloseSession(_ context.Context, k messages.SessionKey) error {
	return s.asked("close", k)
}

func (s *server) Pin(_ context.Context, k messages.SessionKey, on bool) error {
	if on {
		return s.asked("pin", k)
	}
	return s.asked("unpin", k)
}

func (s *server) Fork(_ context.Context, k messages.SessionKey, _ int, _ string) ([]messages.SessionKey, error) {
	return []messages.SessionKey{{Session: k.Session + "~1", Cwd: k.Cwd}}, s.asked("fork", k)
}

var tree = messages.Node{Name: "supervisor", Kind: "supervisor", State: messages.ChildIdle, Children: []messages.Node{
	{Name: "runner", Kind: "gateway", State: messages.ChildIdle, Children: []messages.Node{{Name: "a@/w", Kind: "kernel", State: messages.ChildBusy, PID: 7}}},
}}

func two() []client.Session {
	return []client.Session{
		{Session: "b", Cwd: "/w", State: messages.ChildIdle, Pinned: true, Restarts: 1, LastExit: &messages.Exit{Kind: messages.ExitFailed, Reason: "it was killed"}, PID: 8, RSS: 20 << 20, CPU: 1},
		{Session: "a", Cwd: "/w", State: messages.ChildBusy, Queue: 2, Done: 5, PID: 7, RSS: 30 << 20, CPU: 4},
	}
}

// screen is a model that was told what the server shows, without goroutines of its
// own.
func screen(t *testing.T, s *server) *model {
	t.Helper()
	m, _ := acting(t, s)
	return m
}

// acting is screen, with what becomes of actions.
func acting(t *testing.T, s *server) (*model, <-chan did) {
	t.Helper()
	said := make(chan did, 16)
	ctx, cancel := context.WithCancel(t.Context())
	m := newModel(ctx, Options{Server: s})
	m.send = func(msg tea.Msg) {
		if d, ok := msg.(did); ok {
			said <- d
		}
	}
	t.Cleanup(func() { cancel(); m.calls.Wait() })
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 24})
	m.Update(m.see())
	return m, said
}

func press(m *model, keys ...string) {
	for _, k := range keys {
		m.key(k)
	}
}

func text(m *model) string { return ansi.Strip(strings.Join(m.lines(), "\n")) }

func TestTheScreenShowsSessionsOutputAndEvents(t *testing.T) {
	m := screen(t, &server{list: two()})
	m.Update(printed{"x1", messages.Stream{Text: "first\n"}})
	m.Update(printed{"x1", messages.Stream{Text: "10 %\r20 %\x1b[31m red\x1b[0m\n"}})
	m.Update(printed{"other", messages.Stream{Text: "not mine\n"}})
	m.Update(happened{client.Change{Execution: &client.Execution{Session: "a", State: client.Running, Title: "work()\nmore"}}})
	got := text(m)
	for _, want := range []string{
		"coppice 1.0, runner backend, pid 42, 2 sessions, 1 call", "▸  a ", "busy", "30.0 MiB", "b (pinned)", "failed: it was killed",
		"output of a", "first", "20 % red", "a runs: work()", "↑↓ select",
	} {
		require.Contains(t, got, want)
	}
	require.NotContains(t, got, "10 %")
	require.NotContains(t, got, "not mine")
	require.NotContains(t, got, "more")
	require.Len(t, m.lines(), 24)
	press(m, "t")
	require.Contains(t, text(m), "supervisor")
}

// In a narrow terminal, too, each session has its name, its state and its memory, whole.
func TestANarrowScreenHasWhatMattersMost(t *testing.T) {
	m := screen(t, &server{list: two()})
	for _, width := range []int{120, 80, 60} {
		m.Update(tea.WindowSizeMsg{Width: width, Height: 24})
		lines := strings.Split(text(m), "\n")
		for name, want := range map[string][]string{"▸  a ": {"busy", "30.0 MiB"}, "b (pinned)": {"idle", "20.0 MiB"}} {
			at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, name) })
			require.GreaterOrEqual(t, at, 0, "%s at %d columns: %s", name, width, text(m))
			for _, w := range want {
				require.Contains(t, lines[at], w, "%d columns", width)
			}
		}
	}
}

// What a narrow terminal has no room for in a line is on the next one, where there is one.
func TestNothingIsCutThatHasRoomBelow(t *testing.T) {
	m := screen(t, &server{list: two()})
	m.seen.tree.Busy = &messages.Busy{Pressure: .82, Postponed: 3}
	for _, width := range []int{120, 80, 60} {
		m.Update(tea.WindowSizeMsg{Width: width, Height: 24})
		head := strings.Join(strings.Fields(strings.Join(strings.Split(text(m), "\n")[:2], " ")), " ")
		require.Contains(t, head, "1 call, machine busy 82 %, 3 ends put off", "%d columns", width)
	}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 20})
	press(m, "?")
	_, shown, _ := strings.Cut(text(m), "Ctrl-C would")
	require.NotContains(t, shown, "…")
	require.Contains(t, shown, "again turns it")
	require.Contains(t, shown, "q leave")
}

// Where sessions are at nodes and in workspaces, each has a column, a word of the filter, and a key.
func TestNodesAndWorkspacesAreShown(t *testing.T) {
	s := &server{list: two()}
	require.NotContains(t, text(screen(t, s)), "node")
	s.list[1].Node, s.list[0].Node, s.list[0].Workspace = "two-0c1f", "one-b9b5", "lab"
	m := screen(t, s)
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 30})
	require.Regexp(t, `restarts +workspace +node +last exit`, text(m))
	require.Regexp(t, `b \(pinned\) .* lab +one-b9b5 +failed`, text(m))
	press(m, "E")
	require.Regexp(t, `(?s)node ▾.* b \(pinned\) .* a `, text(m))
	for filter, want := range map[string]string{"node:two": "a", "ws:lab": "b", "workspace:lab": "b", "one-b9": "b"} {
		n := 0
		for _, one := range m.rows {
			if one.matches(filter, m.seen.at) {
				n++
				require.Equal(t, want, one.Session.Session, filter)
			}
		}
		require.Equal(t, 1, n, filter)
	}
}

// TestSessionsOnDiskAreCounted in the first line.
func TestSessionsOnDiskAreCounted(t *testing.T) {
	m := screen(t, &server{list: two()})
	require.NotContains(t, text(m), "hibernated")
	m.seen.overview.Hibernated = 3
	require.Contains(t, text(m), "2 sessions, 1 call, 3 hibernated")
}

// A machine that has too much to do is told of, with what was put off for that.
func TestABusyMachineIsShown(t *testing.T) {
	m := screen(t, &server{list: two()})
	for want, b := range map[string]*messages.Busy{
		"machine busy 82 %, 3 ends put off": {Pressure: .82, Postponed: 3},
		"machine busy 30 %":                 {Pressure: .3},
	} {
		m.seen.tree.Busy = b
		require.True(t, strings.HasSuffix(strings.TrimRight(strings.Split(text(m), "\n")[0], " "), ", "+want), text(m))
	}
	for _, b := range []*messages.Busy{nil, {Postponed: 7, Pressure: .29}} {
		m.seen.tree.Busy = b
		require.NotContains(t, text(m), "machine")
	}
}

// Whatever the size of the terminal is, no line is wider and there are no more
// lines than it has.
func TestTheScreenFits(t *testing.T) {
	s := &server{list: two()}
	for range 60 {
		s.list = append(s.list, client.Session{Session: strings.Repeat("名前", 20), Cwd: strings.Repeat("x", len(s.list)), State: messages.ChildIdle})
	}
	m := screen(t, s)
	m.Update(printed{"x1", messages.Stream{Text: strings.Repeat("wide 木 line ", 50) + "\n\t\x07\x1b]0;title\x07end\n"}})
	for _, size := range [][2]int{{200, 50}, {100, 24}, {80, 10}, {40, 12}, {20, 5}, {20, 1}} {
		for _, keys := range [][]string{{}, {"t"}, {"?"}, {"x"}} {
			m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			press(m, keys...)
			lines := m.lines()
			require.LessOrEqual(t, len(lines), size[1])
			for _, l := range lines {
				require.LessOrEqual(t, ansi.StringWidth(l), size[0], "%q", l)
				require.NotContains(t, l, "\x07")
			}
		}
	}
}

func TestKeysActOnTheSelectedSession(t *testing.T) {
	s := &server{list: two()}
	m := screen(t, s)
	for _, k := range []string{"i", "r y", "p", "f"} {
		press(m, strings.Fields(k)...)
		m.calls.Wait()
	}
	press(m, "r", "n")
	require.Contains(t, text(m), "not done")
	press(m, "down", "down", "p")
	m.calls.Wait()
	require.Equal(t, "interrupt a, reset a, pin a, fork a, unpin b", s.calls())
	press(m, "x", "n", "x")
	require.Contains(t, text(m), "stop b and all that it has in memory (20.0 MiB)? y/n")
	press(m, "y")
	m.calls.Wait()
	require.Equal(t, "interrupt a, reset a, pin a, fork a, unpin b, close b", s.calls())
	require.NotNil(t, m.key("q"))
}

func TestWhatFailsIsTold(t *testing.T) {
	s := &server{list: two()}
	m, said := acting(t, s)
	s.fail = errors.New("no place is free")
	press(m, "f")
	m.Update(<-said)
	require.Contains(t, text(m), "fork failed: no place is free")
	m.Update(m.see())
	require.Contains(t, text(m), "OLD")
	require.Contains(t, text(m), "30.0 MiB", "what was there is still shown")
	s.fail = nil
	m.Update(m.see())
	require.NotContains(t, text(m), "OLD")
}

func TestAPausedScreenWaits(t *testing.T) {
	s := &server{list: two()}
	m := screen(t, s)
	press(m, "space")
	s.list = nil
	m.Update(m.see())
	m.Update(happened{client.Change{Missed: 3}})
	require.Contains(t, text(m), "paused (1 new)")
	require.Contains(t, text(m), "30.0 MiB")
	press(m, "space")
	m.Update(m.see())
	require.Contains(t, text(m), "3 events were missed")
	require.Contains(t, text(m), "no session has a kernel")
}

func TestProcessorTimeIsAShareOfTheTimeBetweenTwoLooks(t *testing.T) {
	s := &server{list: two()}
	m := screen(t, s)
	later := m.see()
	later.at = m.seen.at.Add(2 * time.Second)
	later.sessions[1].CPU += .5
	m.Update(later)
	require.Contains(t, text(m), "25 %")
}

// The screen runs in a terminal, follows the server, and ends with its goroutines.
func TestRun(t *testing.T) {
	in, keys := io.Pipe()
	var out safe
	ended := make(chan error, 1)
	go func() {
		ended <- Run(t.Context(), Options{Server: &server{list: two()}, In: in, Out: &out, Env: []string{"TERM=xterm-256color", "COLUMNS=100", "LINES=30"}, Every: time.Millisecond})
	}()
	_, err := keys.Write([]byte("q"))
	require.NoError(t, err)
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(3 * time.Minute):
		require.Fail(t, "it did not end")
	}
	require.NoError(t, keys.Close())
}

type safe struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

// TestHostileNames put nothing on the screen that a terminal obeys.
func TestHostileNames(t *testing.T) {
	const name = "n\x1b]52;c;RVZJTA==\x07\x1b]0;T\x07\u009b2J\u202ex\r\b"
	s := &server{list: []client.Session{{Session: name, Cwd: name, State: name, LastExit: &messages.Exit{Kind: name, Reason: name}}}}
	m := screen(t, s)
	m.Update(printed{"x1", messages.Stream{Text: name + "\n"}})
	m.seen.overview = client.Overview{
		Problems: []client.Problem{{Level: client.LevelBad, Key: messages.SessionKey{Session: name}, What: name, Do: name}},
		Marks:    []client.Mark{{Key: messages.SessionKey{Session: name, Cwd: name}, Level: client.LevelAsks, Why: name, Parent: name}},
	}
	m.arrange()
	m.Update(told{client.Story{Key: m.selected, Moments: []client.Moment{{What: name, Why: name}}}})
	for _, keys := range []string{"", "x", "n t", "enter", "/ \x1b"} {
		press(m, strings.Fields(keys)...)
		shown := ansi.Strip(m.View().Content)
		require.NotContains(t, m.View().Content, "RVZJTA")
		require.False(t, strings.ContainsFunc(shown, func(r rune) bool { return r < ' ' && r != '\n' || r >= 0x7f && r <= 0x9f || r == 0x202e }), "%q", shown)
	}
}
