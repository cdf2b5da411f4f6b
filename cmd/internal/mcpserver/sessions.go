package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
)

// sessionArgs name a session.
type sessionArgs struct {
	Session string `json:"session,omitempty" jsonschema:"Name of the session; that of calls that name none if it is left out."`
	Cwd     string `json:"cwd,omitempty" jsonschema:"Working directory of the session."`
}

type listArgs struct {
	Session string `json:"session,omitempty" jsonschema:"Name of a session, for that one alone; all of yours if it is left out."`
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
		Name: listTool, Title: "List sessions", Description: "Lists your sessions that have a kernel, with their state.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no},
	}, func(ctx context.Context, req *mcp.CallToolRequest, args listArgs) (*mcp.CallToolResult, sessionList, error) {
		list, err := s.sessions(ctx, req, args.Session)
		return nil, list, err
	})
	for _, one := range []struct {
		name, title, about, done string
		destructive              *bool
		do                       func(*coppice.Session, context.Context) error
	}{
		{interruptTool, "Interrupt a session", "Interrupts what runs in a session, as Ctrl-C would. Its variables are kept.", "interrupted", &no, func(s *coppice.Session, _ context.Context) error { return s.Interrupt() }},
		{sessionTools + "reset", "Reset a session", "Ends a session's kernel; its next call starts with no variables.", "reset", &yes, (*coppice.Session).Reset},
		{closeTool, "Close a session", "Ends a session and its kernel, and what runs in it.", "closed", &yes, (*coppice.Session).Close},
	} {
		mcp.AddTool(m, &mcp.Tool{
			Name: one.name, Title: one.title, Description: one.about,
			Annotations: &mcp.ToolAnnotations{DestructiveHint: one.destructive, OpenWorldHint: &no},
		}, func(ctx context.Context, req *mcp.CallToolRequest, args sessionArgs) (*mcp.CallToolResult, done, error) {
			at, session, err := s.sessionOf(req, args.Session, args.Cwd)
			there := false
			if err == nil {
				there, err = s.there(ctx, session.Key())
			}
			if err == nil {
				err = one.do(session, ctx)
			}
			if err != nil {
				return nil, done{}, fmt.Errorf("%s: %w", one.name, err)
			}
			if one.name == closeTool {
				s.checkpoints.forget(at.name)
			}
			if !there {
				return nil, done{at.shown + ": no session of this name and working directory has a kernel; nothing was " + one.done}, nil
			}
			return nil, done{at.shown + ": " + one.done}, nil
		})
	}
}

// there reports whether a session has a kernel, or is kept on disk.
func (s *server) there(ctx context.Context, key messages.SessionKey) (bool, error) {
	live, err := s.o.Host.Sessions(ctx)
	if err != nil || slices.ContainsFunc(live, func(one coppice.SessionInfo) bool { return one.Key == key }) {
		return err == nil, err
	}
	kept, err := s.o.Host.Hibernated(ctx)
	return slices.ContainsFunc(kept, func(one hibernate.Asleep) bool { return one.Key == key }), err
}

// sessions lists those of the client that have a kernel.
func (s *server) sessions(ctx context.Context, req *mcp.CallToolRequest, name string) (sessionList, error) {
	list := sessionList{Sessions: []sessionInfo{}}
	shown, err := s.visible(req, name)
	if err != nil {
		return list, fmt.Errorf("sessions_list: %s: %w", sessionArgument, err)
	}
	live, err := s.o.Host.Sessions(ctx)
	for _, one := range live {
		if name, ok := shown(one.Key.Session); ok {
			one.Key.Session = name
			list.Sessions = append(list.Sessions, describe(one.Key, one.Node))
		}
	}
	return list, err
}

