package coppice

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/agent/primitive"
	"github.com/coppice-run/coppice/agent/selfref"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/internal/hostcall"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/audit"
	"github.com/coppice-run/coppice/sinks/budget"
	"github.com/coppice-run/coppice/store"
	"github.com/coppice-run/coppice/workspace"
)

// Replay says whether a call is run again after its kernel has died.
type Replay string

// The replay policies.
const (
	// ReplayNever answers the call as lost. Its code may have had effects.
	ReplayNever Replay = "never"
	// ReplayOnce runs the whole call once more on a new kernel, effects included; the
	// result's Reason says so. A Stream is never run again, because its events have been seen.
	ReplayOnce Replay = "once"
)

// NoTimeout lets a call run for as long as it likes.
const NoTimeout time.Duration = -1

// Options configure a Host. The zero value of each field is its default.
type Options struct {
	// Brand names the folders and the status MIME type: ~/.<brand>/python-env,
	// application/x-<brand>-status. "": coppice.
	Brand string
	// Home is the folder that holds ~/.<brand>. "": COPPICE_HOME from Env, else the user's home
	// directory.
	Home string
	// Backend is where kernels come from: [Gateway], [Runner], or [Auto] with several. nil:
	// Auto(), which uses the gateway if its packages are installed, else the runner.
	Backend Backend
	// Beside is a second backend, for sessions that name one of its kernels by [OnKernel]: with
	// [Runner] beside a [Gateway], sessions on the kernel coppice run on the runner. The same
	// limits and walls apply to both. A second backend of the same kind as Backend is ignored.
	// nil: none.
	Beside Backend
	// Python is the interpreter of all sessions, whatever their working directories. "": the
	// first that works of VIRTUAL_ENV, an active conda environment other than base, .venv and
	// venv in the working directory of this process, the managed environment, and PATH.
	Python string
	// Env is the environment that kernels inherit, after a filter that keeps secrets out. nil:
	// that of this process.
	Env []string
	// PassEnv names further variables of Env that kernels and commands get: TZ, HTTPS_PROXY,
	// SSL_CERT_FILE, CUDA_VISIBLE_DEVICES. A name that ends in * stands for every variable with
	// that prefix, except those that look like secrets. Keys of model providers never pass. The
	// variable COPPICE_PASS_ENV of Env names more.
	PassEnv []string

	// MaxSessions is how many kernels may live at once. A further one ends the least recently
	// used kernel that is idle and not pinned. 0: as many as three quarters of the memory that
	// is free when the host starts allow, counting 32 MiB for a session of the runner backend (8
	// to 500) and 80 MiB for a Jupyter kernel (4 to 150). With the gateway backend the maximum is
	// 150, which is what one Kernel Gateway holds; with GatewayOptions.Shared there are as many
	// gateways as needed, and more kernels.
	MaxSessions int
	// MaxWaiting is how many new sessions may wait for a place while no kernel is idle; more are
	// refused ([messages.ErrOverloaded]). 0: any number, each until its call's own timeout;
	// negative: none.
	MaxWaiting int
	// MaxPerOwner is how many kernels one Request.Owner may have, so that one agent cannot take
	// all places. 0: no limit.
	MaxPerOwner int
	// Workspaces limits the number of workspaces, see [Host.Workspace]. The zero value: any
	// number.
	Workspaces workspace.SetOptions
	// MaxRSS is the memory, in bytes, beyond which the kernel of an idle session is ended. The
	// session's next call gets a new one, and its result says so. 0: no limit.
	MaxRSS int64
	// Limits limit what one session may use. 0 in a field: the variable of Env with its name,
	// such as COPPICE_MAX_MEMORY for Memory, else no limit.
	Limits Limits
	// Isolation confines sessions. Without a Level: COPPICE_ISOLATION from Env, together with
	// COPPICE_ISOLATION_WRITE, _READ, _NETWORK and _USERS; else sessions are only prevented from
	// gaining privileges.
	Isolation Isolation
	// Replay says what happens to a call whose kernel dies. "": ReplayNever.
	Replay Replay
	// IdleTTL is how long a session may be idle before its kernel is ended. 0: 5 min; negative:
	// for ever.
	IdleTTL time.Duration
	// Heartbeat is how often kernels are checked. If the backend can, it checks an idle kernel
	// from outside, without waking it, and asks it only every sixtieth time. A kernel that has
	// been silent for two and a half heartbeats is ended. Time in which it waited for a
	// processor, as far as the backend can tell, or in which this process was stopped, does not
	// count. 0: 5 s.
	Heartbeat time.Duration
	// HeartbeatCeiling is how long to wait for a kernel that never gets a processor to answer
	// with. Time in which this process was stopped does not count. 0: 120 times Heartbeat.
	HeartbeatCeiling time.Duration
	// KernelMode is for calls that do not name one. "": session.
	KernelMode messages.KernelMode

	// KeepSessions lets sessions outlive the host, as far as the backend can.
	//
	// With the runner backend, on Linux, a process beside the host holds what the sessions depend
	// on. Unless the host ends by [Host.Shutdown], they live on, and so do the calls that run in
	// them; this includes a host that is killed. The next host of the same user with the same
	// Home, Brand and KeepName takes them over when it starts: their next result says kept, and
	// [Host.Kept] has their last calls, with their ids and the numbers of their events. If no host
	// comes, everything ends after KeepFor. Isolation behind walls is refused, because walls end
	// with their host. Sessions of workspaces, and copies that wait (checkpoints), are not kept.
	//
	// With the gateway backend, which needs GatewayOptions.Shared, kernels stay in the shared
	// gateway, after Shutdown too, and a later host with the same session key finds the variables
	// as they were. A running call continues as with the runner, in kernels of Python; with other
	// kernels its cell runs to its end, but the call has no result. A kernel ends when it has not
	// been used for an hour, or after KeepFor without a host. External gateways keep nothing.
	KeepSessions bool
	// KeepFor is how long sessions live without a host. 0: a minute with the runner backend, an
	// hour without use with the gateway.
	KeepFor time.Duration
	// KeepName separates hosts that would otherwise take over each other's sessions. Two hosts
	// with one name that run at the same time have their own sessions. "": the common name.
	KeepName string
	// AwaitKept is called by [Start] when the host is ready, before it takes over what an earlier
	// one leaves. It returns once that one has left ([Host.Leave]) or is gone, so that the earlier
	// host can work until this one is ready. An error ends the start. It is called only with
	// KeepSessions. nil: nothing is waited for.
	AwaitKept func(ctx context.Context) error

	// Hibernate writes sessions to disk when their kernels end because they were idle for
	// IdleTTL, because room was needed, or because the host shuts down. The next call restores the
	// session, and its result lists what was kept, lost and changed. With [hibernate.Lossless], a
	// session that would lose something is not written: it lives on while there is room, and is
	// lost after that. The gateway backend does this for kernels of Python on this machine;
	// external gateways cannot. "": [hibernate.Never].
	Hibernate hibernate.Policy
	// Store is where sessions are written to. nil: ~/.<brand>/hibernated, for 30 days and up to 16
	// GiB. They are sealed, not encrypted.
	Store store.Store
	// MaxSavedCheckpoints is how many checkpoints there may be on disk, see
	// [Session.SaveCheckpoint]. A further one is refused, and none is dropped for it. 0: 1000;
	// negative: any number.
	MaxSavedCheckpoints int
	// SavedCheckpointAge is how long a saved checkpoint is kept. 0: 90 days; negative: until it is
	// dropped.
	SavedCheckpointAge time.Duration

	// NoHelpers leaves the helpers out of sessions: read, find, run and the others that
	// [Host.Helpers] lists. false: every session has them.
	NoHelpers bool
	// NoModules leaves out the user's own modules: ~/.<brand>/agent/modules/*.py, and
	// <cwd>/.<brand>/modules/*.py, which take precedence over those with the same name. What they
	// make public is defined in each new session, and their functions are among the helpers, which
	// they need. A module that fails is reported with the session's first call, and stops nothing
	// from working. false: sessions load them.
	NoModules bool
	// Bash lets [Host.Command] run shell commands, with the rights of this process and the
	// environment of kernels; the tools of package agent then include bash. false: commands are
	// refused.
	Bash bool

	// StartTimeout limits how long a kernel, or the process that kernels come from (a Kernel
	// Gateway or a fork server), may take to start. Time in which it waits for a processor, for a
	// disk, or for its turn, and time in which this program is stopped, does not count. 0:
	// COPPICE_START_TIMEOUT from Env, else 2 min.
	StartTimeout time.Duration
	// StartCeiling ends a start after this time in any case, not counting time in which this
	// program was stopped. It also limits how long a call without a deadline waits for a process
	// that has ended and does not come back. 0: five times StartTimeout.
	StartCeiling time.Duration
	// InterruptGrace is how long an interrupted cell has to end before its kernel is ended. Time
	// without a processor, as far as the backend can tell, is added to it, up to 30 s. 0:
	// COPPICE_INTERRUPT_GRACE from Env, else 1.5 s.
	InterruptGrace time.Duration

	// Timeout is the active time of calls that name none: waiting for earlier calls, and running,
	// but not starting a kernel, waiting for input, or waiting for host functions that pause. 0:
	// COPPICE_CALL_TIMEOUT from Env, else 10 min; NoTimeout: none.
	Timeout time.Duration
	// InputTimeout is how long each input() waits for its answer. 0: 5 min.
	InputTimeout time.Duration

	// HostCalls is what code in cells may ask of its host. The zero value: nothing.
	HostCalls HostCallOptions
	// Audit writes a line for each call. Values of variables in Env whose names look secret are
	// masked, in addition to what the log itself masks. nil: no log.
	Audit *audit.Options
	// Launcher keeps tools warm in the host's own tree: code in cells calls them as
	// tool.name(...), the tools of package agent include them, and they end with the host. Brand,
	// Home, Env and Logger default to the host's. nil: there is none.
	Launcher *launcher.Options

	// Output limits what results show, and says where the rest is kept.
	Output OutputOptions
	// Sinks receive the events of all calls, besides what makes the results: journals, live views,
	// spans, sinks of the host's own. A call does not fail with one of them: Logger hears of it.
	// Metrics counts the events; nil: they are not counted.
	Sinks   []sinks.Attachment
	Metrics *sinks.Metrics
	// Logger receives what the runtime gives up on. nil: it is not logged.
	Logger *slog.Logger
	// TraceIPC writes every message between the host and its kernels to a file, see
	// [Host.TraceFile]. false: as COPPICE_PYTHON_IPC_TRACE in Env says.
	TraceIPC bool
	// OnStartup is called for each stage of the start, up to the first kernel that is ready, from
	// one goroutine at a time; it must not block. nil: with COPPICE_DEBUG_STARTUP in Env the stages are
	// written to standard error, else they are not reported.
	OnStartup func(StartupStage)
	// OnEvent is called for what happens in the tree; see [Host.Watch]. nil: it is not called.
	OnEvent func(messages.Lifecycle)
}

