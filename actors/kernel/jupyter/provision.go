package jupyter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/walls"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/machine"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/internal/sharedgateway"
	"github.com/coppice-run/coppice/messages"
)

// MaxKernels is how many kernels one Kernel Gateway holds: each takes 6 of the 1,023
// sockets of its ZeroMQ context, and some must be left for those that are on their
// way in or out.
const MaxKernels = 150

// HostOptions are what a host can say of the backend. The zero value of each field is
// its default.
type HostOptions struct {
	// URL is a Jupyter server that somebody else runs; Token opens it. Several have
	// commas between them, and so have their tokens, in the same order, unless one
	// token opens all; no server sees the token of another. Sessions are spread over
	// them, and a session whose server is gone starts again on another. "":
	// COPPICE_PYTHON_GATEWAY_URL and COPPICE_PYTHON_GATEWAY_TOKEN from the environment, else a
	// gateway is started.
	URL, Token string
	// KernelName is the kernelspec to start, of any language. What Python has besides
	// (the working directory, Request.Env, the prelude, modules) a kernel of another
	// language lacks. "": python3.
	KernelName string
	// Shared says that the hosts of this user share one local gateway for each Python
	// environment, which outlives them and ends itself when it has not been used for
	// Idle. false: the host starts one of its own, which ends with it. So does a host, or
	// a workspace, with isolation from IsolationLandlock on: what others use is not behind its walls.
	Shared bool
	// KeepSessions is Options.KeepSessions for this backend alone, where it is one of
	// several that may be chosen. false: as the options of the host say.
	KeepSessions bool
	// Idle is how long a shared gateway that this host starts stays without hosts and
	// kernels. 0: 5 min.
	Idle time.Duration
	// Kernels is how many kernels a shared gateway that this host starts takes, from
	// all its hosts together. When one is full, sessions go to a further one of the
	// same Python environment. 0: COPPICE_GATEWAY_KERNELS from the environment,
	// else [MaxKernels], which is the most.
	Kernels int
	// WarmKernels is how many started kernels wait for new sessions, so that only the
	// first waits for a start. They count in MaxSessions, are never started while a
	// new session waits for its first answer, and each costs the memory of a kernel
	// (30 MiB). 0: one when the machine allows it, that is with at least 4 processors
	// and 2 GiB of free memory, and with MaxSessions of at least 2: it is started once
	// the first session has answered, and ended when no session has begun for IdleTTL.
	// Negative: none. A positive number is started with the host and stays. External
	// gateways have none.
	WarmKernels int
	// NoFork spawns each kernel, as Jupyter does by itself: for an environment that does
	// not bear a fork. By default, on Linux, the kernels of a gateway that this host
	// starts are forked from a process that has imported what they need, which takes a
	// quarter of the processor time and two thirds of the memory, and are spawned where
	// that does not work. false: COPPICE_GATEWAY_NO_FORK from the environment.
	NoFork bool
}

// Provision returns the backend as a value.
func Provision(o HostOptions) kernel.Provisioner { return provisioner{o} }

type provisioner struct{ o HostOptions }

// Name returns "gateway".
func (provisioner) Name() string { return Name }

// The variables that fill in [HostOptions].
const (
	urlVariable     = "PI_PYTHON_GATEWAY_URL"
	tokenVariable   = "PI_PYTHON_GATEWAY_TOKEN" //nolint:gosec // the name of a variable
	kernelsVariable = "COPPICE_GATEWAY_KERNELS"
	noForkVariable  = "COPPICE_GATEWAY_NO_FORK"
)

// FromEnvironment fills in URL, Token, Kernels and NoFork.
func (p provisioner) FromEnvironment(env []string) (kernel.Provisioner, error) {
	filled, err := p.fill(env)
	if err != nil {
		return nil, err
	}
	return filled, nil
}

func (p provisioner) fill(env []string) (provisioner, error) {
	o := p.o
	if o.URL == "" {
		o.URL = home.Lookup(env, urlVariable)
	}
	if o.Token == "" {
		o.Token = home.Lookup(env, tokenVariable)
	}
	if text := home.Lookup(env, kernelsVariable); o.Kernels == 0 && text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MaxKernels {
			return p, kernelsError(kernelsVariable, text)
		}
		o.Kernels = n
	}
	switch text := home.Lookup(env, noForkVariable); text {
	case "", "0":
	case "1":
		o.NoFork = true
	default:
		return p, fmt.Errorf("%s is %q; use 1, for kernels that are not forked, or 0", noForkVariable, text)
	}
	return provisioner{o}, nil
}

