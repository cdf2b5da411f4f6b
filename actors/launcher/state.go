package launcher

import (
	"slices"
	"strings"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// state describes all tools that the launcher knows of.
func (h *handler) state(s *supervisor.Supervisor) messages.ToolsState {
	all := messages.ToolsState{Cap: h.o.WarmMax, MemoryBudgetMB: h.o.MemoryBudgetMB, Tools: make([]messages.ToolState, 0, len(h.tools))}
	keep := warmKeep{h}
	for id, e := range h.tools {
		t := messages.ToolState{ID: id, State: messages.ChildGone, Pinned: e.pinned, InFlight: len(e.flying), Waiting: len(e.waiting), Spawns: e.spawns, Runs: e.runs}
		if c, known := s.Child(id); known {
			t.State, t.PID, t.RSS = c.State, c.PID, c.RSS
			t.Started, t.LastUsed, t.Expires = c.StartedAt, c.LastDone, keep.due(c)
			if c.Live() {
				all.Warm++
				all.MemoryMB += e.plan.MemoryMB
			}
		}
		e.record.describe(&t)
		all.Tools = append(all.Tools, t)
	}
	slices.SortFunc(all.Tools, func(a, b messages.ToolState) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (r *record) describe(t *messages.ToolState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proc != nil {
		t.PID, t.Port = r.proc.PID(), r.proc.Port()
		t.Drift = slices.Clone(r.drift)
	}
	if r.failure != nil {
		f := *r.failure
		t.Failure = &f
	}
}

// pin exempts a tool from making room, or ends that, and returns what was so before.
// Of a tool that has nothing else to tell, the end of its pin is forgotten with it.
func (h *handler) pin(s *supervisor.Supervisor, id string, on bool) (was bool) {
	if h.tools[id] == nil && !on {
		return false
	}
	e := h.entry(id)
	was, e.pinned = e.pinned, on
	s.Pin(id, on)
	if _, known := s.Child(id); !on && !known && e.blank() {
		delete(h.tools, id)
	}
	return was
}

// blank says that nothing was ever asked of the tool.
func (e *entry) blank() bool {
	return e.spawns == 0 && e.runs == 0 && e.lease == nil && len(e.waiting)+len(e.flying)+len(e.stops) == 0
}
