package coppice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/primitive"
	"github.com/coppice-run/coppice/internal/primitive/selfref"
	"github.com/coppice-run/coppice/messages"
)

// Runtime primitives: what code in cells calls as runtime.<pack>.<name>(...). A
// Pack is a namespace with a backend, which is any object of the host.
type (
	// Pack is a namespace of primitives.
	Pack = primitive.Pack
	// Primitive is one function of a pack, with its contract.
	Primitive = primitive.Primitive
	// PrimitiveParameter is one parameter of a primitive.
	PrimitiveParameter = primitive.Parameter
	// PrimitiveCall is one call of a primitive, as its handler sees it.
	PrimitiveCall = primitive.Call
	// PrimitiveSpec is what code can read of a primitive.
	PrimitiveSpec = primitive.Spec
	// Primitives is the registry of a host.
	Primitives = primitive.Registry
)

// The kinds of parameters.
const (
	PositionalOnly      = primitive.PositionalOnly
	PositionalOrKeyword = primitive.PositionalOrKeyword
	VarPositional       = primitive.VarPositional
	KeywordOnly         = primitive.KeywordOnly
	VarKeyword          = primitive.VarKeyword
)

// What the pack selfref works on.
type (
	// Conversations holds the conversations of agents.
	Conversations = selfref.Store
	// ConversationMemory is one that forgets all at the end of the program.
	ConversationMemory = selfref.Memory
	// ConversationMessage is one entry of a conversation.
	ConversationMessage = selfref.Message
	// ConversationToolCall is one call that a model made.
	ConversationToolCall = selfref.ToolCall
	// Answer is what a forked agent came to.
	Answer = selfref.Answer
)

// Selfref makes the pack selfref: code sees, remembers and compacts the
// conversation that it is part of, and forks agents that go on from it. The zero
// value of each field is its default.
type Selfref struct {
	// Store holds the conversations, by Request.Memory. nil: a ConversationMemory.
	Store Conversations
	// Agent runs one fork: it goes on from f.History with f.Message, runs code in
	// f.Session as it likes, and returns what it came to. It runs in a goroutine of
	// its own; ctx ends when the fork is cancelled. nil: there are no forks.
	Agent func(ctx context.Context, f AgentFork) (Answer, error)
	// MaxRunning is how many forks may run at once, MaxDepth how deep forks of
	// forks may go, MaxKept how many results are kept for each session. 0: 16, 4
	// and 256.
	MaxRunning, MaxDepth, MaxKept int
	// Timeout bounds one fork. 0: none.
	Timeout time.Duration
	// LiveFork makes the session of a fork that asks for a copy of the parent's
	// interpreter. It waits until the call that asked has ended, so such a fork can
	// be gathered in a later call. nil: Session.Fork, which the runner has.
	LiveFork func(ctx context.Context, parent *Session, owner string) (*Session, error)
}

// AgentFork is what a forked agent is started with.
type AgentFork struct {
	selfref.Fork
	// Session is the fork's own, with a kernel of its own. It costs nothing until
	// it executes, and is closed when the agent returns.
	Session *Session
}

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
	so := selfref.Options{Store: o.Store, MaxRunning: o.MaxRunning, MaxDepth: o.MaxDepth, MaxKept: o.MaxKept, Timeout: o.Timeout}
	if o.Agent != nil {
		so.Agent = func(ctx context.Context, f selfref.Fork) (selfref.Answer, error) { return h.runFork(ctx, o, f) }
	}
	return selfref.New(so)
}

// runFork runs the agent of a fork with a session and backends of its own, which
// end with it.
func (h *Host) runFork(ctx context.Context, o Selfref, f selfref.Fork) (a selfref.Answer, err error) {
	parent := h.Session(f.ParentSession.Session, In(f.ParentSession.Cwd))
	s := h.Session(fmt.Sprintf("%s~%s", f.ParentSession.Session, messages.NewID()), In(f.ParentSession.Cwd))
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

// forkedSessions are the registries of sessions that belong to forks.
type forkedSessions struct {
	mu  sync.Mutex
	all map[messages.SessionKey]*primitive.Registry // guarded by mu
}

func (f *forkedSessions) put(key messages.SessionKey, r *primitive.Registry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[messages.SessionKey]*primitive.Registry{}
	}
	f.all[key] = r
}

func (f *forkedSessions) drop(key messages.SessionKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, key)
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

// Primitives returns the registry of the host's packs, to install and remove
// some while it runs. Code can call none of them on the gateway backend unless
// Options.HostCalls had a pack, Selfref or a host function when the host was started.
func (h *Host) Primitives() *Primitives { return h.primitives }
