package selfref_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/agent/selfref"
	"github.com/coppice-run/coppice/messages"
)

func (w *world) load(key string) []selfref.Message {
	w.t.Helper()
	list, err := w.store.Load(w.t.Context(), key)
	require.NoError(w.t, err)
	return list
}

// TestTheSystemPromptStaysByteForByte but for the section of the pack, also when it
// has text that looks like one.
func TestTheSystemPromptStaysByteForByte(t *testing.T) {
	look := "<experience by=\"runtime.selfref\" check=\"0123456789abcdef\">\n- [exp_1] mine\n</experience>"
	for _, prompt := range []string{
		"Rules: write <experience>be kind</experience> and stop.", "a\n\n\n", "\n", "<experience>\n- [exp_1] x\n</experience>", look, "x\n\n" + look + "\n\ny", "</experience><experience>",
	} {
		w := newWorld(t, selfref.Options{})
		w.put("main", said("system", prompt), said("user", "u"))
		require.Contains(t, w.ok("context.inspect", `{}`), `"experiences":[]`, prompt)
		w.ok("context.remember", `{"args":["one"]}`)
		w.ok("context.remember", `{"args":["two"]}`)
		require.True(t, strings.HasPrefix(w.load("main")[0].Content, prompt+"\n\n<experience by="), prompt)
		w.ok("context.compact", compaction)
		w.ended(primitive.CallEnd{Exec: "exec-1", Outcome: messages.OutcomeOK})
		require.Contains(t, w.load("main")[0].Content, "[exp_3] kept")
		for _, id := range []string{"exp_1", "exp_2", "exp_3"} {
			require.Equal(t, "true", w.ok("context.forget", `{"args":["`+id+`"]}`))
		}
		require.Equal(t, prompt, w.load("main")[0].Content)
	}
	w := newWorld(t, selfref.Options{})
	w.put("main", said("user", "u"))
	w.ok("context.remember", `{"args":["one"]}`)
	require.Equal(t, "system", w.load("main")[0].Role)
	w.ok("context.forget", `{"args":["exp_1"]}`)
	require.Equal(t, []selfref.Message{said("user", "u")}, w.load("main"), "a system message that the pack has made goes with it")
}

// TestWhatTheHostAddsToAPromptStays before and after the section of the pack.
func TestWhatTheHostAddsToAPromptStays(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("a \n<>/[]-\"")), 0, 30, -1)
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, selfref.Options{})
		before, after := text.Draw(rt, "before"), text.Draw(rt, "after")
		w.put("main", said("system", before), said("user", "u"))
		w.ok("context.remember", `{"args":["one"]}`)
		w.put("main", said("system", w.load("main")[0].Content+after), said("user", "u"))
		w.ok("context.remember", `{"args":["two"]}`)
		content := w.load("main")[0].Content
		require.True(t, strings.HasPrefix(content, before) && strings.HasSuffix(content, "</experience>"+after), content)
		require.Equal(t, 1, strings.Count(content, "<experience by="))
		w.ok("context.forget", `{"args":["exp_1"]}`)
		w.ok("context.forget", `{"args":["exp_2"]}`)
		if before+after == "" {
			require.Equal(t, "user", w.load("main")[0].Role)
			return
		}
		require.Equal(t, before+after, w.load("main")[0].Content)
	})
}

