package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/agent/primitive"
)

// described are the descriptions of the tools of a host, by name.
func described(t *testing.T, o coppice.HostCallOptions) map[string]string {
	t.Helper()
	host, err := coppice.Start(t.Context(), coppice.Options{Home: t.TempDir(), Backend: coppice.Runner(coppice.RunnerOptions{}), HostCalls: o, Env: []string{"PI_PYTHON_SKIP_CHECK=1"}})
	require.NoError(t, err)
	t.Cleanup(func() { host.Shutdown(context.Background()) })
	all := map[string]string{}
	for _, style := range []agent.Style{agent.StylePython, agent.StyleEval, agent.StyleREPL} {
		list, err := agent.Tools(host, agent.Options{Style: style})
		require.NoError(t, err)
		for _, tool := range list {
			all[tool.Name] = tool.Description + string(tool.Schema)
		}
	}
	return all
}

// TestAModelReadsWhatCodeCanCall: functions with their arguments, packs with their
// guidance, how to find out more, and what a reset leaves alone.
func TestAModelReadsWhatCodeCanCall(t *testing.T) {
	serve := func(context.Context, *primitive.Call) (any, error) { return nil, nil }
	search := func(context.Context, struct {
		Query string `json:"query"`
		Limit *int   `json:"limit"`
	},
	) (int, error) {
		return 0, nil
	}
	all := described(t, coppice.HostCallOptions{
		Functions: []coppice.HostFunction{coppice.Function("search", "Searches\n  the manual.", search), coppice.Function("two-words", "", search)},
		Packs: []primitive.Pack{{Name: "notes", Guidance: "Notes that last.", Primitives: []primitive.Primitive{
			{Name: "add", Description: "adds", BestPractices: []string{"one"}, Handler: serve},
		}}},
		Selfref: &coppice.Selfref{},
	})
	for _, name := range []string{"python", "eval", "execute_code"} {
		for _, want := range []string{
			"- tool.search(query: str, limit: int = ...): Searches the manual.\n", `- tool["two-words"](query: str, limit: int = ...)`, "dir(tool)", "help(tool.NAME)",
			"- runtime.notes: Notes that last. Primitives: add.\n", "- runtime.selfref: Use runtime.selfref.context to see, remember", "runtime.list_primitives()", "runtime.get_primitive_spec(name)",
			"A reset clears the variables alone",
		} {
			require.Contains(t, all[name], want, name)
		}
	}
	require.Contains(t, all["reset_repl"], "(backends, conversations, forks) stays")
	require.Contains(t, all["python"], "Start a new kernel before the first cell. What the host keeps for code (backends, conversations, forks) stays.")

	for name, text := range described(t, coppice.HostCallOptions{}) {
		require.NotContains(t, text, "dir(tool)", name)
		require.NotContains(t, text, "list_primitives", name)
	}
}

// TestWhatAModelReadsIsBounded, however much there is.
func TestWhatAModelReadsIsBounded(t *testing.T) {
	none := described(t, coppice.HostCallOptions{})["execute_code"]
	var o coppice.HostCallOptions
	for i := range 500 {
		o.Functions = append(o.Functions, coppice.Function(fmt.Sprintf("f%d", i), strings.Repeat("é", 10_000), func(context.Context, struct{}) (int, error) { return 0, nil }))
		o.Packs = append(o.Packs, primitive.Pack{Name: fmt.Sprintf("p%d", i), Guidance: strings.Repeat("long ", 10_000)})
	}
	text := described(t, o)["execute_code"]
	require.Less(t, len(text), len(none)+14<<10)
	require.Contains(t, text, "- tool.f0(): é")
	require.Contains(t, text, "- and 480 more, see dir(tool)")
	require.Contains(t, text, "more, see runtime.list_primitives()")
	require.Equal(t, strings.ToValidUTF8(text, ""), text)
}
