package coppice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/checkup"
	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/actors/python"
	"github.com/coppice-run/coppice/internal/hostcall"
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
	nameSinks      = "sinks"
	nameGateway    = "kernel-gateway"
	nameForkServer = "fork-server"
)

// Host owns one supervision tree and the processes under it.
type Host struct {
	o           resolved
	system      *supervisor.System
	hub         *sinks.Hub
	gatewayName string // the name of the gateway in the tree, and of its backend
	why         string // why it is this backend
	// found is the interpreter, when the choice of the backend looked for it.
	found *python.Runtime
	// prelude is what every session runs first, "" when it has no helpers.
	prelude string
	runner  *runner.Server // nil with the gateway backend

	jupyter *jupyter.Server // nil with the runner backend

	launcher *Launcher // nil when there is none

	calls *hostcall.Host // what code asks of the host

	primitives *primitive.Registry
	audit      *audit.Log // nil when there is none
	forked     forkedSessions

	trace     *checkup.Trace // nil when nobody traces
	preflight preflight

	shutdown sync.Once
	report   messages.ShutdownReport
}

// Start makes a host. It returns when the tree stands: the process that kernels
// share is started in the background, and the first call waits for it. That
// takes milliseconds, and a tenth of a second more with BackendAuto, which asks
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
	if r.Artifacts == "" {
		if r.temp, err = os.MkdirTemp("", "coppice-artifacts-"); err != nil {
			return nil, fmt.Errorf("make a folder for artifacts: %w", err)
		}
		r.Artifacts = r.temp
	}
	h := &Host{o: r}
	h.calls = hostcall.New(hostcall.Options{
		Functions: r.HostFunctions, MaxCalls: max(r.MaxHostCalls, 0), MaxAtOnce: r.MaxHostCallsAtOnce, Logger: r.Logger,
		Tools: func(ctx context.Context) map[string]HostFunction { return h.launcher.offered(ctx) },
	})
	if h.gatewayName, h.why, h.found, err = chooseBackend(ctx, r); err != nil {
		return nil, errors.Join(err, r.clean())
	}
	starting.stage("choose the backend: " + h.gatewayName + ", since " + h.why)
	h.prelude = prelude(h.gatewayName, r)
	if h.gatewayName == BackendGateway && r.MaxSessions > maxKernels && (r.SharedGateway == nil || r.GatewayURL != "") {
		err := fmt.Errorf("%w: %d sessions are more than the %d kernels that one Kernel Gateway holds; use SharedGateway, or the runner backend", ErrOptions, r.MaxSessions, maxKernels)
		return nil, errors.Join(err, r.clean())
	}
	if err := errors.Join(r.Limits.check(h.gatewayName), r.Isolation.check(h.gatewayName)); err != nil {
		return nil, errors.Join(err, r.clean())
	}
	var warm LauncherOptions
	if r.Launcher != nil {
		if warm, err = r.Launcher.within(r); err != nil {
			return nil, errors.Join(err, r.clean())
		}
	}
	if err := errors.Join(h.installPacks(), h.openAudit()); err != nil {
		return nil, errors.Join(err, r.clean())
	}
	if err := h.openTrace(); err != nil {
		return nil, errors.Join(err, r.clean())
	}
	h.hub, err = sinks.NewHub(r.hub())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the sinks: %w", err), r.clean())
	}
	children := []supervisor.Spec{h.hub.Spec(), h.gatewaySpec()}
	if r.Bash {
		children = append(children, h.bashSpec())
	}
	if r.Launcher != nil {
		children = append(children, warm.spec())
	}
	h.system, err = supervisor.Start(ctx, supervisor.SystemOptions{Name: "supervisor", OnEvent: starting.watch(r.OnEvent), Children: children})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the supervision tree: %w", err), r.clean())
	}
	if r.Launcher != nil {
		h.launcher = warm.attach(ctx, h.system)
		h.launcher.hosted = true
	}
	starting.stage("start the supervision tree")
	return h, nil
}

// chooseBackend names the backend and says why it is this one. It returns the
// interpreter, if it looked for it.
func chooseBackend(ctx context.Context, r resolved) (name, why string, found *python.Runtime, err error) {
	switch {
	case r.Backend != BackendAuto:
		return r.Backend, "it was asked for", nil, nil
	case r.GatewayURL != "":
		return BackendGateway, "an external gateway is set", nil, nil
	case r.KernelName != "":
		return BackendGateway, "a kernel was named", nil, nil
	case r.skipCheck():
		return BackendGateway, skipWhy, nil, nil
	}
	rt, err := python.Resolve(ctx, python.Options{Python: r.Python, Home: r.dir, Env: r.Env})
	if err == nil {
		found = &rt
		_, err = python.Preflight(ctx, rt)
	}
	switch {
	case ctx.Err() != nil:
		return "", "", nil, fmt.Errorf("choose a backend: %w", context.Cause(ctx))
	case err != nil:
		return BackendRunner, "a gateway cannot be started: " + err.Error(), found, nil
	default:
		return BackendGateway, "jupyter_kernel_gateway or jupyter_server, and ipykernel, are importable", found, nil
	}
}

