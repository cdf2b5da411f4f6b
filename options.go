package coppice

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/hostcall"
	protocol "github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/audit"
)

// Backends that Options.Backend can name.
const (
	BackendAuto    = "auto"
	BackendGateway = "gateway"
	BackendRunner  = "runner"
)

// Replay says whether a call is run again after its kernel died under it.
type Replay string

// The replay policies.
const (
	// ReplayNever answers the call as lost. Its code may have had effects.
	ReplayNever Replay = "never"
	// ReplayOnce runs the whole call once more on a new kernel, its effects
	// included; the result's Reason says so. A Stream is not run again, since
	// its events were seen.
	ReplayOnce Replay = "once"
)

// NoTimeout as a timeout lets a call run as long as it likes.
const NoTimeout time.Duration = -1

// Options makes a Host. The zero value of each field is its default.
type Options struct {
	// Brand names the folders and the status MIME type: ~/.<brand>/python-env,
	// application/x-<brand>-status. "": coppice.
	Brand string
	// Home is the folder that holds ~/.<brand>. "": COPPICE_HOME from Env, else
	// the user's home directory.
	Home string
	// Backend is auto, gateway or runner. "": auto.
	Backend string
	// Python is the interpreter to use. "": the first that works of VIRTUAL_ENV,
	// an active conda environment that is not its base, .venv and venv in the working
	// directory of this process, the managed environment, and PATH. All sessions have
	// it, whatever their working directories.
	Python string
	// Env is the environment that kernels inherit, after the filter that keeps
	// secrets out. nil: that of this process.
	Env []string

	// MaxSessions is how many kernels may live at once; for one more, the least
	// recently used idle one that is not pinned is ended. 0: 4. With the
	// gateway backend at most 150, which is what one Kernel Gateway holds; more
	// with SharedGateway, where there are as many gateways as it takes.
	MaxSessions int
	// MaxWaiting is how many new sessions may wait when none can be evicted;
	// more are refused. 0: none may wait.
	MaxWaiting int
	// MaxPerOwner is how many kernels one Request.Owner may have, so that one
	// agent cannot take all places. 0: no limit.
	MaxPerOwner int
	// MaxRSS is the memory in bytes beyond which an idle session's kernel is
	// ended; the session's next call gets a new one and is told. 0: no limit.
	MaxRSS int64
	// Limits bound what one session uses. The zero value has none.
	Limits Limits
	// Isolation says what sessions are kept from. The zero value keeps them from
	// gaining rights, and from nothing else.
	Isolation Isolation
	// NoFork starts an interpreter for each session of the runner backend, in 50 ms
	// instead of 2: for modules that do not survive a fork.
	NoFork bool
	// Spares is how many sessions of the runner backend are forked ahead, so that a
	// new one is ready at once. Each costs what an idle session does; they do not
	// count in MaxSessions, and there are none while memory is low. 0: 2, but not
	// more than MaxSessions; negative: none; at most 64.
	Spares int
	// Replay says what happens to a call whose kernel died under it. "":
	// ReplayNever.
	Replay Replay
	// IdleTTL is after how long an idle session's kernel is ended. 0: 5 min;
	// negative: never.
	IdleTTL time.Duration
	// Heartbeat is how often kernels are asked whether they live. 0: 5 s.
	Heartbeat time.Duration
	// KernelMode is what calls use that do not say. "": session.
	KernelMode messages.KernelMode

	// GatewayURL is a Jupyter server that somebody else runs; GatewayToken
	// opens it. Several have commas between them, and so have their tokens, in the
	// same order, unless one token opens all; no server sees the token of another.
	// Sessions are spread over them, and a session whose server is gone begins
	// anew on another. "": PI_PYTHON_GATEWAY_URL and PI_PYTHON_GATEWAY_TOKEN from Env,
	// else a gateway is started.
	GatewayURL   string
	GatewayToken string
	// SharedGateway is the seeds' setting python.sharedGateway. true: the hosts of
	// this user share one local gateway for each Python environment, which outlives
	// them and ends itself when nobody has used it for GatewayIdle. nil: the host
	// starts one of its own, which ends with it. false is refused.
	SharedGateway *bool
	// GatewayIdle is how long a shared gateway that this host starts stays without
	// hosts and kernels. 0: 5 min.
	GatewayIdle time.Duration
	// GatewayKernels is how many kernels a shared gateway that this host starts
	// takes, from all its hosts together. When one is full, sessions go to a further
	// one of the same Python environment. 0: COPPICE_GATEWAY_KERNELS from Env, else
	// 150, which is the most that the sockets of one gateway bear.
	GatewayKernels int
	// KeepSessions makes sessions outlive the host: their kernels stay in the shared
	// gateway, and a later host with the same session key finds the variables as
	// they were. One that nobody uses for an hour is ended. It needs SharedGateway
	// and has no effect on the runner backend and on an external gateway.
	KeepSessions bool
	// WarmKernels is how many started kernels wait for new sessions of the gateway
	// backend, so that only the first waits for a start. They count in MaxSessions,
	// are never started while a new session waits for its first answer, and each
	// costs the memory of a kernel (50 MiB). 0: one when the machine allows it, that
	// is with at least 4 processors and 2 GiB of free memory, and with MaxSessions
	// of at least 2: it is started once the first session has answered, and ended
	// when no session has begun for IdleTTL ([environment.Doctor] tells). Negative: none. A
	// positive number is started with the host and stays. The runner backend and
	// external gateways have none.
	WarmKernels int
	// KernelName is the kernelspec to start, of any language; it needs the gateway
	// backend. What Python has besides (the working directory, Request.Env, the
	// prelude, modules) a kernel of another language has not. "": python3.
	KernelName string

	// NoHelpers leaves the helpers out of sessions: read, find, run and the others
	// that [Host.Helpers] lists. false: every session has them.
	NoHelpers bool
	// NoModules leaves out the user's own modules: ~/.<brand>/agent/modules/*.py, and
	// <cwd>/.<brand>/modules/*.py, which come in place of those with the same name.
	// What they make public is there in each new session, and their functions are
	// among the helpers. One that fails is told with the session's first call and
	// keeps nothing from working. They need the helpers. false: sessions load them.
	NoModules bool
	// Bash lets [Host.Command] run shell commands, with the rights of this process and
	// the environment of kernels; the tools of package agent then have bash. false:
	// commands are refused.
	Bash bool

	// StartTimeout bounds the start of one kernel, and twice that the start of the
	// process that kernels come from, a Kernel Gateway or a fork server. 0: 60 s.
	StartTimeout time.Duration
	// InterruptGrace is how long an interrupted cell has to end before its
	// kernel is ended; time without a processor, as far as the backend can tell, is
	// given to it again, for 30 s. 0: 1.5 s.
	InterruptGrace time.Duration

	// Timeout is the active time of calls that name none: waiting for earlier
	// calls and running, without the start of a kernel, without waiting for input
	// and for host functions that pause. 0: 10 min; NoTimeout: none.
	Timeout time.Duration
	// InputTimeout is how long each input() waits for its answer. 0: 5 min.
	InputTimeout time.Duration

	// HostFunctions are what code in cells may call as tool.name(key=value). No
	// other function of the host can be reached.
	HostFunctions []HostFunction
	// MaxHostCalls is how many calls of host functions and primitives one cell
	// may make; more are refused. 0: 10,000; negative: no limit.
	MaxHostCalls int
	// MaxHostCallsAtOnce is how many of one call may run at a time; more wait. 0:
	// 64.
	MaxHostCallsAtOnce int

	// Audit writes a line for each call. Values of Env whose names tell that they
	// are secret are masked, besides what the log masks itself. nil: nobody does.
	Audit *audit.Options
	// Packs are the runtime primitives that code may call as
	// runtime.<pack>.<name>(...).
	Packs []Pack
	// Selfref adds the pack selfref: the agent's conversation, and forks of it.
	// nil: there is none.
	Selfref *Selfref

	// Launcher keeps tools warm in the host's own tree: code in cells calls them
	// as tool.name(...), the tools of package agent have them, and they end with the
	// host. Of its options, Brand, Home, Env and Logger are by default the host's. nil:
	// there is none.
	Launcher *launcher.Options

	// Artifacts is where output goes that is too long for a result. "":
	// PI_ARTIFACTS_DIR from Env; else the path in PI_SESSION_FILE without its
	// .jsonl; else, with KeepArtifacts, ~/.<brand>/artifacts, and without it a
	// folder of this host that Shutdown removes.
	Artifacts     string
	KeepArtifacts bool
	// Output bounds what results show and what is kept of the rest.
	Output OutputOptions
	// Sinks take the events of all calls, besides what makes the results:
	// journals, live views, spans, sinks of the host's own. Metrics counts the
	// events; nil: nobody does.
	Sinks   []sinks.Attachment
	Metrics *sinks.Metrics
	// Logger hears what the runtime gives up on. nil: nobody.
	Logger *slog.Logger
	// TraceIPC notes every message between the host and its kernels in a file, see
	// [Host.TraceFile]. false: when PI_PYTHON_IPC_TRACE in Env says so.
	TraceIPC bool
	// OnStartup hears the stages of the start, up to the first kernel that is ready,
	// from one goroutine at a time; it must not block. nil: with PI_DEBUG_STARTUP in
	// Env they are written to standard error, else nobody hears them.
	OnStartup func(StartupStage)
	// OnEvent hears what happens in the tree, from one goroutine; it must not
	// block. nil: nobody.
	OnEvent func(messages.Lifecycle)
}

