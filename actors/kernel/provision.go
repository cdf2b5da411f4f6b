package kernel

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/coppice-run/coppice/internal/ipctrace"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/messages"
)

// Provisioner is a backend as a value: which one, with its options. A host asks the
// one in its options, or the first of several that is available, for a [Backend].
// Packages kernel/jupyter and kernel/runner have one each; another backend needs no
// more than a package with a third.
//
// A Provisioner is immutable: any goroutine may use it, and so may several hosts.
type Provisioner interface {
	// Name is the backend's name in results, in the tree and in messages.
	Name() string
	// Available says why the backend can be used on this site, or, as an error, what
	// is missing. It looks at files and may run an interpreter, and starts nothing
	// that stays. What it learns of the interpreter it leaves in s.Found.
	Available(ctx context.Context, s *Site) (why string, err error)
	// Provision makes the backend. The error names the option that cannot be met;
	// nothing was started, then or otherwise. What the Backend can do besides making
	// interpreters it says by the interfaces below.
	Provision(s Site) (Backend, error)
}

// Site is what a host says of itself to its backend.
type Site struct {
	// Dir is ~/.<brand>, where the managed environment is, Python the interpreter
	// that was named ("": look around), and Env the host's environment, unfiltered.
	Dir    string
	Python string
	Env    []string
	// Found is the interpreter, once it was looked for; else nil.
	Found *pyenv.Runtime
	// Looker looks for the interpreter in place of [Site.Look], which calls it once.
	// nil: the interpreter is looked for as Python and Env say.
	Looker func(ctx context.Context) (found *pyenv.Runtime, problem error)
	looked bool
	lacks  error
	// StatusMIME is the type of the status events of the helpers that every session
	// has. "": sessions have no helpers.
	StatusMIME string
	// Modules returns the source that loads the user's modules in a session of a
	// working directory, "" for none. It is called for each session, from any
	// goroutine.
	Modules func(cwd string) string
	// MaxSessions is how many kernels may live at once, IdleTTL after how long an
	// idle one is ended.
	MaxSessions int
	IdleTTL     time.Duration
	// Start bounds the start of the process that interpreters come from: how long it
	// may have had the chance to become ready. The zero value is that of
	// [opportunity.Starting].
	Start opportunity.Budget
	// HostCalls says that code may call functions of the host.
	HostCalls bool
	// Limits bound each session, Isolation says what it is kept from, and Keep that
	// sessions outlive the host. A backend that cannot do what is asked refuses.
	Limits    Limits
	Isolation Isolation
	Keep      bool
	// KeepFor is how long sessions without a host are kept, and KeepName the name by which
	// the next host knows what is its own. Warn hears what people should know of sessions
	// that are kept no more. The zero values are those of the backend; a nil Warn is none.
	KeepFor  time.Duration
	KeepName string
	Warn     func(text string, args ...any)
	// Hibernate says that sessions will be kept on disk: what that takes is got ready.
	Hibernate bool
	// Owner owns the processes that the backend starts, and all that they start. nil:
	// nothing does.
	Owner *process.Owner
	// Mark is what the sessions and all that they start are to be known by, where they
	// are users of their own, whom no one else may mark. 0: nothing.
	Mark process.Mark
	// Trace is where messages are noted. nil: nowhere.
	Trace *ipctrace.File
	// SkipCheck takes it for granted that the interpreter has the packages that the
	// backend needs.
	SkipCheck bool
}

// ErrNoPython is the error of a Provisioner's Available where no interpreter can be
// used.
var ErrNoPython = errors.New("no Python interpreter can be used")

// Look looks for the interpreter, which it leaves in s.Found, nil when none can be
// used. The error says why no Kernel Gateway can be started with it. It looks once
// for each Site.
func (s *Site) Look(ctx context.Context) error {
	if s.looked {
		return s.lacks
	}
	look := s.Looker
	if look == nil {
		look = s.look
	}
	s.looked = true
	s.Found, s.lacks = look(ctx)
	return s.lacks
}

func (s *Site) look(ctx context.Context) (*pyenv.Runtime, error) {
	o := pyenv.Options{Python: s.Python, Home: s.Dir, Env: s.Env}
	if s.Dir != "" {
		o.Memory = pyenv.MemoryDir(s.Dir)
	}
	rt, err := pyenv.Resolve(ctx, o)
	if err != nil {
		return nil, err
	}
	_, err = pyenv.Preflight(ctx, rt)
	return &rt, err
}

// Configurable is implemented by a Provisioner that variables of the environment can
// fill in.
type Configurable interface {
	// FromEnvironment returns the Provisioner with what env says in place of fields
	// that are zero. The error names the variable that makes no sense.
	FromEnvironment(env []string) (Provisioner, error)
}

// Validator is implemented by a Provisioner whose options can be wrong. Validate looks
// at nothing but them; its error names the field and the next step.
type Validator interface{ Validate() error }

