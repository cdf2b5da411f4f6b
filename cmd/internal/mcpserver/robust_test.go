package mcpserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/agent"
)

// TestExposure: what a mode leaves out is neither listed nor callable.
func TestExposure(t *testing.T) {
	t.Parallel()
	o := options(t)
	for mode, want := range map[agent.Mode]string{
		agent.ModeBoth: "bash notebook_edit notebook_read notebook_run python", agent.ModePython: "notebook_edit notebook_read notebook_run python",
		agent.ModeBash: "bash notebook_edit notebook_read",
	} {
		o.Tools = agent.Options{Mode: mode, Notebooks: true}
		cs := client(t, o, nil)
		var names []string
		for tool, err := range cs.Tools(t.Context(), nil) {
			require.NoError(t, err)
			if !strings.HasPrefix(tool.Name, "sessions_") && tool.Name != "artifact_read" {
				names = append(names, tool.Name)
			}
		}
		require.Equal(t, want, strings.Join(names, " "))
		for _, name := range []string{"python", "bash", "no_such_tool"} {
			if !strings.Contains(want, name) {
				_, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
				require.ErrorContains(t, err, name)
			}
		}
	}
}

// TestArguments that cannot be used are named by their paths, and nothing is run.
func TestArguments(t *testing.T) {
	t.Parallel()
	cs := client(t, options(t), nil)
	for want, args := range map[string]any{
		"python: cells: is missing":                              map[string]any{},
		"python: cells[1].code: is missing":                      map[string]any{"cells": []any{map[string]any{"code": "x = 1"}, map[string]any{}}},
		"python: cells[0].code: is a JSON number":                   map[string]any{"cells": []any{map[string]any{"code": 1}}},
		`python: there is no argument "code"`:                    map[string]any{"code": "1"},
		"python: timeout: is a JSON string":                      map[string]any{"cells": []any{}, "timeout": "1"},
		"python: the arguments are a JSON array":                 []any{},
		"python: cwd: Working directory does not exist: /no/dir": map[string]any{"cells": []any{}, "cwd": "/no/dir"},
	} {
		r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "python", Arguments: args})
		require.NoError(t, err)
		require.True(t, r.IsError)
		require.Contains(t, text(r), want)
	}
	require.Contains(t, text(call(t, cs, "python", cells("'x' in globals()"))), "False")
}

// longer is a call that a loaded machine may take minutes for.
func longer(code string) map[string]any {
	args := cells(code)
	args["timeout"] = 600
	return args
}

// TestTwoCallsOfOneSession run one after the other; the output of one that floods
// is cut, its progress too, and the other is not lost.
func TestTwoCallsOfOneSession(t *testing.T) {
	t.Parallel()
	var p progress
	cs := client(t, options(t), &mcp.ClientOptions{ProgressNotificationHandler: p.take})
	call(t, cs, "python", cells("n = 0"))
	results := make(chan *mcp.CallToolResult, 2)
	for range 2 {
		go func() {
			params := &mcp.CallToolParams{Name: "python", Arguments: longer("import time\nwas = n\nfor i in range(100): print('x' * 20_000)\ntime.sleep(.1)\nn = was + 1\nn")}
			params.SetProgressToken("token")
			if r, err := cs.CallTool(t.Context(), params); err == nil {
				results <- r
			}
		}()
	}
	var last []string
	for range 2 {
		select {
		case r := <-results:
			require.False(t, r.IsError, text(r))
			require.Less(t, len(text(r)), 80<<10)
			require.NotEmpty(t, r.StructuredContent.(map[string]any)["artifact"])
			last = append(last, text(r)[strings.LastIndex(text(r), "\n")+1:])
		case <-time.After(5 * time.Minute):
			t.Fatal("a call was not answered")
		}
	}
	require.Equal(t, "2", text(call(t, cs, "python", cells("n"))), "neither saw the other half done: %v", last)
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Less(t, p.text.Len(), 1<<20)
}
