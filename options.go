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
	// Backend is where kernels come from: [Gateway], [Runner], or [Auto] of several.
	// nil: Auto(), which takes the gateway when its packages are there, else the
	// runner.
	Backend Backend
	// Beside is a second backend, for sessions that name one of its kernels by [OnKernel]: with
	// [Runner] beside a [Gateway], those with the kernel coppice are sessions of the runner. It
	// has the same limits and walls. One of the same kind as Backend is not made. nil: none.
	Beside Backend
	// Python is the interpreter to use. "": the first that works of VIRTUAL_ENV,
	// an active conda environment that is not its base, .venv and venv in the working
	// directory of this process, the managed environment, and PATH. All sessions have
	// it, whatever their working directories.
	Python string
	// Env is the environment that kernels inherit, after the filter that keeps
	// secrets out. nil: that of this process.
	Env []string
	// PassEnv names variables of Env that kernels and commands get besides those that
	// pass the filter: TZ, HTTPS_PROXY, SSL_CERT_FILE, CUDA_VISIBLE_DEVICES. A name that
	// ends in * means all that begin so, but those that look like secrets. Keys of model
	// providers never pass. The variable COPPICE_PASS_ENV of Env names more.
	PassEnv []string

	// MaxSessions is how many kernels may live at once; for one more, the least
	// recently used idle one that is not pinned is ended. 0: what three quarters of the
	// machine's free memory bear when the host starts, at 32 MiB for a session of the
	// runner backend (8 to 500) and 80 MiB for a Jupyter kernel (4 to 150). With the
	// gateway backend at most 150, which is what one Kernel Gateway holds; more
	// with GatewayOptions.Shared, where there are as many gateways as it takes.
	MaxSessions int
	// MaxWaiting is how many new sessions may wait for a place when no kernel is idle;
	// more are refused ([messages.ErrOverloaded]). 0: any number, each until its call's
	// own timeout; negative: none may wait.
	MaxWaiting int
	// MaxPerOwner is how many kernels one Request.Owner may have, so that one
	// agent cannot take all places. 0: no limit.
	MaxPerOwner int
	// Workspaces bounds how many workspaces there are, see [Host.Workspace]. The zero
	// value: any number.
	Workspaces workspace.SetOptions
	// MaxRSS is the memory in bytes beyond which an idle session's kernel is
	// ended; the session's next call gets a new one and its result says so. 0: no limit.
	MaxRSS int64
	// Limits bound what one session uses. 0 in a field: the variable of Env that is
	// named after it, COPPICE_MAX_MEMORY for Memory, else no limit.
	Limits Limits
	// Isolation says what sessions are kept from. Without a Level: COPPICE_ISOLATION
	// from Env, with what COPPICE_ISOLATION_WRITE, _READ, _NETWORK and _USERS say, else
	// they are kept from gaining rights, and from nothing else.
	Isolation Isolation
	// Replay says what happens to a call whose kernel died under it. "":
	// ReplayNever.
	Replay Replay
	// IdleTTL is after how long an idle session's kernel is ended. 0: 5 min;
	// negative: never.
	IdleTTL time.Duration
	// Heartbeat is how often kernels are asked whether they live; one that has nothing to
	// do is seen after from outside where the backend can do that, without waking it, and
	// asked every sixtieth time. One that has been
	// silent for two and a half times as long is ended; time in which it waited for a
	// processor, as far as the backend can tell, or in which this process stood still,
	// is not counted. 0: 5 s.
	Heartbeat time.Duration
	// HeartbeatCeiling is how long a kernel is waited for that never has a processor to
	// answer with, without the time in which this process stood still. 0: 120 times
	// Heartbeat.
	HeartbeatCeiling time.Duration
	// KernelMode is what calls use that do not say. "": session.
	KernelMode messages.KernelMode

	// KeepSessions makes sessions outlive the host, as far as the backend can.
	//
	// With the runner backend, on Linux, a process beside the host keeps what its sessions
	// hang on: when the host ends otherwise than by [Host.Shutdown], by SIGKILL too, they
	// live on, and so do the calls that run in them. The next host of the same user with the
	// same Home, Brand and KeepName takes them over when it starts: their next result says
	// kept, and [Host.Kept] has their last calls, under their ids, with events that have the
	// same numbers. Without it, all of them end after KeepFor. It refuses isolation behind
	// walls, which end with their host. Sessions of workspaces and copies that wait
	// (checkpoints) are not kept.
	//
	// With the gateway backend, kernels stay in the shared gateway (it needs
	// GatewayOptions.Shared), after Shutdown too, and a later host with the same session key
	// finds the variables as they were. A call that ran goes on there as with the runner, in kernels
	// of Python; with other kernels it has no result, and its cell runs to its end. One that is
	// not used for an hour is ended, or after KeepFor without a host. External gateways keep none.
	KeepSessions bool
	// KeepFor is how long sessions live without a host. 0: a minute with the runner backend, an
	// hour without use with the gateway.
	KeepFor time.Duration
	// KeepName tells hosts apart that would take over each other's sessions. Of two hosts
	// of one name that run at the same time, each has its own. "": the name that all have.
	KeepName string
	// AwaitKept is called by [Start] when the host stands, before it takes over what an
	// earlier one leaves: it returns once that one has left ([Host.Leave]) or is gone, so
	// that it goes on until this one is ready. An error ends the start. It is called
	// with KeepSessions alone. nil: nothing is waited for.
	AwaitKept func(ctx context.Context) error

	// Hibernate keeps sessions on disk when their kernels end because they were idle for
	// IdleTTL, because room is needed, or because the host ends in order: the next call
	// restores the session, and its result lists what is kept, lost and changed. With
	// [hibernate.Lossless] a session that would lose something is not kept: it lives on
	// while there is room, and is lost after that. The gateway backend does so with kernels of
	// Python on this machine; external gateways cannot. "":
	// [hibernate.Never].
	Hibernate hibernate.Policy
	// Store is where sessions are kept. nil: ~/.<brand>/hibernated, where they are for 30
	// days and may take 16 GiB. They are sealed and not encrypted.
	Store store.Store
	// MaxSavedCheckpoints is how many checkpoints there may be on disk, see
	// [Session.SaveCheckpoint]: one more is refused, and none is dropped for it. 0: 1000;
	// negative: any number.
	MaxSavedCheckpoints int
	// SavedCheckpointAge is how long one is kept after it was saved. 0: 90 days; negative:
	// until it is dropped.
	SavedCheckpointAge time.Duration

	// NoHelpers leaves the helpers out of sessions: read, find, run and the others
	// that [Host.Helpers] lists. false: every session has them.
	NoHelpers bool
	// NoModules leaves out the user's own modules: ~/.<brand>/agent/modules/*.py, and
	// <cwd>/.<brand>/modules/*.py, which come in place of those with the same name.
	// What they make public is there in each new session, and their functions are
	// among the helpers. One that fails is reported with the session's first call and
	// keeps nothing from working. They need the helpers. false: sessions load them.
	NoModules bool
	// Bash lets [Host.Command] run shell commands, with the rights of this process and
	// the environment of kernels; the tools of package agent then have bash. false:
	// commands are refused.
	Bash bool

	// StartTimeout bounds the start of one kernel, and that of the process that
	// kernels come from, a Kernel Gateway or a fork server: how long each may have had
	// the chance to become ready. What it waits for a processor or a disk, or for its
	// turn among others, and what this program stands still, is not counted. 0:
	// COPPICE_START_TIMEOUT from Env, else 2 min.
	StartTimeout time.Duration
	// StartCeiling ends a start all the same, after so much time in which this program
	// did not stand still. It bounds how long a call without a deadline waits for a
	// process that has ended and does not come back, too. 0: five times StartTimeout.
	StartCeiling time.Duration
	// InterruptGrace is how long an interrupted cell has to end before its
	// kernel is ended; time without a processor, as far as the backend can tell, is
	// given to it again, for 30 s. 0: COPPICE_INTERRUPT_GRACE from Env, else 1.5 s.
	InterruptGrace time.Duration

	// Timeout is the active time of calls that name none: waiting for earlier
	// calls and running, without the start of a kernel, without waiting for input
	// and for host functions that pause. 0: COPPICE_CALL_TIMEOUT from Env, else 10 min;
	// NoTimeout: none.
	Timeout time.Duration
	// InputTimeout is how long each input() waits for its answer. 0: 5 min.
	InputTimeout time.Duration

	// HostCalls is what code in cells may ask of its host. The zero value is nothing.
	HostCalls HostCallOptions
	// Audit writes a line for each call. Values of Env whose names tell that they
	// are secret are masked, besides what the log masks itself. nil: no log.
	Audit *audit.Options
	// Launcher keeps tools warm in the host's own tree: code in cells calls them
	// as tool.name(...), the tools of package agent have them, and they end with the
	// host. Of its options, Brand, Home, Env and Logger are by default the host's. nil:
	// there is none.
	Launcher *launcher.Options

	// Output bounds what results show, and says what is kept of the rest and where.
	Output OutputOptions
	// Sinks take the events of all calls, besides what makes the results:
	// journals, live views, spans, sinks of the host's own. Metrics counts the
	// events; nil: they are not counted.
	Sinks   []sinks.Attachment
	Metrics *sinks.Metrics
	// Logger hears what the runtime gives up on. nil: it is not logged.
	Logger *slog.Logger
	// TraceIPC notes every message between the host and its kernels in a file, see
	// [Host.TraceFile]. false: when PI_PYTHON_IPC_TRACE in Env says so.
	TraceIPC bool
	// OnStartup hears the stages of the start, up to the first kernel that is ready,
	// from one goroutine at a time; it must not block. nil: with PI_DEBUG_STARTUP in
	// Env they are written to standard error, else they are not reported.
	OnStartup func(StartupStage)
	// OnEvent hears what happens in the tree; see [Host.Watch]. nil: it is not called.
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
	// InputHandler answers a question of a call's code: a line, without its end.
	InputHandler = hostcall.InputHandler
)

