package kernel

import (
	"context"
	"errors"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// Backend makes interpreters. Packages kernel/jupyter and kernel/runner
// implement it; the conformance suite in test/conformance holds for each.
//
// All methods may be called from any goroutine.
type Backend interface {
	// Name is "gateway" or "runner".
	Name() string
	// Start makes one interpreter that is ready for cells: its working
	// directory, environment and import path are set and the prelude has run.
	// It blocks; ctx bounds it. While the process that interpreters come from has
	// ended and is to come back, also when it ends under the start, it waits. When it fails, nothing of the attempt is left
	// behind, neither process nor server-side kernel.
	Start(ctx context.Context, o StartOptions) (Interpreter, error)
}

// StartOptions says what interpreter to make.
type StartOptions struct {
	Key   messages.SessionKey
	Epoch uint64
	// Env is set in os.environ on top of what the backend starts with.
	Env map[string]string
	// Once says that the interpreter serves one call: it is not the session's own,
	// and nothing of it is kept.
	Once bool
	// Progress, if not nil, hears of the stages of a slow start. It is called
	// from the goroutine that called Start.
	Progress func(stage string)
	// Waiting, if not nil, hears what the start waits for, so that only the time
	// counts against the interpreter in which it is that. It is called from the
	// goroutine that called Start, with each change.
	Waiting func(Waiting)
}

// Info describes a running interpreter.
type Info struct {
	// ID is the backend's own name for it: a Jupyter kernel id, or the process id.
	ID string
	// PID is the process id of the interpreter, 0 when it is not known.
	PID int
	// Python is the version of the interpreter, "" when it is not known.
	Python string
	// Copy says that the interpreter is a copy of another session's, or of an
	// earlier state of this one's.
	Copy bool
	// Of is the name of the session that it is a copy of, see Copy. "": it is none, or
	// that is not known.
	Of string
	// Kept says that the interpreter is the one of an earlier host, with what the
	// session has done there.
	Kept bool
	// News is how that one began, with Kept, when no result has told of it. nil: one has.
	News *News
	// Earlier says why the state is not there that the session had with an earlier host.
	// "": there was none.
	Earlier string
}

// Interpreter is one live Python interpreter. Execute is called from one
// goroutine at a time; the other methods from any, also while Execute runs.
type Interpreter interface {
	Info() Info
	// Execute runs one cell and returns when it has ended AND all its output
	// was handed to emit. emit blocks while the output is not taken; it is
	// called from one goroutine at a time.
	//
	// ctx does not stop the cell: when it ends, Execute gives up waiting and
	// returns ctx's cause, and the interpreter must not be used any more. To
	// stop a cell, use Interrupt and wait.
	//
	// The error is *LostError when the interpreter died or was replaced under
	// the cell; then Done is closed too, or will be.
	Execute(ctx context.Context, r CellRequest, emit func(context.Context, messages.Event) error) (CellReply, error)
	// Interrupt asks the running cell to stop, as Ctrl-C would. It returns
	// when the request was delivered, not when the cell has stopped. Without a
	// running cell it does nothing.
	Interrupt(ctx context.Context) error
	// AnswerInput settles the input request with this id: with a line, or without an
	// answer, which input() raises. An answer to nothing is dropped.
	AnswerInput(ctx context.Context, id string, a messages.InputAnswer) error
	// Ping returns nil when the interpreter is alive: also when it is busy,
	// never when its process is gone.
	Ping(ctx context.Context) error
	// RSS returns the resident memory of the interpreter in bytes, 0 when it
	// cannot be known.
	RSS() int64
	// Done is closed when the interpreter is gone; Err then says why.
	Done() <-chan struct{}
	Err() error
	// Close ends the interpreter and returns nil when it is known to be gone.
	// It is idempotent. ctx bounds the wait, not the attempt to end it.
	Close(ctx context.Context) error
}

// Backlogged is implemented by interpreters that go on while their output is not
// taken, and keep it. Ended reports whether the cell that Execute was called for has
// ended, however much output waits; any goroutine may call it. emit may
// return [ErrEnough] to them: Execute then leaves the rest of the output out, says
// so in Incomplete, and returns when the cell has ended.
type Backlogged interface{ Ended() bool }

// ErrEnough says that the rest of a cell's output is not wanted.
var ErrEnough = errors.New("the rest of the output is not wanted")

// Looker is implemented by interpreters of which it can be seen, without waking them,
// that they are there and could answer. Look returns at once; an
// error says that this one has to be asked. While nothing is run on it, the actor looks
// most of the times at which it would ask, so that a session that waits costs nothing.
type Looker interface{ Look() (Sight, error) }

// Sight is what is seen of an interpreter.
type Sight struct {
	// RSS is what its RSS returns.
	RSS int64
	// Alone says that nothing runs in it but what answers: it answers as it did last. What
	// a call has left in it may keep it from that.
	Alone bool
}

// Killer is implemented by interpreters whose process can be ended at once. Kill
// does so without asking; Close is still called afterwards. A kernel that hangs
// would otherwise take the seconds that an orderly end may take.
type Killer interface{ Kill() }

// Witness is implemented by interpreters whose processes can be looked at: whether
// they had the chance to answer. Subject returns those that an answer takes, with that
// of a server that passes it on, for one meter; it returns at once. The actor calls it.
type Witness interface{ Subject() opportunity.Subject }

// CellRequest is one cell to run.
type CellRequest struct {
	// Exec names the call, Index the cell in it, from 0.
	Exec  string
	Index int
	Code  string
	// Env is set in os.environ before the code runs; nil values of the map do
	// not exist: "" sets an empty value.
	Env map[string]string
	// CallEnv is set in os.environ while the code runs, and put back when it has ended,
	// however that came: to what was there when Execute was called. Where Index is not 0,
	// it begins with what the cell before has left of it.
	CallEnv map[string]string
	// AllowStdin lets input() ask; see messages.InputRequest, whose ID is that of no other
	// question of the cell, also where the next host asks it again.
	AllowStdin bool
	// Count asks for a number in the interpreter's history, see
	// messages.Execute.
	Count bool
	// Comms asks for messages.Comm events.
	Comms bool
	// Call serves one call of a host's function. It blocks until that has ended,
	// for no longer than ctx and the cell; any goroutine may call it, also after
	// the cell has ended, when it refuses. nil: there is no host to call.
	Call func(ctx context.Context, c messages.HostCall) messages.HostResult
	// ResetNames is asked for instead of running Code: see messages.Execute.
	ResetNames bool
	// Resume says that the cell was sent to the interpreter by an earlier host, or was about
	// to be: what came of it is gone on with, and it is sent only if it had not begun.
	Resume bool
	// Introspect is the question that Code answers, if there is one. An interpreter
	// that has a request for it makes that instead, and shows the answer as
	// messages.Introspect says.
	Introspect *messages.Introspect
}

// CellReply says how a cell ended.
type CellReply struct {
	// OK is true when the code ran to its end.
	OK bool
	// Interrupted is true when the cell ended by KeyboardInterrupt or
	// CancelledError.
	Interrupted bool
	// Error is set when the code raised.
	Error *messages.ErrorDetails
	// StdinRequested is true when code asked for input and got none.
	StdinRequested bool
	// Exited is true when the code asked for the end of its interpreter
	// (exit(), quit()): it must not be used any more.
	Exited bool
	// ExitCode is the exit status of a cell that is a program of its own; nil
	// means 0 or 1, by OK.
	ExitCode *int
	// ExecutionCount is the interpreter's own count, 0 when it keeps none.
	ExecutionCount int
	// Exceeded says which limit ended the code, also when Execute returns an
	// error; nil for none.
	Exceeded *messages.ResourceLimitExceeded
	// Stderr is the end of what the code wrote to stderr, at most 2 KiB, from
	// backends that keep it.
	Stderr string
	// Incomplete says why output may be missing; "" when all is there.
	Incomplete string
	// Duration is how long the code ran.
	Duration time.Duration
}

// LostError says that an interpreter died or was replaced.
type LostError struct {
	// Reason is a clause for people: "the kernel process died".
	Reason string
	// Replaced is true when a new, empty interpreter already answers under the
	// same name: code may have run in it.
	Replaced bool
	// Elsewhere is true when it died with the process that it came from: that says
	// nothing about the session, whose kernel is then restarted as often as it takes.
	Elsewhere bool
	// PID is its process, 0 where that is not known. One that never began has it, too.
	PID int
	// Exceeded is the limit for which it was ended, nil when it was not for one. errors.As
	// finds it in whatever wraps this error.
	Exceeded *messages.ResourceLimitExceeded
	Err      error
}

// Error returns the reason.
func (e *LostError) Error() string { return e.Reason }

// Unwrap returns what was observed.
func (e *LostError) Unwrap() error { return e.Err }

// As finds the limit.
func (e *LostError) As(target any) bool {
	met, is := target.(**messages.ResourceLimitExceeded)
	if !is || e.Exceeded == nil {
		return false
	}
	*met = e.Exceeded
	return true
}

// Is reports whether target is [strategy.ErrElsewhere], and this is.
func (e *LostError) Is(target error) bool { return e.Elsewhere && target == strategy.ErrElsewhere }

// TooLong is the reply to a cell that did not run because no request holds it; why
// says how long it may be. The error goes to emit too, for those who read events.
func TooLong(ctx context.Context, why error, emit func(context.Context, messages.Event) error) (CellReply, error) {
	text := "the cell was not run: " + why.Error() + "; write the data to a file and read it from there"
	e := messages.ErrorDetails{Name: "ValueError", Message: text, Traceback: []string{"ValueError: " + text}}
	return CellReply{Error: &e}, emit(ctx, messages.Error{ErrorDetails: e})
}
