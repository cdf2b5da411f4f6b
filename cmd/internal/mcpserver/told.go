package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What clients whose requests stand alone read about the argument session.
const (
	statelessTool = `

- Variables stay for as long as you say whose they are: the result of a call without session names the session that it has begun. Pass that name as session in each further call; a call without it starts with no variables.`
	statelessName   = "The session to go on with, as an earlier result has named it; a new one, with no variables, if it is left out."
	statelessNeeded = "The session, as an earlier result has named it."
	commonNames     = " Any other name means a session that all clients share."
)

// begunNote tells a model the name of the session that its call has begun.
func begunNote(name string) string {
	return fmt.Sprintf("[session %s: pass session: %q in further calls, to go on with these variables; a call without it starts with none]", name, name)
}

// endedNote tells a model that a session has ended which it goes on with late.
const endedNote = "[This session had ended, since nobody had gone on with it while others were begun. The variables of its earlier call are gone.]"

// tellStateless has the list of tools say how to go on where the protocol does not
// hold calls together. It is the same for all clients of that version, so that they
// may keep it.
func (s *server) tellStateless(m *mcp.Server) {
	m.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			r, err := next(ctx, method, req)
			list, ok := r.(*mcp.ListToolsResult)
			if !ok || err != nil {
				return r, err
			}
			if c, _ := req.GetSession().(*mcp.ServerSession); kindOf(c, req.GetExtra()) != stateless {
				return r, nil
			}
			for i, t := range list.Tools {
				list.Tools[i] = s.toldStateless(t)
			}
			return list, nil
		}
	})
}

// toldStateless is a tool as a client without a connection sees it.
func (s *server) toldStateless(t *mcp.Tool) *mcp.Tool {
	about := statelessNeeded
	switch {
	case s.tools.runsCode(t.Name):
		about = statelessName
	case t.Name == resetTool, strings.HasPrefix(t.Name, sessionTools):
	default:
		return t
	}
	if s.o.SharedSessions {
		about += commonNames
	}
	var schema map[string]any
	data, err := json.Marshal(t.InputSchema)
	if err == nil {
		err = json.Unmarshal(data, &schema)
	}
	properties, _ := schema["properties"].(map[string]any)
	session, _ := properties[sessionArgument].(map[string]any)
	if err != nil || session == nil {
		return t
	}
	session["description"] = about
	told := *t
	told.InputSchema = schema
	if s.tools.runsCode(t.Name) && t.Name != bashTool { // a command leaves nothing to go on with
		told.Description += statelessTool
	}
	return &told
}
