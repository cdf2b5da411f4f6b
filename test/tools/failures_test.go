//go:build linux

package tools_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/toolbox"
)

// TestWhatAUserSees is the table of failures: what is wrong with the tool, and
// the words that its user gets.
func TestWhatAUserSees(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tool    toolbox.Tool
		do      string
		arg     any
		outcome messages.Outcome
		kind    messages.ToolErrorKind
		message string
		hint    string
		stderr  string
	}{
		"it raises on start": {
			tool: toolbox.Tool{Env: "START=raise"}, outcome: messages.OutcomeNotStarted, kind: messages.ToolErrorSpawn,
			message: "the tool x could not be started: it exited with code 1 before it was healthy", hint: "main.py ends on start", stderr: "RuntimeError: no good start",
		},
		"a package is missing": {
			tool: toolbox.Tool{Env: "START=import"}, outcome: messages.OutcomeNotStarted, kind: messages.ToolErrorSpawn,
			message: "exited with code 1", hint: "coppice tool setup x", stderr: "ModuleNotFoundError",
		},
		"it starts no server": {
			tool: toolbox.Tool{Env: "START=exit"}, outcome: messages.OutcomeNotStarted, kind: messages.ToolErrorSpawn,
			message: "it exited with code 0 before it was healthy", hint: `if __name__ == "__main__": missing`,
		},
		"it has no environment": {
			tool: toolbox.Tool{NoVenv: true}, outcome: messages.OutcomeNotStarted, kind: messages.ToolErrorVenv,
			message: "there is no interpreter at", hint: "coppice tool setup x",
		},
		"a secret is missing": {
			tool:    toolbox.Tool{Set: map[string]any{"secrets": []any{map[string]any{"key": "API_KEY", "required": true}}}},
			outcome: messages.OutcomeNotStarted, kind: messages.ToolErrorSecret, message: "the secret API_KEY is required and not set", hint: ".env",
		},
		"its .env is broken": {
			tool: toolbox.Tool{Env: "A\"=b c"}, outcome: messages.OutcomeNotStarted, kind: messages.ToolErrorSecret, message: "it is not in the form NAME=value",
		},
		"the inputs do not fit": {
			do: "422", outcome: messages.OutcomeError, kind: messages.ToolErrorInput,
			message: "the tool refused the inputs (status 422): n: not a number", hint: "those that tool.json declares",
		},
		"it raises in a run": {
			do: "raise", outcome: messages.OutcomeError, kind: messages.ToolErrorTool,
			message: "the tool failed (status 500): RuntimeError: it broke", hint: "view stderr", stderr: "Traceback",
		},
		"it fails without a word": {
			do: "quiet", outcome: messages.OutcomeError, kind: messages.ToolErrorTool,
			message: "the tool failed (status 500): something went wrong", hint: "it caught its own exception",
		},
		"it returns no object": {
			do: "bad", arg: []any{1, 2}, outcome: messages.OutcomeError, kind: messages.ToolErrorOutput,
			message: `the tool returned "[1, 2]", which is not an object of its outputs`,
		},
		"an output is missing": {
			do: "bad", arg: map[string]any{"other": 1}, outcome: messages.OutcomeError, kind: messages.ToolErrorOutput,
			message: "the outputs are not those that tool.json declares: result: the output is missing",
		},
		"an output is of another type": {
			do: "bad", arg: map[string]any{"result": 3}, outcome: messages.OutcomeError, kind: messages.ToolErrorOutput,
			message: "expected to be an object, or a list, and is a number",
		},
		"it ends in a run": {
			do: "exit", arg: 3, outcome: messages.OutcomeLost, kind: messages.ToolErrorCrashed,
			message: "the tool exited with code 3 during the run", hint: "the next run starts it again", stderr: "last words",
		},
		"it is killed in a run": {
			do: "kill", outcome: messages.OutcomeLost, kind: messages.ToolErrorCrashed, message: "the tool was ended by signal 9 (killed) during the run",
		},
		"its stream fails": {
			tool: toolbox.Tool{Stream: true}, do: "stream_error", outcome: messages.OutcomeError, kind: messages.ToolErrorTool, message: "the tool failed: it broke on the way",
		},
		"its stream ends early": {
			tool: toolbox.Tool{Stream: true}, do: "stream_exit", arg: 4, outcome: messages.OutcomeLost, kind: messages.ToolErrorCrashed, message: "exited with code 4",
		},
		"its stream never begins": {
			tool: toolbox.Tool{Stream: true}, do: "422", outcome: messages.OutcomeError, kind: messages.ToolErrorInput, message: "n: not a number",
		},
		"its file is broken": {
			tool: toolbox.Tool{Set: map[string]any{"warm_keep_secondz": 3}}, outcome: messages.OutcomeNotStarted, kind: messages.ToolErrorSpec,
			message: `warm_keep_secondz: the key is not known; did you mean "warm_keep_seconds"?`, hint: "coppice tool validate x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.tool.ID = "x"
			h := start(t, launcher.Options{}, tc.tool)
			do := tc.do
			if do == "" {
				do = "echo"
			}
			r := h.run("x", do, tc.arg)
			require.Equal(t, tc.outcome, r.Outcome, "%+v", r.Error)
			require.NotNil(t, r.Error)
			require.Equal(t, tc.kind, r.Error.Kind)
			require.Contains(t, r.Error.Message, tc.message)
			require.Contains(t, r.Error.Hint, tc.hint)
			require.Contains(t, r.Error.Stderr, tc.stderr)
		})
	}
}

