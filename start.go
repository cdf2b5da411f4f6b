package coppice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/internal/file/temp"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/internal/ipctrace"
	"github.com/coppice-run/coppice/internal/kernelserver"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/secret"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/audit"
	"github.com/coppice-run/coppice/supervisor"
)

// Start makes a host. It returns when the tree is up: the process that kernels share starts in
// the background, and the first call waits for it. Start takes milliseconds, and a tenth of a
// second more with [Auto], which asks the interpreter for its packages. ctx limits Start only.
//
// The error matches [ErrOptions] if an option is wrong. The first call, and [Environment], report
// what is wrong with the Python environment.
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
		if r.temp, err = temp.Make("artifacts"); err != nil {
			return nil, err
		}
		r.Output.Artifacts = r.temp
	}
	h := &Host{o: r}
	h.sweeping.Go(sweep)
	h.calls = hostcall.New(hostcall.Options{
		Functions: r.HostCalls.Functions, MaxCalls: max(r.HostCalls.MaxCalls, 0), MaxAtOnce: r.HostCalls.MaxAtOnce, Logger: r.Logger,
		Tools:   func(ctx context.Context) map[string]HostFunction { return h.launcher.Offered(ctx) },
		Lacking: func(ctx context.Context, name string) string { return h.launcher.Lacking(ctx, name) },
	})
	if err := h.openTrace(); err != nil {
		return nil, errors.Join(err, h.discard())
	}
	if err := h.provision(ctx); err != nil {
		return nil, errors.Join(err, h.discard())
	}
	if err := h.openHibernation(ctx); err != nil {
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
	h.workspaces = h.newWorkspaces()
	h.sweeping.Go(h.sweepWorkspaces)
	children := []supervisor.Spec{h.hub.Spec(), h.gatewaySpec(), h.workspaces.Spec()}
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
	// Nobody calls this host yet, and the process that kernels share begins meanwhile.
	if err := h.takeOverKept(ctx); err != nil {
		h.Leave(context.WithoutCancel(ctx)) // what is kept is for who tries again
		return nil, err
	}
	starting.stage("start the supervision tree")
	return h, nil
}

// discard closes and removes what a start has made that failed before the tree stood.
func (h *Host) discard() error {
	closed := h.kernels.Close()
	if h.audit != nil {
		closed = errors.Join(closed, h.audit.Close())
	}
	h.sweeping.Wait()
	return errors.Join(closed, h.owner.Close(context.Background()), h.trace.Close(), h.o.clean())
}

// sweep removes the temporary folders of hosts that were killed.
func sweep() {
	_, _ = temp.Clean(context.Background()) // what stays is found again
	kernelserver.Sweep()
}

// provision chooses the backend and makes it.
func (h *Host) provision(ctx context.Context) error {
	site := h.site()
	chosen, err := choose(ctx, h.o.Backend, &site)
	if err != nil {
		return err
	}
	h.why, h.found, h.provisioner = chosen.why, site.Found, chosen.Provisioner
	if h.found != nil {
		h.owner.Use(h.found.Path)
	}
	h.o.MaxSessions = h.o.sessions(chosen.Provisioner, site)
	site.MaxSessions = h.o.MaxSessions
	if h.backend, err = chosen.Provision(site); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	h.kernels.First = h.backend
	if h.o.Beside == nil || h.o.Beside.Name() == h.backend.Name() {
		return nil
	}
	site.Keep = false // the next host takes over what the first one has
	if h.kernels.Second, err = h.o.Beside.Provision(site); err != nil {
		return fmt.Errorf("%w: Beside: %w", ErrOptions, err)
	}
	return nil
}

// gatewaySpec wires the gateway actor, its server and its kernels together.
func (h *Host) gatewaySpec() supervisor.Spec {
	ko := kernel.Options{StartTimeout: h.o.StartTimeout, StartCeiling: h.o.StartCeiling, InterruptGrace: h.o.InterruptGrace, HeartbeatEvery: h.o.Heartbeat, CellRuntime: h.o.Limits.Runtime}
	ko.Hibernation = h.hibernation()
	var left func(messages.SessionKey)
	if heir, is := can[kernel.Heir](h); is {
		left = heir.Forget
	}
	actor := gateway.New(gateway.Options{
		Name: h.backend.Name(), Servers: h.kernels.Servers(), StopTimeout: ko.StopTimeout(), Hibernation: h.hibernation(), Left: left,
		Strategy: gateway.Policy{
			Heartbeat: h.o.Heartbeat, HeartbeatCeiling: h.o.HeartbeatCeiling, IdleTTL: h.o.IdleTTL, MaxKernels: h.o.MaxSessions, MaxWaiting: h.o.MaxWaiting,
			MaxPerOwner: h.o.MaxPerOwner, MaxRSS: h.o.MaxRSS, Hibernate: h.asleep != nil,
		}.Strategy(),
		NewKernel: func(k gateway.KernelSpec) supervisor.Behaviour {
			o := ko
			o.Key, o.Past, o.Once, o.Owner, o.Served = k.Key, k.Past, k.Once, k.Owner, k.Served
			return kernel.New(h.kernelIn(o))
		},
	})
	return supervisor.Spec{Key: h.backend.Name(), Kind: gateway.Kind, New: func() supervisor.Behaviour { return actor }}
}

