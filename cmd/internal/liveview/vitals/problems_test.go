package vitals

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/messages"
)

func TestProblems(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	mark := func(level client.Level, why string) []client.Mark {
		return []client.Mark{{Key: key, Level: level, Why: why, Since: now}}
	}
	sessions := func(s client.Session) look {
		s.Session, s.Cwd = key.Session, key.Cwd
		return look{sessions: []client.Session{s}, limits: client.Limits{Memory: 10 << 30}}
	}
	many := look{limits: client.Limits{Sessions: 10, Memory: 10 << 30}}
	for i := range 9 {
		many.sessions = append(many.sessions, client.Session{Session: fmt.Sprint(i), RSS: 1 << 30})
	}
	server := func(n messages.Node) look {
		n.Name, n.Kind = "fork-server", "server"
		return look{tree: messages.Node{Children: []messages.Node{{Children: []messages.Node{n}}}}}
	}
	exit := &messages.Exit{Kind: messages.ExitFailed, Reason: "no room.\nmore"}
	for name, c := range map[string]struct {
		s    situation
		want []string
	}{
		"nothing":  {situation{seen: sessions(client.Session{State: messages.ChildIdle})}, nil},
		"refused":  {situation{marks: mark(client.LevelBad, "it failed too often")}, []string{"bad refused: It refuses calls: its kernel failed for good (it failed too often)."}},
		"died":     {situation{marks: mark(client.LevelShaky, "died: it was killed")}, []string{"shaky died: Its kernel died (it was killed); its variables are lost."}},
		"hung":     {situation{marks: mark(client.LevelShaky, "hung: ")}, []string{"shaky hung: Its kernel did not answer and was given up; its variables are lost."}},
		"lost":     {situation{marks: mark(client.LevelShaky, "lost: a call was lost: why")}, []string{"shaky died: A call was lost (why)."}},
		"a parent": {situation{marks: []client.Mark{{Key: key, Parent: "p"}}}, nil},
		"queue":    {situation{seen: sessions(client.Session{Queue: 12})}, []string{"shaky queue: 12 calls wait for it."}},
		"long":     {situation{seen: sessions(client.Session{State: messages.ChildBusy, Since: now.Add(-12 * time.Minute)})}, []string{"shaky long: A call runs for 12 minutes."}},
		"memory":   {situation{seen: sessions(client.Session{RSS: 5 << 30})}, []string{"shaky limit: It uses 5120 MiB, 50 % of the memory."}},
		"limits": {situation{seen: many}, []string{
			"bad limit: Sessions use 90 % of the memory.", "shaky limit: 9 of 10 places for sessions are taken.",
		}},
		"machine":   {situation{seen: look{tree: messages.Node{Busy: &messages.Busy{Pressure: .82}}}}, []string{"shaky machine: The machine is busy: processes wait for a processor 82 % of the time."}},
		"refusals":  {situation{refused: refusals{began: now, count: 3, reason: "there is no place"}}, []string{"bad refused: 3 calls were refused since 03:04:05 (there is no place)."}},
		"server":    {situation{seen: server(messages.Node{State: messages.ChildFailed, LastExit: exit})}, []string{"bad server: fork-server is failed (no room)."}},
		"restarted": {situation{seen: server(messages.Node{State: messages.ChildIdle, Restarts: 12, LastExit: exit})}, []string{"shaky server: fork-server was restarted 12 times (no room)."}},
		"once":      {situation{seen: server(messages.Node{State: messages.ChildIdle, Restarts: 1})}, nil},
		"abandoned": {situation{seen: server(messages.Node{State: messages.ChildIdle, Abandoned: []messages.Leftover{{Path: "a/b", PID: 7}}})}, []string{"bad hung: a/b did not end in time."}},
	} {
		c.s.now = now
		list, more := problems(c.s)
		require.Zero(t, more, name)
		var got []string
		for _, p := range list {
			got = append(got, fmt.Sprintf("%s %s: %s", p.Level, p.Kind, p.What))
			require.NotEmpty(t, p.Do, name)
		}
		require.Equal(t, c.want, got, name)
	}
}

// The worst stands first; of questions the one that expires first.
func TestTheOrderOfProblems(t *testing.T) {
	now := time.Now()
	at := func(name string, level client.Level, since time.Duration, until time.Time) client.Mark {
		m := client.Mark{Key: messages.SessionKey{Session: name}, Level: level, Since: now.Add(since)}
		if level == client.LevelAsks {
			m.Question = &client.Question{Prompt: "Who? ", Until: until}
		}
		return m
	}
	list, more := problems(situation{now: now, marks: []client.Mark{
		at("old", client.LevelShaky, -time.Hour, time.Time{}), at("new", client.LevelShaky, 0, time.Time{}),
		at("never", client.LevelAsks, 0, time.Time{}), at("later", client.LevelAsks, 0, now.Add(time.Hour)), at("soon", client.LevelAsks, -time.Hour, now.Add(time.Minute)),
		at("down", client.LevelBad, -time.Hour, time.Time{}),
	}})
	require.Zero(t, more)
	var names []string
	for _, p := range list {
		names = append(names, p.Key.Session)
	}
	require.Equal(t, []string{"down", "soon", "later", "never", "new", "old"}, names)
	require.Contains(t, list[1].What, "“Who?”")

	marks := make([]client.Mark, most+5)
	for i := range marks {
		marks[i] = at(fmt.Sprint(i), client.LevelShaky, 0, time.Time{})
	}
	list, more = problems(situation{marks: marks})
	require.Len(t, list, most)
	require.Equal(t, 5, more)
}

// A call that is refused is told for a minute or two.
func TestRefusals(t *testing.T) {
	var f refusals
	now := time.Now()
	r := messages.Result{Outcome: messages.OutcomeNotStarted, Reason: "full"}
	f.add(now, r)
	f.add(now.Add(time.Second), r)
	require.Equal(t, 2, f.recent(now).count)
	require.Zero(t, f.recent(now.Add(3*time.Minute)).count)
	f.add(now.Add(3*time.Minute), r)
	require.Equal(t, 1, f.recent(now.Add(3*time.Minute)).count)
}
