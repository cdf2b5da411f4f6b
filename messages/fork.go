package messages

// Fork asks for copies of the session of Key while no cell runs in it. The
// copies wait, under Names, for whoever takes them; see the backend.
type Fork struct {
	Key   SessionKey `json:"key"`
	Names []string   `json:"names"`
}

// Rewind asks that the kernel of Key end and the copy that waits for Key take its
// place. Nothing may run or wait for Key.
type Rewind struct {
	Key SessionKey `json:"key"`
}

// ForkReason says why a session was not copied.
type ForkReason string

// The reasons.
const (
	// ForkBusy: a cell runs, or a call waits.
	ForkBusy ForkReason = "busy"
	// ForkNoKernel: the session has no kernel, so that there is nothing to copy.
	ForkNoKernel ForkReason = "no_kernel"
	// ForkStarting: the session's kernel is about to start or to end.
	ForkStarting ForkReason = "starting"
	// ForkThreads: threads run in the session, which a copy would be without.
	ForkThreads ForkReason = "threads"
	// ForkTasks: asyncio tasks wait in the session.
	ForkTasks ForkReason = "tasks"
	// ForkGPU: the session uses a graphics processor.
	ForkGPU ForkReason = "gpu"
	// ForkUnsupported: the backend or the system cannot copy sessions.
	ForkUnsupported ForkReason = "unsupported"
	// ForkTooMany: more copies are asked for, or kept, than may be.
	ForkTooMany ForkReason = "too_many"
	// ForkUnknown: there is no such checkpoint.
	ForkUnknown ForkReason = "unknown"
)

// ForkRefused says that a session was not copied, and why. The session is as it
// was.
type ForkRefused struct {
	Reason ForkReason `json:"reason"`
	// Problem names what is in the way, and the next step.
	Problem string `json:"problem"`
}

// Error returns the problem.
func (e *ForkRefused) Error() string {
	if e.Reason == ForkUnknown { // it is about the checkpoint
		return e.Problem
	}
	return "the session cannot be copied: " + e.Problem
}
