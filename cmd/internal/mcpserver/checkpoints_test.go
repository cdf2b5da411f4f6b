package mcpserver_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckpoints: a model keeps a state of its session and goes back to it, any number of
// times; a state is its session's alone, and ends with it.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	cs := client(t, options(t), nil)
	keep := func(session string) string {
		t.Helper()
		r := call(t, cs, "sessions_checkpoint", map[string]any{"session": session})
		require.False(t, r.IsError, text(r))
		data, err := json.Marshal(r.StructuredContent)
		require.NoError(t, err)
		var told struct{ Checkpoint, Session string }
		require.NoError(t, json.Unmarshal(data, &told))
		require.Equal(t, session, told.Session)
		return told.Checkpoint
	}
	run := func(session, code string) string {
		t.Helper()
		args := cells(code)
		args["session"] = session
		return text(call(t, cs, "python", args))
	}
	rewind := func(session, checkpoint string) string {
		t.Helper()
		return text(call(t, cs, "sessions_rewind", map[string]any{"session": session, "checkpoint": checkpoint}))
	}
	run("a", "x = 1")
	first := keep("a")
	for range 2 {
		run("a", "x = 2")
		require.Contains(t, rewind("a", first), "a: put back")
		require.Contains(t, run("a", "x"), "1")
	}
	run("b", "x = 7")
	require.Contains(t, rewind("b", first), `the session has none called`)
	require.Contains(t, run("b", "x"), "7")
	second := ""
	for range 8 { // the first is one too many then
		second = keep("a")
	}
	require.Contains(t, rewind("a", first), `the session has none called`)
	require.Contains(t, rewind("a", second), "a: put back")
	require.False(t, call(t, cs, "sessions_close", map[string]any{"session": "a"}).IsError)
	require.Contains(t, rewind("a", second), `the session has none called`)
	r := call(t, cs, "sessions_checkpoint", map[string]any{"session": "none"})
	require.True(t, r.IsError)
	require.Contains(t, text(r), "it has no kernel")
}
