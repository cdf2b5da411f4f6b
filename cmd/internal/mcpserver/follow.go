package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/internal/opportunity"
)

// followed are the host's tools as clients see them now. They change while the server
// runs: those of the launcher with its folder, and those for Python when it can be used
// that could not. The SDK tells the clients of each change (tools/list_changed).
type followed struct {
	s *server
	m *mcp.Server

	// stop ends the looks for Python, and ended is closed when they are over.
	stop  context.CancelFunc
	ended chan struct{}

	mu    sync.Mutex
	shown map[string]agent.Tool // by name; guarded by mu
	less  bool                  // there is no tool for Python, since it cannot be used; guarded by mu
}

// followTools shows the host's tools, and looks at them again whenever a client lists
// them, when it calls one that is not known, and, as long as Python cannot be used, every
// now and then: no one asks for a tool that is not there. close ends that.
func (s *server) followTools(m *mcp.Server) (*followed, error) {
	f := &followed{s: s, m: m, ended: make(chan struct{}), shown: map[string]agent.Tool{}}
	if err := f.refresh(); err != nil {
		return nil, err
	}
	m.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); f.changes() && method == "tools/list" || ok && f.missing(call.Params.Name) {
				f.look()
			}
			return next(ctx, method, req)
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	if !f.lacks() {
		close(f.ended)
		return f, nil
	}
	go f.wait(ctx)
	return f, nil
}

// close ends the looks, and waits for that.
func (f *followed) close() {
	f.stop()
	<-f.ended
}

// wait is the goroutine that looks for Python until it can be used.
func (f *followed) wait(ctx context.Context) {
	defer close(f.ended)
	tick := time.NewTicker(f.s.o.LookAgain)
	defer tick.Stop()
	for f.lacks() {
		select {
		case <-tick.C:
			f.look()
		case <-ctx.Done():
			return
		}
	}
}

// lacks reports whether Python could not be used when it was looked at last.
func (f *followed) lacks() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.less
}

// changes reports whether the tools may be others than those that are shown.
func (f *followed) changes() bool { return f.s.o.Host.Launcher() != nil || f.lacks() }

// missing reports whether a name may be that of a tool that is new.
func (f *followed) missing(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, there := f.shown[name]
	return !there && (f.less || f.s.o.Host.Launcher() != nil && strings.HasPrefix(name, "tool_"))
}

// runsCode reports whether a tool of that name runs code in a session.
func (f *followed) runsCode(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, there := f.shown[name]
	return there && t.Name != resetTool && takesSession(t)
}

// look is refresh for those who go on with what there is.
func (f *followed) look() {
	if err := f.refresh(); err != nil {
		f.s.o.Logger.Warn("list the tools again", "err", err)
	}
}

// refresh shows the tools as they are now.
func (f *followed) refresh() error {
	tools, err := agent.Tools(f.s.o.Host, f.s.o.Tools)
	if err != nil {
		return fmt.Errorf("list the tools of the host: %w", err)
	}
	ctx, done := opportunity.Within(context.Background(), opportunity.Budget{Opportunity: lookTime}, nil)
	defer done()
	_, why, err := agent.ModeOf(ctx, f.s.o.Host, f.s.o.Tools)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.less = err == nil && why != ""
	now := map[string]agent.Tool{}
	for _, t := range tools {
		now[t.Name] = t
		if old, there := f.shown[t.Name]; !there || !same(old, t) {
			f.m.AddTool(definition(t), f.s.handler(t))
		}
	}
	for name := range f.shown {
		if _, there := now[name]; !there {
			f.m.RemoveTools(name)
		}
	}
	f.shown = now
	return nil
}

// lookTime bounds a look whether Python can be used; what was found a moment ago is
// remembered.
const lookTime = 15 * time.Second

func same(a, b agent.Tool) bool {
	return a.Launched == b.Launched && a.Label == b.Label && a.Description == b.Description && string(a.Schema) == string(b.Schema)
}
