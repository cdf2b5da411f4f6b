package agent_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
)

// A proxy gets every call as it came, also one that no tool here would take, and on
// a machine without Python.
func TestToolsOfAProxy(t *testing.T) {
	t.Parallel()
	host, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), Bash: true, Env: []string{"PATH=" + t.TempDir()}})
	require.NoError(t, err)
	t.Cleanup(func() { host.Shutdown(context.Background()) })
	var got []string
	list, err := agent.Tools(host, agent.Options{Notebooks: true, Proxy: func(_ context.Context, tool string, c agent.Call) (agent.Result, error) {
		got = append(got, tool+string(c.Arguments))
		return agent.Result{Text: "far away"}, nil
	}})
	require.NoError(t, err)
	for _, tool := range list {
		r, err := tool.Call(t.Context(), agent.Call{Arguments: json.RawMessage(`[`)})
		require.NoError(t, err)
		require.Equal(t, "far away", r.Text)
	}
	require.Equal(t, []string{"python[", "bash[", "notebook_read[", "notebook_edit[", "notebook_run["}, got)
}
