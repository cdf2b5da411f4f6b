//go:build linux

package integration_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// tool returns a tool of host by name.
func tool(t *testing.T, host *coppice.Host, o agent.Options, name string) agent.Tool {
	t.Helper()
	list, err := agent.Tools(host, o)
	require.NoError(t, err)
	for _, one := range list {
		if one.Name == name {
			return one
		}
	}
	t.Fatalf("there is no tool %s", name)
	return agent.Tool{}
}

// conversation is whose state the tools of a test use.
var conversation = messages.SessionKey{Session: "one"}

// call calls a tool that must be possible to call.
func call(t *testing.T, one agent.Tool, args string) agent.Result {
	t.Helper()
	r, err := one.Call(t.Context(), agent.Call{Arguments: json.RawMessage(args), Session: conversation})
	require.NoError(t, err)
	require.NotEmpty(t, r.Text)
	return r
}

func TestThePythonTool(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, backend string) {
		host := on(t, backend)
		python := tool(t, host, agent.Options{SessionArgument: true}, "python")
		r := call(t, python, `{"cells":[{"code":"x = 40","title":"set"},{"code":"x + 2"}]}`)
		require.Equal(t, "[1/2] set (ok)\n\n[2/2]\n42", r.Text)
		require.False(t, r.IsError)
		require.Equal(t, "42", call(t, python, `{"cells":[{"code":"x + 2"}]}`).Text, "the session lives on")
		require.True(t, call(t, python, `{"cells":[{"code":"x"}],"session":"other"}`).IsError)
		require.Equal(t, "one/other", call(t, python, `{"cells":[],"session":"other"}`).Result.Session)
		r = call(t, python, `{"cells":[{"code":"1/0"},{"code":"2"}]}`)
		require.True(t, r.IsError)
		require.Contains(t, r.Text, "Cell 1 failed (exit code 1). Fix only cell 1.")
		require.Equal(t, messages.CellPending, r.Result.Cells[1].Status)
		require.Equal(t, "(no output)", call(t, python, `{"cells":[]}`).Text)
		require.Equal(t, "(no output)", call(t, python, `{"cells":[{"code":"pass"}]}`).Text)
		r = call(t, python, `{"cells":[{"code":"'x' in globals()"}],"reset":true}`)
		require.Contains(t, r.Text, "False")
		require.Equal(t, messages.StateFresh, r.Result.State)

		begin := time.Now()
		r = call(t, python, `{"cells":[{"code":"while True: pass"}],"timeout":0.01}`)
		require.True(t, r.IsError)
		require.Contains(t, r.Text, "Command timed out after 1 seconds", "at least one")
		require.Greater(t, time.Since(begin), time.Second)

		image := `iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==`
		r = call(t, python, `{"cells":[{"code":"display({'image/png': '`+image+`', 'text/plain': 'dot'}, raw=True)"}]}`)
		require.Len(t, r.Images, 1)

		var seen string
		_, err := python.Call(t.Context(), agent.Call{
			Session: conversation, Arguments: json.RawMessage(`{"cells":[{"code":"print('live')"}]}`), OnEvent: func(e messages.Event) {
				if s, ok := e.(messages.Stream); ok {
					seen += s.Text
				}
			},
		})
		require.NoError(t, err)
		require.Equal(t, "live\n", seen)
	})
}

// TestTwoConversations of one host share nothing, whatever their models name.
func TestTwoConversations(t *testing.T) {
	t.Parallel()
	onBackends(t, func(t *testing.T, backend string) {
		host := start(t, coppice.Options{Backend: backends.Named(backend)})
		python := tool(t, host, agent.Options{SessionArgument: true}, "python")
		for _, session := range []string{"", `,"session":"analysis"`, `,"session":"default"`} {
			for _, chat := range []string{"one", "two"} {
				r, err := python.Call(t.Context(), agent.Call{
					Session:   messages.SessionKey{Session: chat},
					Arguments: json.RawMessage(`{"cells":[{"code":"of_` + chat + ` = 1\nsorted(n for n in globals() if n.startswith('of_'))"}]` + session + `}`),
				})
				require.NoError(t, err)
				require.Equal(t, "['of_"+chat+"']", strings.SplitN(r.Text, "\n", 2)[0])
			}
		}
	})
}

