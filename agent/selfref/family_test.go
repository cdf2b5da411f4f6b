package selfref_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/agent/selfref"
	"github.com/coppice-run/coppice/messages"
)

// gathered is what gather_all returns to a session.
func (w *world) gathered(session messages.SessionKey, arguments string) map[string]selfref.ForkResult {
	w.t.Helper()
	text, err := w.as(session, "main", "fork.gather_all", arguments)
	require.NoError(w.t, err)
	require.Less(w.t, len(text), 112<<10, "no more than gather_all returns")
	var all map[string]selfref.ForkResult
	require.NoError(w.t, json.Unmarshal([]byte(text), &all))
	return all
}

// TestForksNeverShareAConversation: not those of two sessions, of one name in two
// directories, or of two programs with one store.
func TestForksNeverShareAConversation(t *testing.T) {
	agent := func(_ context.Context, f selfref.Fork) (selfref.Answer, error) {
		return selfref.Answer{Response: f.Key}, nil
	}
	store := &selfref.Memory{}
	require.NoError(t, store.Save(t.Context(), "main", []selfref.Message{said("user", "u")}))
	keys := map[string]bool{}
	for range 2 {
		b := selfref.New(selfref.Options{Store: store, Agent: agent}) // one after the other, and never closed: they were killed
		w := &world{t: t, b: b, r: primitive.New(), store: store}
		require.NoError(t, w.r.Install(b.Pack(), false))
		for _, session := range []messages.SessionKey{{Session: "a", Cwd: "/1"}, {Session: "b", Cwd: "/1"}, {Session: "a", Cwd: "/2"}} {
			_, err := w.as(session, "main", "fork.spawn", `{"args":["x"]}`)
			require.NoError(t, err)
			one := w.gathered(session, `{}`)["fork_1"]
			require.False(t, keys[one.Key], one.Key)
			keys[one.Key] = true
			require.True(t, selfref.IsForkKey(one.Key))
			require.Equal(t, []selfref.Message{said("user", "u")}, w.load(one.Key))
		}
	}
}

// TestAForkTakesNoConversationOfOthers, and which are forks' is known after a restart.
func TestAForkTakesNoConversationOfOthers(t *testing.T) {
	agent := func(context.Context, selfref.Fork) (selfref.Answer, error) { return selfref.Answer{}, nil }
	w := newWorld(t, selfref.Options{Agent: agent})
	w.put("main", said("user", "a"), said("assistant", "b"))
	w.fails("fork.spawn", `{"args":["x"],"kwargs":{"fork_memory_key":"main"}}`, `ValueError: there is a conversation "main" already`)
	require.Len(t, w.load("main"), 2)
	w.ok("fork.spawn", `{"args":["x"],"kwargs":{"fork_memory_key":"mine"}}`)
	w.fails("fork.spawn", `{"args":["x"],"kwargs":{"fork_memory_key":"mine"}}`, `there is a conversation "mine" already`)
	w.ok("fork.spawn", `{"args":["x"]}`)
	require.Len(t, w.gathered(root, `{}`), 2, "one that could not begin is none")
	require.Contains(t, w.ok("context.inspect", `{}`), `"active_key":"main"`)

	after := selfref.New(selfref.Options{Store: w.store})
	again := &world{t: t, b: after, r: primitive.New(), store: w.store}
	require.NoError(t, again.r.Install(after.Pack(), false))
	require.Contains(t, again.ok("context.inspect", `{}`), `"active_key":"main"`)
}