// maxKernels is how many kernels one Kernel Gateway holds.
const maxKernels = jupyter.MaxKernels

// ErrOptions is matched by every error about Options.
var ErrOptions = errors.New("invalid options")

// resolved is Options without open questions.
type resolved struct {
	Options
	dir  string // ~/.<brand>
	temp string // removed at the end; "" when there is nothing to remove
}

// resolve fills in the defaults.
func (o Options) resolve() (resolved, error) {
	r := resolved{Options: o}
	place, err := home.Home{Brand: r.Brand, Path: r.Home, Env: r.Env}.Resolve()
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	r.Brand, r.Home, r.Env, r.dir = place.Brand, place.Path, place.Env, place.Dir()

	switch r.Backend {
	case "":
		r.Backend = BackendAuto
	case BackendAuto, BackendGateway, BackendRunner:
	default:
		return r, fmt.Errorf("%w: the backend %q is not one of auto, gateway, runner", ErrOptions, r.Backend)
	}
	if r.KernelName != "" && r.Backend == BackendRunner {
		return r, fmt.Errorf("%w: the runner backend has no kernel called %q: it has only Python; use the gateway backend", ErrOptions, r.KernelName)
	}
	switch r.KernelMode {
	case "":
		r.KernelMode = messages.ModeSession
	case messages.ModeSession, messages.ModePerCall:
	default:
		return r, fmt.Errorf("%w: the kernel mode %q is not one of session, per-call", ErrOptions, r.KernelMode)
	}
	switch r.Replay {
	case "":
		r.Replay = ReplayNever
	case ReplayNever, ReplayOnce:
	default:
		return r, fmt.Errorf("%w: the replay policy %q is not one of never, once", ErrOptions, r.Replay)
	}
	for name, n := range map[string]int64{
		"MaxSessions": int64(r.MaxSessions), "MaxWaiting": int64(r.MaxWaiting), "MaxPerOwner": int64(r.MaxPerOwner), "MaxRSS": r.MaxRSS,
		"StartTimeout": int64(r.StartTimeout), "InterruptGrace": int64(r.InterruptGrace), "GatewayIdle": int64(r.GatewayIdle),
	} {
		if n < 0 {
			return r, fmt.Errorf("%w: %s is negative; use 0 for the default", ErrOptions, name)
		}
	}
	if r.MaxSessions == 0 {
		r.MaxSessions = 4
	}
	const never = 100 * 365 * 24 * time.Hour
	switch {
	case r.IdleTTL == 0:
		r.IdleTTL = 5 * time.Minute
	case r.IdleTTL < 0:
		r.IdleTTL = never
	}
	if r.Heartbeat <= 0 {
		r.Heartbeat = 5 * time.Second
	}
	switch {
	case r.Timeout == 0:
		r.Timeout = 10 * time.Minute
	case r.Timeout < 0:
		r.Timeout = NoTimeout
	}
	if r.InputTimeout < 0 {
		return r, fmt.Errorf("%w: the input timeout %v is negative", ErrOptions, r.InputTimeout)
	}
	if r.InputTimeout == 0 {
		r.InputTimeout = 5 * time.Minute
	}
	if r.MaxHostCalls == 0 {
		r.MaxHostCalls = 10_000
	}
	if r.MaxHostCallsAtOnce <= 0 {
		r.MaxHostCallsAtOnce = 64
	}
	if err := hostcall.Check(r.HostFunctions); err != nil {
		return r, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	r.HostFunctions = slices.Clone(r.HostFunctions)
	if r.GatewayURL == "" {
		r.GatewayURL = home.Lookup(r.Env, "PI_PYTHON_GATEWAY_URL")
	}
	if r.GatewayToken == "" {
		r.GatewayToken = home.Lookup(r.Env, "PI_PYTHON_GATEWAY_TOKEN")
	}
	if _, err := protocol.ParseRemotes(r.GatewayURL, r.GatewayToken); err != nil {
		name := "URL"
		if _, tokens := errors.AsType[*protocol.TokensError](err); tokens {
			name = "TOKEN"
		}
		return r, fmt.Errorf("%w: PI_PYTHON_GATEWAY_%s or Options.Gateway%s: %w", ErrOptions, name, map[string]string{"URL": "URL", "TOKEN": "Token"}[name], err)
	}
	if r.SharedGateway != nil && !*r.SharedGateway {
		return r, fmt.Errorf("%w: Shared Python gateway required; local gateways are disabled", ErrOptions)
	}
	if err := r.gatewayKernels(); err != nil {
		return r, err
	}
	if r.KeepSessions && r.SharedGateway == nil {
		return r, fmt.Errorf("%w: KeepSessions needs SharedGateway", ErrOptions)
	}
	r.Artifacts = r.artifacts()
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	return r, nil
}

// gatewayKernels settles how many kernels a shared gateway takes.
func (r *resolved) gatewayKernels() error {
	name, text := "GatewayKernels", strconv.Itoa(r.GatewayKernels)
	if r.GatewayKernels == 0 {
		if name, text = "COPPICE_GATEWAY_KERNELS", home.Lookup(r.Env, "COPPICE_GATEWAY_KERNELS"); text == "" {
			r.GatewayKernels = maxKernels
			return nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxKernels {
		return fmt.Errorf("%w: %s is %q; use a number from 1 to %d, which is what one Kernel Gateway holds", ErrOptions, name, text, maxKernels)
	}
	r.GatewayKernels = n
	return nil
}
