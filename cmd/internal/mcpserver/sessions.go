package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/messages"
)

// sessionArgs name a session.
type sessionArgs struct {
	Session string `json:"session,omitempty" jsonschema:"Name of the session; that of calls that name none if it is left out."`
	Cwd     string `json:"cwd,omitempty" jsonschema:"Working directory of the session."`
}

// sessionInfo describes a session that has a kernel.
type sessionInfo struct {
	Session  string `json:"session"`
	Cwd      string `json:"cwd"`
	State    string `json:"state" jsonschema:"idle, busy, starting, restarting, stopping, waiting or failed"`
	Queue    int    `json:"queue" jsonschema:"calls that wait"`
	Pinned   bool   `json:"pinned"`
	Restarts int    `json:"restarts"`
	PID      int    `json:"pid,omitempty"`
	RSS      int64  `json:"rss,omitempty" jsonschema:"memory in bytes"`
	Expires  string `json:"expires,omitempty" jsonschema:"when the idle session ends, RFC 3339"`
	LastExit string `json:"last_exit,omitempty" jsonschema:"why the kernel before this one ended"`
}

type sessionList struct {
	Sessions []sessionInfo `json:"sessions"`
}

type done struct {
	Done string `json:"done"`
}

// addSessions adds the tools that look after sessions.
func (s *server) addSessions(m *mcp.Server) {
	no, yes := false, true
	mcp.AddTool(m, &mcp.Tool{
		Name: "sessions_list", Title: "List sessions", Description: "Lists the sessions that have a kernel, with their state.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, sessionList, error) {
		list, err := s.sessions(ctx)
		return nil, list, err
	})
	for _, one := range []struct {
		name, title, about, done string
		destructive              *bool
		do                       func(*coppice.Session, context.Context) error
	}{
		{"sessions_interrupt", "Interrupt a session", "Interrupts what runs in a session, as Ctrl-C would. Its variables are kept.", "interrupted", &no, (*coppice.Session).Interrupt},
		{"sessions_reset", "Reset a session", "Ends a session's kernel; its next call starts with no variables.", "reset", &yes, (*coppice.Session).Reset},
		{"sessions_close", "Close a session", "Ends a session and its kernel, and what runs in it.", "closed", &yes, (*coppice.Session).Close},
	} {
		mcp.AddTool(m, &mcp.Tool{
			Name: one.name, Title: one.title, Description: one.about,
			Annotations: &mcp.ToolAnnotations{DestructiveHint: one.destructive, OpenWorldHint: &no},
		}, func(ctx context.Context, req *mcp.CallToolRequest, args sessionArgs) (*mcp.CallToolResult, done, error) {
			session := s.named(req, args)
			if err := one.do(session, ctx); err != nil {
				return nil, done{}, fmt.Errorf("%s: %w", one.name, err)
			}
			return nil, done{session.Key().Session + ": " + one.done}, nil
		})
	}
}

func (s *server) named(req *mcp.CallToolRequest, args sessionArgs) *coppice.Session {
	key := messages.SessionKey{Session: args.Session, Cwd: s.o.Cwd}
	if key.Session == "" {
		key.Session = s.sessionName(req.Session)
	}
	if key.Session == "" {
		key.Session = coppice.DefaultSession
	}
	return s.o.Host.Session(key.In(args.Cwd))
}

// sessions lists those that have a kernel.
func (s *server) sessions(ctx context.Context) (sessionList, error) {
	list := sessionList{Sessions: []sessionInfo{}}
	tree, err := s.o.Host.Snapshot(ctx)
	if err != nil {
		return list, err
	}
	backend, _ := s.o.Host.Backend()
	for _, gate := range tree.Children {
		if gate.Name != backend {
			continue
		}
		for _, n := range gate.Children {
			if key, ok := messages.ParseSessionKey(n.Name); ok && n.Kind == "kernel" && !strings.Contains(n.Name, "#") {
				list.Sessions = append(list.Sessions, describe(key, n))
			}
		}
	}
	return list, nil
}

func describe(key messages.SessionKey, n messages.Node) sessionInfo {
	info := sessionInfo{
		Session: key.Session, Cwd: key.Cwd, State: string(n.State), Queue: n.Queue, Pinned: n.Pinned,
		Restarts: n.Restarts, PID: n.PID, RSS: n.RSS,
	}
	if !n.TTL.IsZero() {
		info.Expires = n.TTL.UTC().Format(time.RFC3339)
	}
	if n.LastExit != nil {
		info.LastExit = strings.TrimSuffix(string(n.LastExit.Kind)+": "+n.LastExit.Reason, ": ")
	}
	return info
}
