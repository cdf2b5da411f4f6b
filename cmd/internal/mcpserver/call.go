package mcpserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// handler serves the calls of one tool.
func (s *server) handler(t coppice.Tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		call := coppice.ToolCall{
			Arguments: req.Params.Arguments,
			Session:   messages.SessionKey{Session: s.sessionName(req.Session), Cwd: s.o.Cwd},
		}
		watch := s.watch(ctx, req)
		defer watch.end()
		if watch != nil {
			call.OnEvent = watch.event
			if watch.asks {
				call.Input = watch.ask
			}
		}
		r, err := t.Call(ctx, call)
		switch bad, wrong := errors.AsType[*coppice.ToolError](err); {
		case wrong:
			return refused(bad.Error()), nil
		case err != nil:
			return nil, fmt.Errorf("call the tool %s: %w", t.Name, err)
		}
		return content(r)
	}
}

// sessionName is the session of calls that name none.
func (s *server) sessionName(c *mcp.ServerSession) string {
	if c == nil || c.ID() == "" {
		return ""
	}
	return "mcp-" + c.ID()
}

// refused is the result of a call that was not made.
func refused(problem string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: problem}}, IsError: true}
}

// content is what a client gets of a result. Pictures are content only: twice
// the same megabytes help nobody.
func content(r coppice.ToolResult) (*mcp.CallToolResult, error) {
	out := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Text}}, IsError: r.IsError}
	for _, image := range r.Images {
		data, err := base64.StdEncoding.DecodeString(image.Data)
		if err != nil {
			return nil, fmt.Errorf("read a picture of the result: %w", err)
		}
		out.Content = append(out.Content, &mcp.ImageContent{Data: data, MIMEType: image.MIME})
	}
	if r.Run != nil {
		out.StructuredContent = r.Run
	}
	if r.Result != nil {
		structured := *r.Result
		structured.Images = nil
		out.StructuredContent = structured
	}
	return out, nil
}
