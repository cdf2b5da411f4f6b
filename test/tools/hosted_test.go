//go:build linux

package tools_test

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
	"github.com/coppice-run/coppice/test/toolbox"
)

// hosted is a host with a launcher in its tree, which is shut down at the end
// of the test.
func hosted(t *testing.T, o coppice.Options, tools ...toolbox.Tool) (*coppice.Host, *toolbox.Box) {
	t.Helper()
	box := toolbox.New(t)
	for _, tool := range tools {
		box.Add(tool)
	}
	o.Python, o.Home, o.StartTimeout, o.Launcher = testpython.Path(t), t.TempDir(), patience, &launcher.Options{Dir: box.Dir, Home: home, Artifacts: t.TempDir()}
	h, err := coppice.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		report := h.Shutdown(ctx)
		require.True(t, report.Clean(), "leftovers: %+v", report.Leftovers)
		require.Empty(t, left(box), "the tools end with their host")
	})
	return h, box
}

// find is the node of a name below n; nil: there is none.
func find(n *messages.Node, name string) *messages.Node {
	if n.Name == name {
		return n
	}
	for i := range n.Children {
		if c := find(&n.Children[i], name); c != nil {
			return c
		}
	}
	return nil
}

// TestSessionsThatCallATool share the tool and nothing of their own: it gets the
// inputs of a run, and no session sees a name of another.
func TestSessionsThatCallATool(t *testing.T) {
	t.Parallel()
	h, _ := hosted(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{})}, toolbox.Tool{ID: "my-tool"})
	for _, name := range []string{"a", "b", "a"} {
		r, err := h.Session(name).Execute(t.Context(), coppice.Request{Timeout: patience, Cells: []messages.Cell{{Code: `
mine_` + name + ` = tool.my_tool(do="echo", arg="` + name + `")["result"]["echo"]
print(mine_` + name + `, [n for n in globals() if n.startswith("mine_")])`}}})
		require.NoError(t, err)
		require.Contains(t, r.Text, name+" ['mine_"+name+"']")
	}
}

// TestToolsInTheTreeOfAHost: sessions and tools have one tree, one stream of
// events and one end.
func TestToolsInTheTreeOfAHost(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	up := map[string]bool{}
	h, box := hosted(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), OnEvent: func(e messages.Lifecycle) {
		mu.Lock()
		defer mu.Unlock()
		if c, ok := e.(messages.ChildChanged); ok && c.To == messages.ChildIdle {
			up[c.Kind] = true
		}
	}}, toolbox.Tool{ID: "my-tool"})
	result, err := h.Session("s").Execute(t.Context(), coppice.Request{Timeout: patience, Cells: []messages.Cell{
		{Code: `print(tool.my_tool(do="echo", arg=[1, 2])["result"])`},
		{Code: `
for name, do in ("my_tool", "422"), ("my_tool", "raise"), ("none", "echo"):
    try:
        getattr(tool, name)(do=do)
    except Exception as e:
        print(type(e).__name__, e)`},
	}})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, result.Outcome, result.Text)
	require.Contains(t, result.Text, "{'echo': [1, 2]}")
	require.Contains(t, result.Text, "ValueError the tool refused the inputs (status 422): n: not a number")
	require.Contains(t, result.Text, "RuntimeError: it broke")
	require.Contains(t, result.Text, "there is no host function none; there are my_tool")
	result, err = h.Session("s").Execute(t.Context(), coppice.Request{Timeout: patience, Cells: []messages.Cell{{Code: `help(tool.my_tool)
try:
    tool.my_tool(nope=1)
except ValueError as e:
    print(e)`}}})
	require.NoError(t, err)
	require.Contains(t, result.Text, `tool.my_tool(do: str = "echo", arg = ...): my-tool. Returns result (tree).`)
	require.Contains(t, result.Text, "do: str = \"echo\"  Do\n")
	require.Contains(t, result.Text, `the tool my-tool has no input "nope"; it has do, arg`)

	root, err := h.Snapshot(t.Context())
	require.NoError(t, err)
	launcher := find(&root, "launcher")
	require.NotNil(t, launcher)
	tool := find(launcher, "my-tool")
	require.NotNil(t, tool, "%+v", root)
	require.Equal(t, "tool", tool.Kind)
	require.Equal(t, left(box)[0].PID, tool.PID)
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return up["kernel"] && up["tool"]
	}, patience, tick, "one stream of events: %v", up)

	box.Add(toolbox.Tool{ID: "late"})
	result, err = h.Session("s").Execute(t.Context(), coppice.Request{Timeout: patience, Cells: []messages.Cell{{Code: `tool.late(arg=3)["result"]["echo"]`}}})
	require.NoError(t, err)
	require.Equal(t, "3", result.Text, "a tool that came later is there too")
	require.True(t, h.Launcher().Shutdown(t.Context()).Clean())
	_, err = h.Launcher().State(t.Context())
	require.NoError(t, err, "it ends with its host, and not before")
}

