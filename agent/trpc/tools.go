package trpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"trpc.group/trpc-go/trpc-agent-go/tool"

	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
)

// Tools turns tools of a host into tools of trpc-agent-go. Their results are text.
func Tools(list []agent.Tool, o Options) ([]tool.Tool, error) {
	tools := make([]tool.Tool, 0, len(list))
	for _, t := range list {
		var s tool.Schema
		if err := json.Unmarshal(t.Schema, &s); err != nil {
			return nil, fmt.Errorf("read the schema of the tool %s: %w", t.Name, err)
		}
		tools = append(tools, hostTool{tool: t, o: o, declaration: &tool.Declaration{Name: t.Name, Description: t.Description, InputSchema: &s}})
	}
	return tools, nil
}

// hostTool is a tool of the host.
type hostTool struct {
	tool        agent.Tool
	o           Options
	declaration *tool.Declaration
}

var _ tool.CallableTool = hostTool{}

// Declaration describes the tool to a model.
func (h hostTool) Declaration() *tool.Declaration { return h.declaration }

// Call makes a call.
func (h hostTool) Call(ctx context.Context, arguments []byte) (any, error) {
	c := agent.Call{Arguments: json.RawMessage(arguments), Session: h.o.key(ctx, ""), Owner: h.o.Owner}
	if h.o.OnEvent != nil {
		c.OnEvent = func(e messages.Event) { h.o.OnEvent(ctx, e) }
	}
	r, err := h.tool.Call(ctx, c)
	if bad, ok := errors.AsType[*agent.Error](err); ok {
		return bad.Error(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("call the tool %s: %w", h.tool.Name, err)
	}
	return r.Text, nil
}
