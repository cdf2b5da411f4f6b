package coppice

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/workspace"
)

// Workspace makes a workspace, or returns the existing one with this name, see
// [workspace.Set.Open]. [InWorkspace] names its sessions. It returns when the folder exists, and
// starts no kernel. The error is that of workspace.Set.Open, or matches [ErrClosed], or
// [ErrOptions] for limits and isolation that the backend cannot enforce. Any goroutine may call
// it.
func (h *Host) Workspace(ctx context.Context, name string, o workspace.Options) (*workspace.Workspace, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	w, err := h.workspaces.Open(ctx, name, o)
	if ended, ok := errors.AsType[*workspace.EndedError](err); ok && ended.Reason == workspace.ReasonShutdown {
		return nil, fmt.Errorf("make the workspace %s: %w", name, ErrClosed)
	}
	return w, err
}

// Workspaces returns the workspaces that [Host.Workspace] has made. Any goroutine may call it.
func (h *Host) Workspaces() *workspace.Set { return h.workspaces }

// within resolves the workspace of a key, nil for none, and its working directory in it.
func (h *Host) within(key *messages.SessionKey) (*workspace.Workspace, error) {
	if key.Workspace == "" {
		return nil, nil //nolint:nilnil // most sessions belong to none
	}
	w, err := h.workspaces.Get(key.Workspace)
	if errors.Is(err, workspace.ErrUnknown) {
		return nil, &RequestError{"workspace", fmt.Sprintf("there is no workspace %.80q; make it with Host.Workspace", key.Workspace)}
	}
	if err != nil {
		return nil, err
	}
	*key = messages.SessionKey{Session: key.Session, Cwd: w.Folder(), Workspace: key.Workspace, Kernel: key.Kernel}.In(key.Cwd)
	return w, nil
}

// named settles the kernelspec of a key: that of sessions that name none has no name. In a
// workspace with a backend of its own, that one makes all kernels.
func (h *Host) named(key *messages.SessionKey, ws *workspace.Workspace) error {
	if h.kernels.Usual(key.Kernel) {
		key.Kernel = ""
		return nil
	}
	if !messages.IsKernelspec(key.Kernel) {
		return &RequestError{"kernel", fmt.Sprintf("%.80q is not the name of a kernelspec: those have letters, digits, -, . and _, at most %d", key.Kernel, messages.MaxKernelspec)}
	}
	b, err := h.kernels.With(key.Kernel)
	if err != nil {
		return &RequestError{"kernel", err.Error()}
	}
	if ws != nil && ws.Backend() != nil && b != h.backend {
		return &RequestError{"kernel", fmt.Sprintf("the workspace %s has limits, walls or an environment of its own, for kernels of the %s backend: %.80q is none of them; leave it out", key.Workspace, h.backend.Name(), key.Kernel)}
	}
	return nil
}

// backend is what makes the session's kernels.
func (s *Session) backend() kernel.Backend {
	if s.ws != nil && s.ws.Backend() != nil {
		return s.ws.Backend()
	}
	return s.host.kernels.Maker(s.key.Kernel)
}

// enter says that the session's workspace is in use until leave is called; begin is how
// a call is sent, and owner whom it belongs to that names none.
func (s *Session) enter() (leave func(), begin func(func() error) error, owner string, err error) {
	if s.ws == nil {
		return func() {}, nil, "", nil
	}
	if leave, err = s.ws.Enter(); err != nil {
		return func() {}, nil, "", err
	}
	return leave, s.ws.Begin, s.ws.Owner(), nil
}
