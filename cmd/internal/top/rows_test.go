package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

// fleet is a server with sessions of all kinds.
func fleet() *server {
	now := time.Now()
	s := &server{list: []client.Session{
		{Session: "calm", Cwd: "/w/one", State: messages.ChildIdle, PID: 1, RSS: 10 << 20, Done: 7, Since: now.Add(-time.Hour), Owner: "ada"},
		{Session: "calm", Cwd: "/w/two", State: messages.ChildIdle, PID: 2, RSS: 20 << 20, Since: now},
		{Session: "asks", Cwd: "/w/one", State: messages.ChildBusy, PID: 3, RSS: 300 << 20, Queue: 3, Since: now.Add(-time.Minute), Pinned: true},
		{Session: "died", Cwd: "/w/one", State: messages.ChildIdle, PID: 4, RSS: 5 << 20, Restarts: 2, LastExit: &messages.Exit{Kind: messages.ExitFailed}, Since: now},
		{Session: "down", Cwd: "/w/one", State: messages.ChildFailed, Since: now},
	}}
	key := func(name string) messages.SessionKey { return messages.SessionKey{Session: name, Cwd: "/w/one"} }
	s.over = client.Overview{
		StepSeconds: 10, Newest: 1, MoreProblems: 2,
		Samples: []client.Sample{{Seq: 1, Calls: map[messages.Outcome]int{messages.OutcomeOK: 30, messages.OutcomeError: 10}, P50: 12, P99: 3400, Restarts: 2, Evictions: 1}},
		Problems: []client.Problem{
			{Level: client.LevelBad, Key: key("down"), What: "It refuses calls.", Do: "Reset it."},
			{Level: client.LevelAsks, Key: key("asks"), Until: now.Add(90 * time.Second), What: "Its code waits.", Do: "Answer."},
		},
		Marks: []client.Mark{
			{Key: key("down"), Level: client.LevelBad, Why: "it failed too often"},
			{Key: key("asks"), Level: client.LevelAsks, Why: "Who?"},
			{Key: key("died"), Level: client.LevelShaky, Why: "died: it was killed", Parent: "other"},
		},
	}
	s.told = client.Story{Key: key("down"), Moments: []client.Moment{{What: "started", Why: "in 3ms"}, {What: "died", Why: "it was killed"}}}
	return s
}

// order is the names of the rows, as they stand.
func order(m *model) string {
	var names []string
	for _, r := range m.rows {
		names = append(names, r.Session.Session)
	}
	return strings.Join(names, " ")
}

func TestRowsAreSorted(t *testing.T) {
	m := screen(t, fleet())
	require.Equal(t, "down asks died calm calm", order(m), "who needs a person stands first")
	for key, want := range map[string]string{
		"N": "asks calm calm died down", "M": "asks calm calm died down", "R": "died asks calm calm down", "W": "asks calm calm died down", "D": "calm asks calm died down",
		"S": "asks down calm calm died", "A": "calm asks calm died down", "O": "asks calm died down calm", "C": "asks calm calm died down",
	} {
		m.by, m.turned = "H", false
		press(m, key)
		require.Equal(t, want, order(m), key)
		require.Contains(t, text(m), orders[key].name[:1])
	}
	m.by, m.turned = "H", false
	press(m, "M")
	require.Contains(t, text(m), "memory ▾")
	press(m, "M")
	require.Equal(t, "down died calm calm asks", order(m), "again turns it")
	require.Contains(t, text(m), "memory ▴")
}

func TestTheFilter(t *testing.T) {
	m := screen(t, fleet())
	for filter, want := range map[string]string{
		"state:busy": "asks", "rss:>100m": "asks", "rss:<=10MiB": "down died calm", "owner:ada": "calm", "-health:well": "down asks died", "health:asks": "asks",
		"pinned:yes": "asks", "calm /two": "calm", "exit:failed": "died", "age:>30m": "calm", "restarts:2": "died", "rss:>x": "", "queue:>=3 state:busy": "asks",
		"-calm": "down asks died", "pid:1": "calm", "nothing": "", "dir:/w/two": "calm", "name:di": "died", "-": "down asks died calm calm",
	} {
		m.filter = filter
		m.arrange()
		require.Equal(t, want, order(m), "%q", filter)
	}
}

