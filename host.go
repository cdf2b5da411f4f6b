package coppice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/bash"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/internal/ipctrace"
	"github.com/coppice-run/coppice/internal/primitive"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/audit"
	"github.com/coppice-run/coppice/supervisor"
)

// ErrClosed is returned by everything that needs a host that has been shut
// down.
var ErrClosed = errors.New("the host is shut down")

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
	// found is the interpreter, when the choice of the backend looked for it.
	found *environment.Runtime

	launcher *launcher.Launcher // nil when there is none

	calls *hostcall.Host // what code asks of the host

	primitives *primitive.Registry
	audit      *audit.Log // nil when there is none
	forked     forkedSessions
	commands   sync.Map // the ids of the commands that run

	trace     *ipctrace.File // nil when nobody traces
	preflight preflight

	shutdown sync.Once
	report   messages.ShutdownReport
}

// Start makes a host. It returns when the tree stands: the process that kernels
// share is started in the background, and the first call waits for it. That
// takes milliseconds, and a tenth of a second more with [Auto], which asks
// the interpreter for its packages. ctx bounds Start only.
//
// The error matches ErrOptions when an option is wrong. What is wrong with the
// Python environment is told by the first call, and by [Environment].
func Start(ctx context.Context, o Options) (*Host, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	r, err := o.resolve()
	if err != nil {
		return nil, err
	}
	starting := r.startup()
	starting.stage("read the options")
	if r.Output.Artifacts == "" {
		if r.temp, err = os.MkdirTemp("", "coppice-artifacts-"); err != nil {
			return nil, fmt.Errorf("make a folder for artifacts: %w", err)
		}
		r.Output.Artifacts = r.temp
	}
	h := &Host{o: r}
	h.calls = hostcall.New(hostcall.Options{
		Functions: r.HostCalls.Functions, MaxCalls: max(r.HostCalls.MaxCalls, 0), MaxAtOnce: r.HostCalls.MaxAtOnce, Logger: r.Logger,
		Tools: func(ctx context.Context) map[string]HostFunction { return h.launcher.Offered(ctx) },
	})
	if err := h.openTrace(); err != nil {
		return nil, errors.Join(err, h.discard())
	}
	if err := h.provision(ctx); err != nil {
		return nil, errors.Join(err, h.discard())
	}
	starting.stage("choose the backend: " + h.backend.Name() + ", since " + h.why)
	var warm *launcher.Child
	if r.Launcher != nil {
		if warm, err = launcher.Within(*r.Launcher, launcher.Options{Brand: r.Brand, Home: r.Home, Env: r.Env, Logger: r.Logger}); err != nil {
			return nil, errors.Join(fmt.Errorf("%w: %w", ErrOptions, err), h.discard())
		}
	}
	if err := errors.Join(h.installPacks(), h.openAudit()); err != nil {
		return nil, errors.Join(err, h.discard())
	}
	h.hub, err = sinks.NewHub(h.o.hub())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the sinks: %w", err), h.discard())
	}
	children := []supervisor.Spec{h.hub.Spec(), h.gatewaySpec()}
	if r.Bash {
		children = append(children, h.bashSpec())
	}
	if warm != nil {
		children = append(children, warm.Spec())
	}
	h.system, err = supervisor.Start(ctx, supervisor.SystemOptions{Name: "supervisor", OnEvent: starting.watch(r.OnEvent), Logger: r.Logger, Children: children})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the supervision tree: %w", err), h.discard())
	}
	if warm != nil {
		h.launcher = warm.Attach(ctx, h.system)
	}
	starting.stage("start the supervision tree")
	return h, nil
}

// discard closes and removes what a start has made that failed before the tree stood.
func (h *Host) discard() error {
	var closed error
	if b, ok := can[kernel.Closer](h); ok {
		closed = b.Close()
	}
	if h.audit != nil {
		closed = errors.Join(closed, h.audit.Close())
	}
	return errors.Join(closed, h.trace.Close(), h.o.clean())
}

// Options returns the options with which the host runs: those of [Start] with their
// defaults filled in, from Env too; secrets that they were given are in them. What they
// point to is the host's and must not be changed. Any goroutine may call it.
func (h *Host) Options() Options { return h.o.Options }

// Dir returns the folder <Home>/.<Brand>, where the environment, the settings and
// the tokens of this user are.
func (h *Host) Dir() string { return h.o.dir }

// provision chooses the backend and makes it.
func (h *Host) provision(ctx context.Context) error {
	site := h.site()
	chosen, err := choose(ctx, h.o.Backend, &site)
	if err != nil {
		return err
	}
	h.why, h.found = chosen.why, site.Found
	h.o.MaxSessions = h.o.sessions(chosen.Provisioner, site)
	site.MaxSessions = h.o.MaxSessions
	if h.backend, err = chosen.Provision(site); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return nil
}

