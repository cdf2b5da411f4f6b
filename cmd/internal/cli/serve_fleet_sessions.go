package cli

import (
	"context"
	"strings"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi/about"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// hostSessions are those of a host, for its node.
type hostSessions struct{ host *coppice.Host }

// Live implements [fleetapi.Sessions].
func (h hostSessions) Live(ctx context.Context) ([]messages.SessionKey, error) {
	list, err := h.host.Sessions(ctx)
	var keys []messages.SessionKey
	for _, s := range list {
		keys = append(keys, s.Key)
	}
	for _, w := range h.host.Workspaces().List(workspace.Filter{}) {
		keys = append(keys, messages.SessionKey{Workspace: w.Name})
	}
	return keys, err
}

// End implements [fleetapi.Sessions].
func (h hostSessions) End(ctx context.Context, key messages.SessionKey) error {
	if about.IsWorkspace(key) {
		w, err := h.host.Workspaces().Get(key.Workspace)
		if err != nil {
			return nil //nolint:nilerr // it has ended
		}
		return w.End(ctx)
	}
	return h.host.Session(key.Session, coppice.In(key.Cwd), coppice.InWorkspace(key.Workspace), coppice.OnKernel(key.Kernel)).Close(ctx)
}

// Hibernate keeps a session on disk.
func (h hostSessions) Hibernate(ctx context.Context, key messages.SessionKey) error {
	_, err := h.host.Session(key.Session, coppice.In(key.Cwd), coppice.OnKernel(key.Kernel)).Hibernate(ctx)
	return err
}

// Watch implements [fleetapi.Sessions].
func (h hostSessions) Watch(f func(ended messages.SessionKey, why string)) (stop func()) {
	return h.host.Watch(func(e messages.Lifecycle) {
		var key messages.SessionKey
		why := ""
		if c, ok := e.(messages.ChildChanged); ok && c.Exit != nil {
			key, _ = messages.ParseSessionKey(c.Key) // what has no key is no session
			why = inOrder(*c.Exit)
		}
		f(key, why)
	})
}

// inOrder is why a kernel has ended, "" where that was no end in order.
func inOrder(exit messages.Exit) string {
	switch {
	case exit.Kind == messages.ExitHibernated:
		return fleetapi.WhyKept
	case exit.Kind == messages.ExitEvicted && exit.Reason != "":
		return "it was ended, " + exit.Reason
	case exit.Kind == messages.ExitEvicted:
		return "it was ended to make room"
	case exit.Kind == messages.ExitShutdown && strings.HasPrefix(exit.Reason, messages.SessionClosed):
		return messages.SessionClosed
	default:
		return ""
	}
}
