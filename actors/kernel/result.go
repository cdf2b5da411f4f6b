package kernel

import (
	"fmt"
	"strings"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// callEnded answers the call, and fails when the interpreter went with it.
func (a *Actor) callEnded(m callEnded) error {
	r := m.run
	if a.run != r {
		return nil
	}
	a.run = nil
	if r.lastIndex >= 0 {
		a.served, a.refused = true, nil
	}
	switch {
	case r.lost != nil:
		r.work.Settle(a.result(r, r.outcome, lostReason(r.lost), true))
		return r.lost
	case r.exited:
		a.ctx.Finish(r.work, a.result(r, r.outcome, "the code ended its own interpreter (exit)", true))
		return supervisor.ErrDone
	case a.interpGone():
		// It died after the last cell had ended: the cells are complete, the
		// variables are gone.
		err := r.ended(a.interp.Err())
		r.work.Settle(a.result(r, r.outcome, lostReason(err), true))
		return err
	}
	if a.silence == nil && (r.outcome == messages.OutcomeOK || r.outcome == messages.OutcomeError) {
		a.returned, a.looks = true, 0
	}
	res := a.result(r, r.outcome, a.freshReason(r), false)
	a.note()
	// Last, so that whoever waits runs next: what follows here would hold it up.
	a.ctx.Finish(r.work, res)
	return nil
}

func (a *Actor) interpGone() bool {
	select {
	case <-a.interp.Done():
		return true
	default:
		return false
	}
}

// result puts together what the run, the sinks and the actor know.
func (a *Actor) result(r *run, outcome messages.Outcome, reason string, gone bool) messages.Result {
	res := messages.Result{
		Outcome: outcome, State: messages.StateKept, Backend: a.o.Backend.Name(),
		Session: r.exec.Key.Session, Cwd: r.exec.Key.Cwd,
		Cells: r.cells, JSON: r.out.JSON, Images: r.out.Images, Truncation: r.out.Truncation, NotKept: r.out.NotKept,
		StdinRequested: r.stdin, Reason: reason, Exceeded: r.exceeded, Exec: r.exec.ID,
		Progress: a.progress(r),
	}
	switch {
	case gone:
		res.State = messages.StateLost
	case !res.Ran() && outcome != messages.OutcomeOK: // it was stopped before its first cell
		res.State, res.Reason = "", res.HowFar().NotRun()
	case r.fresh && a.restored != nil:
		res.State, res.Restored, res.Reason = messages.StateRestored, a.restored, ""
	case r.fresh:
		res.State = messages.StateFresh
	}
	if r.out.Artifact != "" {
		res.Artifact = &r.out.Artifact
	}
	if i := r.lastIndex; i >= 0 && outcome != r.outcome && res.Cells[i].Outcome != messages.OutcomeOK {
		res.Cells[i].Outcome = outcome
	}
	for _, c := range r.out.Cells {
		if c.Index >= 0 && c.Index < len(res.Cells) {
			cell := &res.Cells[c.Index]
			cell.Output, cell.Events, cell.HasMarkdown = trim(c.Text), c.Events, c.HasMarkdown
		}
	}
	if r.delay != "" {
		res.Notices = append(res.Notices, r.delay)
	}
	for _, note := range r.missing() {
		if i := max(r.lastIndex, 0); i < len(res.Cells) {
			res.Cells[i].Output = trim(res.Cells[i].Output + "\n[" + note + "]")
		}
	}
	return res
}

// trim removes empty lines around a cell's text and the blanks at its end. Blanks
// before the first word stay: they hold the columns of a table together.
func trim(s string) string {
	s = strings.TrimRight(s, " \t\r\n")
	for {
		line, rest, ok := strings.Cut(s, "\n")
		if !ok || strings.TrimSpace(line) != "" {
			return s
		}
		s = rest
	}
}

// missing says what of the output is not there, for people.
func (r *run) missing() []string {
	notes := r.notes
	if r.dropped > 0 {
		notes = append(notes, fmt.Sprintf("%d outputs were dropped: they were not taken after the call was interrupted", r.dropped))
	}
	if r.out.Lost != "" {
		notes = append(notes, "output is not complete: "+r.out.Lost)
	}
	return notes
}

// freshReason explains a fresh state to a session that had one before.
func (a *Actor) freshReason(r *run) string {
	if !r.fresh || a.restored != nil {
		return ""
	}
	if exit, ok := a.ctx.Previous(); ok && a.ctx.Served() {
		if exit.Kind == messages.ExitHibernated && r.exec.Reset {
			exit.Kind = messages.ExitReset // it was asleep or about to be, and is not woken for this call
		}
		return endReason(exit.Value())
	}
	return a.pastReason(r.interp)
}

// pastReason is why the state is not there that the session had with an earlier host, or
// another kernel of this one.
func (a *Actor) pastReason(interp Interpreter) string {
	info := interp.Info()
	switch {
	case info.News != nil: // what it is about came before this host
		return info.News.Reason
	case a.o.Past != nil:
		return endReason(*a.o.Past)
	}
	return info.Earlier
}

// lostReason is the reason for people why an interpreter is gone.
func lostReason(err error) string {
	if err == nil {
		return "the kernel is gone"
	}
	return err.Error()
}

// leftReason is that of a call which goes on without this host.
const leftReason = "the host has left the session to the next one, where the code runs on"

// stopped is the result of a call under which the kernel's actor ends.
func (a *Actor) stopped(r *run, outcome messages.Outcome, exit supervisor.Exit) messages.Result {
	switch {
	case !leaving(a.interp):
		return a.result(r, outcome, endReason(exit.Value()), true)
	case r.fresh: // that has a reason of its own
		return a.result(r, outcome, a.freshReason(r), false)
	default:
		return a.result(r, outcome, leftReason, false)
	}
}

// endReason says in words why an incarnation ended.
func endReason(exit messages.Exit) string {
	about := ""
	if exit.Reason != "" {
		about = ": " + exit.Reason
	}
	switch exit.Kind {
	case messages.ExitReset:
		return "the session was reset"
	case messages.ExitEvicted:
		return "the idle session was evicted" + about
	case messages.ExitHibernated:
		return "what was kept on disk of the session is gone"
	case messages.ExitShutdown:
		return shutdownReason(exit)
	case messages.ExitHung:
		return "the kernel did not answer its heartbeat" + about
	case messages.ExitNormal:
		return "the code ended its own interpreter (exit)"
	case messages.ExitPanicked, messages.ExitKilled:
		return "the kernel's actor failed" + about
	}
	if exit.Reason == "" {
		return "the kernel died"
	}
	return exit.Reason
}

// shutdownReason is the reason of an end that was asked for: of the session, of all, or of
// the part of the tree that the kernel is in.
func shutdownReason(exit messages.Exit) string {
	switch {
	case strings.HasPrefix(exit.Reason, messages.SessionClosed): // with its workspace, it says more
		return exit.Reason
	case exit.Reason == "", exit.Reason == supervisor.ErrStopped.Error():
		return "the host was shut down"
	default:
		return "the runtime ended the kernel: " + exit.Reason
	}
}

// stoppedOutcome is the outcome of a call whose incarnation was stopped under
// it.
func stoppedOutcome(exit supervisor.Exit) messages.Outcome {
	switch exit.Kind {
	case messages.ExitShutdown, messages.ExitReset, messages.ExitNormal, messages.ExitEvicted, messages.ExitHibernated:
		return messages.OutcomeCancelled
	default:
		return messages.OutcomeLost
	}
}

// StopTimeout is what the Spec of a kernel with these options should allow for
// Terminate: one attempt to close, the sinks' flush and a little.
func (o Options) StopTimeout() time.Duration {
	o = o.withDefaults()
	writing := time.Duration(0)
	if o.Hibernation != nil {
		writing = sleepTimeout
	}
	return o.CloseTimeout + o.FlushTimeout + writing + time.Second
}