type (
	// HostFunction is a function of the host that code in cells may call:
	//
	//	tool.search(query="coppice", limit=3)
	//
	// [Function] makes one of a typed Go function.
	HostFunction = hostcall.Function
	// HostCaller says who calls a host function; see [CallOf].
	HostCaller = hostcall.Caller
	// InputHandler answers a call's input(): with a line, without the newline.
	InputHandler = hostcall.InputHandler
)

// HostCallOptions say what code in cells may ask of its host. The zero value of each field is
// its default.
type HostCallOptions struct {
	// Functions are what code may call as tool.name(key=value). Code can call no other function
	// of the host.
	Functions []HostFunction
	// MaxCalls is how many functions and primitives one cell may call; more calls are refused.
	// 0: 10,000; negative: no limit.
	MaxCalls int
	// MaxAtOnce is how many of them one call may run at a time; more wait. 0: 64.
	MaxAtOnce int
	// Packs are the runtime primitives that code may call as runtime.<pack>.<name>(...).
	Packs []primitive.Pack
	// Selfref adds the pack selfref: the agent's conversation, and forks of it. nil: there is no
	// such pack.
	Selfref *Selfref
}

// OutputOptions limit what results show, and say what is kept of the rest. The zero value of
// each field is its default.
type OutputOptions struct {
	// Artifacts is the folder for output that is too long for a result. "": COPPICE_ARTIFACTS_DIR from
	// Options.Env; else the path in COPPICE_SESSION_FILE without its .jsonl; else ~/.<brand>/artifacts
	// with KeepArtifacts, and without it a folder of this host that Shutdown removes.
	Artifacts     string
	KeepArtifacts bool
	// FirstArtifact is the number of the first artifact. Several hosts whose artifacts are read
	// together need numbers that are far apart.
	FirstArtifact int
	// Budget is for the text of one call: how many bytes and lines, how much of both goes to the
	// head, whether only the tail is shown, and the maximum length of a line. Zero: as many bytes
	// as COPPICE_MAX_OUTPUT in Options.Env says, else 50 KiB, and 3,000 lines, of which two fifths
	// go to the head; lines are not cut.
	Budget budget.Options
	// Tokens changes the form of texts: at most this many tokens from the beginning, as
	// result.EstimateTokens counts them, and a <system-reminder> that names the file with all of
	// it. 0: texts keep head and tail; negative: result.DefaultTokens, 20,000.
	Tokens int
	// MaxArtifact is how many bytes of one output are kept. 0: COPPICE_MAX_ARTIFACT from
	// Options.Env, else 4 GiB; negative: all.
	MaxArtifact int64
	// MaxAge is how long artifacts are kept after they were written, and MaxTotal how many bytes
	// all of them may take together; the newest always stays. 0: for ever, and without limit.
	MaxAge   time.Duration
	MaxTotal int64
	// MaxImageEdge is how many pixels the longer side of an image may have; the result gets a
	// smaller version of a larger one, the events have the original. 0: 1,568; negative: images
	// stay as they are.
	MaxImageEdge int
}

