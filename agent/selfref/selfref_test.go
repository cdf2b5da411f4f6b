package selfref_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/agent/selfref"
	"github.com/coppice-run/coppice/messages"
)

// world is a backend with its registry, as a host wires them.
type world struct {
	t      *testing.T
	b      *selfref.Backend
	r      *primitive.Registry
	store  *selfref.Memory
	exec   string
	mu     sync.Mutex
	events []string
}

var root = messages.SessionKey{Session: "root"}

func newWorld(t *testing.T, o selfref.Options) *world {
	t.Helper()
	w := &world{t: t, store: &selfref.Memory{}, r: primitive.New(), exec: "exec-1"}
	o.Store = w.store
	w.b = selfref.New(o)
	require.NoError(t, w.r.Install(w.b.Pack(), false))
	t.Cleanup(func() { require.NoError(t, w.r.Close()) })
	return w
}

// as makes a call of a session and returns its value.
func (w *world) as(session messages.SessionKey, memory, name, arguments string) (string, error) {
	reply, err := w.r.Call(w.t.Context(), &primitive.Call{
		Name: "selfref." + name, Session: session, Exec: w.exec, Memory: memory,
		Emit: func(name string, data any) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, fmt.Sprint(name, " ", data.(map[string]any)["fork_id"]))
		},
	}, json.RawMessage(arguments))
	return string(reply.Value), err
}

func (w *world) ok(name, arguments string) string {
	w.t.Helper()
	got, err := w.as(root, "", name, arguments)
	require.NoError(w.t, err, name)
	return got
}

func (w *world) fails(name, arguments, want string) {
	w.t.Helper()
	_, err := w.as(root, "", name, arguments)
	require.ErrorContains(w.t, err, want, name)
}

// ended ends a call, as a host does.
func (w *world) ended(end primitive.CallEnd) {
	w.t.Helper()
	require.NoError(w.t, w.end(end))
}

func (w *world) end(end primitive.CallEnd) error {
	end.Emit = func(name string, data any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, fmt.Sprint(name, " ", data.(map[string]any)["memory_key"]))
	}
	return w.b.OnCallEnd(w.t.Context(), end)
}

func (w *world) put(key string, list ...selfref.Message) {
	require.NoError(w.t, w.store.Save(w.t.Context(), key, list))
}

// plain takes what no one can know out of the keys of forks.
func plain(text string) string {
	return regexp.MustCompile(`(::fork::\d+)-[0-9a-f]{12}`).ReplaceAllString(text, "$1-KEY")
}

func said(role, text string) selfref.Message { return selfref.Message{Role: role, Content: text} }

