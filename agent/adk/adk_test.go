package adk_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/artifact"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/coppice-run/coppice"
	coppiceagent "github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/agent/adk"
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

func cells(code ...string) map[string]any {
	list := []any{}
	for _, c := range code {
		list = append(list, map[string]any{"code": c})
	}
	return map[string]any{"cells": list}
}

// script is a model that makes the calls of a list, one a turn, and keeps what
// they have returned.
type script struct {
	mu       sync.Mutex
	calls    []*genai.FunctionCall
	returned []map[string]any
	tools    []string
}

func (*script) Name() string { return "script" }

func (s *script) GenerateContent(_ context.Context, r *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tools = slices.Sorted(maps.Keys(r.Tools))
		for _, p := range r.Contents[len(r.Contents)-1].Parts {
			if p.FunctionResponse != nil {
				s.returned = append(s.returned, p.FunctionResponse.Response)
			}
		}
		part := genai.NewPartFromText("done")
		if len(s.calls) > 0 {
			part = &genai.Part{FunctionCall: s.calls[0]}
			s.calls = s.calls[1:]
		}
		yield(&model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{part}}, TurnComplete: true}, nil)
	}
}

// analyst is an agent with the tools of a host.
type analyst struct {
	t         *testing.T
	model     *script
	runner    *runner.Runner
	artifacts artifact.Service
}

func newAnalyst(t *testing.T, host *coppice.Host, o adk.Options, artifacts artifact.Service) *analyst {
	t.Helper()
	list, err := coppiceagent.Tools(host, coppiceagent.Options{})
	require.NoError(t, err)
	tools, err := adk.Tools(list, o)
	require.NoError(t, err)
	said := &script{}
	a, err := llmagent.New(llmagent.Config{Name: "analyst", Model: said, Tools: tools})
	require.NoError(t, err)
	r, err := runner.New(runner.Config{AppName: "test", Agent: a, SessionService: session.InMemoryService(), ArtifactService: artifacts, AutoCreateSession: true})
	require.NoError(t, err)
	return &analyst{t, said, r, artifacts}
}

// run lets the model make calls in a session, and gives what they returned.
func (a *analyst) run(ctx context.Context, id string, calls ...*genai.FunctionCall) ([]map[string]any, error) {
	a.t.Helper()
	a.model.mu.Lock()
	a.model.calls, a.model.returned = calls, nil
	a.model.mu.Unlock()
	for _, err := range a.runner.Run(ctx, "somebody", id, genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			return nil, err
		}
	}
	a.model.mu.Lock()
	defer a.model.mu.Unlock()
	return a.model.returned, nil
}

func call(id, name string, arguments map[string]any) *genai.FunctionCall {
	return &genai.FunctionCall{ID: id, Name: name, Args: arguments}
}

// An agent runs cells whose variables stay, each session of ADK in its own; what
// is wrong is told to the model; pictures are artifacts.
func TestAnAgentRunsCells(t *testing.T) {
	var mu sync.Mutex
	heard := ""
	a := newAnalyst(t, start(t), adk.Options{Artifacts: true, OnEvent: func(_ agent.Context, e messages.Event) {
		mu.Lock()
		defer mu.Unlock()
		if s, ok := e.(messages.Stream); ok {
			heard += s.Text
		}
	}}, artifact.InMemoryService())
	said, err := a.run(t.Context(), "one",
		call("1", "python", cells("x = 40", "print('working')\nx + 2")),
		call("2", "python", cells("x")),
		call("3", "python", cells("1/0")),
		call("4", "python", map[string]any{"cells": "x"}),
		call("5", "bash", map[string]any{"command": "echo $((6*7))"}),
		call("6", "python", cells(`display({"image/png": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPgYmAAAAAiAAsOcuwrAAAAAElFTkSuQmCC"}, raw=True)`)),
	)
	require.NoError(t, err)
	require.Len(t, said, 6)
	require.Contains(t, said[0]["result"], "42")
	require.Equal(t, "40", said[1]["result"], "variables stay")
	require.Contains(t, said[2]["error"], "ZeroDivisionError")
	require.NotEmpty(t, said[3]["error"], "ADK or we: the arguments are wrong")
	require.Contains(t, said[4]["result"], "42")
	require.Contains(t, said[5]["result"], "[picture 1: artifact 6-1.png")
	require.Equal(t, []string{"bash", "python"}, a.model.tools)
	mu.Lock()
	require.Contains(t, heard, "working\n")
	mu.Unlock()
	kept, err := a.artifacts.Load(t.Context(), &artifact.LoadRequest{AppName: "test", UserID: "somebody", SessionID: "one", FileName: "6-1.png"})
	require.NoError(t, err)
	pixel, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPgYmAAAAAiAAsOcuwrAAAAAElFTkSuQmCC")
	require.NoError(t, err)
	require.Equal(t, pixel, kept.Part.InlineData.Data)

	said, err = a.run(t.Context(), "two", call("1", "python", cells("x")))
	require.NoError(t, err)
	require.Contains(t, said[0]["error"], "NameError", "another session has its own variables")
	said, err = a.run(t.Context(), "one", call("1", "python", cells("x")))
	require.NoError(t, err)
	require.Equal(t, "40", said[0]["result"])
}

// A picture that is not kept is told of.
func TestPicturesWithoutArtifacts(t *testing.T) {
	a := newAnalyst(t, start(t), adk.Options{}, nil)
	said, err := a.run(t.Context(), "one", call("1", "python", cells(`print("drawn")`, `display({"image/png": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGPgYmAAAAAiAAsOcuwrAAAAAElFTkSuQmCC"}, raw=True)`)))
	require.NoError(t, err)
	require.Contains(t, said[0]["result"], "drawn")
	require.Contains(t, said[0]["result"], "[picture 1: image/png, 1 x 1]")
}

// A schema that cannot be read is named.
func TestABrokenSchema(t *testing.T) {
	_, err := adk.Tools([]coppiceagent.Tool{{Name: "broken", Schema: json.RawMessage(`{`)}}, adk.Options{})
	require.ErrorContains(t, err, "the schema of the tool broken")
}

// A context that ends interrupts the code, and the session is kept; a host that
// has ended is an error of the tool.
func TestTheEndOfACall(t *testing.T) {
	host := start(t)
	a := newAnalyst(t, host, adk.Options{Session: func(agent.Context) messages.SessionKey { return messages.SessionKey{Session: "agent"} }}, nil)
	_, err := a.run(t.Context(), "one", call("1", "python", cells("x = 7")))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _ = a.run(ctx, "two", call("1", "python", cells("import time; time.sleep(300)"))) // ADK may see the end first
	require.Less(t, time.Since(began), patience)
	said, err := a.run(t.Context(), "three", call("1", "python", cells("x")))
	require.NoError(t, err)
	require.Equal(t, "7", said[0]["result"])
	end, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	host.Shutdown(end)
	said, err = a.run(t.Context(), "four", call("1", "python", cells("x")))
	require.NoError(t, err)
	require.Contains(t, said[0]["error"], coppice.ErrClosed.Error())
}
