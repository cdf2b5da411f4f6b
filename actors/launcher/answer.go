package launcher

import (
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

var (
	errOutdated = errors.New("the files of the tool have changed")
	errStopped  = errors.New("it was stopped")
)

// toolErrorer is an error of plan.Start that says itself what a run reports.
type toolErrorer interface {
	error
	ToolError() *messages.ToolError
	// Log is the end of standard error, which a ToolError has less of.
	Log() string
}

// refused is the result of a run that no process has seen.
func refused(f *flight, kind messages.ToolErrorKind, text string) messages.ToolResult {
	return messages.ToolResult{
		Run: f.run.ID, Tool: f.run.Tool, Outcome: messages.OutcomeNotStarted, Cold: f.cold,
		Error: &messages.ToolError{Kind: kind, Message: text}, Duration: time.Since(f.arrived),
	}
}

// notStarted says why a tool did not come up for a run.
func (h *handler) notStarted(f *flight, why *supervisor.ServiceError) messages.ToolResult {
	if told, ok := errors.AsType[toolErrorer](why.Exit.Err); ok {
		r := refused(f, "", "")
		r.Error = told.ToolError()
		return r
	}
	reason := why.Exit.Value().Reason
	switch {
	case errors.Is(why, supervisor.ErrOverloaded):
		text := "overloaded: " + reason
		if _, full := errors.AsType[*strategy.FullError](why.Exit.Err); full { // its places are tools here
			text = fmt.Sprintf("overloaded: %d tools are warm, which is the limit, and each of them is busy or pinned", h.o.WarmMax)
			if h.o.WarmMax == 1 {
				text = "overloaded: 1 tool is warm, which is the limit, and it is busy or pinned"
			}
		}
		r := refused(f, messages.ToolErrorOverloaded, text)
		r.Error.Hint = "wait for a tool to become idle, stop or unpin one, or raise the number of warm tools"
		return r
	case errors.Is(why, supervisor.ErrDraining):
		return refused(f, messages.ToolErrorDraining, "the launcher is shutting down and takes no new runs")
	case errors.Is(why, supervisor.ErrEnded):
		r := refused(f, messages.ToolErrorCancelled, "the tool was stopped before the run began")
		r.Outcome = messages.OutcomeCancelled
		return r
	case reason == "":
		return refused(f, messages.ToolErrorSpawn, "the tool "+f.run.Tool+" could not be started")
	default:
		return refused(f, messages.ToolErrorSpawn, "the tool "+f.run.Tool+" could not be started: "+reason)
	}
}

// lost is the result of a run whose actor ended without a word about it.
func lost(f *flight, why *supervisor.ServiceError) messages.ToolResult {
	r := refused(f, messages.ToolErrorCrashed, "the tool ended during the run")
	r.Outcome = messages.OutcomeLost
	if reason := why.Exit.Value().Reason; reason != "" {
		r.Error.Message += ": " + reason
	}
	return r
}

// cause is why a run is ended early.
type cause string

const (
	causeCancelled cause = "cancelled"
	causeTimeout   cause = "timeout" // the caller's
	causeRuntime   cause = "runtime"
	causeMemory    cause = "memory"
	causeArtifacts cause = "artifacts"
	causeOther     cause = "other" // another run of the tool did not end
)

// rounded is a time for people.
func rounded(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return max(d.Round(time.Millisecond), time.Millisecond)
}

// times says how long a run went on that has ended for its time.
type times struct {
	limit time.Duration // of the caller; 0: not known
	took  time.Duration // until now, counted as limit is
}

// error is the error that the caller gets, and the outcome.
func (c cause) error(t *plan, o *Options, of times) (messages.Outcome, *messages.ToolError) {
	ended := fmt.Sprintf(": it was ended after %v", rounded(of.took))
	switch c {
	case causeTimeout:
		within := "in the time"
		if of.limit > 0 {
			within = fmt.Sprintf("within the %v", rounded(of.limit))
		}
		return messages.OutcomeTimeout, &messages.ToolError{Kind: messages.ToolErrorRuntime, Message: "the run did not end " + within + " that the caller gave it" + ended}
	case causeRuntime:
		return messages.OutcomeTimeout, &messages.ToolError{
			Kind: messages.ToolErrorRuntime, Message: fmt.Sprintf("ResourceLimitExceeded: runtime (max_runtime_seconds is %v)", t.MaxRuntime.Seconds()) + ended,
			Hint: "view stderr; let the run do less, or raise max_runtime_seconds in tool.json",
		}
	case causeMemory:
		return messages.OutcomeError, &messages.ToolError{
			Kind: messages.ToolErrorMemory, Message: fmt.Sprintf("ResourceLimitExceeded: memory (max_memory_mb is %d)", t.MemoryMB),
			Hint: "view stderr; let the tool use less, or raise max_memory_mb in its tool.json",
		}
	case causeArtifacts:
		return messages.OutcomeError, &messages.ToolError{
			Kind: messages.ToolErrorArtifacts, Message: fmt.Sprintf("ResourceLimitExceeded: artifacts (a run may write %d MiB in %d files)", o.ArtifactBytes>>20, o.ArtifactFiles),
			Hint: "let the run write less",
		}
	case causeOther:
		return messages.OutcomeLost, &messages.ToolError{
			Kind: messages.ToolErrorCrashed, Message: "the tool had to be ended because another run of it did not end",
			Hint: "run it again; a tool that cancels its runs is not ended",
		}
	default:
		return messages.OutcomeCancelled, &messages.ToolError{Kind: messages.ToolErrorCancelled, Message: "the run was cancelled"}
	}
}

// outcomeOf is the outcome of a run that ended by itself with an error.
func outcomeOf(e *messages.ToolError) messages.Outcome {
	switch {
	case e == nil:
		return messages.OutcomeOK
	case e.Kind == messages.ToolErrorCrashed:
		return messages.OutcomeLost
	case e.Kind == messages.ToolErrorCancelled:
		return messages.OutcomeCancelled
	default:
		return messages.OutcomeError
	}
}