func TestMemoryIsPartOfTheSystemMessage(t *testing.T) {
	w := newWorld(t, selfref.Options{})
	w.fails("context.inspect", `{}`, "there are 0 conversations; say which one with key")
	w.put("main", said("system", "be good"), said("user", "hello"))
	require.JSONEq(t, `{"id":"exp_1","text":"a <b> fact"}`, w.ok("context.remember", `{"args":["  a <b>\n fact "]}`))
	require.JSONEq(t, `{"id":"exp_1","text":"a <b> fact"}`, w.ok("context.remember", `{"kwargs":{"text":"a <b> fact"}}`))
	require.JSONEq(t, `{"id":"exp_2","text":"</experience>"}`, w.ok("context.remember", `{"args":["</experience>"]}`))
	list, err := w.store.Load(t.Context(), "main")
	require.NoError(t, err)
	require.Equal(t, "be good\n\n<experience by=\"runtime.selfref\" check=\"34a636bdefd7e8fb\">\n- [exp_1] a &lt;b&gt; fact\n- [exp_2] &lt;/experience&gt;\n</experience>", list[0].Content)
	require.Equal(t, "hello", list[1].Content)
	require.Equal(t, "true", w.ok("context.forget", `{"args":["exp_1"]}`))
	require.Equal(t, "false", w.ok("context.forget", `{"args":["exp_1"]}`))
	require.JSONEq(t, `{"id":"exp_3","text":"more"}`, w.ok("context.remember", `{"args":["more"]}`), "ids are not used again")
	var got struct {
		Key         string               `json:"active_key"`
		Experiences []selfref.Experience `json:"experiences"`
		Summary     *selfref.Summary     `json:"summary"`
		Messages    []selfref.Message    `json:"messages"`
		Pending     bool                 `json:"has_pending_compaction"`
	}
	require.NoError(t, json.Unmarshal([]byte(w.ok("context.inspect", `{}`)), &got))
	require.Equal(t, "main", got.Key)
	require.Equal(t, []selfref.Experience{{ID: "exp_2", Text: "</experience>"}, {ID: "exp_3", Text: "more"}}, got.Experiences)
	require.Nil(t, got.Summary)
	require.Len(t, got.Messages, 2)
	w.fails("context.remember", `{"args":[" \n"]}`, "blank")
	w.fails("context.remember", `{"args":[5]}`, "text must be str")
	w.fails("context.inspect", `{"args":["other"]}`, `KeyError: there is no conversation "other"`)
	w.put("second", said("user", "x"))
	w.fails("context.inspect", `{}`, "there are 2 conversations")
	got.Key = ""
	text, err := w.as(root, "second", "context.inspect", `{}`)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Equal(t, "second", got.Key)
}

const compaction = `{"kwargs":{"goal":"g","instruction":"## i\nline","discoveries":["d1"," ","d2"],"completed":[],"current_status":"s","likely_next_work":["n"],"relevant_files_directories":["f"],"remember":["kept"]}}`

func TestACompactionIsCommittedAtTheEndOfItsCall(t *testing.T) {
	for _, outcome := range []messages.Outcome{messages.OutcomeOK, messages.OutcomeError, messages.OutcomeLost} {
		w := newWorld(t, selfref.Options{})
		w.put("main", said("system", "sys"), said("user", "a"), said("assistant", "b"))
		w.fails("context.compact", strings.Replace(compaction, `"g"`, `" "`, 1), "goal is blank")
		w.fails("context.compact", strings.Replace(compaction, `["n"]`, `[5]`, 1), "likely_next_work must be list[str]")
		w.ok("context.compact", strings.Replace(compaction, `"g"`, `"first"`, 1))
		require.Contains(t, w.ok("context.compact", compaction), `"status":"queued"`)
		require.Contains(t, w.ok("context.inspect", `{}`), `"has_pending_compaction":true`)
		w.ended(primitive.CallEnd{Exec: "another", Outcome: outcome})
		require.Contains(t, w.ok("context.inspect", `{}`), `"has_pending_compaction":true`)
		w.ended(primitive.CallEnd{Exec: "exec-1", Outcome: outcome})
		list, err := w.store.Load(t.Context(), "main")
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.Contains(t, list[0].Content, "- [exp_1] kept")
		require.Equal(t, 7, strings.Count("\n"+list[1].Content, "\n## "))
		var got struct{ Summary selfref.Summary }
		require.NoError(t, json.Unmarshal([]byte(w.ok("context.inspect", `{}`)), &got))
		require.Equal(t, selfref.Summary{Goal: "g", Instruction: "## i\nline", Discoveries: []string{"d1", "d2"}, Completed: []string{}, CurrentStatus: "s", LikelyNext: []string{"n"}, Relevant: []string{"f"}}, got.Summary)
	}
}

