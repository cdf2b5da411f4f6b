package gateway

import (
	"errors"
	"fmt"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// withdrawn is the result of a call that left the queue.
func (h *handler) withdrawn(s *supervisor.Supervisor, c *call, cause messages.InterruptCause) messages.Result {
	r := messages.NotStarted(c.exec, h.o.Name, "", "the call was cancelled before it started")
	r.Outcome = messages.OutcomeCancelled
	if cause == messages.CauseTimeout {
		r.Outcome, r.Reason = messages.OutcomeTimeout, "the time was up before the call started"
	}
	r.Reason += waited(s, c)
	return r
}

// waited says what a call has waited for that no kernel has begun, how long, and what
// to do; "" when it was for earlier calls.
func waited(s *supervisor.Supervisor, c *call) string {
	child, ok := s.Child(c.child)
	if !ok {
		return ""
	}
	long := s.Now().Sub(c.arrived).Round(time.Millisecond)
	switch {
	case child.State == messages.ChildStarting && child.WaitingForCredit:
		return fmt.Sprintf(": for %v its kernel was %s; make the call again, and run coppice doctor if it lasts", long, child.Detail)
	case child.State == messages.ChildStarting && child.Detail != "":
		return fmt.Sprintf(": after %v its kernel was still starting (%s); give the call more time", long, child.Detail)
	case child.State == messages.ChildStopping, child.State == messages.ChildRestarting:
		return fmt.Sprintf(": after %v the kernel before it had not ended yet; make the call again", long)
	case child.State == messages.ChildWaiting:
		return fmt.Sprintf(": for %v there was no place for its kernel; close a session, or raise the number of sessions", long)
	default:
		return ""
	}
}

// unserved is the result of a call that no kernel will answer.
func (h *handler) unserved(c *call, why *supervisor.ServiceError) messages.Result {
	r := messages.NotStarted(c.exec, h.o.Name, refusal(why), reason(why))
	if why.Dispatched {
		r.Refusal, r.Outcome, r.State = "", messages.OutcomeLost, messages.StateLost
		if asked(why.Exit) {
			r.Outcome = messages.OutcomeCancelled
		}
		if len(r.Cells) > 0 {
			r.Cells[0].Status, r.Cells[0].Outcome = messages.CellError, r.Outcome
		}
	}
	return r
}

// refusal is why in one word.
func refusal(why *supervisor.ServiceError) messages.Refusal {
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
		return "the kernel of this session failed again right after a restart (" + last(why.Exit) + "); its variables are gone; reset the session to start over"
	case errors.Is(why, supervisor.ErrStartFailed):
		if cause == "" {
			return "the kernel could not be started"
		}
		return cause[2:]
	case errors.Is(why, supervisor.ErrEnded):
		return "the session was closed" + cause
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
