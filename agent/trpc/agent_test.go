//go:build !race

// The flow of trpc-agent-go 1.11 writes to a response that it has handed out, when
// it has run a code block: the race detector stops there.

package trpc_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"trpc.group/trpc-go/trpc-agent-go/agent/llmagent"
	"trpc.group/trpc-go/trpc-agent-go/event"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/runner"

	"github.com/coppice-run/coppice/agent/trpc"
	"github.com/coppice-run/coppice/messages"
)

// script is a model that says the lines of a list, one a turn.
type script struct {
	mu    sync.Mutex
	lines []string
}

func (*script) Info() model.Info { return model.Info{Name: "script"} }

func (s *script) GenerateContent(_ context.Context, _ *model.Request) (<-chan *model.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) == 0 {
		return nil, errors.New("the script has no more lines")
	}
	line := s.lines[0]
	s.lines = s.lines[1:]
	c := make(chan *model.Response, 1)
	c <- &model.Response{Done: true, Choices: []model.Choice{{Message: model.Message{Role: model.RoleAssistant, Content: line}}}}
	close(c)
	return c, nil
}

// An agent whose model writes code blocks runs them here: each of its
// conversations has a session.
func TestAnAgentRunsItsBlocks(t *testing.T) {
	heard := make(chan string, 100)
	executor := trpc.NewCodeExecutor(start(t), trpc.Options{OnEvent: func(_ context.Context, e messages.Event) {
		if s, ok := e.(messages.Stream); ok {
			heard <- s.Text
		}
	}})
	said := &script{lines: []string{"```python\nx = 40\nprint('kept', x)\n```", "```python\nprint(x + 2)\n```"}}
	r := runner.NewRunner("test", llmagent.New("analyst", llmagent.WithModel(said), llmagent.WithCodeExecutor(executor)))
	defer func() { require.NoError(t, r.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	turn := func() string {
		events, err := r.Run(ctx, "somebody", "one", model.NewUserMessage("go"))
		require.NoError(t, err)
		results := ""
		for e := range events {
			require.Nil(t, e.Error)
			if e.ContainsTag(event.CodeExecutionResultTag) {
				results += e.Choices[0].Message.Content
			}
		}
		return results
	}
	require.Equal(t, "Code execution result:\nkept 40\n", turn())
	require.Equal(t, "kept 40\n", <-heard)
	require.Equal(t, "Code execution result:\n42\n", turn(), "the conversation is the session")
}
