package eino_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/agent/eino"
	"github.com/coppice-run/coppice/messages"
)

// patience bounds every wait.
const patience = time.Minute

func start(t *testing.T) *coppice.Host {
	t.Helper()
	host, err := coppice.Start(t.Context(), coppice.Options{Backend: coppice.Runner(coppice.RunnerOptions{}), Home: t.TempDir(), Bash: true})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.True(t, host.Shutdown(ctx).Clean())
	})
	return host
}

func toolsOf(t *testing.T, host *coppice.Host, o eino.Options) []tool.BaseTool {
	t.Helper()
	list, err := agent.Tools(host, agent.Options{})
	require.NoError(t, err)
	tools, err := eino.Tools(list, o)
	require.NoError(t, err)
	return tools
}

// ask is what a model says that calls a tool.
func ask(name, arguments string) *schema.Message {
	return schema.AssistantMessage("", []schema.ToolCall{{ID: "call-1", Type: "function", Function: schema.FunctionCall{Name: name, Arguments: arguments}}})
}

func cells(code ...string) string {
	type cell struct {
		Code string `json:"code"`
	}
	var list []cell
	for _, c := range code {
		list = append(list, cell{c})
	}
	data, err := json.Marshal(map[string]any{"cells": list})
	if err != nil {
		panic(err) // of strings there is none
	}
	return string(data)
}

// alone is the session of a test with one agent.
func alone(context.Context) messages.SessionKey { return messages.SessionKey{Session: "alone"} }

// Without a session nothing is run, since it would be everybody's.
func TestNoSession(t *testing.T) {
	node, err := compose.NewToolNode(t.Context(), &compose.ToolsNodeConfig{Tools: toolsOf(t, start(t), eino.Options{})})
	require.NoError(t, err)
	_, err = node.Invoke(t.Context(), ask("python", cells("x = 1")))
	require.ErrorIs(t, err, agent.ErrNoSession)
}

// A tools node of eino runs cells whose variables stay, each agent in a session
// of its own; what is wrong is told to the model.
func TestAToolsNodeRunsCells(t *testing.T) {
	type agent struct{}
	host := start(t)
	var mu sync.Mutex
	heard := ""
	tools := toolsOf(t, host, eino.Options{
		Session: func(ctx context.Context) messages.SessionKey {
			name, _ := ctx.Value(agent{}).(string)
			return messages.SessionKey{Session: name}
		},
		OnEvent: func(_ context.Context, e messages.Event) {
			mu.Lock()
			defer mu.Unlock()
			if s, ok := e.(messages.Stream); ok {
				heard += s.Text
			}
		},
	})
	node, err := compose.NewToolNode(t.Context(), &compose.ToolsNodeConfig{Tools: tools})
	require.NoError(t, err)
	run := func(who, name, arguments string) string {
		t.Helper()
		out, err := node.Invoke(context.WithValue(t.Context(), agent{}, who), ask(name, arguments))
		require.NoError(t, err)
		require.Len(t, out, 1)
		require.Equal(t, "call-1", out[0].ToolCallID)
		return out[0].Content
	}
	require.Contains(t, run("a", "python", cells("x = 40", "print('working')\nx + 2")), "42")
	require.Equal(t, "40", run("a", "python", cells("x")), "variables stay")
	require.Contains(t, run("b", "python", cells("x")), "NameError", "another agent has its own")
	require.Contains(t, run("a", "python", `{"cells":"x"}`), "python: cells: is a JSON string; it must be a list")
	require.Contains(t, run("a", "bash", `{"command":"echo $((6*7))"}`), "42")
	mu.Lock()
	defer mu.Unlock()
	require.Contains(t, heard, "working\n")
}

// The description that a model gets is that of the host.
func TestToolsDescribeThemselves(t *testing.T) {
	tools := toolsOf(t, start(t), eino.Options{})
	require.Len(t, tools, 2)
	info, err := tools[0].Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, "python", info.Name)
	s, err := info.ToJSONSchema()
	require.NoError(t, err)
	data, err := json.Marshal(s)
	require.NoError(t, err)
	require.Contains(t, string(data), `"cells"`)
	require.Contains(t, string(data), `"code"`)
	_, err = eino.Tools([]agent.Tool{{Name: "broken", Schema: json.RawMessage(`{`)}}, eino.Options{})
	require.ErrorContains(t, err, "the schema of the tool broken")
}

// Pictures are parts of an enhanced result.
func TestPictures(t *testing.T) {
	node, err := compose.NewToolNode(t.Context(), &compose.ToolsNodeConfig{Tools: toolsOf(t, start(t), eino.Options{Session: alone, Images: true})})
	require.NoError(t, err)
	out, err := node.Invoke(t.Context(), ask("python", cells(`display({"image/png": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPgYmAAAAAiAAsOcuwrAAAAAElFTkSuQmCC"}, raw=True)`)))
	require.NoError(t, err)
	data, err := json.Marshal(out)
	require.NoError(t, err)
	require.Contains(t, string(data), "image/png")
	require.Contains(t, string(data), "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPgYmAAAAAiAAsOcuwrAAAAAElFTkSuQmCC")
}

// A context that ends interrupts the code, and the session is kept; a host that
// has ended is an error.
func TestTheEndOfACall(t *testing.T) {
	host := start(t)
	node, err := compose.NewToolNode(t.Context(), &compose.ToolsNodeConfig{Tools: toolsOf(t, host, eino.Options{Session: alone})})
	require.NoError(t, err)
	_, err = node.Invoke(t.Context(), ask("python", cells("x = 7")))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	out, err := node.Invoke(ctx, ask("python", cells("import time; time.sleep(300)")))
	if err == nil { // the result came before eino had seen the end
		require.True(t, strings.Contains(out[0].Content, "timed out") || strings.Contains(out[0].Content, "cancelled") || strings.Contains(out[0].Content, "interrupt"), out[0].Content)
	}
	require.Less(t, time.Since(began), patience)
	out, err = node.Invoke(t.Context(), ask("python", cells("x")))
	require.NoError(t, err)
	require.Equal(t, "7", out[0].Content)
	end, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	host.Shutdown(end)
	_, err = node.Invoke(t.Context(), ask("python", cells("x")))
	require.ErrorIs(t, err, coppice.ErrClosed)
}