type (
	// Limits limit what one session may use.
	Limits = kernel.Limits
	// Isolation confines sessions.
	Isolation = kernel.Isolation
)

// Selfref makes the pack selfref: code sees, remembers and compacts the conversation that it is
// part of, and forks agents that continue from it. The zero value of each field is its default.
type Selfref struct {
	// Store holds the conversations, by Request.Memory. nil: a [selfref.Memory].
	Store selfref.Store
	// Agent runs one fork: it continues from f.History with f.Message, runs code in f.Session as
	// it likes, and returns its answer. It runs in a goroutine of its own; ctx ends when the fork
	// is cancelled. nil: there are no forks.
	Agent func(ctx context.Context, f AgentFork) (selfref.Answer, error)
	// MaxRunning is how many forks may run at once, MaxDepth how deeply forks may be nested, and
	// MaxKept how many results are kept for each session. 0: 16, 4 and 256.
	MaxRunning, MaxDepth, MaxKept int
	// MaxBytes limits the responses that are kept for all sessions together; beyond it, the oldest
	// are dropped. 0: 64 MiB.
	MaxBytes int64
	// OnCommit is called for every compaction that was committed at the end of its call, or could
	// not be, in a goroutine of its own, so that an agent loop that has the conversation in memory
	// can read it again. The result of the call has a notice of a failure. nil: it is not called.
	OnCommit func(selfref.Commit)
	// Timeout limits one fork. 0: none.
	Timeout time.Duration
	// LiveFork makes the session of a fork that asks for a copy of its parent's interpreter. It
	// waits until the call that asked has ended, so the result of such a fork can only be gathered
	// in a later call. nil: Session.Fork, which the runner has.
	LiveFork func(ctx context.Context, parent *Session, owner string) (*Session, error)
}

// AgentFork is what a forked agent starts with.
type AgentFork struct {
	selfref.Fork
	// Session is the fork's own, with its own kernel. It costs nothing until it executes code, and
	// is closed when the agent returns.
	Session *Session
}

// StartupStage is one step of the start of a host.
type StartupStage struct {
	// Name says what was done: "choose the backend: runner, since ...".
	Name string
	// Since is the time since [Start] was called, at the end of the stage, and Took
	// that since the end of the stage before.
	Since, Took time.Duration
}

// String is the stage as a line.
func (s StartupStage) String() string {
	return fmt.Sprintf("%8.1f ms  %+8.1f ms  %s", ms(s.Since), ms(s.Took), s.Name)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
