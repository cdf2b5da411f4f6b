package jupyter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/internal/estate"
	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pysrc"
	"github.com/coppice-run/coppice/internal/sharedgateway"
	"github.com/coppice-run/coppice/messages"
)

// stdinNotice is what the output says where code asked for input that it cannot get.
const stdinNotice = "[stdin] Kernel requested input. Interactive stdin is not supported; provide input programmatically."

// Interpreter is one Jupyter kernel.
type Interpreter struct {
	kernel *jupyter.Kernel
	server *Endpoint
	// info and identity are set before the interpreter is handed out.
	info     kernel.Info
	identity process.Identity // zero when the kernel is not of this machine
	within   int              // its number in a kernel of its gateway's own; 0: there is none, or it is not known
	files    int              // how many files code may have open; 0: any number
	calls    hostCalls
	python   bool // the kernel's language; others get no code of ours
	// notice comes before the first output; nil when there is none to show, or it was
	// shown.
	notice atomic.Pointer[messages.Notice]
	// claim is the session's place in the journal, nil when it is not kept.
	claim *sharedgateway.Claim
	// leaving is that of the host.
	leaving *atomic.Bool
	// ends says that the session ends, or begins anew: it is not left to the next host.
	ends atomic.Bool
	// outlives says that the session has all that it is to have: before that, it ends with its host.
	outlives atomic.Bool
	news     atomic.Pointer[kernel.News] // how the session began, of which no result has told; for the next host
	// keepFor is how long it then lives without one, see Options.KeepFor.
	keepFor time.Duration
	// records says that the session's calls outlive the host, too, for hosts of a name; book is where
	// they are written down, nil for nowhere, and heir what an earlier host has begun of the last
	// one, until adopt has it.
	records bool
	name    string
	book    atomic.Pointer[book]
	heir    *estate.Running
	// late is what is to run before the next cell; it belongs to the goroutine that runs calls.
	late string
	// running is true while a cell runs.
	running atomic.Bool
	closed  sync.Once // of what release does
	first   sync.Once // of hasAnswered
}

// hasAnswered tells the pool that the session has answered for the first time, or
// that it never will.
func (i *Interpreter) hasAnswered(first bool) {
	i.first.Do(func() { i.server.warm.answered(first) })
}

// Info returns the kernel's id, process and Python version.
func (i *Interpreter) Info() kernel.Info { return i.info }

// Done is closed when the kernel is gone.
func (i *Interpreter) Done() <-chan struct{} { return i.kernel.Done() }

// Err says why the kernel is gone.
func (i *Interpreter) Err() error { return i.lost(i.kernel.Err()) }

// Execute runs one cell.
func (i *Interpreter) Execute(ctx context.Context, r kernel.CellRequest, emit func(context.Context, messages.Event) error) (kernel.CellReply, error) {
	if r.Resume {
		return i.cell(ctx, r, emit)
	}
	if err := i.catchUp(ctx); err != nil {
		return kernel.CellReply{}, err
	}
	if n := i.notice.Swap(nil); n != nil {
		if err := emit(ctx, *n); err != nil {
			return kernel.CellReply{}, err
		}
	}
	if len(r.Env) > 0 && !i.python {
		if err := emit(ctx, messages.Notice{Code: "environment", Text: "the call's environment is not set: the kernel is not one of Python"}); err != nil {
			return kernel.CellReply{}, err
		}
	} else if len(r.Env) > 0 {
		if _, err := i.silently(ctx, envCode(r.Env)); err != nil {
			return kernel.CellReply{}, fmt.Errorf("set the call's environment: %w", err)
		}
	}
	if r.ResetNames {
		return i.resetNames(ctx)
	}
	if r.Introspect != nil {
		return i.introspect(ctx, *r.Introspect, emit)
	}
	if len(r.CallEnv) > 0 {
		return i.withEnv(ctx, r, emit)
	}
	return i.cell(ctx, r, emit)
}

// tooMany is how Python says that no more files may be open (EMFILE).
const tooMany = "[Errno 24]"