// TestSummariesComeBack whatever their texts are.
func TestSummariesComeBack(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.TrimSpace(rapid.StringOfN(rapid.SampledFrom([]rune("a \n#<>&/\\-_s")), 1, 40, -1).Draw(t, "text") + "x")
	})
	line := rapid.Map(text, func(s string) string { return strings.Join(strings.Fields(s), " ") })
	comesBack := func(in selfref.Summary) {
		w := newWorld(t, selfref.Options{})
		w.put("k", said("system", "s"), said("user", "u"))
		raw, err := json.Marshal(map[string]any{"kwargs": in})
		require.NoError(t, err)
		w.ok("context.compact", string(raw))
		w.ended(primitive.CallEnd{Exec: "exec-1"})
		var got struct{ Summary selfref.Summary }
		require.NoError(t, json.Unmarshal([]byte(w.ok("context.inspect", `{}`)), &got))
		require.Equal(t, in, got.Summary)
	}
	for _, text := range []string{"## x", `\## x`, `\\## x`, "x\n## x", "x\n\\## x", "x\n\\\\## x", `\##x`} {
		comesBack(selfref.Summary{Goal: text, Instruction: text, CurrentStatus: text, Discoveries: []string{}, Completed: []string{}, LikelyNext: []string{}, Relevant: []string{}})
	}
	rapid.Check(t, func(rt *rapid.T) {
		comesBack(selfref.Summary{
			Goal: text.Draw(rt, "goal"), Instruction: text.Draw(rt, "instruction"), CurrentStatus: text.Draw(rt, "status"),
			Discoveries: rapid.SliceOfN(line, 0, 3).Draw(rt, "d"), Completed: rapid.SliceOfN(line, 0, 3).Draw(rt, "c"),
			LikelyNext: rapid.SliceOfN(line, 0, 3).Draw(rt, "n"), Relevant: rapid.SliceOfN(line, 0, 3).Draw(rt, "r"),
		})
	})
}

func TestSnapshotsHideTheCallThatForks(t *testing.T) {
	calls := selfref.Message{Role: "assistant", ToolCalls: []selfref.ToolCall{{ID: "1"}, {ID: "2"}}}
	answer := selfref.Message{Role: "tool", ToolCallID: "1"}
	user := said("user", "u")
	require.Equal(t, []selfref.Message{user}, selfref.Snapshot([]selfref.Message{user, calls}))
	require.Equal(t, []selfref.Message{user}, selfref.Snapshot([]selfref.Message{user, calls, answer}))
	whole := []selfref.Message{user, calls, answer, {Role: "tool", ToolCallID: "2"}}
	require.Equal(t, whole, selfref.Snapshot(whole))
	require.Empty(t, selfref.Snapshot(nil))
	require.NoError(t, selfref.Check(whole))
	require.ErrorContains(t, selfref.Check([]selfref.Message{answer}), "which was not made")
	require.ErrorContains(t, selfref.Check([]selfref.Message{said("robot", "")}), `the role "robot"`)
}