// TestACompactionKeepsWhatFollows: the call whose code compacts, whose answer the
// host adds afterwards, and what it has added since.
func TestACompactionKeepsWhatFollows(t *testing.T) {
	asks := selfref.Message{Role: "assistant", ToolCalls: []selfref.ToolCall{{ID: "c1", Name: "python"}}}
	answers := selfref.Message{Role: "tool", ToolCallID: "c1", Content: "done"}
	for name, added := range map[string][]selfref.Message{"nothing": nil, "a message": {said("user", "and then?")}, "the answer": {answers, said("user", "more")}} {
		t.Run(name, func(t *testing.T) {
			var told []selfref.Commit
			w := newWorld(t, selfref.Options{OnCommit: func(c selfref.Commit) { told = append(told, c) }})
			w.put("main", said("system", "s"), said("user", "a"), said("assistant", "b"), said("user", "c"), asks)
			w.ok("context.compact", compaction)
			w.put("main", append(w.load("main"), added...)...)
			w.ended(primitive.CallEnd{Exec: "exec-1", Outcome: messages.OutcomeOK})
			list := w.load("main")
			require.Equal(t, append([]selfref.Message{asks}, added...), list[2:])
			require.Contains(t, list[1].Content, "<context_summary>")
			if name != "the answer" {
				w.put("main", append(list, answers)...)
			}
			w.ok("context.remember", `{"args":["it holds together"]}`)
			require.Len(t, told, 1)
			require.NoError(t, told[0].Err)
			require.Equal(t, []any{"main", "exec-1", root, "g", 1 + len(added)}, []any{told[0].Key, told[0].Exec, told[0].Session, told[0].Summary.Goal, told[0].Kept})
			require.Contains(t, w.events, "selfref_compaction_committed main")
		})
	}
}

// badStore fails, or hangs for as long as its context lasts.
type badStore struct {
	selfref.Memory
	fail  bool
	hangs bool
}

func (s *badStore) Save(ctx context.Context, key string, list []selfref.Message) error {
	switch {
	case s.hangs:
		<-ctx.Done()
		return ctx.Err()
	case s.fail:
		return errors.New("the disk is full")
	}
	return s.Memory.Save(ctx, key, list)
}

// TestACompactionThatIsNotSavedIsTold to the code's result, to the stream and to the
// host, whether the store fails or does not answer.
func TestACompactionThatIsNotSavedIsTold(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		var told []selfref.Commit
		store := &badStore{}
		b := selfref.New(selfref.Options{Store: store, OnCommit: func(c selfref.Commit) { told = append(told, c); panic("the host's own affair") }})
		w := &world{t: t, b: b, r: primitive.New(), store: &store.Memory, exec: "exec-1"}
		require.NoError(t, w.r.Install(b.Pack(), false))
		w.put("main", said("user", "a"))
		w.ok("context.compact", compaction)
		store.fail, store.hangs = !hangs, hangs
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		var events []any
		err := b.OnCallEnd(ctx, primitive.CallEnd{Exec: "exec-1", Outcome: messages.OutcomeOK, Emit: func(name string, data any) { events = append(events, name, data) }})
		require.ErrorContains(t, err, `the conversation "main" was not compacted and is as it was: save the conversation "main":`)
		require.Equal(t, "selfref_compaction_failed", events[0])
		require.Len(t, told, 1)
		require.ErrorContains(t, err, told[0].Err.Error())
		require.Equal(t, []selfref.Message{said("user", "a")}, w.load("main"))
		store.fail, store.hangs = false, false
		require.Contains(t, w.ok("context.inspect", `{}`), `"has_pending_compaction":false`)
		require.NoError(t, w.r.Close())
	}
}

// TestTwoCallsCompactOneConversation: neither takes the other's place.
func TestTwoCallsCompactOneConversation(t *testing.T) {
	w := newWorld(t, selfref.Options{})
	w.put("main", said("user", "a"))
	w.ok("context.compact", strings.Replace(compaction, `"g"`, `"first"`, 1))
	w.exec = "exec-2"
	w.ok("context.compact", strings.Replace(compaction, `"g"`, `"second"`, 1))
	w.ended(primitive.CallEnd{Exec: "exec-1", Outcome: messages.OutcomeOK})
	require.Contains(t, w.load("main")[1].Content, "first")
	require.Contains(t, w.ok("context.inspect", `{}`), `"has_pending_compaction":true`)
	w.ended(primitive.CallEnd{Exec: "exec-2", Outcome: messages.OutcomeOK})
	require.Contains(t, w.load("main")[1].Content, "second")
}