// Validate refuses servers and tokens that do not go together, and numbers that
// cannot be had.
func (p provisioner) Validate() error {
	if _, err := jupyter.ParseRemotes(p.o.URL, p.o.Token); err != nil {
		if _, tokens := errors.AsType[*jupyter.TokensError](err); tokens {
			return fmt.Errorf("%s or GatewayOptions.Token: %w", home.Name(nil, tokenVariable), err)
		}
		return fmt.Errorf("%s or GatewayOptions.URL: %w", home.Name(nil, urlVariable), err)
	}
	switch {
	case p.o.Kernels < 0 || p.o.Kernels > MaxKernels:
		return kernelsError("GatewayOptions.Kernels", strconv.Itoa(p.o.Kernels))
	case p.o.Idle < 0:
		return errors.New("GatewayOptions.Idle is negative; use 0 for the default")
	}
	return nil
}

func kernelsError(name, text string) error {
	return fmt.Errorf("%s is %q; use a number from 1 to %d, which is what one Kernel Gateway holds", name, text, MaxKernels)
}

// Warming says how many kernels wait for new sessions.
func (p provisioner) Warming(s kernel.Site) string { return warmth(p.o, s).why }

// kernelMemory is what a kernel takes with a small library loaded, 80 MiB.
const kernelMemory = 80 << 20

// Sessions returns as many as the free memory bears, and not more than one Kernel
// Gateway holds. An external server has the machine for itself that it is on.
func (p provisioner) Sessions(s kernel.Site) int {
	if p.o.URL != "" {
		return MaxKernels
	}
	return kernel.Fitting(machine.Look(home.TempDir(s.Env)).Available, kernelMemory, 4, MaxKernels)
}

// RemoteURL returns the servers that were named.
func (p provisioner) RemoteURL() string { return p.o.URL }

// skipVariable has nothing looked at.
const skipVariable = "PI_PYTHON_SKIP_CHECK"

// errMissing says in short what a [pyenv.MissingPackagesError] says at length.
var errMissing = errors.New("the gateway's packages are missing; coppice setup installs them")

// Available looks whether a server is named, or whether the interpreter has what a
// server of ours needs.
func (p provisioner) Available(ctx context.Context, s *kernel.Site) (why string, err error) {
	switch {
	case p.o.URL != "":
		return "an external gateway is set", nil
	case p.o.KernelName != "":
		return "a kernel was named", nil
	case s.SkipCheck:
		return home.Name(s.Env, skipVariable) + " is set: its packages are assumed to be installed", nil
	}
	switch err := s.Look(ctx); {
	case s.Found == nil:
		return "", kernel.ErrNoPython
	case errors.As(err, new(*pyenv.MissingPackagesError)):
		return "", errMissing
	case err != nil:
		return "", fmt.Errorf("a gateway cannot be started: %w", err)
	}
	return "jupyter_kernel_gateway or jupyter_server, and ipykernel, are importable", nil
}

// nameServer is the name of the gateway's process in the tree.
const nameServer = "kernel-gateway"

// Provision makes the backend.
func (p provisioner) Provision(s kernel.Site) (kernel.Backend, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	o := p.o
	remotes, err := jupyter.ParseRemotes(o.URL, o.Token)
	if err != nil {
		return nil, err
	}
	switch only := (kernel.Limits{Runtime: s.Limits.Runtime, Files: s.Limits.Files}); {
	case s.Limits.Negative():
		return nil, fmt.Errorf("a limit of sessions is negative: %+v", s.Limits)
	case s.Limits != only:
		return nil, kernel.ErrUnkeptLimits
	case s.Limits.Files > 0 && o.URL != "":
		return nil, errors.New("the files of kernels cannot be limited on a server that somebody else runs; leave Files out")
	}
	isolation, err := isolate(s.Isolation, o.URL, o.Shared, s.Keep || o.KeepSessions)
	if err != nil {
		return nil, err
	}
	level, description, err := isolation.Active()
	if err != nil {
		return nil, err
	}
	if kernel.Isolation(isolation).Walled() {
		o.Shared = false // what other hosts use is not behind the walls of this one
	}
	if s.MaxSessions > MaxKernels && (!o.Shared || o.URL != "") {
		return nil, fmt.Errorf("%d sessions are more than the %d kernels that one Kernel Gateway holds; use a shared gateway, or the runner backend", s.MaxSessions, MaxKernels)
	}
	if s.KeepFor < 0 {
		return nil, errors.New("KeepFor is negative; use 0 for the default")
	}
	record := s.Keep
	s.Keep = s.Keep || o.KeepSessions
	if s.Keep && !o.Shared {
		return nil, errors.New("sessions outlive their host in a shared gateway only: KeepSessions needs GatewayOptions.Shared")
	}
	if o.Kernels == 0 {
		o.Kernels = MaxKernels
	}
	warm := warmth(o, s)
	server := NewServer(ServerOptions{
		Warm: warm.kernels, WarmLazy: warm.lazy, WarmIdle: s.IdleTTL, Home: s.Dir, Python: s.Python, Env: s.Env, URL: o.URL, Token: o.Token, HostCalls: s.HostCalls,
		Start: s.Start, Owner: s.Owner, Shared: o.Shared, IdleEnd: o.Idle, ShardKernels: o.Kernels, MaxKernels: s.MaxSessions, KernelName: o.KernelName, NoFork: o.NoFork, Trace: s.Trace, SkipCheck: s.SkipCheck,
		Isolation: kernel.Isolation(isolation),
	})
	journal := ""
	if s.Keep {
		journal = sharedgateway.DirIn(s.Dir)
	}
	return &provided{
		Backend: New(Options{Server: server, KernelName: o.KernelName, Helpers: s.StatusMIME, Journal: journal, KeepFor: s.KeepFor, Record: record, Name: s.KeepName, Warn: s.Warn, Modules: s.Modules, Files: s.Limits.Files}),
		Server:  server, site: s, remotes: remotes, level: level, description: description,
	}, nil
}