func TestForks(t *testing.T) {
	gate := make(chan struct{})
	var seen sync.Map
	agent := func(ctx context.Context, f selfref.Fork) (selfref.Answer, error) {
		seen.Store(f.ID, f)
		switch f.Message {
		case "wait":
			select {
			case <-gate:
			case <-ctx.Done():
				return selfref.Answer{}, ctx.Err()
			}
		case "fail":
			return selfref.Answer{}, errors.New("it did not work")
		case "panic":
			panic("secret")
		case "bad":
			return selfref.Answer{Response: func() {}}, nil
		}
		return selfref.Answer{Response: "did " + f.Message}, nil
	}
	w := newWorld(t, selfref.Options{Agent: agent, MaxRunning: 2})
	w.put("main", said("system", "s"), said("user", "u"), selfref.Message{Role: "assistant", ToolCalls: []selfref.ToolCall{{ID: "1"}}})
	require.Equal(t, "true", w.ok("fork.is_bound", `{}`))
	require.JSONEq(t, `{"fork_id":"fork_1","parent_fork_id":null,"depth":1,"source_memory_key":"main","memory_key":"main::fork::1-KEY","status":"running"}`, plain(w.ok("fork.spawn", `{"args":["wait"],"kwargs":{"tone":"kind"}}`)))
	w.ok("fork.spawn", `{"args":["wait"],"kwargs":{"source_memory_key":"main","fork_memory_key":"mine","kernel":"live"}}`)
	w.fails("fork.gather_all", `{"args":["fork_2"]}`, "fork_2 copies this interpreter when the call has ended")
	w.fails("fork.spawn", `{"args":["more"]}`, "2 forks run already, and 2 is the most")
	w.fails("fork.spawn", `{"args":["x"],"kwargs":{"include_history":true}}`, "TypeError: spawn takes no include_history")
	w.fails("fork.spawn", `{"args":[" "]}`, "blank")
	w.fails("fork.spawn", `{"args":["x"],"kwargs":{"kernel":"warm"}}`, "fresh or live")
	w.fails("fork.gather_all", `{"args":["fork_9"]}`, "KeyError: there is no fork fork_9")
	w.fails("fork.gather_all", `{"args":[[5]]}`, "TypeError: fork_ids are ids or handles")
	close(gate)
	w.exec = "exec-2"
	require.JSONEq(t, `{"fork_1":{"status":"completed","fork_id":"fork_1","parent_fork_id":null,"depth":1,"source_memory_key":"main","memory_key":"main::fork::1-KEY","response":"did wait","result":"did wait","history_count":2,"history_included":true,"history":[{"role":"system","content":"s"},{"role":"user","content":"u"}]}}`,
		plain(w.ok("fork.gather_all", `{"args":[{"fork_id":"fork_1"}],"kwargs":{"include_history":true}}`)))
	first, _ := seen.Load("fork_1")
	require.JSONEq(t, `"kind"`, string(first.(selfref.Fork).Args["tone"]))
	for first, _ = seen.Load("fork_2"); first == nil; first, _ = seen.Load("fork_2") {
		w.ok("fork.gather_all", `{"args":["fork_2"]}`)
	}
	second := first.(selfref.Fork)
	require.True(t, second.Live)
	require.Equal(t, "mine", second.Key)
	require.Empty(t, second.Args)

	for i := 3; i <= 11; i++ {
		w.ok("fork.spawn", fmt.Sprintf(`{"args":[%q]}`, []string{"fail", "panic", "bad", "a"}[min(i-3, 3)]))
		w.ok("fork.gather_all", fmt.Sprintf(`{"args":["fork_%d"]}`, i))
	}
	text := w.ok("fork.gather_all", `{}`)
	require.Less(t, strings.Index(text, `"fork_2":`), strings.Index(text, `"fork_10":`), "natural order")
	require.True(t, strings.HasPrefix(text, `{"fork_1":{"status":`), "status first")
	var all map[string]selfref.ForkResult
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	require.Len(t, all, 11)
	require.Equal(t, "RuntimeError it did not work", all["fork_3"].ErrorType+" "+all["fork_3"].ErrorMessage)
	require.Equal(t, "null null", string(all["fork_3"].Response)+" "+string(all["fork_3"].Result))
	require.Equal(t, "the agent failed inside (panicked)", all["fork_4"].ErrorMessage)
	require.Equal(t, "TypeError", all["fork_5"].ErrorType)
	require.Nil(t, all["fork_6"].History)
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Subset(t, w.events, []string{"selfref_fork_spawned fork_1", "selfref_fork_start fork_1", "selfref_fork_end fork_1", "selfref_fork_error fork_3"})
}