// TestALongResponseIsNoEnd of gather_all: it is cut, a note says so, and the whole can
// be read.
func TestALongResponseIsNoEnd(t *testing.T) {
	sizes := map[string]int{"small": 10, "twice": 80 << 10, "long": 144 << 10, "wide": 12_000}
	agent := func(_ context.Context, f selfref.Fork) (selfref.Answer, error) {
		switch {
		case f.Message == "list":
			return selfref.Answer{Response: []string{strings.Repeat("<", 48<<10)}}, nil
		case f.Message == "wide":
			return selfref.Answer{Response: strings.Repeat("é\n", sizes["wide"])}, nil
		}
		return selfref.Answer{Response: strings.Repeat("x", sizes[f.Message])}, nil
	}
	w := newWorld(t, selfref.Options{Agent: agent})
	w.b.Gathers(112 << 10)
	w.put("main", said("user", "u"))
	spawn := func(message string) { w.ok("fork.spawn", `{"args":["`+message+`"]}`) }
	spawn("small")
	spawn("twice")
	one := w.gathered(root, `{"args":["fork_2"]}`)["fork_2"]
	require.Len(t, one.Response, 80<<10+2)
	require.Equal(t, "null", string(one.Result))
	require.Contains(t, one.Note, "it is in response alone")
	spawn("long")
	spawn("list")
	spawn("wide")
	all := w.gathered(root, `{"kwargs":{"include_history":true}}`)
	require.Len(t, all, 5)
	require.Equal(t, `"xxxxxxxxxx"`, string(all["fork_1"].Result))
	require.Empty(t, all["fork_1"].Note)
	for _, id := range []string{"fork_3", "fork_4", "fork_5"} {
		var shown string
		require.NoError(t, json.Unmarshal(all[id].Response, &shown))
		require.NotEmpty(t, shown)
		require.Contains(t, all[id].Note, fmt.Sprintf("runtime.selfref.fork.read(%q, %d) goes on from there", id, len([]rune(shown))))
	}
	whole, at := "", 0
	for {
		var part struct {
			Text  string
			Next  *int
			Total int
		}
		require.NoError(t, json.Unmarshal([]byte(w.ok("fork.read", fmt.Sprintf(`{"args":["fork_5",%d,5000]}`, at))), &part))
		whole += part.Text
		require.Equal(t, 24_000, part.Total)
		if part.Next == nil {
			break
		}
		at = *part.Next
	}
	require.Equal(t, strings.Repeat("é\n", 12_000), whole)
	w.fails("fork.read", `{"args":["fork_5",-1]}`, "start is 0 or more")
	w.fails("fork.read", `{"args":[["fork_1","fork_2"]]}`, "read takes one fork at a time")
	require.Equal(t, "4", w.ok("fork.drop", `{"args":[["fork_2","fork_3","fork_4",{"fork_id":"fork_5"}]]}`))
	require.Len(t, w.gathered(root, `{}`), 1)
	w.fails("fork.gather_all", `{"args":["fork_3"]}`, "KeyError: there is no fork fork_3")
	w.fails("fork.drop", `{"args":[null]}`, "say which forks")
}

// TestAForkDoesNotWaitForItself, directly or through another one.
func TestAForkDoesNotWaitForItself(t *testing.T) {
	var w *world
	var both sync.WaitGroup
	both.Add(2)
	agent := func(_ context.Context, f selfref.Fork) (selfref.Answer, error) {
		key := messages.SessionKey{Session: "of " + f.ID}
		f.Bind(key)
		if f.Message != f.ID { // they wait for each other
			both.Done()
			both.Wait()
		}
		_, err := w.as(key, "", "fork.gather_all", `{"args":["`+f.Message+`"]}`)
		return selfref.Answer{}, err
	}
	w = newWorld(t, selfref.Options{Agent: agent})
	w.put("main", said("user", "u"))
	for _, message := range []string{"fork_1", "fork_3", "fork_2"} {
		w.ok("fork.spawn", `{"args":["`+message+`"]}`)
	}
	all := w.gathered(root, `{}`)
	require.Contains(t, all["fork_1"].ErrorMessage, "fork_1 is the fork that this code belongs to")
	require.Contains(t, all["fork_2"].ErrorMessage+all["fork_3"].ErrorMessage, "waits for the fork that this code belongs to: neither would end")
	require.NotEqual(t, all["fork_2"].Status, all["fork_3"].Status, "one of them is enough")
}

// TestALiveForkHoldsNoOthersUp: those that are gathered beside it are there.
func TestALiveForkHoldsNoOthersUp(t *testing.T) {
	agent := func(_ context.Context, f selfref.Fork) (selfref.Answer, error) {
		f.Copied()
		return selfref.Answer{Response: f.Message}, nil
	}
	w := newWorld(t, selfref.Options{Agent: agent})
	w.put("main", said("user", "u"))
	w.ok("fork.spawn", `{"args":["a"]}`)
	w.ok("fork.spawn", `{"args":["b"],"kwargs":{"kernel":"live"}}`)
	for _, arguments := range []string{`{}`, `{"args":[["fork_1","fork_2"]]}`} {
		all := w.gathered(root, arguments)
		require.Equal(t, "completed", all["fork_1"].Status)
		require.Equal(t, "running", all["fork_2"].Status)
		require.Contains(t, all["fork_2"].Note, "gather it in a later one")
	}
	w.fails("fork.gather_all", `{"args":["fork_2"]}`, "fork_2 copies this interpreter")
	w.exec = "exec-2"
	require.Equal(t, `"b"`, string(w.gathered(root, `{}`)["fork_2"].Response))
}

