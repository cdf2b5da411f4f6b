package coppice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/agent/selfref"
	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/messages"
)

// Function makes a HostFunction of f. The arguments are decoded into In. One that In does not
// have, or that does not fit, is a TypeError in the code, and so is one that is missing: a field
// of In may be left out if it is a pointer or its tag has omitempty or omitzero.
func Function[In, Out any](name, description string, f func(context.Context, In) (Out, error)) HostFunction {
	return hostcall.Of(name, description, f)
}

// CallOf returns who calls the host function that got ctx. False: ctx is of no such
// call.
func CallOf(ctx context.Context) (HostCaller, bool) { return hostcall.CallOf(ctx) }

// installPacks makes the registry of a host.
func (h *Host) installPacks() error {
	h.primitives = primitive.New()
	for _, p := range h.o.HostCalls.Packs {
		if err := h.primitives.Install(p, false); err != nil {
			return fmt.Errorf("%w: %w", ErrOptions, err)
		}
	}
	if h.o.HostCalls.Selfref == nil {
		return nil
	}
	if err := h.primitives.Install(h.selfref(*h.o.HostCalls.Selfref).Pack(), false); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return nil
}

func (h *Host) selfref(o Selfref) *selfref.Backend {
	so := selfref.Options{Store: o.Store, MaxRunning: o.MaxRunning, MaxDepth: o.MaxDepth, MaxKept: o.MaxKept, MaxBytes: o.MaxBytes, Timeout: o.Timeout, OnCommit: o.OnCommit, Logger: h.o.Logger}
	if o.Agent != nil {
		so.Agent = func(ctx context.Context, f selfref.Fork) (selfref.Answer, error) { return h.runFork(ctx, o, f) }
	}
	return selfref.New(so)
}

// runFork runs the agent of a fork with a session and backends of its own, which
// end with it.
func (h *Host) runFork(ctx context.Context, o Selfref, f selfref.Fork) (a selfref.Answer, err error) {
	parent := h.Session(f.ParentSession.Session, In(f.ParentSession.Cwd), InWorkspace(f.ParentSession.Workspace), OnKernel(f.ParentSession.Kernel))
	s := h.Session(fmt.Sprintf("%s~%s", f.ParentSession.Session, messages.NewID()), In(f.ParentSession.Cwd), InWorkspace(f.ParentSession.Workspace), OnKernel(f.ParentSession.Kernel))
	if f.Live {
		fork := o.LiveFork
		if fork == nil {
			fork = whenIdle
		}
		if s, err = fork(ctx, parent, f.Owner); err != nil {
			return a, fmt.Errorf("copy the session for the fork: %w", err)
		}
	}
	f.Copied()
	own, err := h.registryOf(f.ParentSession).Fork(primitive.Fork{ID: f.ID, Session: s.key})
	if err != nil {
		return a, err
	}
	h.forked.put(s.key, own)
	f.Bind(s.key)
	defer func() {
		h.forked.drop(s.key)
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), forkClose)
		defer cancel()
		closeErr := s.Close(c)
		if errors.Is(closeErr, ErrClosed) {
			closeErr = nil // the host ends it
		}
		if left := errors.Join(closeErr, own.Close()); left != nil {
			h.o.Logger.Warn("a fork did not end in order", "fork", f.ID, "err", left)
		}
	}()
	return o.Agent(ctx, AgentFork{Fork: f, Session: s})
}

// forkClose bounds the end of a fork's session.
const forkClose = 20 * time.Second

// whenIdle copies a session as soon as nothing runs in it.
func whenIdle(ctx context.Context, parent *Session, owner string) (*Session, error) {
	const again = 20 * time.Millisecond
	for {
		made, err := parent.Fork(ctx, ForkOptions{Copies: 1, Owner: owner})
		if err == nil {
			return made[0], nil
		}
		refused, ok := errors.AsType[*messages.ForkRefused](err)
		if !ok || refused.Reason != messages.ForkBusy {
			return nil, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// registryOf is the registry that the code of a session calls.
func (h *Host) registryOf(key messages.SessionKey) *primitive.Registry {
	h.forked.mu.Lock()
	defer h.forked.mu.Unlock()
	if r := h.forked.all[key]; r != nil {
		return r
	}
	return h.primitives
}