// provided is the backend of a host, with all that it can do.
type provided struct {
	*Backend
	*Server

	site    kernel.Site
	remotes []jupyter.Remote

	level, description string
}

// Isolation returns the rung that kernels are on, and what it does, in words.
func (p *provided) Isolation() (level, description string) { return p.level, p.description }

// Confine puts a program behind the walls that the kernels are behind.
func (p *provided) Confine(program kernel.Program) (kernel.Confined, error) {
	return walls.Isolation(p.Server.o.Isolation).Confine(program, p.Server.o.Owner.Interpreter(), &p.Server.folders, &p.Server.egress, &p.Server.users)
}

// Brood returns what the gateway runs in where that has a kernel of its own, and with it its
// kernels, which are no processes of this machine.
func (p *provided) Brood() (from process.Identity, waiting []int) {
	if ends, ok := p.Server.ends.Now(); ok && ends[0].rules.Inside() {
		from = ends[0].Process
	}
	return from, nil
}

// Refused returns the hosts of the network that were asked for and refused.
func (p *provided) Refused() []kernel.Refusal { return p.Server.egress.Refused() }

// Inherit takes over the sessions whose last call an earlier host has written down.
func (p *provided) Inherit(context.Context) ([]kernel.Inherited, error) {
	o := p.Backend.o
	if o.Journal == "" || !o.Record {
		return nil, nil
	}
	return p.Backend.heirs.inherit(o.Journal, o.Name, o.Warn), nil
}

// Disown has the kernel that waits for a start with a key go on without its call: it is the
// next start's.
func (p *provided) Disown(_ context.Context, key messages.SessionKey) { p.Backend.heirs.disown(key) }

// Forget ends what an earlier host has left under a key, unless it was started here or another
// host has it.
func (p *provided) Forget(key messages.SessionKey) {
	b := p.Backend
	if b.o.Journal == "" {
		return
	}
	if one := b.heirs.claim(key); one != nil {
		forget(one.claim)
	} else if c, has := sharedgateway.TakeLeft(b.o.Journal, key); has {
		forget(c)
	}
}

// Kept reports whether sessions would outlive the host.
func (p *provided) Kept() (kept bool, why string) {
	if p.Server.o.URL != "" {
		return false, "the server is one that somebody else runs"
	}
	return true, ""
}

// Lasts says that sessions outlive Shutdown, too.
func (p *provided) Lasts() {}

// Close gives the users of what stands behind walls back, removes its folders, and leaves what was not started to
// another host.
func (p *provided) Close() error {
	p.Backend.heirs.release()
	return errors.Join(p.Server.users.Close(), p.Server.folders.Remove(), p.Server.egress.Close())
}

// Process returns the gateway.
func (p *provided) Process() (name string, s kernel.Server) { return nameServer, p.Server }

// Secrets returns the tokens of external servers: nothing that is written may hold
// them.
func (p *provided) Secrets() []string {
	var all []string
	for _, r := range p.remotes {
		all = append(all, r.Token)
	}
	return all
}

// Check asks the external servers, of which one that answers is enough, or looks
// whether a server of ours could be started.
func (p *provided) Check(ctx context.Context) error {
	if len(p.remotes) > 0 {
		return jupyter.AskExternals(ctx, p.remotes)
	}
	if p.site.Found != nil {
		return nil // the choice of the backend has looked
	}
	rt, err := pyenv.Resolve(ctx, pyenv.Options{Python: p.site.Python, Home: p.site.Dir, Env: p.site.Env})
	if err == nil {
		_, err = pyenv.Preflight(ctx, rt)
	}
	return err
}

var (
	_ kernel.Configurable = provisioner{}
	_ kernel.Validator    = provisioner{}
	_ kernel.Warmer       = provisioner{}
	_ kernel.Remote       = provisioner{}

	_ kernel.Served    = (*provided)(nil)
	_ kernel.Keeper    = (*provided)(nil)
	_ kernel.Heir      = (*provided)(nil)
	_ kernel.Lasting   = (*provided)(nil)
	_ kernel.Checker   = (*provided)(nil)
	_ kernel.Secretive = (*provided)(nil)
	_ kernel.Isolator  = (*provided)(nil)
	_ kernel.Confiner  = (*provided)(nil)
	_ kernel.Brooder   = (*provided)(nil)
	_ kernel.Closer    = (*provided)(nil)
)
