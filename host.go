package coppice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/bash"
	"github.com/coppice-run/coppice/actors/kernelspec"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/internal/ipctrace"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/audit"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/workspace"
)

// functionsWait is how long Shutdown waits for functions of the host itself,
// whose contexts have ended with their calls.
const functionsWait = 2 * time.Second

// Names in the tree.
const (
	nameSinks = "sinks"
)

// Host owns one supervision tree and the processes under it.
type Host struct {
	o      resolved
	system *supervisor.System
	hub    *sinks.Hub
	// backend makes the kernels; its name is that of the gateway in the tree.
	backend kernel.Backend
	why     string // why it is this backend
	// kernels has it, and the one beside it.
	kernels kernelspec.Backends
	// provisioner makes the backends of workspaces that have their own.
	provisioner kernel.Provisioner
	workspaces  *workspace.Set
	// found is the interpreter, when the choice of the backend looked for it.
	found *environment.Runtime

	owner    process.Owner      // of all processes
	launcher *launcher.Launcher // nil when there is none

	calls *hostcall.Host // what code asks of the host

	kept keptCalls // what an earlier host has left
	ids  sync.Map  // those of calls that were named by their callers and run

	primitives *primitive.Registry
	audit      *audit.Log // nil when there is none
	forked     forkedSessions
	commands   sync.Map // the ids of the commands that run

	trace     *ipctrace.File // nil when nothing is traced
	preflight preflight
	asleep    *hibernate.Keeper // nil when no sessions are kept on disk

	// sweeping removes what killed hosts have left, beside the start. Shutdown waits
	// for it.
	sweeping sync.WaitGroup

	shutdown sync.Once
	report   messages.ShutdownReport
}

// Options returns the options with which the host runs: those of [Start] with defaults filled in,
// also from Env, and including any secrets. What they point to belongs to the host and must not
// be changed. Any goroutine may call it.
func (h *Host) Options() Options { return h.o.Options }

// Dir returns the folder <Home>/.<Brand>, where the environment, the settings and
// the tokens of this user are.
func (h *Host) Dir() string { return h.o.dir }

func (h *Host) gateway() supervisor.Ref { return h.system.Ref(h.backend.Name()) }

// Launcher returns the launcher of Options.Launcher, nil when there is none.
func (h *Host) Launcher() *launcher.Launcher { return h.launcher }

// Snapshot returns the supervision tree as it is now. The error matches ErrClosed
// after Shutdown.
func (h *Host) Snapshot(ctx context.Context) (messages.Node, error) {
	if ctx == nil {
		return messages.Node{}, fmt.Errorf("take a snapshot of the tree: %w", errNoContext)
	}
	node, err := h.system.Snapshot(ctx)
	if errors.Is(err, supervisor.ErrStopped) {
		return node, fmt.Errorf("take a snapshot of the tree: %w", ErrClosed)
	}
	if err != nil {
		return node, fmt.Errorf("take a snapshot of the tree: %w", err)
	}
	node.Children = slices.DeleteFunc(node.Children, func(c messages.Node) bool {
		return c.Name == workspace.Name && len(c.Children) == 0 // no one has asked for one
	})
	if p := opportunity.Pressure(); p >= worthShowing {
		if node.Busy == nil {
			node.Busy = &messages.Busy{}
		}
		node.Busy.Pressure = p
	}
	return node, nil
}

// worthShowing is the pressure that every machine has now and then.
const worthShowing = .01

// SessionInfo is a session that has a kernel.
type SessionInfo struct {
	// Key is the session's name and working directory.
	Key messages.SessionKey
	// Node is its kernel in the tree: state, queue, owner, memory, when it expires.
	messages.Node
}

// Sessions returns the sessions that have a kernel now, sorted by name. Kernels for a single call
// are not among them. The error is that of [Host.Snapshot]. Any goroutine may call it.
func (h *Host) Sessions(ctx context.Context) ([]SessionInfo, error) {
	tree, err := h.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var list []SessionInfo
	for _, g := range tree.Children {
		if g.Name != h.backend.Name() {
			continue
		}
		for _, n := range g.Children {
			if key, ok := messages.ParseSessionKey(n.Name); ok && n.Kind == "kernel" {
				list = append(list, SessionInfo{Key: key, Node: n})
			}
		}
	}
	return list, nil
}

// Find returns the session with a key (see [Session.Key]) if it has a kernel now; otherwise has
// is false. It looks at no other session. The error is that of [Host.Snapshot], that of ctx, or a
// context.DeadlineExceeded if the tree does not answer in time. Any goroutine may call it.
func (h *Host) Find(ctx context.Context, key messages.SessionKey) (info SessionInfo, has bool, err error) {
	if ctx == nil {
		return SessionInfo{}, false, fmt.Errorf("look for the session %s: %w", key, errNoContext)
	}
	n, found, err := h.system.Child(ctx, h.backend.Name(), key.ID())
	switch {
	case errors.Is(err, supervisor.ErrStopped):
		return SessionInfo{}, false, fmt.Errorf("look for the session %s: %w", key, ErrClosed)
	case err != nil:
		return SessionInfo{}, false, fmt.Errorf("look for the session %s: %w", key, err)
	}
	return SessionInfo{Key: key, Node: n}, found && n.Kind == "kernel", nil
}

// Watch calls fn for every change in the tree, from one goroutine at a time, until stop
// is called. fn must not block. If it panics, that is logged and it is not called again.
func (h *Host) Watch(fn func(messages.Lifecycle)) (stop func()) { return h.system.Watch(fn) }