// TestAToolThatIsNeverHealthy says what it did instead, once the time is up. All
// of them wait at the same time.
func TestAToolThatIsNeverHealthy(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{StartTimeout: 10 * time.Second},
		toolbox.Tool{ID: "elsewhere", Env: "START=elsewhere"}, toolbox.Tool{ID: "sick", Env: "START=sick"}, toolbox.Tool{ID: "empty", Env: "START=empty"})
	ended := map[string]<-chan messages.ToolResult{}
	says := map[string]string{"elsewhere": "connection refused", "sick": "it answered with status 503", "empty": `it answered "{}", not {"ok": true}`}
	for id := range says {
		ended[id] = h.begin(id, id, "echo")
	}
	for id, text := range says {
		r := await(t, ended[id])
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome, id)
		require.Equal(t, messages.ToolErrorSpawn, r.Error.Kind)
		require.Regexp(t, `^the tool `+id+` could not be started: it did not become healthy in time: after \d\d`, r.Error.Message, "10 s, and more on a busy machine")
		require.Contains(t, r.Error.Message, "/healthz says: ")
		require.Contains(t, r.Error.Message, text)
		require.Contains(t, r.Error.Hint, "at the port that --port names")
	}
}

// TestAnUnknownTool names those that there are.
func TestAnUnknownTool(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "here"})
	r := h.run("there", "echo")
	require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
	require.Equal(t, messages.ToolErrorNotFound, r.Error.Kind)
	require.Contains(t, r.Error.Message, `no such tool: "there"; the tools in `+h.Box.Dir+" are here")
}

// TestDriftIsAWarning: a process that describes itself otherwise than tool.json
// serves, and says so once.
func TestDriftIsAWarning(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Env: "START=drift"})
	r := h.run("x", "echo", 1)
	require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
	require.Len(t, r.Warnings, 1)
	require.Contains(t, r.Warnings[0], `schema drift: name: "x" in tool.json, "another name" in the process`)
	require.Contains(t, r.Warnings[0], `outputs[0].type: "tree" in tool.json, "text" in the process`)
	require.Empty(t, h.run("x", "echo", 1).Warnings, "the second run has nothing new to say")
	require.Len(t, h.tool("x").Drift, 2)
}

// TestAFailureIsNotHeldAgainstATool: what was mended on the disk counts for the
// next run, and the failure is remembered.
func TestAFailureIsNotHeldAgainstATool(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Env: "START=raise"})
	require.Equal(t, messages.OutcomeNotStarted, h.run("x", "echo").Outcome)
	state := h.tool("x")
	require.Equal(t, messages.ChildGone, state.State)
	require.Contains(t, state.Failure.Error.Stderr, "no good start")
	log, err := h.Logs(t.Context(), "x")
	require.NoError(t, err)
	require.True(t, log.Known)
	require.False(t, log.Live)
	require.Contains(t, log.Text, "no good start")
	h.Write("x", ".env", "TOOLBOX_MARK="+h.Mark+"\n")
	h.ok("x", "echo", 1)
	require.NotNil(t, h.tool("x").Failure, "it is still told of")
}

// TestACrashBetweenRuns: the next run gets a new process, and what the old one
// wrote is kept.
func TestACrashBetweenRuns(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{}, toolbox.Tool{ID: "x"})
	r := h.run("x", "exit", 7)
	require.Equal(t, messages.OutcomeLost, r.Outcome)
	h.eventually(func() bool { return h.tool("x").State == messages.ChildGone }, "the end")
	log, err := h.Logs(t.Context(), "x")
	require.NoError(t, err)
	require.True(t, log.Known && !log.Live)
	require.Contains(t, log.Text, "last words")
	require.Contains(t, h.tool("x").Failure.Error.Message, "exited with code 7")
	r = h.run("x", "echo", 2)
	require.Equal(t, messages.OutcomeOK, r.Outcome)
	require.True(t, r.Cold)
	require.Equal(t, 2, h.Lines("x", "starts.log"))
}

// TestASlowStartIsAwaited: nothing is wrong with a tool that takes its time, and
// its body is read: a status of 200 that says no is a no.
func TestASlowStartIsAwaited(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"slow 2", "late 1"} {
		h := start(t, launcher.Options{}, toolbox.Tool{ID: "x", Env: "START=" + how})
		r := h.run("x", "echo", 1)
		require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
		require.Equal(t, 1, h.Lines("x", "starts.log"))
	}
}

// TestATiredToolIsReplaced: one that does not say that it is well while nobody
// uses it is ended, and the next run starts another one.
func TestATiredToolIsReplaced(t *testing.T) {
	t.Parallel()
	h := start(t, launcher.Options{Heartbeat: 200 * time.Millisecond}, toolbox.Tool{ID: "x", Env: "START=tired"})
	h.ok("x", "echo", 1)
	h.eventually(func() bool { return h.tool("x").State == messages.ChildGone }, "the end of a tool that is not well")
	require.Contains(t, h.tool("x").Failure.Error.Message, "did not answer /healthz")
	h.ok("x", "echo", 1)
}