// Warmer is implemented by a Provisioner that can start kernels before they are asked
// for. Warming says in a sentence how many wait on a site, and why.
type Warmer interface{ Warming(s Site) string }

// Sizer is implemented by a Provisioner that knows how many sessions a machine bears.
// Sessions returns how many kernels a host keeps at once that was not told how many.
type Sizer interface{ Sessions(s Site) int }

// Fitting is how many kernels fit into three quarters of the memory that is free, when
// each takes so many bytes: at least and at most so many. A system that does not tell
// its free memory (0) is taken to have enough for a hundred.
func Fitting(free, each uint64, least, most int) int {
	if free == 0 {
		return min(most, 100)
	}
	return int(min(max(free/4*3/each, uint64(least)), uint64(most)))
}

// Remote is implemented by a Provisioner whose kernels may run on servers that it
// does not start. RemoteURL is where, "" when it starts its own.
type Remote interface{ RemoteURL() string }

// Served is implemented by a backend whose interpreters come from one process.
// Process returns its name in the tree, and what runs it.
type Served interface {
	Process() (name string, s Server)
}

// Polyglot is implemented by a backend that knows its kernels by the names of their
// kernelspecs, of which a session may name one ([messages.SessionKey]).
type Polyglot interface {
	// Usual reports whether sessions that name no kernelspec have the one of this name. It
	// returns at once.
	Usual(name string) bool
	// Has reports whether a session may name it. It returns at once, and is false only where
	// there is none for certain: otherwise the start says it.
	Has(name string) bool
	// Kernelspecs returns them, the default first. It waits while the server starts; the error
	// is why they are not known.
	Kernelspecs(ctx context.Context) ([]Kernelspec, error)
}

// Kernelspec is a kind of kernel.
type Kernelspec struct {
	// Name is what it is asked for by.
	Name string `json:"name"`
	// DisplayName is for people, and Language the language of its code.
	DisplayName string `json:"display_name"`
	Language    string `json:"language"`
	// Backend is the name of the backend that has it.
	Backend string `json:"backend"`
}

// Forker is implemented by a backend that copies live interpreters. Copies wait
// under a name until a start takes the one that has the session's id.
type Forker interface {
	// Forks reports whether interpreters are forked, and if not, why. It waits while
	// the server starts; the error is why it could not.
	Forks(ctx context.Context) (forks bool, why string, err error)
	// CopyWaiting copies the interpreter that waits under one name to another.
	CopyWaiting(ctx context.Context, from, to string) error
	// DropWaiting ends the interpreter that waits under a name; false: none waits.
	DropWaiting(name string) bool
	// Waiting returns the names with a prefix under which one waits.
	Waiting(prefix string) []string
	// MemoryOf returns the bytes that one occupies: its own, and all that it refers
	// to; 0, 0 when none waits.
	MemoryOf(name string) (own, all int64)
}

// Sparer is implemented by a backend that makes interpreters ahead; Spares is how
// many wait.
type Sparer interface{ Spares() int }

// Limiter is implemented by a backend that keeps sessions within all of [Limits].
type Limiter interface {
	// Groups returns the controllers of the control groups that sessions have, and
	// why others that the limits could use are missing. It waits while the server
	// starts; the error is why it could not.
	Groups(ctx context.Context) (controllers []string, why string, err error)
}

// Isolator is implemented by a backend that keeps sessions from the machine.
type Isolator interface {
	// Isolation returns the rung that sessions are on, and what it does, in words.
	Isolation() (level, description string)
}

// Confiner is implemented by an [Isolator] that can put other programs behind the walls
// that sessions are behind: those of a workspace. The error is why it cannot.
type Confiner interface {
	Confine(p Program) (Confined, error)
}

// Program is one that is to be put behind walls.
type Program struct {
	// Path is the program, absolute, Dir its working directory, and Env its environment.
	Path string
	Args []string
	Dir  string
	Env  []string
	// Terminal says that its stdin is a terminal.
	Terminal bool
	// Memory, Files and FileSize are its limits: how many bytes it may map, how many files it
	// may have open, and how long a file it may make. 0: there is none.
	Memory, Files, FileSize uint64
}

// Confined is how to start a program behind walls.
type Confined struct {
	// Path and Args are what to start in its place.
	Path string
	Args []string
	// Files become its descriptors from 3 on. Done is called when it has been started, or
	// will not be; nil: nothing is.
	Files []*os.File
	Done  func()
	// Env is set for it.
	Env []string
	// Sealed: what is started in its place gets Env alone, and no limits: it has them behind the walls.
	Sealed bool
	// Signal signals the program and all that it has started. nil: its group hears of signals.
	Signal func(ctx context.Context, number int) error
	// Over is called when it has ended. nil: nothing is.
	Over func()
	// Thread is called on the thread that it is forked from, which is thrown away
	// afterwards. nil: nothing is.
	Thread func() error
	// Name says what Thread does, so that what is behind the same walls can have the same
	// owner.
	Name string
	// User is whom the program runs as; nil: as the host does. Becomes: what is started in its place
	// does so as the host, and has the program become the user.
	User    *process.User
	Becomes bool
}

