package genkit_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	adapter "github.com/coppice-run/coppice/agent/genkit"
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

func toolsOf(t *testing.T, host *coppice.Host, o adapter.Options) []ai.ToolRef {
	t.Helper()
	list, err := agent.Tools(host, agent.Options{})
	require.NoError(t, err)
	tools, err := adapter.Tools(list, o)
	require.NoError(t, err)
	return tools
}

func cells(code ...string) map[string]any {
	list := []any{}
	for _, c := range code {
		list = append(list, map[string]any{"code": c})
	}
	return map[string]any{"cells": list}
}

// script is a model that makes the calls of a list, one a turn, and then says
// what the last one has returned.
func script(t *testing.T, g *genkit.Genkit, name string, calls ...*ai.ToolRequest) ai.Model {
	t.Helper()
	return genkit.DefineModel(g, name, &ai.ModelOptions{Supports: &ai.ModelSupports{Tools: true, Multiturn: true}}, func(_ context.Context, r *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
		said := []*ai.ToolResponse{}
		for _, m := range r.Messages {
			for _, p := range m.Content {
				if p.IsToolResponse() {
					said = append(said, p.ToolResponse)
				}
			}
		}
		if len(said) < len(calls) {
			return &ai.ModelResponse{Request: r, Message: ai.NewModelMessage(ai.NewToolRequestPart(calls[len(said)])), FinishReason: ai.FinishReasonStop}, nil
		}
		data, err := json.Marshal(said)
		return &ai.ModelResponse{Request: r, Message: ai.NewModelTextMessage(string(data)), FinishReason: ai.FinishReasonStop}, err
	})
}

// A generation runs cells whose variables stay; what is wrong is told to the
// model; pictures are parts of the response.
func TestAGenerationRunsCells(t *testing.T) {
	host := start(t)
	heard := ""
	tools := toolsOf(t, host, adapter.Options{
		Session: func(context.Context) messages.SessionKey { return messages.SessionKey{Session: "agent"} },
		OnEvent: func(_ context.Context, e messages.Event) { // calls are made one after the other here
			if s, ok := e.(messages.Stream); ok {
				heard += s.Text
			}
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g := genkit.Init(ctx)
	model := script(t, g, "test/script",
		&ai.ToolRequest{Name: "python", Ref: "1", Input: cells("x = 40", "print('working')\nx + 2")},
		&ai.ToolRequest{Name: "python", Ref: "2", Input: cells("x")},
		&ai.ToolRequest{Name: "python", Ref: "3", Input: cells("1/0")},
		&ai.ToolRequest{Name: "python", Ref: "4", Input: cells(" ", "")},
		&ai.ToolRequest{Name: "bash", Ref: "5", Input: map[string]any{"command": "echo $((6*7))"}},
		&ai.ToolRequest{Name: "python", Ref: "6", Input: cells(`display({"image/png": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPgYmAAAAAiAAsOcuwrAAAAAElFTkSuQmCC"}, raw=True)`)},
	)
	response, err := genkit.Generate(ctx, g, ai.WithModel(model), ai.WithPrompt("go"), ai.WithTools(tools...), ai.WithMaxTurns(10))
	require.NoError(t, err)
	var said []*ai.ToolResponse
	require.NoError(t, json.Unmarshal([]byte(response.Text()), &said))
	require.Len(t, said, 6)
	require.Contains(t, said[0].Output, "42")
	require.Equal(t, "40", said[1].Output, "variables stay")
	require.Contains(t, said[2].Output, "ZeroDivisionError")
	require.NotEmpty(t, said[3].Output)
	require.Contains(t, said[4].Output, "42")
	require.Len(t, said[5].Content, 1)
	require.Equal(t, "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPgYmAAAAAiAAsOcuwrAAAAAElFTkSuQmCC", said[5].Content[0].Text)
	require.Contains(t, heard, "working\n")
}

// The description that a model gets is that of the host.
func TestToolsDescribeThemselves(t *testing.T) {
	tools := toolsOf(t, start(t), adapter.Options{})
	require.Len(t, tools, 2)
	d := tools[0].(ai.Tool).Definition()
	require.Equal(t, "python", d.Name)
	require.Contains(t, d.InputSchema["properties"], "cells")
	_, err := adapter.Tools([]agent.Tool{{Name: "broken", Schema: json.RawMessage(`{`)}}, adapter.Options{})
	require.ErrorContains(t, err, "the schema of the tool broken")
}

// A context that ends interrupts the code, and the session is kept; a host that
// has ended is an error.
func TestTheEndOfACall(t *testing.T) {
	host := start(t)
	_, err := toolsOf(t, host, adapter.Options{})[0].(ai.Tool).RunRaw(t.Context(), cells("1"))
	require.ErrorIs(t, err, agent.ErrNoSession, "it would be everybody's")
	python := toolsOf(t, host, adapter.Options{Session: func(context.Context) messages.SessionKey { return messages.SessionKey{Session: "alone"} }})[0].(ai.Tool)
	_, err = python.RunRawMultipart(t.Context(), cells("x = 7"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _ = python.RunRawMultipart(ctx, cells("import time; time.sleep(300)")) // Genkit may see the end first
	require.Less(t, time.Since(began), patience)
	r, err := python.RunRawMultipart(t.Context(), cells("x"))
	require.NoError(t, err)
	require.Equal(t, "7", r.Output)
	end, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	host.Shutdown(end)
	_, err = python.RunRawMultipart(t.Context(), cells("x"))
	require.ErrorContains(t, err, coppice.ErrClosed.Error())
}
