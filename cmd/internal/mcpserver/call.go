package mcpserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
)

// handler serves the calls of one tool.
func (s *server) handler(t agent.Tool) mcp.ToolHandler {
	takes := takesSession(t)
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.RequestState != "" {
			return s.resume(ctx, req)
		}
		m := made{server: s, tool: t, client: req.Session, call: agent.Call{Arguments: req.Params.Arguments, Session: messages.SessionKey{Cwd: s.o.Cwd}}}
		if takes {
			if err := m.choose(ctx, req); err != nil {
				return refused(t.Name + ": " + sessionArgument + ": " + err.Error()), nil
			}
		}
		can, rounds := canAsk(req)
		if can && rounds {
			return s.begin(ctx, req, m)
		}
		watch := s.watch(ctx, req)
		defer watch.end()
		if watch != nil {
			m.call.OnEvent = watch.event
		}
		m.users = &user{ask: req.Session.Elicit, log: s.o.Logger}
		if can {
			m.call.Input = m.users.input
		}
		return m.run(ctx)
	}
}

// made is a call that is made for a client.
type made struct {
	server *server
	tool   agent.Tool
	client *mcp.ServerSession
	call   agent.Call
	at     place
	ended  bool // the session has ended since the call before
	users  *user
}

// choose finds the session of the call. The error is for a model.
func (m *made) choose(ctx context.Context, req *mcp.CallToolRequest) error {
	s := m.server
	find := s.placeOf
	if m.tool.Name == resetTool {
		find = s.running
	}
	name, rest := takeSession(m.call.Arguments)
	at, err := find(req.Session, req.Extra, name)
	if err != nil {
		return err
	}
	s.left.sweep(ctx, s.mcp)
	if !at.begun {
		m.ended = s.left.use(ctx, at.name)
	}
	m.at, m.call.Arguments, m.call.Session.Session = at, rest, at.name
	return nil
}

// run makes the call; what it returns is what a client gets of it.
func (m *made) run(ctx context.Context) (*mcp.CallToolResult, error) {
	r, err := m.tool.Call(ctx, m.call)
	switch bad, wrong := errors.AsType[*agent.Error](err); {
	case wrong:
		return refused(bad.Error()), nil
	case err != nil:
		return nil, fmt.Errorf("call the tool %s: %w", m.tool.Name, err)
	}
	told := m.remember(ctx, r.Result)
	if r.Result != nil && m.at.name != "" {
		shown := *r.Result
		shown.Session = m.at.shown
		r.Result = &shown
	}
	out, err := content(r)
	if err != nil {
		return nil, err
	}
	if m.ended {
		out.Content = append(out.Content, &mcp.TextContent{Text: endedNote})
	}
	if told {
		out.Content = append(out.Content, &mcp.TextContent{Text: begunNote(m.at.shown)})
	}
	if m.users.secret.Load() {
		out.Content = append(out.Content, &mcp.TextContent{Text: secretNote})
	}
	return out, nil
}

// remember keeps in mind whose session the call has used, so that it ends when it is
// of no use to anyone. It reports whether the client is to be told the name.
func (m *made) remember(ctx context.Context, r *messages.Result) (tell bool) {
	if r == nil || !r.Ran() || m.tool.Name == bashTool {
		return false
	}
	return m.server.keep(ctx, m.client, m.at, messages.SessionKey{Session: r.Session, Cwd: r.Cwd})
}

// keep keeps in mind that a client has used a session. It reports whether the client is to be
// told the name.
func (s *server) keep(ctx context.Context, client *mcp.ServerSession, at place, key messages.SessionKey) (tell bool) {
	if at.name != at.shown && s.disk.keeps() {
		s.disk.scoped.used(key)
	}
	switch {
	case at.begun && ctx.Err() != nil: // no one hears its name
		s.left.endAll(ctx, []messages.SessionKey{key})
	case at.begun:
		s.left.begun(ctx, key)
		return true
	case client != nil && client.ID() != "" && at.name != at.shown:
		s.left.belongs(client, key)
	}
	return false
}

// beforeRestore and afterRestore do for a session that goes on from a checkpoint on disk what
// is done for one that a call uses.
func (s *server) beforeRestore(ctx context.Context, _ *mcp.CallToolRequest, at whose, _ messages.SessionKey) {
	s.left.sweep(ctx, s.mcp)
	if !at.begun {
		s.left.use(ctx, at.name)
	}
}

func (s *server) afterRestore(ctx context.Context, req *mcp.CallToolRequest, at whose, key messages.SessionKey) {
	s.keep(ctx, req.Session, place{name: at.name, shown: at.shown, begun: at.begun}, key)
}

// refused is the result of a call that was not made.
func refused(problem string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: problem}}, IsError: true}
}

// content is what a client gets of a result. Text and pictures are content only: twice
// the same helps no one.
func content(r agent.Result) (*mcp.CallToolResult, error) {
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
		out.StructuredContent = structured(*r.Result)
	}
	return out, nil
}