// visible is what a client calls a session of the host; false: it is not told of it.
// With a name there is only the one that it means.
func (s *server) visible(req *mcp.CallToolRequest, name string) (func(string) (string, bool), error) {
	is := kindOf(req.Session, req.Extra)
	if name != "" || is == stateless && !s.o.SharedSessions {
		at, err := s.running(req.Session, req.Extra, name)
		return func(session string) (string, bool) { return at.shown, session == at.name }, err
	}
	return func(session string) (string, bool) {
		if is == connected {
			if own, ok := strings.CutPrefix(session, ownPrefix(req.Session)); ok {
				return own, true
			}
		}
		return session, is == sole || s.common(session)
	}, nil
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

// keptArgs name a state of a session.
type keptArgs struct {
	Session    string `json:"session,omitempty" jsonschema:"Name of the session; that of calls that name none if it is left out."`
	Cwd        string `json:"cwd,omitempty" jsonschema:"Working directory of the session."`
	Checkpoint string `json:"checkpoint" jsonschema:"What sessions_checkpoint has returned."`
}

// kept tells of a state that is kept.
type kept struct {
	Checkpoint string `json:"checkpoint" jsonschema:"to be passed to sessions_rewind"`
	Session    string `json:"session"`
}

// addCheckpoints adds the tools that keep states of sessions. The gateway backend cannot.
func (s *server) addCheckpoints(m *mcp.Server) {
	if backend, _ := s.o.Host.Backend(); backend == "gateway" {
		return
	}
	no, yes := false, true
	mcp.AddTool(m, &mcp.Tool{
		Name: checkpointTool, Title: "Keep a session's state",
		Description: fmt.Sprintf("Keeps the state of a session, with all variables, in memory: sessions_rewind goes back to it, any number of times. Files are not kept. The last %d of a session are.", maxOfOne),
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no},
	}, func(ctx context.Context, req *mcp.CallToolRequest, args sessionArgs) (*mcp.CallToolResult, kept, error) {
		at, session, err := s.sessionOf(req, args.Session, args.Cwd)
		if err != nil {
			return nil, kept{}, fmt.Errorf("%s: %w", checkpointTool, err)
		}
		made, err := session.Checkpoint(ctx)
		if err != nil {
			return nil, kept{}, fmt.Errorf("%s: %w", checkpointTool, err)
		}
		k := keptState{made, messages.NewID(), at.name}
		s.checkpoints.add(k)
		return nil, kept{k.id, at.shown}, nil
	})
	mcp.AddTool(m, &mcp.Tool{
		Name: rewindTool, Title: "Put a session back", Description: "Puts a session back to a state that sessions_checkpoint has kept, which stays. Variables made since are gone; files are not put back.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes, OpenWorldHint: &no},
	}, func(ctx context.Context, req *mcp.CallToolRequest, args keptArgs) (*mcp.CallToolResult, done, error) {
		at, session, err := s.sessionOf(req, args.Session, args.Cwd)
		if err != nil {
			return nil, done{}, fmt.Errorf("%s: %w", rewindTool, err)
		}
		c, ok := s.checkpoints.find(args.Checkpoint, at.name)
		if !ok {
			return nil, done{}, fmt.Errorf("%s: checkpoint: the session has none called %.80q; %s keeps one", rewindTool, args.Checkpoint, checkpointTool)
		}
		if err := session.Rewind(ctx, c); err != nil {
			return nil, done{}, fmt.Errorf("%s: %w", rewindTool, err)
		}
		return nil, done{at.shown + ": put back"}, nil
	})
}

// sessionOf is the session that a call is about, which runs.
func (s *server) sessionOf(req *mcp.CallToolRequest, name, cwd string) (place, *coppice.Session, error) {
	at, err := s.running(req.Session, req.Extra, name)
	if err != nil {
		return place{}, nil, fmt.Errorf("%s: %w", sessionArgument, err)
	}
	key := messages.SessionKey{Cwd: s.o.Cwd}
	return at, s.o.Host.Session(at.name, coppice.In(key.In(cwd).Cwd)), nil
}
