package kernel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// Recorded is implemented by interpreters that can outlive the host. Record returns where
// it is written down what their calls have come to, for the next host; nil: this one ends
// with its host. It is called by the goroutine that runs a call.
type Recorded interface{ Record() Record }

// Record is what is written down of the call that runs, before it is handed on. Its
// methods may be called from any goroutine.
type Record interface {
	// Begin begins a call. When it fails, the call does not outlive its host. The error is
	// ErrLeft when the interpreter is left to the next host: then nothing of the call may
	// be begun here. news is what the call's result will tell; nil: nothing of that kind.
	Begin(exec messages.Execute, news *News) error
	// Output says that an event of the interpreter is about to be handed on, from its
	// Execute, and Emitted another one.
	Output(e messages.Event)
	Emitted(e messages.Event)
	// Ended says how a cell has ended, Stopped that the call is to end.
	Ended(cell int, r messages.CellResult)
	Stopped(cause messages.InterruptCause)
	// Resume returns how far the call of an earlier host came, and shows each event that
	// was handed on there, in order.
	Resume(each func(messages.Event) error) (*Resumption, error)
}

// Resumption is how far a call came with an earlier host.
type Resumption struct {
	// Ended are the results of the cells that have ended, in order.
	Ended []messages.CellResult
	// Begun says that the next cell was sent to the interpreter, or was about to be, Said
	// that events of it were handed on, and Over that its end was.
	Begun, Said, Over bool
	// Bare says that the call had variables of its own, which are not known any more.
	Bare bool
	// Full says that events were left out.
	Full bool
	// Stop says why the call was to end; "": it was not.
	Stop messages.InterruptCause
}

// Leaver is implemented by interpreters that can be left to the next host. Any goroutine
// may call its methods.
type Leaver interface {
	// Leaving says that this one will be, when it is closed.
	Leaving() bool
	// EndForGood has it not be: its session ends, or begins anew.
	EndForGood()
}

// forGood reports whether a kernel ends because its session does, or begins anew: then it is
// not left to the next host, though this one may be about to end.
func forGood(exit supervisor.Exit) bool { return !exit.Failure() && !ofHost(exit) }

// ofHost reports whether a kernel ends because its host does.
func ofHost(exit supervisor.Exit) bool {
	return exit.Kind == messages.ExitShutdown && !strings.HasPrefix(exit.Value().Reason, messages.SessionClosed)
}

// endForGood has an interpreter not be left to the next host when its kernel ends for another
// reason than that of the host.
func endForGood(i Interpreter, exit supervisor.Exit) {
	if l, ok := i.(Leaver); ok && forGood(exit) {
		l.EndForGood()
	}
}

// EndsForGood reports whether a start, whose context it is, was cancelled because its session
// ends or begins anew: then what an earlier host has left of it ends, too. Else another start
// goes on with it, here or in the next host.
func EndsForGood(start context.Context) bool {
	exit, is := errors.AsType[supervisor.Exit](context.Cause(start))
	return is && forGood(exit)
}

func leaving(i Interpreter) bool {
	l, ok := i.(Leaver)
	return ok && l.Leaving()
}

// recordOf returns where a call is written down; nil: nowhere.
func recordOf(i Interpreter, exec messages.Execute) Record {
	r, ok := i.(Recorded)
	if !ok || exec.Introspect != nil || len(exec.Cells) == 0 {
		return nil // an answer about names is of use to who asked alone
	}
	return r.Record()
}

// errBare is why a call is not gone on with.
var errBare = errors.New("the variables that the call was to have (Env, CallEnv) were known to the earlier host alone, and its next cell was not begun")

// ErrLeft says that an interpreter is left to the next host.
var ErrLeft = errors.New("the interpreter is left to the next host")

// note begins to write the call down. It reports false when nothing of it may begin here:
// the run ends with its actor then.
func (r *run) note() bool {
	if r.record == nil {
		return true
	}
	err := r.record.Begin(r.exec, r.news)
	if errors.Is(err, ErrLeft) {
		<-r.life.Done()
		r.outcome, r.unsent, r.cutOff = messages.OutcomeCancelled, true, true
		return false
	}
	if err != nil {
		r.record = nil // it ends with its host, as without KeepSessions
	}
	return true
}

// resume goes on with a call of an earlier host: what was handed on there is handed on
// here, so that its events have the same numbers, and the cells that had ended have their
// results. It returns the first cell that had not.
func (r *run) resume(ctx *supervisor.Ctx) int {
	if r.record == nil {
		r.outcome, r.lost = messages.OutcomeLost, &LostError{Reason: "what an earlier host had begun cannot be gone on with: the session does not outlive its host"}
		return 0
	}
	from, err := r.record.Resume(func(e messages.Event) error {
		ctx.Hold(true)
		defer ctx.Hold(false)
		return r.exec.Out.Emit(r.output, e)
	})
	if err == nil && from == nil {
		err = errors.New("nothing of it was noted")
	}
	if err != nil {
		r.outcome, r.lost = messages.OutcomeLost, &LostError{Reason: fmt.Sprintf("what an earlier host had begun cannot be gone on with: %v", err), Err: err}
		return 0
	}
	for i, cell := range from.Ended {
		if i < len(r.cells) {
			r.cells[i], r.lastIndex, r.outcome = cell, i, cell.Outcome
		}
	}
	r.from = from
	if from.Full {
		r.notes = append(r.notes, "output is not complete: what the call printed with an earlier host beyond what is noted was left out")
	}
	return len(from.Ended)
}

// resumed is what the earlier host had begun of cell i; nil: nothing.
func (r *run) resumed(i int) *Resumption {
	if r.from == nil || i != len(r.from.Ended) || !r.from.Begun {
		return nil
	}
	return r.from
}

// noteEnd notes the result of a cell, unless it is left to the next host.
func (r *run) noteEnd(i int) {
	if r.record != nil && !r.cutOff {
		r.record.Ended(i, r.cells[i])
	}
}

// noted writes an event down that is about to be handed on; output: it comes of the
// interpreter's Execute.
func (r *run) noted(e messages.Event, output bool) {
	switch {
	case r.record == nil:
	case output:
		r.record.Output(e)
	default:
		r.record.Emitted(e)
	}
}

// endsBefore returns why the run is not to go on with cell i, "" when it is: a cell that an
// earlier host has begun runs, and is interrupted.
func (r *run) endsBefore(i int) messages.InterruptCause {
	if r.resumed(i) != nil {
		return ""
	}
	if cause := r.cause(); cause != "" || r.from == nil {
		return cause
	}
	return r.from.Stop
}