func TestForksOfForks(t *testing.T) {
	var w *world
	child := func(id string) messages.SessionKey { return messages.SessionKey{Session: "child-" + id} }
	agent := func(_ context.Context, f selfref.Fork) (selfref.Answer, error) {
		key := child(f.ID)
		f.Bind(key)
		got, err := w.as(key, "", "fork.spawn", `{"args":["deeper"]}`)
		if err != nil {
			return selfref.Answer{Response: err.Error()}, nil
		}
		inner, err := w.as(key, "", "fork.gather_all", `{}`)
		return selfref.Answer{Response: []json.RawMessage{json.RawMessage(got), json.RawMessage(inner)}}, err
	}
	w = newWorld(t, selfref.Options{Agent: agent, MaxDepth: 2})
	w.put("main", said("user", "u"))
	w.ok("fork.spawn", `{"args":["start"]}`)
	text := w.ok("fork.gather_all", `{}`)
	require.Contains(t, text, `"parent_fork_id":"fork_1"`)
	require.Contains(t, plain(text), `"depth":2,"source_memory_key":"main::fork::1-KEY","memory_key":"main::fork::1-KEY::fork::2-KEY"`)
	require.Contains(t, text, "forks of forks may be 2 deep, and this one would be 3")
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	require.Len(t, all, 1, "the forks of a fork are its own")
}

func TestForksAreCancelled(t *testing.T) {
	started := make(chan struct{}, 8)
	agent := func(ctx context.Context, _ selfref.Fork) (selfref.Answer, error) {
		started <- struct{}{}
		<-ctx.Done()
		return selfref.Answer{}, ctx.Err()
	}
	w := newWorld(t, selfref.Options{Agent: agent})
	w.put("main", said("user", "u"))
	for range 3 {
		w.ok("fork.spawn", `{"args":["x"]}`)
		<-started
	}
	require.Equal(t, "true", w.ok("fork.cancel", `{"args":["fork_1"]}`))
	require.Contains(t, w.ok("fork.gather_all", `{"args":["fork_1"]}`), `"error_type":"CancelledError","error_message":"the fork was cancelled"`)
	require.Equal(t, "false", w.ok("fork.cancel", `{"args":["fork_1"]}`))

	w.ended(primitive.CallEnd{Exec: "exec-1", Outcome: messages.OutcomeOK}) // they run on
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := w.r.Call(ctx, &primitive.Call{Name: "selfref.fork.gather_all", Session: root, Emit: func(string, any) {}}, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded, "who waits is not held by a fork")
	w.ended(primitive.CallEnd{Exec: "exec-1", Outcome: messages.OutcomeLost})
	require.Contains(t, w.ok("fork.gather_all", `{"args":["fork_2"]}`), "CancelledError")

	w.ok("fork.spawn", `{"args":["x"]}`)
	<-started
	require.NoError(t, w.r.Close())
	w.fails("fork.spawn", `{"args":["x"]}`, "shutting down")
}

func TestAnAgentThatDoesNotEndIsTold(t *testing.T) {
	over := make(chan struct{})
	store := &selfref.Memory{}
	require.NoError(t, store.Save(t.Context(), "k", []selfref.Message{said("user", "u")}))
	b := selfref.New(selfref.Options{Store: store, CloseTimeout: time.Millisecond, Agent: func(context.Context, selfref.Fork) (selfref.Answer, error) {
		<-over
		return selfref.Answer{}, nil
	}})
	w := &world{t: t, r: primitive.New(), b: b}
	require.NoError(t, w.r.Install(b.Pack(), false))
	w.ok("fork.spawn", `{"args":["x"]}`)
	require.EqualError(t, w.r.Close(), "1 forks have not ended")
	close(over)
	require.Contains(t, w.ok("fork.gather_all", `{}`), `"status":"completed"`)
}

func TestWithoutAnAgentThereAreNoForks(t *testing.T) {
	w := newWorld(t, selfref.Options{})
	w.put("main", said("user", "u"))
	require.Equal(t, "false", w.ok("fork.is_bound", `{}`))
	w.fails("fork.spawn", `{"args":["x"]}`, "it has no agent")
	require.Equal(t, "{}", w.ok("fork.gather_all", `{}`))
	require.Contains(t, w.ok("guide", `{}`), `"namespace":"selfref"`)
	require.Len(t, w.r.Names("selfref.", ""), 11)
	for _, name := range w.r.Names("", "") {
		spec, ok := w.r.Spec(name)
		require.True(t, ok)
		require.NotEmpty(t, spec.BestPractices, name)
	}
}
