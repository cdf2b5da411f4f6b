package launcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/internal/toolbox"
	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// Request is one run of a tool.
type Request struct {
	Tool string
	// Inputs is a JSON object by the keys of the tool's inputs; what is missing
	// gets its default. nil: no inputs.
	Inputs messages.RawJSON
	// ID names the run, for Cancel. "": a new one.
	ID string
	// Timeout shortens what the tool allows a run. 0: it does not.
	Timeout time.Duration

	fetch string // see messages.ToolRun
}

// Run makes one run and returns its result. When ctx ends first the run is
// cancelled, and Run waits for its result for no longer than the grace of a
// cancel and the end of the process. The error is [ErrClosed] after Shutdown; what
// went wrong with the tool or the run is in the result.
func (l *Launcher) Run(ctx context.Context, r Request) (messages.ToolResult, error) {
	return l.run(ctx, r, nil)
}

// Stream is Run with what the tool returns as it comes. emit is called in the goroutine
// that called Stream, and not after Stream has returned; while it blocks the tool
// waits, and its error cancels the run. So does its panic, which goes on to the caller
// once the run has ended.
func (l *Launcher) Stream(ctx context.Context, r Request, emit func(messages.ToolEvent) error) (messages.ToolResult, error) {
	type answer struct {
		result messages.ToolResult
		err    error
	}
	a := hearing(ctx, emit, func(ctx context.Context, tell func(messages.ToolEvent) error) answer {
		result, err := l.run(ctx, r, outlet(tell))
		return answer{result, err}
	})
	return a.result, a.err
}

func (l *Launcher) run(ctx context.Context, r Request, out messages.ToolOutlet) (messages.ToolResult, error) {
	began := time.Now()
	run := launch{ToolRun: messages.ToolRun{ID: r.ID, Tool: r.Tool, Inputs: r.Inputs, Timeout: r.Timeout, Fetch: r.fetch, Out: out}}
	if run.ID == "" {
		run.ID = messages.NewID()
	}
	refused := messages.ToolResult{Run: run.ID, Tool: r.Tool, Outcome: messages.OutcomeNotStarted}
	if err := r.check(run.ID); err != nil {
		refused.Error = err
		return refused, nil
	}
	entry, err := l.box.Find(ctx, r.Tool)
	if err != nil {
		told, ok := errors.AsType[*messages.ToolError](err)
		if !ok {
			return refused, err
		}
		refused.Error = told
		return refused, nil
	}
	if err := toolbox.CheckInputs(entry.Tool, r.Inputs); err != nil && r.fetch == "" {
		refused.Error = &messages.ToolError{Kind: messages.ToolErrorInput, Message: err.Error(), Hint: "compare the inputs with those that tool.json declares"}
		return refused, nil
	}
	run.Plan, run.Tool = l.planOf(entry), entry.ID
	_, reply, err := supervisor.Begin[messages.ToolResult](l.actor, run)
	if err != nil {
		refused.Error = &messages.ToolError{Kind: messages.ToolErrorDraining, Message: ErrClosed.Error()}
		return refused, ErrClosed
	}
	result, err := reply.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		end := messages.ToolCancel{Tool: run.Tool, Run: run.ID, Cause: messages.CauseCancelled}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			end.Cause = messages.CauseTimeout
			if deadline, ok := ctx.Deadline(); ok {
				end.Limit = max(0, deadline.Sub(began))
			}
		}
		l.actor.Tell(end)
		result, err = reply.Wait(context.WithoutCancel(ctx))
	}
	if err != nil {
		refused.Error = &messages.ToolError{Kind: messages.ToolErrorDraining, Message: ErrClosed.Error()}
		return refused, errors.Join(ErrClosed, err)
	}
	return result, nil
}

// check refuses what no tool should see.
func (r Request) check(id string) *messages.ToolError {
	wrong := func(text string) *messages.ToolError {
		return &messages.ToolError{Kind: messages.ToolErrorInput, Message: text}
	}
	if !toolspec.IsID(id) {
		return wrong(fmt.Sprintf("the run id %q is not a name of letters, digits, dots, dashes and underscores", id))
	}
	if r.Timeout < 0 {
		return wrong(fmt.Sprintf("the timeout %v is negative; use 0 for none", r.Timeout))
	}
	return nil
}