// startMargin is what the supervisor of a kernel allows beyond the kernel's own limit.
const startMargin = 30 * time.Second

// gatewaySpec wires the gateway actor, its server and its kernels together.
func (h *Host) gatewaySpec() supervisor.Spec {
	ko := kernel.Options{StartTimeout: h.o.StartTimeout, InterruptGrace: h.o.InterruptGrace, HeartbeatEvery: h.o.Heartbeat, CellRuntime: h.o.Limits.Runtime}
	ko.Backend = h.backend
	var server *supervisor.Spec
	if b, ok := can[kernel.Served](h); ok {
		server = kernel.ServerSpec(b.Process())
	}
	actor := gateway.New(gateway.Options{
		Name: h.backend.Name(), Server: server, StartTimeout: ko.StartTimeout + startMargin, StopTimeout: ko.StopTimeout(),
		Strategy: gateway.Policy{
			Heartbeat: h.o.Heartbeat, IdleTTL: h.o.IdleTTL, MaxKernels: h.o.MaxSessions, MaxWaiting: h.o.MaxWaiting,
			MaxPerOwner: h.o.MaxPerOwner, MaxRSS: h.o.MaxRSS,
		}.Strategy(),
		NewKernel: func(k gateway.KernelSpec) supervisor.Behaviour {
			o := ko
			o.Key, o.Past, o.Once = k.Key, k.Past, k.Once
			return kernel.New(o)
		},
	})
	return supervisor.Spec{Key: h.backend.Name(), Kind: "gateway", New: func() supervisor.Behaviour { return actor }}
}

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
	return node, nil
}

// SessionInfo is a session that has a kernel.
type SessionInfo struct {
	// Key is the session's name and working directory.
	Key messages.SessionKey
	// Node is its kernel in the tree: state, queue, owner, memory, when it expires.
	messages.Node
}

// Sessions returns the sessions that have a kernel now, in the order of their names.
// Kernels that serve one call alone are not among them. The error is that of
// [Host.Snapshot]. Any goroutine may call it.
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

// Watch calls fn for every change in the tree, from one goroutine at a time, until stop
// is called. fn must not block. If it panics, that is logged and it is not called again.
func (h *Host) Watch(fn func(messages.Lifecycle)) (stop func()) { return h.system.Watch(fn) }

// Drain takes no new calls and commands from now on and lets the running ones end;
// waiting ones are answered as not started. It returns when none runs any more, or
// with ctx's cause; Shutdown comes afterwards.
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

// ReleaseOwner says that an owner has left: the sessions that only it used are
// closed, those that others use too are kept. A running call of a session that
// is closed is cancelled.
func (h *Host) ReleaseOwner(ctx context.Context, owner string) error {
	_, err := supervisor.Ask[bool](ctx, h.gateway(), messages.ReleaseOwner{Owner: owner})
	if errors.Is(err, supervisor.ErrNoProcess) || errors.Is(err, supervisor.ErrGone) {
		return ErrClosed
	}
	return err
}

// Shutdown takes no new calls, ends the running ones as cancelled, stops all
// kernels and processes, flushes the sinks, and says what did not end before
// ctx did. It may be called more than once; every call returns the same report.
func (h *Host) Shutdown(ctx context.Context) messages.ShutdownReport {
	if ctx == nil {
		ctx = context.Background() // no mistake is worth a kernel that stays
	}
	h.shutdown.Do(func() {
		if b, ok := can[kernel.Keeper](h); ok {
			b.Leave()
		}
		// Forks first: their agents make calls of the sessions below.
		err := h.primitives.Close()
		h.report = h.system.Shutdown(ctx)
		if err != nil {
			h.report.Leftovers = append(h.report.Leftovers, messages.Leftover{Path: "primitives", Exit: messages.Exit{Kind: messages.ExitHung, Reason: err.Error()}})
		}
		c, cancel := context.WithTimeout(ctx, functionsWait)
		defer cancel()
		h.report.Leftovers = append(h.report.Leftovers, h.calls.Wait(c)...)
		if b, ok := can[kernel.Closer](h); ok {
			if err := b.Close(); err != nil {
				h.o.Logger.Warn("remove temporary files", "err", err)
			}
		}
		if h.audit != nil {
			if err := h.audit.Close(); err != nil {
				h.o.Logger.Warn("close the audit log", "err", err)
			}
		}
		if err := h.trace.Close(); err != nil {
			h.o.Logger.Warn("close the trace", "err", err)
		}
		if err := h.o.clean(); err != nil {
			h.o.Logger.Warn("remove temporary files", "err", err)
		}
	})
	return h.report
}

// clean removes what only this host needed.
func (r resolved) clean() error {
	if r.temp == "" {
		return nil
	}
	return os.RemoveAll(r.temp)
}