// cell runs the code of a cell.
func (i *Interpreter) cell(ctx context.Context, r kernel.CellRequest, emit func(context.Context, messages.Event) error) (kernel.CellReply, error) {
	i.calls.begin(r.Call)
	defer i.calls.end()
	i.running.Store(true)
	defer func() {
		i.running.Store(false)
		i.hasAnswered(true)
		if i.claim != nil {
			i.claim.Touch()
		}
	}()
	book := i.book.Load()
	run, request, emit := book.cell(r, i.kernel, emit)
	out, err := run(ctx, request,
		func(c context.Context, e messages.Event) error {
			if question, ok := e.(messages.InputRequest); ok {
				i.calls.asked(question.ID)
			}
			err := emit(c, e)
			if errors.Is(err, kernel.ErrEnough) {
				return jupyter.ErrEnough
			}
			return err
		})
	if errors.Is(err, jupyter.ErrTooLong) {
		return kernel.TooLong(ctx, err, emit)
	}
	reply := kernel.CellReply{
		OK: out.Status == jupyter.ReplyOK, Exited: out.Exited, ExecutionCount: out.ExecutionCount,
		Incomplete: book.incomplete(out.Incomplete), Duration: out.Duration,
	}
	if out.Error != nil {
		reply.Error = out.Error
		if i.files > 0 && out.Error.Name == "OSError" && strings.Contains(out.Error.Message, tooMany) {
			reply.Exceeded = &messages.ResourceLimitExceeded{Limit: messages.LimitFiles}
		}
		reply.Interrupted = out.Error.Name == "KeyboardInterrupt" || out.Error.Name == "CancelledError"
	}
	if out.StdinRequested || out.Error != nil && out.Error.Name == "StdinNotImplementedError" {
		reply.StdinRequested = true
		_ = emit(ctx, messages.Notice{Code: "stdin", Text: stdinNotice})
	}
	if errors.Is(err, jupyter.ErrNoReply) && out.Broken {
		reply.OK = false
		if reply.Error == nil {
			reply.Error = &messages.ErrorDetails{
				Name:    "ReplyLost",
				Message: "the connection to the kernel's server broke and the answer was lost: how the cell ended is not known; the kernel lives, and its variables are kept",
			}
		}
		return reply, nil
	}
	if errors.Is(err, jupyter.ErrNoReply) {
		// An interrupt that comes just as the code begins can
		// swallow the reply; the cell has ended, and the kernel is well.
		reply.OK, reply.Interrupted = false, true
		if out.Stray && reply.Error == nil {
			reply.Error = &messages.ErrorDetails{Name: "KeyboardInterrupt", Message: "an interrupt came without a request for one"}
		}
		return reply, nil
	}
	return reply, i.lost(err)
}

// leaveTries is how often the variables of a call are put back: an interrupt that comes
// late may hit that in place of the cell.
const leaveTries = 4

// withEnv runs a cell with the variables of its call. The kernel puts them back by
// itself when the cell has ended, also when this host is gone by then; that this has
// happened is made sure of here, and a kernel in which it has not is given up.
func (i *Interpreter) withEnv(ctx context.Context, r kernel.CellRequest, emit func(context.Context, messages.Event) error) (kernel.CellReply, error) {
	var reply kernel.CellReply
	switch set, err := i.enterEnv(ctx, r); {
	case errors.Is(err, errInterrupted): // it was for the cell, which does not run then
		reply.Interrupted = true
		return i.left(ctx, reply)
	case err != nil:
		return reply, err
	case !set:
		if err := emit(ctx, messages.Notice{Code: "environment", Text: "the environment of this call is not set: the kernel is none that can put it back afterwards"}); err != nil {
			return reply, err
		}
		return i.cell(ctx, r, emit)
	}
	reply, err := i.cell(ctx, r, emit)
	if err != nil {
		return reply, err // it is not used any more
	}
	return i.left(ctx, reply)
}

// errInterrupted says that an interrupt came before the cell.
var errInterrupted = errors.New("it was interrupted")

// left makes sure that the variables of a call are put back.
func (i *Interpreter) left(ctx context.Context, reply kernel.CellReply) (kernel.CellReply, error) {
	if err := i.leaveEnv(ctx); err != nil {
		if ctx.Err() != nil || i.kernel.Err() != nil {
			return reply, err
		}
		return reply, &kernel.LostError{Reason: "the environment of a call could not be put back, and its kernel was ended", Err: err}
	}
	return reply, nil
}

// enterEnv sets the variables; false: the kernel cannot.
func (i *Interpreter) enterEnv(ctx context.Context, r kernel.CellRequest) (set bool, err error) {
	if !i.python {
		return false, nil
	}
	code := pysrc.EnterEnvCode(pyDict(r.CallEnv), r.Index > 0)
	for try := 1; ; try++ {
		reply, err := i.kernel.Execute(ctx, jupyter.ExecuteRequest{Code: code, Silent: true}, nil)
		switch {
		case err == nil && reply.Status == jupyter.ReplyOK:
			return true, nil
		case reply.Stray && try < leaveTries:
			continue
		case disturbed(reply, err):
			return false, errInterrupted
		case err != nil:
			return false, i.lost(err)
		case reply.Error != nil && (reply.Error.Name == "KeyError" || reply.Error.Name == "AttributeError"):
			return false, nil // another kernel of Python, or one that another version has prepared
		default:
			return false, fmt.Errorf("set the environment of a call: %w", refusal(reply))
		}
	}
}