// TestCancelTakesAHandle, and not nothing.
func TestCancelTakesAHandle(t *testing.T) {
	agent := func(ctx context.Context, _ selfref.Fork) (selfref.Answer, error) {
		<-ctx.Done()
		return selfref.Answer{}, ctx.Err()
	}
	w := newWorld(t, selfref.Options{Agent: agent})
	w.put("main", said("user", "u"))
	handle := w.ok("fork.spawn", `{"args":["x"]}`)
	w.fails("fork.cancel", `{"args":[null]}`, "say which forks")
	require.Equal(t, "true", w.ok("fork.cancel", `{"args":[`+handle+`]}`))
	require.Equal(t, "CancelledError", w.gathered(root, `{"args":[`+handle+`]}`)["fork_1"].ErrorType)
}

// TestForksEndWithTheirSession: what runs is cancelled, results and conversations go,
// and a session of the same name has none of them.
func TestForksEndWithTheirSession(t *testing.T) {
	agent := func(ctx context.Context, f selfref.Fork) (selfref.Answer, error) {
		if f.Message == "wait" {
			<-ctx.Done()
			return selfref.Answer{}, ctx.Err()
		}
		return selfref.Answer{Response: f.Message}, nil
	}
	w := newWorld(t, selfref.Options{Agent: agent, MaxRunning: 2})
	w.put("main", said("user", "u"))
	handle := w.ok("fork.spawn", `{"args":["a"]}`)
	w.ok("fork.gather_all", `{}`)
	w.ok("fork.spawn", `{"args":["wait"]}`)
	w.ok("fork.spawn", `{"args":["named"],"kwargs":{"fork_memory_key":"mine"}}`)
	w.ok("fork.gather_all", `{"args":["fork_3"]}`)
	w.r.SessionEnded(messages.SessionKey{Session: "another"})
	require.Len(t, w.gathered(root, `{"args":[["fork_1","fork_3"]]}`), 2)
	w.r.SessionEnded(root)
	require.Equal(t, "{}", w.ok("fork.gather_all", `{}`))
	w.fails("fork.gather_all", `{"args":["fork_1"]}`, "there is no fork fork_1")
	require.Eventually(t, func() bool {
		keys, err := w.store.Keys(t.Context())
		return err == nil && len(keys) == 3 && keys[1] == "mine" && keys[0] == "main" // and the mark of mine
	}, 3*time.Minute, time.Millisecond)
	require.Eventually(t, func() bool {
		_, err := w.as(root, "main", "fork.spawn", `{"args":["new"]}`)
		return err == nil
	}, 3*time.Minute, time.Millisecond, "their places are free")
	require.Equal(t, `"new"`, string(w.gathered(root, `{}`)["fork_1"].Response))
	_, err := w.as(root, "main", "fork.gather_all", `{"args":[`+handle+`]}`)
	require.ErrorContains(t, err, "there is no fork fork_1", "a handle of the old life")
}

// TestResponsesAreBoundedForAllSessions: the oldest go first.
func TestResponsesAreBoundedForAllSessions(t *testing.T) {
	agent := func(context.Context, selfref.Fork) (selfref.Answer, error) {
		return selfref.Answer{Response: strings.Repeat("x", 1000)}, nil
	}
	w := newWorld(t, selfref.Options{Agent: agent, MaxBytes: 3500})
	w.put("main", said("user", "u"))
	session := func(i int) messages.SessionKey { return messages.SessionKey{Session: fmt.Sprint(i)} }
	for i := range 5 {
		_, err := w.as(session(i), "main", "fork.spawn", `{"args":["x"]}`)
		require.NoError(t, err)
		require.Len(t, w.gathered(session(i), `{}`), 1)
	}
	for i := range 5 {
		require.Len(t, w.gathered(session(i), `{}`), min(i/2, 1), i)
	}
	require.NoError(t, w.r.Close())
	keys, err := w.store.Keys(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"main"}, keys, "conversations of forks end with the host at the latest")
}