func TestTheEvalTool(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{})})
	eval := tool(t, host, agent.Options{Style: agent.StyleEval}, "eval")
	r := call(t, eval, `{"cells":[{"language":"py","code":"x = 1"},{"language":"py","code":"x + 1","title":"sum"}]}`)
	require.Equal(t, "[1/2] (ok)\n\n[2/2] sum\n2", r.Text)
	r = call(t, eval, `{"cells":[{"language":"py","code":"x"},{"language":"py","code":"'x' in globals()","reset":true},{"language":"py","code":"1/0"},{"language":"py","code":"3"}]}`)
	require.True(t, r.IsError)
	require.Contains(t, r.Text, "[2/4]\nFalse")
	require.Contains(t, r.Text, "Cell 3 failed")
	require.Len(t, r.Result.Cells, 4)
	for i, cell := range r.Result.Cells {
		require.Equal(t, i, cell.Index)
	}
	require.Equal(t, messages.CellPending, r.Result.Cells[3].Status)
	r = call(t, eval, `{"cells":[{"language":"py","code":"y = 1"},{"language":"py","code":"import time; time.sleep(60)","timeout":1}]}`)
	require.Contains(t, r.Text, "timed out after 1 seconds")
	require.Equal(t, "1", call(t, eval, `{"cells":[{"language":"py","code":"y"}]}`).Text)
}

func TestTheREPLTools(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{})})
	o := agent.Options{Style: agent.StyleREPL}
	execute, reset := tool(t, host, o, "execute_code"), tool(t, host, o, "reset_repl")
	call(t, execute, `{"code":"x = 41"}`)
	require.Equal(t, "42", call(t, execute, `{"code":"x + 1"}`).Text)
	require.Contains(t, call(t, reset, `{}`).Text, "reset")
	require.Contains(t, call(t, execute, `{"code":"'x' in globals()"}`).Text, "False")
	require.Contains(t, call(t, execute, `{"code":"import time; time.sleep(60)","timeout_seconds":1}`).Text, "timed out after 1 seconds")
}

func TestTheBashTool(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Bash: true})
	sh := tool(t, host, agent.Options{}, "bash")
	r := call(t, sh, `{"command":"echo out; echo err >&2"}`)
	require.Equal(t, "out\nerr", r.Text)
	require.False(t, r.IsError)
	r = call(t, sh, `{"command":"echo before; exit 7"}`)
	require.True(t, r.IsError)
	require.Equal(t, "before\n\nCommand exited with code 7", r.Text)
	require.Equal(t, 7, *r.Result.Cells[0].ExitCode)
	r = call(t, sh, `{"command":"echo begun; sleep 600","timeout":1}`)
	require.Equal(t, messages.OutcomeTimeout, r.Result.Outcome)
	require.Equal(t, "begun\n\nCommand timed out after 1 seconds", r.Text)
	require.Equal(t, "(no output)", call(t, sh, `{"command":"true"}`).Text)

	dir := t.TempDir()
	r, err := sh.Call(t.Context(), agent.Call{Arguments: json.RawMessage(`{"command":"pwd"}`), Session: messages.SessionKey{Session: "one", Cwd: dir}})
	require.NoError(t, err)
	real, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	require.Equal(t, real, r.Text)

	r = call(t, sh, `{"command":"seq 200000"}`)
	require.NotNil(t, r.Result.Truncation)
	require.NotNil(t, r.Result.Artifact)

	ctx, cancel := context.WithCancel(t.Context())
	r, err = sh.Call(ctx, agent.Call{Session: conversation, Arguments: json.RawMessage(`{"command":"echo $$; sleep 600"}`), OnEvent: func(messages.Event) { cancel() }})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeCancelled, r.Result.Outcome)
}

// What runs when the host is shut down is ended with it: start checks that
// nothing is left.
func TestShutdownEndsCommands(t *testing.T) {
	t.Parallel()
	host := start(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Bash: true})
	sh := tool(t, host, agent.Options{}, "bash")
	began, done := make(chan struct{}), make(chan agent.Result, 1)
	go func() {
		seen := false
		r, _ := sh.Call(context.Background(), agent.Call{Session: conversation, Arguments: json.RawMessage(`{"command":"echo begun; sleep 600"}`), OnEvent: func(e messages.Event) {
			if _, ok := e.(messages.Stream); ok && !seen {
				seen = true
				close(began)
			}
		}})
		done <- r
	}()
	<-began
	require.True(t, host.Shutdown(context.Background()).Clean())
	require.Equal(t, messages.OutcomeCancelled, (<-done).Result.Outcome)
}
