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
		if req.Params.RequestState != "" {
			return s.resume(ctx, req)
		}
		call := coppice.ToolCall{
			Arguments: req.Params.Arguments,
			Session:   messages.SessionKey{Session: s.sessionName(req.Session), Cwd: s.o.Cwd},
		}
		can, rounds := canAsk(req)
		if can && rounds {
			return s.begin(ctx, req, t, call)
		}
		watch := s.watch(ctx, req)
		defer watch.end()
		if watch != nil {
			call.OnEvent = watch.event
		}
		users := &user{ask: req.Session.Elicit, log: s.o.Logger}
		if can {
			call.Input = users.input
		}
		return s.made(ctx, t, call, users)
	}
}

// made is what a client gets of a call.
func (s *server) made(ctx context.Context, t coppice.Tool, call coppice.ToolCall, users *user) (*mcp.CallToolResult, error) {
	r, err := t.Call(ctx, call)
	switch bad, wrong := errors.AsType[*coppice.ToolError](err); {
	case wrong:
		return refused(bad.Error()), nil
	case err != nil:
		return nil, fmt.Errorf("call the tool %s: %w", t.Name, err)
	}
	out, err := content(r)
	if err == nil && users.secret.Load() {
		out.Content = append(out.Content, &mcp.TextContent{Text: secretNote})
	}
	return out, err
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
