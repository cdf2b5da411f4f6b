//go:build linux

package mcpserver_test

import (
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/test/toolbox"
)

// TestToolsOfTheLauncher are listed and called beside the server's own; what
// becomes of their folder is seen.
func TestToolsOfTheLauncher(t *testing.T) {
	t.Parallel()
	box := toolbox.New(t)
	box.Add(toolbox.Tool{ID: "my-tool"})
	box.Add(toolbox.Tool{ID: "streams", Stream: true})
	o := optionsOf(t, coppice.Options{Launcher: &launcher.Options{Dir: box.Dir}})
	var p progress
	cs := client(t, o, &mcp.ClientOptions{ProgressNotificationHandler: p.take})
	names := func() []string {
		var names []string
		for tool, err := range cs.Tools(t.Context(), nil) {
			require.NoError(t, err)
			names = append(names, tool.Name)
		}
		return names
	}
	require.Subset(t, names(), []string{"python", "tool_my_tool", "tool_streams", "sessions_list"})
	r := call(t, cs, "tool_my_tool", map[string]any{"do": "echo", "arg": "hello"})
	require.False(t, r.IsError)
	require.JSONEq(t, `{"result":{"echo":"hello"}}`, text(r))
	require.Equal(t, "ok", r.StructuredContent.(map[string]any)["outcome"])
	r = call(t, cs, "tool_my_tool", map[string]any{"do": "422"})
	require.True(t, r.IsError)
	require.Contains(t, text(r), "the tool refused the inputs (status 422): n: not a number")
	params := &mcp.CallToolParams{Name: "tool_streams", Arguments: map[string]any{"do": "stream_flood", "arg": []int{100, 1000}}}
	params.SetProgressToken("token")
	r, err := cs.CallTool(t.Context(), params)
	require.NoError(t, err)
	require.False(t, r.IsError, text(r))
	require.Eventually(t, func() bool { return p.seen("xxxx") }, 3*time.Minute, 10*time.Millisecond, "what streams is told on the way")
	require.Equal(t, "hello", text(call(t, cs, "python", cells(`print(tool.my_tool(arg="hello")["result"]["echo"])`)))[:5])

	box.Add(toolbox.Tool{ID: "late"})
	require.False(t, call(t, cs, "tool_late", map[string]any{"arg": 1}).IsError, "a call finds it without a list")
	box.Write("my-tool", "tool.json", "{")
	require.NotContains(t, names(), "tool_my_tool")
	require.Contains(t, names(), "tool_late")
}