// HostCallOptions say what code in cells may ask of its host. The zero value of each
// field is its default.
type HostCallOptions struct {
	// Functions are what code may call as tool.name(key=value). No other function of
	// the host can be reached.
	Functions []HostFunction
	// MaxCalls is how many calls of functions and primitives one cell may make; more
	// are refused. 0: 10,000; negative: no limit.
	MaxCalls int
	// MaxAtOnce is how many of one call may run at a time; more wait. 0: 64.
	MaxAtOnce int
	// Packs are the runtime primitives that code may call as
	// runtime.<pack>.<name>(...).
	Packs []primitive.Pack
	// Selfref adds the pack selfref: the agent's conversation, and forks of it.
	// nil: there is no such pack.
	Selfref *Selfref
}

// OutputOptions bound what results show and what is kept of the rest. The zero
// value of each field is its default.
type OutputOptions struct {
	// Artifacts is the folder where output goes that is too long for a result. "":
	// PI_ARTIFACTS_DIR from Options.Env; else the path in PI_SESSION_FILE without its
	// .jsonl; else, with KeepArtifacts, ~/.<brand>/artifacts, and without it a
	// folder of this host that Shutdown removes.
	Artifacts     string
	KeepArtifacts bool
	// FirstArtifact is the number of the first one: several hosts whose artifacts are read as
	// those of one have numbers that are far apart.
	FirstArtifact int
	// Budget is the text of one call: bytes, lines, how much of both goes to the
	// head, whether only the tail is shown, and the cap of a line. Zero: as many bytes
	// as COPPICE_MAX_OUTPUT in Options.Env says, else 50 KiB, and 3,000 lines, of which
	// two fifths go to the head; lines are not cut.
	Budget budget.Options
	// Tokens gives texts another shape: at most so many tokens from the
	// beginning, as result.EstimateTokens counts them, and a <system-reminder>
	// that names the file with all of it. 0: texts keep head and tail; negative:
	// result.DefaultTokens, 20,000.
	Tokens int
	// MaxArtifact is how many bytes of one output are kept. 0: COPPICE_MAX_ARTIFACT from
	// Options.Env, else 4 GiB; negative: all.
	MaxArtifact int64
	// MaxAge is how long artifacts are kept after they were written, MaxTotal
	// how many bytes all of them may take together; the newest always stays. 0:
	// for ever, and without limit.
	MaxAge   time.Duration
	MaxTotal int64
	// MaxImageEdge is how many pixels an image may have on its longer side
	// before it is made smaller for the result; the image as it came is in the
	// events. 0: 1,568; negative: images stay as they are.
	MaxImageEdge int
}