// Drain accepts no new calls and commands from now on, and lets running ones finish; waiting ones
// are answered as not started. It returns when none is running, or with ctx's cause. Call
// Shutdown after it.
func (h *Host) Drain(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	gateways := []supervisor.Ref{h.gateway()}
	if h.o.Bash {
		gateways = append(gateways, h.system.Ref(bash.Name))
	}
	works, replies := make([]supervisor.Work, len(gateways)), make([]supervisor.Reply[bool], len(gateways))
	for i, g := range gateways { // all refuse from now on, before one of them is waited for
		works[i], replies[i], _ = supervisor.Begin[bool](g, messages.Drain{}) // the reply has its error
	}
	var failed error
	for i, reply := range replies {
		if _, err := reply.Wait(ctx); err != nil {
			works[i].Settle(err) // the gateway sees that no one waits
			if failed == nil {
				failed = err
			}
		}
	}
	if errors.Is(failed, supervisor.ErrNoProcess) || errors.Is(failed, supervisor.ErrGone) {
		return ErrClosed
	}
	return failed
}

// ReleaseOwner says that an owner has left. Sessions that only it used are closed, and a running
// call in them is cancelled; those that others use too are kept. Workspaces that belong to it
// end, and records on disk of sessions that only it used are dropped.
func (h *Host) ReleaseOwner(ctx context.Context, owner string) error {
	closed, err := supervisor.Ask[messages.Released](ctx, h.gateway(), messages.ReleaseOwner{Owner: owner})
	for _, key := range closed.Sessions {
		h.primitives.SessionEnded(key)
	}
	if errors.Is(err, supervisor.ErrNoProcess) || errors.Is(err, supervisor.ErrGone) {
		return ErrClosed
	}
	if h.asleep != nil {
		err = errors.Join(err, h.asleep.Release(ctx, owner))
	}
	return errors.Join(err, h.workspaces.ReleaseOwner(ctx, owner))
}

// Leave is [Host.Shutdown] for a host with Options.KeepSessions whose sessions another host will
// take over. Sessions do not end, and neither do the calls that run in them: their results here
// say cancelled, and [Host.Kept] of the next host has the rest. Call it in a process that then
// ends. What cannot be kept ends as with Shutdown, but without time to finish.
func (h *Host) Leave(ctx context.Context) messages.ShutdownReport {
	if b, ok := can[kernel.Keeper](h); ok && h.o.KeepSessions {
		b.Leave()
		if _, heir := b.(kernel.Heir); heir {
			h.system.SkipDrain() // the calls that run go on elsewhere: nothing of them is read here any more
		}
	}
	return h.Shutdown(ctx)
}

// Shutdown accepts no new calls, ends running ones as cancelled, stops all kernels and processes,
// flushes the sinks, and reports what did not end before ctx did, and which sessions Options.Hibernate
// was to keep and could not. Sessions that would outlive the
// host end with it, except in a shared gateway, where a call that does not end in time continues;
// use [Host.Leave] to leave them. It may be called more than once, and always returns the same
// report.
func (h *Host) Shutdown(ctx context.Context) messages.ShutdownReport {
	if ctx == nil {
		ctx = context.Background() // no mistake is worth a kernel that stays
	}
	h.shutdown.Do(func() {
		if b, ok := can[kernel.Keeper](h); ok {
			if _, lasting := b.(kernel.Lasting); lasting {
				b.Leave()
			}
		}
		// Forks first: their agents make calls of the sessions below.
		err := h.primitives.Close()
		if h.asleep != nil {
			h.asleep.Ending()
		}
		h.report = h.system.Shutdown(ctx)
		h.kept.close()
		if h.asleep != nil {
			h.asleep.Close()
			h.report.Unkept = h.asleep.Lost()
		}
		if err != nil {
			h.report.Leftovers = append(h.report.Leftovers, messages.Leftover{Path: "primitives", Exit: messages.Exit{Kind: messages.ExitHung, Reason: err.Error()}})
		}
		if err := h.owner.Close(ctx); err != nil {
			h.report.Leftovers = append(h.report.Leftovers, messages.Leftover{Path: "processes", Exit: messages.Exit{Kind: messages.ExitHung, Reason: err.Error()}})
		}
		c, cancel := context.WithTimeout(ctx, functionsWait)
		defer cancel()
		h.report.Leftovers = append(h.report.Leftovers, h.calls.Wait(c)...)
		if err := h.kernels.Close(); err != nil {
			h.o.Logger.Warn("remove temporary files", "err", err)
		}
		if h.audit != nil {
			if err := h.audit.Close(); err != nil {
				h.o.Logger.Warn("close the audit log", "err", err)
			}
		}
		if err := h.trace.Close(); err != nil {
			h.o.Logger.Warn("close the trace", "err", err)
		}
		h.sweeping.Wait()
		if err := h.o.clean(); err != nil {
			h.o.Logger.Warn("remove temporary files", "err", err)
		}
	})
	return h.report
}

// TraceFile returns the file in which messages between this host and its kernels are recorded:
// one JSON object per line with time, kernel, direction, type, id and size, but nothing of the
// contents. Only its owner can read it. At 32 MiB it is renamed, with .1 at the end, and a new
// one begins. "" without Options.TraceIPC.
func (h *Host) TraceFile() string { return h.trace.Path() }

// preflight keeps that Python was found well: a failure is looked at again.
type preflight struct {
	mu   sync.Mutex // held while it is checked: who asks meanwhile gets the same answer
	well bool       // guarded by mu
	// bad is why it was not, as of at: who lists tools may ask often.
	bad error     // guarded by mu
	at  time.Time // guarded by mu
}

// preflightAgain is after how long a failure is looked at again.
const preflightAgain = 5 * time.Second

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

// Primitives returns the registry of the host's packs, to install and remove packs while it runs.
// On the gateway backend code can call none of them unless [Options.HostCalls] had a pack,
// Selfref or a host function when the host started.
func (h *Host) Primitives() *primitive.Registry { return h.primitives }
