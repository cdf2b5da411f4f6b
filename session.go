package coppice

import (
	"context"
	"errors"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/workspace"
)

// Session is a name for one interpreter state. It holds nothing itself: two
// Session values with the same key are the same session.
type Session struct {
	host *Host
	key  messages.SessionKey
	err  error                // why the key cannot be used
	ws   *workspace.Workspace // nil: it belongs to none
}

// SessionOption says more about the session that [Host.Session] returns.
type SessionOption func(*messages.SessionKey)

// In is the session's working directory; a relative one is relative to that of this
// process. Each directory has a state of its own: the same name in another directory
// is another session. "", as without In: the working directory of this process.
func In(dir string) SessionOption { return func(key *messages.SessionKey) { key.Cwd = dir } }

// InWorkspace makes the session one of the workspace of this name, which [Host.Workspace]
// has made: its directory is the workspace's folder, and that of [In] is
// relative to it. A workspace that is not there is reported by the first call. "": none.
func InWorkspace(name string) SessionOption {
	return func(key *messages.SessionKey) { key.Workspace = name }
}

// OnKernel has the session's kernels be of a kernelspec: of the gateway backend any that its
// server has, of any language, and of the runner backend python3, which coppice is
// another name for. The same name of a session with another kernelspec is another session.
// One that cannot be had is reported by the first call. "": the one of the host's backend.
func OnKernel(name string) SessionOption {
	return func(key *messages.SessionKey) { key.Kernel = name }
}

// Session returns the session with this name; "" is one as well, which no command and no request
// of the HTTP API can give. It starts nothing: the first call does. If the working directory does
// not exist, the first call reports it. Any goroutine may call it.
func (h *Host) Session(name string, options ...SessionOption) *Session {
	key := messages.SessionKey{Session: name}
	for _, o := range options {
		o(&key)
	}
	ws, err := h.within(&key)
	if err == nil {
		err = h.named(&key, ws)
	}
	if err != nil {
		return &Session{host: h, key: key, err: err}
	}
	cwd, err := cleanCwd(key.Cwd)
	key.Cwd = cwd
	return &Session{host: h, key: key, err: err, ws: ws}
}

func (s *Session) gateway() supervisor.Ref { return s.host.gateway() }

// Key returns the session's key with its absolute working directory.
func (s *Session) Key() messages.SessionKey { return s.key }

// Interrupt stops what runs in the session, as Ctrl-C would; the session is kept. Waiting calls
// are not affected. It returns when the request has been passed on; the result of the interrupted
// call says when it has stopped.
func (s *Session) Interrupt() error {
	if !s.gateway().Tell(messages.Interrupt{Key: s.key, Cause: messages.CauseCancelled}) {
		return ErrClosed
	}
	return nil
}

// SubmitInput answers the question with this id, which a messages.InputRequest
// of one of the session's calls carries. Exactly one answer is accepted; the
// status says what became of this one. That it was accepted does not promise
// that the code lived to read it.
//
// The error is a *RequestError for a value that is no line.
func (s *Session) SubmitInput(id, value string) (messages.InputStatus, error) {
	value, err := hostcall.Line(value)
	if err != nil {
		return "", &RequestError{"value", err.Error()}
	}
	return s.host.calls.Submit(&s.key, id, value), nil
}

// SubmitInput is Session.SubmitInput for a host that knows the id of a question
// and not the session that asked.
func (h *Host) SubmitInput(id, value string) (messages.InputStatus, error) {
	value, err := hostcall.Line(value)
	if err != nil {
		return "", &RequestError{"value", err.Error()}
	}
	return h.calls.Submit(nil, id, value), nil
}

// Reset ends the session's kernel; the next call, or one that is already waiting, gets a new one.
// A running call is cancelled, and the session's record on disk is dropped.
func (s *Session) Reset(ctx context.Context) error {
	s.forgetCopy()
	return s.drop(ctx, s.ask(ctx, messages.Reset{Key: s.key}))
}

// Close ends the session's kernel and forgets the session. A running call is cancelled, and
// waiting ones are not started. What primitives keep for the session is dropped: its forks end,
// and so do their results. So is its record on disk.
func (s *Session) Close(ctx context.Context) error {
	s.forgetCopy()
	defer s.host.primitives.SessionEnded(s.key)
	return s.drop(ctx, s.ask(ctx, messages.Close{Key: s.key}))
}

// Pin exempts the session from eviction, or ends the exemption.
func (s *Session) Pin(ctx context.Context, pinned bool) error {
	return s.ask(ctx, messages.Pin{Key: s.key, Pinned: pinned})
}

func (s *Session) ask(ctx context.Context, msg any) error {
	if s.err != nil {
		return s.err
	}
	_, err := supervisor.Ask[bool](ctx, s.gateway(), msg)
	if errors.Is(err, supervisor.ErrNoProcess) || errors.Is(err, supervisor.ErrGone) {
		return ErrClosed
	}
	return err
}

// forgetCopy ends a copy that waits to become the session's kernel, because the
// session is to start over.
func (s *Session) forgetCopy() { dropWaiting(s.backend(), s.key.ID()) }

// dropWaiting ends the copy that waits under a name, if there is one.
func dropWaiting(b kernel.Backend, name string) {
	if b, ok := b.(kernel.Forker); ok {
		b.DropWaiting(name)
	}
}

// cleanCwd makes a session's working directory absolute and refuses one that
// is not there.
func cleanCwd(cwd string) (string, error) {
	abs, err := home.WorkingDir(cwd)
	if err != nil {
		return "", &RequestError{"cwd", err.Error()}
	}
	return abs, nil
}
