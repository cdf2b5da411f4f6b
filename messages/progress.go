package messages

import "time"

// Progress says how far a call came, which limit ended it, and what it waited for.
// Whatever a person or a model reads about the time of a call, about what of it ran and
// what became of its variables is made from it, by the methods of [Result] and of
// Progress itself: one event is never told in two ways. It is in this package because
// actors make it and everything above them tells it.
//
// The zero value knows nothing; [Result.HowFar] adds what the cells of a result say.
type Progress struct {
	// Reach is how far the call came.
	Reach Reach `json:"reach,omitempty"`
	// Begun is how many of the cells were begun, Cells how many there are.
	Begun int `json:"begun"`
	Cells int `json:"cells"`
	// Stop is what ended the call; "" when it ended by itself.
	Stop Stop `json:"stop,omitempty"`
	// Limit is the time that passed, of a Stop that is one: in nanoseconds, 0 when it
	// is not known.
	Limit time.Duration `json:"limit_ns,omitempty"`
	// Waited is what the call waited for.
	Waited Waited `json:"waited,omitzero"`
	// First says that no earlier call had left variables in the session: none of
	// theirs can be gone.
	First bool `json:"first,omitempty"`
}

// Waited is how long a call waited for what, in nanoseconds. 0: not, or it is not known.
type Waited struct {
	// Turn is the wait for earlier calls of the session, Place that for a place among
	// the kernels, Kernel that for the start of the session's kernel, or for the end
	// of the one before it.
	Turn   time.Duration `json:"turn_ns,omitempty"`
	Place  time.Duration `json:"place_ns,omitempty"`
	Kernel time.Duration `json:"kernel_ns,omitempty"`
	// Processor is how long the code, once it ran, waited for a processor. It is
	// measured for calls that are stopped.
	Processor time.Duration `json:"processor_ns,omitempty"`
}

// Reach is how far a call came.
type Reach string

// The reaches, from nowhere to the end.
const (
	// ReachUnsent: it was refused before it was sent.
	ReachUnsent Reach = "unsent"
	// ReachTurn: it waited for earlier calls of its session.
	ReachTurn Reach = "waited_for_turn"
	// ReachPlace: it waited for a place for its session's kernel.
	ReachPlace Reach = "waited_for_place"
	// ReachKernel: it waited for its kernel, which started, or for the end of the
	// kernel before it.
	ReachKernel Reach = "waited_for_kernel"
	// ReachSent: a kernel had it, and had begun none of its cells.
	ReachSent Reach = "sent"
	// ReachBegun: some of its cells were begun; Begun says how many.
	ReachBegun Reach = "begun"
	// ReachEnded: every cell ran to its end.
	ReachEnded Reach = "ended"
)

// Stop is what ended a call that did not end by itself.
type Stop string

// The stops. Those up to StopRuntime come with a limit of time or from the caller.
const (
	// StopTimeout: the timeout of the call itself.
	StopTimeout Stop = "timeout"
	// StopDeadline: the deadline of its caller's context.
	StopDeadline Stop = "deadline"
	// StopCancel: the caller left, or someone interrupted it.
	StopCancel Stop = "cancel"
	// StopRuntime: the time that the session allows one cell.
	StopRuntime Stop = "runtime"
	// StopRequest: the request could not be made.
	StopRequest Stop = "request"
	// StopQueue: there was no place, or too many calls waited.
	StopQueue Stop = "queue"
	// StopStart: no kernel could be started, or not in the time for that.
	StopStart Stop = "start"
	// StopFailed: the session's kernels have failed too often.
	StopFailed Stop = "failed"
	// StopShutdown: the host was shut down.
	StopShutdown Stop = "shutdown"
	// StopClosed: the session was closed.
	StopClosed Stop = "closed"
	// StopReset: the session was reset.
	StopReset Stop = "reset"
	// StopEvicted: the session had to make room.
	StopEvicted Stop = "evicted"
	// StopDied: the kernel died, or hung.
	StopDied Stop = "died"
)

// StopOf is what a [Refusal] means for a call.
func StopOf(r Refusal) Stop {
	switch r {
	case RefusedRequest:
		return StopRequest
	case RefusedOverloaded:
		return StopQueue
	case RefusedStart:
		return StopStart
	case RefusedExhausted:
		return StopFailed
	case RefusedClosed:
		return StopClosed
	case RefusedDraining:
		return StopShutdown
	default:
		return ""
	}
}

// HowFar is r.Progress, with what the cells say where that leaves something open.
func (r Result) HowFar() Progress {
	p := r.Progress
	if p.Cells == 0 {
		p.Cells = len(r.Cells)
	}
	done := 0
	begun := 0
	for _, c := range r.Cells {
		switch c.Status {
		case CellPending:
		case CellComplete:
			begun++
			done++
		default:
			begun++
		}
	}
	p.Begun = max(p.Begun, begun)
	if p.Reach == "" {
		switch {
		case r.Outcome == OutcomeOK && done == len(r.Cells):
			p.Reach = ReachEnded
		case begun > 0:
			p.Reach = ReachBegun
		}
	}
	if p.Stop == "" {
		p.Stop = StopOf(r.Refusal)
	}
	return p
}

// Then is how far two calls of one session came that followed each other, told as one: p
// and then q.
func (p Progress) Then(q Progress) Progress {
	q.Begun += p.Begun
	q.Cells += p.Cells
	q.Waited = Waited{
		Turn: p.Waited.Turn + q.Waited.Turn, Place: p.Waited.Place + q.Waited.Place,
		Kernel: p.Waited.Kernel + q.Waited.Kernel, Processor: p.Waited.Processor + q.Waited.Processor,
	}
	q.First = p.First
	return q
}

// Ran reports whether code of the call may have run.
func (p Progress) Ran() bool { return p.Begun > 0 || p.Reach == ReachEnded }