type (
	// Limits bound what one session uses.
	Limits = kernel.Limits
	// Isolation says what sessions are kept from.
	Isolation = kernel.Isolation
)

// Selfref makes the pack selfref: code sees, remembers and compacts the
// conversation that it is part of, and forks agents that go on from it. The zero
// value of each field is its default.
type Selfref struct {
	// Store holds the conversations, by Request.Memory. nil: a [selfref.Memory].
	Store selfref.Store
	// Agent runs one fork: it goes on from f.History with f.Message, runs code in
	// f.Session as it likes, and returns what it came to. It runs in a goroutine of
	// its own; ctx ends when the fork is cancelled. nil: there are no forks.
	Agent func(ctx context.Context, f AgentFork) (selfref.Answer, error)
	// MaxRunning is how many forks may run at once, MaxDepth how deep forks of
	// forks may go, MaxKept how many results are kept for each session. 0: 16, 4
	// and 256.
	MaxRunning, MaxDepth, MaxKept int
	// MaxBytes bounds the responses that are kept for all sessions together: when
	// they have more, the oldest are dropped. 0: 64 MiB.
	MaxBytes int64
	// OnCommit is called for every compaction that was committed at the end of its call,
	// or could not be, in the goroutine of its own that does so: a loop of an agent
	// that has the conversation in memory reads it again. The result of the call has
	// a notice of a failure. nil: the host is not called.
	OnCommit func(selfref.Commit)
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
