package gateway

import (
	"errors"
	"fmt"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// withdrawn is the result of a call that left the queue.
func (h *handler) withdrawn(s *supervisor.Supervisor, c *call) messages.Result {
	r := messages.NotStarted(c.exec, h.o.Name, "", "")
	r.Outcome = messages.OutcomeCancelled
	if c.left.Cause == messages.CauseTimeout {
		r.Outcome, r.Remedy = messages.OutcomeTimeout, messages.RemedyMoreTime
	}
	r.Progress = c.progress(s)
	r.Progress.Stop, r.Progress.Limit = c.left.Stop(c.exec.Timeout)
	r.Reason = r.Progress.NotRun() + c.step(s)
	return r
}

// step says what else is known of what a call waits for and, unless its caller gave it up, what
// to do about it; "" when it waits for earlier calls.
func (c *call) step(s *supervisor.Supervisor) string {
	child, ok := s.Child(c.child)
	if !ok {
		return ""
	}
	advice := func(text string) string {
		if c.left.Cause == messages.CauseCancelled {
			return ""
		}
		return "; " + text
	}
	switch {
	case child.State == messages.ChildStarting && child.WaitingForCredit:
		return "; its kernel was " + child.Detail + advice("make the call again, and run coppice doctor if it lasts")
	case child.State == messages.ChildStarting && child.Detail != "":
		return "; its kernel was still starting (" + child.Detail + ")" + advice("give the call more time")
	case child.State == messages.ChildStopping, child.State == messages.ChildRestarting:
		return "; the kernel before it had not ended yet" + advice("make the call again")
	case child.State == messages.ChildWaiting:
		return advice("close a session, or raise the number of sessions")
	default:
		return ""
	}
}

// unserved is the result of a call that no kernel will answer.
func (h *handler) unserved(c *call, why *supervisor.ServiceError) messages.Result {
	r := messages.NotStarted(c.exec, h.o.Name, refusal(why), reason(why))
	r.Progress.Reach, r.Progress.Waited = c.waits.reach, c.waits.Waited
	if r.Refusal == messages.RefusedClosed && errors.Is(why.Exit.Err, errWorkspace) { // it would meet the same end
		r.Remedy, r.Reason = messages.RemedyRequest, r.Reason+"; "+messages.WorkspaceGone
	}
	if c.exec.Resumed && !why.Dispatched { // the one who has begun it is gone
		r.Reason = "an earlier host had begun the call, and this one could not go on with it: " + r.Reason
	}
	if why.Dispatched || c.exec.Resumed {
		r.Refusal, r.Remedy, r.RetryAfterMS = "", "", 0
		r.Outcome, r.State = messages.OutcomeLost, messages.StateLost
		r.Progress.Reach, r.Progress.Stop = messages.ReachSent, why.Exit.Value().Stop()
		if asked(why.Exit) {
			r.Outcome = messages.OutcomeCancelled
		}
		if len(r.Cells) > 0 {
			r.Cells[0].Status, r.Cells[0].Outcome = messages.CellError, r.Outcome
		}
	}
	r.Exceeded = exceeded(why)
	return r
}

// exceeded is the limit for which the kernel was ended, or could not be started, so that a
// call goes unserved; nil: there was another reason.
func exceeded(why *supervisor.ServiceError) *messages.ResourceLimitExceeded {
	met, is := errors.AsType[*messages.ResourceLimitExceeded](why)
	if !is {
		return nil
	}
	said := *met
	said.Stderr = "" // that of an earlier call
	return &said
}

// refusal is why in one word.
func refusal(why *supervisor.ServiceError) messages.Refusal {
	if _, unknown := errors.AsType[*messages.UnknownKernelError](why); unknown { // however often it was tried
		return messages.RefusedRequest
	}
	switch {
	case errors.Is(why, supervisor.ErrOverloaded):
		return messages.RefusedOverloaded
	case errors.Is(why, supervisor.ErrDraining):
		return messages.RefusedDraining
	case errors.Is(why, supervisor.ErrExhausted):
		return messages.RefusedExhausted
	case errors.Is(why, supervisor.ErrEnded):
		return messages.RefusedClosed
	default:
		return messages.RefusedStart
	}
}

// asked reports whether the end was asked for.
func asked(e supervisor.Exit) bool {
	switch e.Kind {
	case messages.ExitNormal, messages.ExitShutdown, messages.ExitReset, messages.ExitEvicted:
		return true
	default:
		return false
	}
}

// reason says in words why no kernel served a call, and what to do about it.
func reason(why *supervisor.ServiceError) string {
	if unknown, is := errors.AsType[*messages.UnknownKernelError](why); is { // which step of a start has met it helps nobody
		return unknown.Error()
	}
	cause := ""
	if text := why.Exit.Value().Reason; text != "" {
		cause = ": " + text
	}
	switch {
	case why.Dispatched && why.Exit.Kind == messages.ExitHung:
		return "the kernel did not answer its heartbeat" + cause
	case why.Dispatched:
		return "the kernel's actor ended" + cause
	case errors.Is(why, supervisor.ErrOverloaded):
		return "overloaded" + cause + "; wait for a session to become idle, close one, or raise the number of sessions"
	case errors.Is(why, supervisor.ErrDraining):
		return "the runtime is shutting down and takes no new calls"
	case errors.Is(why, supervisor.ErrExhausted):
		return "the kernel of this session failed again right after a restart (" + last(why.Exit) + "); nothing of earlier calls is left; reset the session to start over"
	case errors.Is(why, supervisor.ErrStartFailed):
		if cause == "" {
			return "the kernel could not be started"
		}
		return cause[2:]
	case errors.Is(why, supervisor.ErrEnded):
		if errors.Is(why.Exit.Err, errClosed) {
			return why.Exit.Err.Error()
		}
		return messages.SessionClosed
	default:
		return fmt.Sprintf("no kernel serves this session%s", cause)
	}
}

// last is the failure at which a session was given up.
func last(exit supervisor.Exit) string {
	if failure, ok := errors.AsType[supervisor.Exit](exit.Err); ok {
		exit = failure
	}
	text := exit.Value().Reason
	if exit.Kind == messages.ExitHung {
		return "it did not answer its heartbeat: " + text
	}
	return text
}
