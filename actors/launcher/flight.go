package launcher

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// launch asks for one run. It arrives as a work; the answer is a
// messages.ToolResult.
type launch struct {
	messages.ToolRun
	// Plan is the tool as it is now. Its ID is that of the run's tool.
	Plan plan
}

// logs asks for the end of a tool's standard error, of its process or of the
// last one. It arrives as a work; the answer is a Log.
type logs struct{ Tool string }

// prewarm is a messages.ToolPrewarm with the tool as it is now.
type prewarm struct{ Plan plan }

// flight is one run that was not answered yet. Its fields belong to the
// launcher, but for begun.
type flight struct {
	run     launch
	work    supervisor.Work
	arrived time.Time
	cold    bool
	// begun is set by the tool's actor when it starts the run: from then on the
	// process may have seen it.
	begun atomic.Bool
}

// lease holds a tool busy while it has runs. It is compared by identity.
type lease struct {
	id    uint64 // only to make the values distinct
	given bool   // the tool has it; belongs to the launcher
}

// Messages between the launcher and its tools.
type (
	// serve is the work of a lease.
	serve struct{ lease *lease }
	// touch is a work that is done at once: the tool was used.
	touch struct{}
	// release ends a lease, and answers the run that was the last one of it.
	release struct {
		lease *lease
		last  ended
	}
	// begin hands a run over.
	begin struct{ flight *flight }
	// cut ends a run early.
	cut struct {
		run   string
		cause cause
		limit time.Duration // of the caller's time, 0: not known
	}
	// leased tells the launcher that a lease has begun.
	leased struct{ lease *lease }
	// ended tells the launcher that a run has, and what came of it: it is
	// answered when the tool is free again, so that whoever waited finds it so.
	ended struct {
		flight *flight
		result messages.ToolResult
	}
)

// settle answers the run. It does nothing for the zero value.
func (m ended) settle() {
	if m.flight != nil {
		m.flight.work.Settle(m.result)
	}
}

// Dropped answers a run whose launcher, or tool, has just ended.
func (m ended) Dropped()   { m.settle() }
func (m release) Dropped() { m.last.settle() }

// entry is what the launcher knows of one tool. It belongs to the launcher;
// record has its own lock.
type entry struct {
	plan    plan
	stamp   string // of the last process
	waiting []*flight
	flying  map[string]*flight
	lease   *lease
	pinned  bool
	spawns  int
	runs    int
	stops   []supervisor.Work // those who wait for its end
	record  *record
}

// record is what a tool's actor leaves for the launcher to read.
type record struct {
	mu      sync.Mutex
	proc    process // nil while none runs
	stderr  string  // of the last process
	ended   bool    // there was one
	drift   []string
	failure *messages.ToolFailure
}

func (r *record) up(p process) (news bool) {
	drift := p.Drift()
	r.mu.Lock()
	defer r.mu.Unlock()
	news = len(drift) > 0 && !same(r.drift, drift)
	r.proc, r.drift = p, drift
	return news
}

func same(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (r *record) failed(at time.Time, e *messages.ToolError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = &messages.ToolFailure{At: at, Error: *e}
}

func (r *record) down(stderr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.proc, r.stderr, r.ended = nil, stderr, true
}

func (r *record) log() Log {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proc != nil {
		return Log{Text: r.proc.Stderr(), Live: true, Known: true}
	}
	return Log{Text: r.stderr, Known: r.ended}
}