// TestToolsInCells is short here; COPPICE_TEST_FULL=1 asks for kernels of Jupyter
// too, whose calls come through the bridge.
func TestToolsInCells(t *testing.T) {
	t.Parallel()
	run := []string{backends.Runner}
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		run = backends.All()
	}
	for _, backend := range run {
		h, _ := hosted(t, coppice.Options{Backend: backends.Named(backend)}, toolbox.Tool{ID: "my-tool"})
		result, err := h.Session("s").Execute(t.Context(), coppice.Request{Timeout: patience, Cells: []messages.Cell{{Code: `tool.my_tool(arg=3)["result"]["echo"]`}}})
		require.NoError(t, err)
		require.Equal(t, "3", result.Text, backend)
	}
}

// TestToolsForAModel: they stand beside python, and their failures are told in
// words.
func TestToolsForAModel(t *testing.T) {
	t.Parallel()
	h, box := hosted(t, coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{})}, toolbox.Tool{ID: "my-tool"}, toolbox.Tool{ID: "my.tool"}, toolbox.Tool{ID: "streams", Stream: true}, toolbox.Tool{ID: "old", Set: map[string]any{"archived": true}})
	list := func() map[string]agent.Tool {
		tools, err := agent.Tools(h, agent.Options{})
		require.NoError(t, err)
		byName := map[string]agent.Tool{}
		for _, tool := range tools {
			byName[tool.Name] = tool
		}
		return byName
	}
	tools := list()
	require.Len(t, tools, 4)
	require.Contains(t, tools, "python")
	require.Equal(t, "my-tool", tools["tool_my_tool"].Launched)
	require.Equal(t, "my.tool", tools["tool_my_tool_2"].Launched)
	require.True(t, json.Valid(tools["tool_my_tool"].Schema))

	r, err := tools["tool_my_tool"].Call(t.Context(), agent.Call{Arguments: toolbox.Inputs("echo", 1)})
	require.NoError(t, err)
	require.False(t, r.IsError)
	require.JSONEq(t, `{"result":{"echo":1}}`, r.Text)
	require.Equal(t, messages.OutcomeOK, r.Run.Outcome)
	r, err = tools["tool_my_tool"].Call(t.Context(), agent.Call{Arguments: toolbox.Inputs("raise")})
	require.NoError(t, err)
	require.True(t, r.IsError)
	require.Contains(t, r.Text, "the tool failed (status 500): RuntimeError: it broke\nview stderr\nstandard error of the tool:\nTraceback")
	_, err = tools["tool_my_tool"].Call(t.Context(), agent.Call{Arguments: json.RawMessage(`[1]`)})
	require.EqualError(t, err, "tool_my_tool: the arguments are a JSON array; they must be an object")
	heard := ""
	r, err = tools["tool_streams"].Call(t.Context(), agent.Call{Arguments: toolbox.Inputs("stream", 3), OnEvent: func(e messages.Event) {
		heard += e.(messages.Stream).Text
	}})
	require.NoError(t, err)
	require.Equal(t, "0 1 2 ", heard)
	require.JSONEq(t, `{"result":"0 1 2 "}`, r.Text)

	box.Add(toolbox.Tool{ID: "late"})
	require.Contains(t, list(), "tool_late")

	require.True(t, h.Shutdown(t.Context()).Clean())
	_, err = tools["tool_my_tool"].Call(t.Context(), agent.Call{})
	require.Equal(t, coppice.ErrClosed, err, "the words of a host, not those of its launcher")
}

// TestALauncherThatAHostRefuses names the option.
func TestALauncherThatAHostRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]launcher.Options{
		"Options.OnEvent":       {OnEvent: func(messages.Lifecycle) {}},
		"WarmMax is negative":   {WarmMax: -1},
		"is not a folder of to": {Dir: "main_test.go"},
	} {
		_, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), Launcher: &o})
		require.ErrorIs(t, err, coppice.ErrOptions)
		require.ErrorIs(t, err, launcher.ErrOptions)
		require.ErrorContains(t, err, name)
	}
}