// Keeper is implemented by a backend whose sessions can outlive the host.
type Keeper interface {
	// Leave says that the host ends: closing the interpreter of a session that is
	// kept then leaves it to the next host.
	Leave()
}

// Heir is implemented by a [Keeper] that takes over at once what an earlier host has left.
type Heir interface {
	// Inherit takes it over, and returns it: a start for the key of one of them then goes
	// on with its interpreter. What was lost meanwhile is returned, too. It is called once,
	// before the first start.
	Inherit(ctx context.Context) ([]Inherited, error)
	// Disown ends the interpreter that waits for a start with this key, if there is one.
	Disown(ctx context.Context, key messages.SessionKey)
	// Forget ends what an earlier host has left under a key, unless a start has taken it over:
	// its session is closed, or begins anew. It waits for nothing: a start from then on finds
	// nothing of it, and neither does the next host.
	Forget(key messages.SessionKey)
	// Kept reports whether sessions would outlive this host now, and if not, why.
	Kept() (kept bool, why string)
}

// Lasting is implemented by a [Keeper] whose sessions outlive a host that is shut down, too.
type Lasting interface{ Lasts() }

// Inherited is a session of an earlier host.
type Inherited struct {
	Key    messages.SessionKey
	Owners []string
	// Call is what it was running. nil: nothing.
	Call *messages.Execute
	// Stop is why that was to end; "": it was not. Seen is when its last sign was noted.
	Stop messages.InterruptCause
	Seen time.Time
	// Lost says why it is not there any more; "": it is.
	Lost string
}

// Checker is implemented by a backend that can tell, without making an
// interpreter, whether one could be made.
type Checker interface {
	// Check returns nil, or what is missing and the next step.
	Check(ctx context.Context) error
}

// Secretive is implemented by a backend that was given secrets.
type Secretive interface {
	// Secrets returns what nothing that is written may hold.
	Secrets() []string
}

// Closer is implemented by a backend that leaves files behind which are of no use after
// its host has ended.
type Closer interface{ Close() error }

// ErrUnkeptLimits is matched by the error of a backend of Jupyter kernels about limits that it does not know.
var ErrUnkeptLimits = errors.New("the gateway backend has no limits of a session but Runtime and Files; use the runner backend, or limit all of a workspace (workspace.Total)")

// Limits bound what one session uses. 0: no limit. A result whose code met one has
// Exceeded set. A backend refuses limits that it cannot keep: that of Jupyter
// kernels knows Runtime, and Files unless somebody else runs its server; its error
// matches ErrUnkeptLimits.
//
// On Linux, where the control group of the host (version 2) is left to it, every session
// of a host with limits gets one of its own, and Memory and Processes hold for all that the
// session has started, too. The host then moves itself to a group named coppice-host below its
// own. In version 1, which root may change, so do Processes, and Memory does not.
type Limits struct {
	// Memory is how much more address space the session's process may map than it
	// had at its start, in bytes; so may each process that it starts. Code beyond
	// it gets a MemoryError, or what else says that memory is refused. A thread maps about
	// 72 MiB and uses little of it. With a control group, the session and what it has started may use as much together,
	// and 64 MiB for the session itself; beyond, the system ends all of them, and the
	// result is lost with Exceeded.
	Memory int64
	// CPU is the processor time of one cell, in whole seconds, rounded up. It is
	// interrupted then; when it goes on for two seconds more, its session ends.
	CPU time.Duration
	// Runtime is how long one cell may run. It is interrupted then, as by a
	// timeout, whatever the timeout of its call is.
	Runtime time.Duration
	// Files is how many descriptors code may have open. Code of the runner backend may have a few
	// more: its process is given 16 for the session itself, which seldom needs all of them.
	Files int
	// Processes is how many processes a session may have started that live, whatever has
	// become of their parents. They are counted ten times a second while a cell runs, and
	// when it ends; when there are more, all of them are ended and the cell fails with the
	// limit. A control group refuses to start more than 256 processes and threads beyond
	// it, at any time.
	Processes int
	// Processors is how many processors a session and what it has started may keep
	// busy, 0.5 for half of one. It needs a control group: without one it is refused.
	Processors float64
}

// Negative reports whether one of the limits is below zero, or no number.
func (l Limits) Negative() bool {
	return l.Memory < 0 || l.CPU < 0 || l.Runtime < 0 || l.Files < 0 || l.Processes < 0 || !(l.Processors >= 0)
}