func TestTheFilterIsTyped(t *testing.T) {
	m := screen(t, fleet())
	press(m, "/", "c", "a", "l", "m", "space", "q", "backspace", "backspace")
	require.Equal(t, "calm", m.filter)
	require.Contains(t, text(m), "find: calm")
	require.Contains(t, text(m), "2 found")
	require.Contains(t, text(m), "calm in one", "two of one name are told apart")
	require.Contains(t, text(m), "calm in two")
	press(m, "enter", "N")
	require.Equal(t, "N", m.by, "a letter sorts again")
	press(m, "/", "ctrl+u", "z")
	require.Contains(t, text(m), "no session is like z")
	press(m, "esc")
	require.Len(t, m.rows, 5)
	m.filter = "calm"
	require.Nil(t, press1(m, "esc"), "esc clears the filter before it leaves")
	require.NotNil(t, press1(m, "esc"))
}

func press1(m *model, k string) tea.Cmd { return m.key(k) }

func TestProblemsStandFirst(t *testing.T) {
	m := screen(t, fleet())
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 40})
	lines := strings.Split(text(m), "\n")
	require.Contains(t, lines[1], "4.0 calls/s")
	require.Contains(t, lines[1], "(1.0 not ok), p50 12ms p99 3.4s")
	require.Contains(t, lines[1], "2 restarted")
	require.Regexp(t, `^down down It refuses calls\. Reset it\.`, lines[2])
	require.Regexp(t, `^asks asks Its code waits\. 1m(29|30)s left\. Answer\.`, lines[3])
	require.Contains(t, lines[4], "2 more problems")
	require.Contains(t, text(m), "  5.0 MiB  ")
	require.Contains(t, text(m), "300.0 MiB  ", "numbers stand at the right")
	m.Update(tea.WindowSizeMsg{Width: 60, Height: 40})
	require.Contains(t, text(m), "? help  q leave", "no key is cut")
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 40})
	for _, want := range []string{"asks", "died", "down", "asks"} {
		press(m, "n")
		require.Equal(t, want, m.selected.Session)
	}
	m.filter = "calm"
	m.arrange()
	press(m, "n")
	require.Contains(t, text(m), "no session that is shown has a problem")
}

func TestTheDetailOfASession(t *testing.T) {
	s := fleet()
	m := screen(t, s)
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 60})
	press(m, "home", "enter")
	m.Update(told{s.told})
	got := text(m)
	require.Contains(t, got, "down in /w/one")
	require.Contains(t, got, "it failed too often")
	require.Less(t, strings.Index(got, "died it was killed"), strings.Index(got, "started in 3ms"), "the newest stands first")
	press(m, "down")
	require.Contains(t, text(m), "asks in /w/one")
	require.NotContains(t, text(m), "started in 3ms", "the story is another's")
	require.Nil(t, press1(m, "esc"))
	require.NotContains(t, text(m), "asks in /w/one")
}

func TestPages(t *testing.T) {
	s := &server{}
	for i := range 200 {
		s.list = append(s.list, client.Session{Session: fmt.Sprintf("s-%03d", i), Cwd: "/w", State: messages.ChildIdle})
	}
	m := screen(t, s)
	require.Contains(t, text(m), "1 to 12 of 200")
	press(m, "pgdown")
	require.Equal(t, "s-012", m.selected.Session)
	press(m, "end")
	require.Equal(t, "s-199", m.selected.Session)
	require.Contains(t, text(m), "189 to 200 of 200")
	press(m, "pgup", "home", "up")
	require.Equal(t, "s-000", m.selected.Session)
	press(m, "x")
	require.Contains(t, text(m), "stop s-000 and all that it has in memory? y/n")
}

// A server that was started again counts its samples from 1.
func TestSamplesOfAServerThatWasStartedAgain(t *testing.T) {
	s := fleet()
	m := screen(t, s)
	require.Len(t, m.samples, 1)
	m.Update(m.see())
	require.Len(t, m.samples, 1, "only new ones are asked for")
	v := m.see()
	v.health.Started = time.Now()
	m.Update(v)
	require.Empty(t, m.samples)
	m.Update(looked{health: v.health, overview: s.over, at: time.Now()})
	require.Len(t, m.samples, 1)
}
