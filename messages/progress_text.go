package messages

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Seconds writes a limit as it was set: whole seconds from ten on, tenths and
// hundredths below, so that no two limits look the same.
func Seconds(d time.Duration) string {
	n := d.Seconds()
	switch {
	case n >= 10:
		n = math.Round(n)
	case n >= 1:
		n = math.Round(n*10) / 10
	default:
		n = max(math.Round(n*100)/100, 0.01)
	}
	return strconv.FormatFloat(n, 'f', -1, 64) + " seconds"
}

// After says after which time a call was stopped, and whose that was: "after 0.5
// seconds (the deadline of its caller)". "" when no time stopped it, or it is not known
// which.
func (p Progress) After() string { return p.AfterIn(Seconds) }

// AfterIn is After with lengths of time as write has them.
func (p Progress) AfterIn(write func(time.Duration) string) string {
	switch {
	case p.Stop == StopDeadline && p.Limit > 0:
		return "after " + write(p.Limit) + " (the deadline of its caller)"
	case p.Stop == StopDeadline:
		return "at the deadline of its caller"
	case p.Limit > 0 && (p.Stop == StopTimeout || p.Stop == StopRuntime):
		return "after " + write(p.Limit)
	}
	return ""
}

// By says what stopped a call that neither its caller nor its time has: "the host was shut down".
// "" of every other.
func (p Progress) By() string {
	switch p.Stop {
	case StopShutdown:
		return "the host was shut down"
	case StopClosed:
		return "the session was closed"
	case StopReset:
		return "the session was reset"
	case StopEvicted:
		return "the session had to make room"
	default:
		return ""
	}
}

// NotRun says where a call was of which nothing ran, and that: "it was still waiting for
// its kernel, and the code was not run". "" when code ran, or may have run.
func (p Progress) NotRun() string {
	if p.Ran() {
		return ""
	}
	const so = ", and the code was not run"
	switch p.Reach {
	case ReachUnsent:
		return "it was not sent" + so
	case ReachTurn:
		return "it was still waiting for earlier calls of its session" + so
	case ReachPlace:
		return "it was still waiting for a place" + so
	case ReachKernel:
		return "it was still waiting for its kernel" + so
	case ReachSent:
		return "its kernel had not begun it" + so
	default:
		return "it was still waiting" + so
	}
}

// Left says which cells were not run of a call that came to some: "cell 3 did not run",
// counted from 1. "" when all were begun, or none.
func (p Progress) Left() string {
	switch {
	case p.Begun == 0 || p.Begun >= p.Cells:
		return ""
	case p.Begun+1 == p.Cells:
		return fmt.Sprintf("cell %d did not run", p.Cells)
	default:
		return fmt.Sprintf("cells %d-%d did not run", p.Begun+1, p.Cells)
	}
}

// toldWait is the shortest wait that is told.
const toldWait = 100 * time.Millisecond

// String says what was waited for: "0.8 seconds for earlier calls of its session and 3.1
// seconds for a processor". What was shorter than a tenth of a second is left out; ""
// when nothing is left.
func (w Waited) String() string {
	var parts []string
	add := func(d time.Duration, what string) {
		if d >= toldWait {
			parts = append(parts, Seconds(d)+" for "+what)
		}
	}
	add(w.Turn, "earlier calls of its session")
	add(w.Place, "a place")
	add(w.Kernel, "its kernel")
	add(w.Processor, "a processor")
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

// Variables says what became of the session's variables, when a caller would not expect
// it: that those of earlier calls are gone, or of this one. "" when they are as expected,
// when nothing is known, and when nothing of the call ran.
func (r Result) Variables() string {
	p := r.HowFar()
	if !r.Ran() {
		return ""
	}
	switch {
	case r.State == StateLost && p.First:
		return "The kernel is gone, and with it what this call has defined" + because(r.why()) + "."
	case r.State == StateLost:
		return "All variables are gone" + because(r.why()) + "."
	case r.State == StateRestored && r.Restored != nil:
		return r.Restored.String()
	case r.State == StateFresh && r.why() != "" && !p.First:
		return "This call got a new kernel: " + r.why() + ". The variables of earlier calls are gone."
	}
	return ""
}

// Died says what a model should know of a call whose kernel was lost: when, why, what is
// gone, and whether the code may have had effects.
func (r Result) Died() string {
	p := r.HowFar()
	where := "during the call"
	switch {
	case p.Reach == ReachSent && p.Begun == 0:
		where = "before the code began"
	case p.Reach == ReachSent || p.Begun == 0 || p.Begun > len(r.Cells): // how far it came is not known
	case r.Cells[p.Begun-1].Status == CellComplete:
		where = fmt.Sprintf("after cell %d", p.Begun)
	default:
		where = fmt.Sprintf("while cell %d ran", p.Begun)
	}
	why := r.why()
	if why == "" {
		why = "why is not known"
	}
	text := "The kernel died " + where + ": " + why + "."
	if !p.First {
		text += " All variables are gone."
	}
	if p.Begun == 0 && p.Reach == ReachSent {
		return text + " The code was not run."
	}
	return text + " The code was not run again: it may have had effects, check for them before you repeat it."
}

// why is the reason without a full stop.
func (r Result) why() string { return strings.TrimRight(strings.TrimSpace(r.Reason), ".") }