// leaveEnv has the kernel put the variables back, if it has not.
func (i *Interpreter) leaveEnv(ctx context.Context) error {
	for try := 1; ; try++ {
		reply, err := i.kernel.Execute(ctx, jupyter.ExecuteRequest{Code: pysrc.LeaveEnvCode, Silent: true}, nil)
		switch {
		case err == nil && reply.Status == jupyter.ReplyOK:
			return nil
		case try < leaveTries && disturbed(reply, err):
			continue
		case err != nil:
			return i.lost(err)
		default:
			return refusal(reply)
		}
	}
}

// disturbed reports whether an interrupt or a broken connection took the answer to code
// of ours, which may be run again.
func disturbed(reply jupyter.ExecuteReply, err error) bool {
	return errors.Is(err, jupyter.ErrNoReply) || reply.Stray || reply.Error != nil && reply.Error.Name == "KeyboardInterrupt"
}

// refusal says what became of code of ours.
func refusal(reply jupyter.ExecuteReply) error {
	if reply.Error != nil {
		return fmt.Errorf("%s: %s", reply.Error.Name, reply.Error.Message)
	}
	return fmt.Errorf("the kernel answered %q", reply.Status)
}

// silently runs code of ours: no history, no output, and an exception is an
// error.
func (i *Interpreter) silently(ctx context.Context, code string) (jupyter.ExecuteReply, error) {
	request := jupyter.ExecuteRequest{Code: code, Silent: true, UserExpressions: initExpressions}
	reply, err := i.kernel.Execute(ctx, request, nil)
	if reply.Stray { // it may be run again, unlike the code of others
		reply, err = i.kernel.Execute(ctx, request, nil)
	}
	if err != nil {
		return reply, i.lost(err)
	}
	if reply.Status != jupyter.ReplyOK {
		if reply.Error != nil {
			return reply, fmt.Errorf("%s: %s", reply.Error.Name, reply.Error.Message)
		}
		return reply, fmt.Errorf("the kernel answered %q", reply.Status)
	}
	return reply, nil
}

// Ended reports whether the cell has ended. Its output may wait on disk.
func (i *Interpreter) Ended() bool { return i.running.Load() && !i.kernel.Running() }

// Interrupt asks the running cell to stop.
func (i *Interpreter) Interrupt(ctx context.Context) error { return i.kernel.Interrupt(ctx) }

// AnswerInput answers the one input request that can be open at a time.
func (i *Interpreter) AnswerInput(ctx context.Context, id string, a messages.InputAnswer) error {
	if !i.calls.open(id) {
		return nil
	}
	value := pysrc.NoInput(a.Reason)
	switch {
	case a.Status == messages.InputAccepted:
		value = a.Value
	case a.Idle > 0:
		value = pysrc.IdleInput(a.Idle.Seconds())
	}
	return i.kernel.Input(ctx, value)
}

// Close deletes the kernel. A server that cannot be asked any more is no
// reason to leave a process of this machine alone.
func (i *Interpreter) Close(ctx context.Context) error {
	if i.server.Bridge != nil {
		i.server.Bridge.Unregister(i.calls.session)
	}
	if i.Leaving() && i.kernel.Err() == nil && !i.running.Load() {
		i.closeBook()
		if err := i.journal(); err == nil {
			i.kernel.Detach()
			i.release()
			return nil
		}
	}
	err := i.kernel.Delete(ctx)
	if err != nil && i.server.left(ctx) {
		err = nil // it cannot be ended any more; its session is elsewhere
	}
	if own := i.server.Process; err != nil && i.identity.PID == 0 && own.PID != 0 && process.Ended(own) {
		err = nil // it is ended with all of its gateway
	}
	if err == nil || i.identity.PID == 0 {
		if err == nil {
			i.forget()
		}
		return err
	}
	if left := process.KillAll(ctx, []process.Identity{i.identity}); len(left) > 0 {
		return fmt.Errorf("%w; and process %d could not be killed", err, i.identity.PID)
	}
	i.forget()
	return nil
}

// Kill ends the kernel's process, when it is one of this machine.
func (i *Interpreter) Kill() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if i.within != 0 {
		_ = i.server.end(ctx, i.within) // as below
		return
	}
	if i.identity.PID == 0 {
		return
	}
	process.KillAll(ctx, []process.Identity{i.identity}) // Close tells whether it worked
}

// lost translates the mechanism's error into the one that package kernel
// decides by.
func (i *Interpreter) lost(err error) error {
	if l, ok := errors.AsType[*jupyter.LostError](err); ok {
		gateway := i.server.process()
		return &kernel.LostError{
			Reason: l.Reason, Replaced: l.Replaced, Elsewhere: gateway.PID != 0 && process.Ended(gateway), Err: err,
		}
	}
	return err
}

var (
	_ kernel.Interpreter = (*Interpreter)(nil)
	_ kernel.Killer      = (*Interpreter)(nil)
	_ kernel.Backlogged  = (*Interpreter)(nil)
	_ kernel.Witness     = (*Interpreter)(nil)
	_ kernel.Recorded    = (*Interpreter)(nil)
	_ kernel.Leaver      = (*Interpreter)(nil)
)