// Backend returns the backend that the host's calls run on, gateway or runner,
// and why it is this one.
func (h *Host) Backend() (name, why string) { return h.gatewayName, h.why }

// Spares returns how many sessions of the runner backend were forked ahead and wait
// to be taken, 0 with the gateway backend. See [Options.Spares].
func (h *Host) Spares() int {
	if h.runner == nil {
		return 0
	}
	return h.runner.Spares()
}

// Dir returns the folder <Home>/.<Brand>, where the environment, the settings and
// the tokens of this user are.
func (h *Host) Dir() string { return h.o.dir }

// spares is how many sessions the runner backend forks ahead.
func (r resolved) spares() int {
	if r.Spares < 0 {
		return -1
	}
	const usual = 2
	n := r.Spares
	if n == 0 {
		n = usual
	}
	return min(n, r.MaxSessions)
}

// gatewaySpec wires the gateway actor, its server and its kernels together.
func (h *Host) gatewaySpec() supervisor.Spec {
	ko := kernel.Options{StartTimeout: h.o.StartTimeout, InterruptGrace: h.o.InterruptGrace, HeartbeatEvery: h.o.Heartbeat, CellRuntime: h.o.Limits.Runtime}
	var server *supervisor.Spec
	if h.gatewayName == BackendRunner {
		isolation, _ := h.o.Isolation.resolve() // Start has checked it
		s := runner.NewServer(runner.ServerOptions{Home: h.o.dir, Python: h.o.Python, Env: h.o.Env, Isolation: isolation, Limits: h.o.Limits.runner(), NoFork: h.o.NoFork, Trace: h.trace, Prelude: h.prelude, Found: h.found, Spares: h.o.spares()})
		h.runner = s
		ko.Backend, server = runner.New(runner.Options{Server: s, Prelude: h.prelude, Modules: h.modulesCode}), gateway.ServerSpec(nameForkServer, s)
	} else {
		warm := h.o.warm()
		s := jupyter.NewServer(jupyter.ServerOptions{
			Warm: warm.kernels, WarmLazy: warm.lazy, WarmIdle: h.o.IdleTTL, Home: h.o.dir, Python: h.o.Python, Env: h.o.Env, URL: h.o.GatewayURL, Token: h.o.GatewayToken, HostCalls: h.o.hostCalls(),
			Shared: h.o.SharedGateway != nil, IdleEnd: h.o.GatewayIdle, ShardKernels: h.o.GatewayKernels, MaxKernels: h.o.MaxSessions, KernelName: h.o.KernelName, Trace: h.trace, SkipCheck: h.o.skipCheck(),
		})
		h.jupyter = s
		journal := ""
		if h.o.KeepSessions {
			journal = jupyter.SharedDir(h.o.dir)
		}
		ko.Backend, server = jupyter.New(jupyter.Options{Server: s, KernelName: h.o.KernelName, Helpers: h.prelude, Journal: journal, Modules: h.modulesCode}), gateway.ServerSpec(nameGateway, s)
	}
	actor := gateway.New(gateway.Options{
		Name: h.gatewayName, Server: server, StopTimeout: ko.StopTimeout(),
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
	return supervisor.Spec{Key: h.gatewayName, Kind: "gateway", New: func() supervisor.Behaviour { return actor }}
}

func (h *Host) gateway() supervisor.Ref { return h.system.Ref(h.gatewayName) }

// Launcher returns the launcher of Options.Launcher, nil when there is none.
func (h *Host) Launcher() *Launcher { return h.launcher }

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

// Watch calls fn for every change in the tree, from one goroutine, until stop
// is called. fn must not block.
func (h *Host) Watch(fn func(messages.Lifecycle)) (stop func()) { return h.system.Watch(fn) }

// Drain takes no new calls from now on and lets the running ones end; waiting
// calls are answered as not started. It returns when no call runs any more, or
// with ctx's cause; Shutdown comes afterwards.
func (h *Host) Drain(ctx context.Context) error {
	_, err := supervisor.Ask[bool](ctx, h.gateway(), messages.Drain{})
	if errors.Is(err, supervisor.ErrNoProcess) || errors.Is(err, supervisor.ErrGone) {
		return ErrClosed
	}
	return err
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
		if h.jupyter != nil {
			h.jupyter.Leave()
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
		if h.runner != nil {
			if err := h.runner.Close(); err != nil {
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