// openAudit opens the audit log and makes it one of the host's sinks, when there is
// to be one.
func (h *Host) openAudit() error {
	if h.o.Audit == nil {
		return nil
	}
	o := *h.o.Audit
	if b, ok := can[kernel.Secretive](h); ok {
		o.Secrets = append(b.Secrets(), o.Secrets...)
	}
	for _, kv := range h.o.Env {
		if k, v, ok := strings.Cut(kv, "="); ok && secret.Variable(k, v) {
			o.Secrets = append(o.Secrets, v)
		}
	}
	if o.Logger == nil {
		o.Logger = h.o.Logger
	}
	log, err := audit.Open(o)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	h.audit = log
	h.o.Sinks = append([]sinks.Attachment{log.Attachment()}, h.o.Sinks...)
	return nil
}

// startup tells the stages of a start. A nil one tells nothing. Its methods may be
// called from any goroutine.
type startup struct {
	tell  func(StartupStage)
	began time.Time

	mu   sync.Mutex
	last time.Time // guarded by mu: the end of the stage before
	over bool      // guarded by mu: the first kernel is ready
}

// startup returns what reports the stages, nil when nothing listens.
func (r resolved) startup() *startup {
	tell := r.OnStartup
	if tell == nil && home.SwitchedOn(r.Env, "PI_DEBUG_STARTUP") {
		tell = func(s StartupStage) { _, _ = fmt.Fprintln(os.Stderr, r.Brand+" startup:", s) } // for people
	}
	if tell == nil {
		return nil
	}
	now := time.Now()
	return &startup{tell: tell, began: now, last: now}
}

func (s *startup) stage(name string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stageLocked(name)
}

func (s *startup) stageLocked(name string) {
	if s.over {
		return
	}
	now := time.Now()
	s.tell(StartupStage{Name: name, Since: now.Sub(s.began), Took: now.Sub(s.last)})
	s.last = now
}

// watch returns a listener that tells what becomes of the shared process and of
// the first kernel, and passes everything on.
func (s *startup) watch(next func(messages.Lifecycle)) func(messages.Lifecycle) {
	if s == nil {
		return next
	}
	return func(e messages.Lifecycle) {
		if c, ok := e.(messages.ChildChanged); ok && (c.Kind == "server" || c.Kind == "kernel") {
			s.changed(c)
		}
		if next != nil {
			next(e)
		}
	}
}

func (s *startup) changed(c messages.ChildChanged) {
	s.mu.Lock()
	defer s.mu.Unlock() // also when tell panics
	switch c.To {
	case messages.ChildStarting:
		s.stageLocked(c.Kind + " " + c.Key + " is asked to start")
	case messages.ChildIdle, messages.ChildBusy:
		// A server's actor is up at once; its process is what first calls wait for.
		if c.From == messages.ChildStarting && c.Kind == "kernel" {
			s.stageLocked(c.Kind + " " + c.Key + " is ready")
			s.over = true
		}
	default:
		if c.Exit != nil {
			s.stageLocked(c.Kind + " " + c.Key + " is " + string(c.To) + ": " + firstLine(c.Exit.Reason))
		}
	}
}

// openTrace opens the trace, if there is to be one.
func (h *Host) openTrace() (err error) {
	if h.o.TraceIPC {
		h.trace, err = ipctrace.Open(filepath.Join(h.o.dir, "agent", "trace"))
	}
	return err
}

// firstLine is a text up to its first line break.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// site is what the host says of itself to its backend.
func (h *Host) site() kernel.Site {
	mime := ""
	if !h.o.NoHelpers {
		mime = messages.StatusMIME(h.o.Brand)
	}
	return kernel.Site{
		Dir: h.o.dir, Python: h.o.Python, Env: h.o.Env, StatusMIME: mime, Modules: h.modulesCode, MaxSessions: h.o.MaxSessions, IdleTTL: h.o.IdleTTL,
		HostCalls: h.o.hostCalls(), Limits: h.o.Limits, Isolation: h.o.Isolation, Keep: h.o.KeepSessions, KeepFor: h.o.KeepFor, KeepName: h.o.KeepName, Warn: h.o.Logger.Warn, Trace: h.trace, SkipCheck: h.o.skipCheck(),
		Hibernate: h.o.Hibernate != hibernate.Never,
		Start:     opportunity.Starting(h.o.StartTimeout, h.o.StartCeiling), Owner: &h.owner,
	}
}

// sessions is how many kernels the host keeps at once on a backend.
func (r resolved) sessions(b Backend, s kernel.Site) int {
	const usual = 4 // of a backend that does not say
	if sized, ok := b.(kernel.Sizer); ok && r.MaxSessions == 0 {
		return sized.Sessions(s)
	}
	return cmp.Or(r.MaxSessions, usual)
}
