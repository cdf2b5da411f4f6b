package mcpserver

import (
	"context"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice/agent"
)

// launched follows the tools of the host's launcher, whose folder may change
// while the server runs.
type launched struct {
	s *server
	m *mcp.Server

	mu    sync.Mutex
	shown map[string]agent.Tool // by name; guarded by mu
}

// followTools looks at the folder again whenever a client lists the tools, and
// when it calls one that is not known.
func (s *server) followTools(m *mcp.Server, tools []agent.Tool) {
	if s.o.Host.Launcher() == nil {
		return
	}
	l := &launched{s: s, m: m, shown: map[string]agent.Tool{}}
	for _, t := range tools {
		if t.Launched != "" {
			l.shown[t.Name] = t
		}
	}
	m.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); method == "tools/list" || ok && l.missing(call.Params.Name) {
				l.refresh()
			}
			return next(ctx, method, req)
		}
	})
}

// missing reports whether a name may be that of a tool that is new.
func (l *launched) missing(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, there := l.shown[name]
	return !there && strings.HasPrefix(name, "tool_")
}

// refresh shows the tools as they are now.
func (l *launched) refresh() {
	tools, err := agent.Tools(l.s.o.Host, l.s.o.Tools)
	if err != nil {
		l.s.o.Logger.Warn("list the tools again", "err", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := map[string]agent.Tool{}
	for _, t := range tools {
		if t.Launched == "" {
			continue
		}
		now[t.Name] = t
		if old, there := l.shown[t.Name]; !there || !same(old, t) {
			l.m.AddTool(definition(t), l.s.handler(t))
		}
	}
	for name := range l.shown {
		if _, there := now[name]; !there {
			l.m.RemoveTools(name)
		}
	}
	l.shown = now
}

func same(a, b agent.Tool) bool {
	return a.Launched == b.Launched && a.Label == b.Label && a.Description == b.Description && string(a.Schema) == string(b.Schema)
}
