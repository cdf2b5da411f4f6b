package launcher

import (
	"fmt"
	"slices"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// handler is the launcher's part of its supervisor. Everything in it belongs to the
// supervisor's goroutine.
type handler struct {
	supervisor.BaseHandler
	o      Options
	tools  map[string]*entry
	byRun  map[string]*flight
	leases uint64
	tell   func(any) bool // to the launcher itself; for any goroutine
}

// Open learns the way back to the launcher.
func (h *handler) Open(s *supervisor.Supervisor) error {
	h.tell = s.Ctx().Tell
	return nil
}

// Handle serves what the supervisor itself does not know.
func (h *handler) Handle(s *supervisor.Supervisor, msg any) error {
	switch m := msg.(type) {
	case supervisor.Work:
		return h.work(s, m)
	case leased:
		if e := h.holder(m.lease); e != nil {
			m.lease.given = true
			h.pump(s, e, ended{})
		}
	case ended:
		h.ended(s, m)
	case messages.ToolCancel:
		h.cancel(s, m)
	default:
		return supervisor.Unknown(msg)
	}
	return nil
}

// work serves what is to be answered.
func (h *handler) work(s *supervisor.Supervisor, w supervisor.Work) error {
	switch m := w.Msg.(type) {
	case launch:
		h.run(s, w, m)
	case prewarm:
		w.Settle(h.prewarm(s, m.Plan))
	case messages.ToolStop:
		h.stop(s, w, m.Tool)
	case messages.ToolPin:
		w.Settle(h.pin(s, m.Tool, m.Pinned))
	case messages.ToolsQuery:
		w.Settle(h.state(s))
	case logs:
		log := Log{}
		if e := h.tools[m.Tool]; e != nil {
			log = e.record.log()
		}
		w.Settle(log)
	default:
		return supervisor.Unknown(w.Msg)
	}
	return nil
}

func (h *handler) entry(id string) *entry {
	e := h.tools[id]
	if e == nil {
		e = &entry{plan: plan{ID: id}, flying: map[string]*flight{}, record: &record{}}
		h.tools[id] = e
	}
	return e
}

// holder is the tool whose present lease l is; nil when it has another one.
func (h *handler) holder(l *lease) *entry {
	for _, e := range h.tools {
		if e.lease == l {
			return e
		}
	}
	return nil
}

// run admits one run.
func (h *handler) run(s *supervisor.Supervisor, w supervisor.Work, m launch) {
	f := &flight{run: m, work: w, arrived: s.Now()}
	e := h.entry(m.Tool)
	switch {
	case h.byRun[m.ID] != nil:
		w.Settle(refused(f, messages.ToolErrorInput, "the run id "+m.ID+" is in use"))
		return
	case len(e.waiting) >= h.o.MaxWaiting:
		w.Settle(refused(f, messages.ToolErrorOverloaded, "too many runs of this tool wait; try again later"))
		return
	}
	e.plan = m.Plan
	child, known := s.Child(m.Tool)
	f.cold = !known || child.UpAt.IsZero()
	if known && child.Evictable() && e.lease == nil && e.stamp != "" && e.stamp != m.Plan.Stamp {
		f.cold = true
		s.End(m.Tool, supervisor.Exit{Kind: messages.ExitReset, Err: errOutdated})
	}
	h.byRun[m.ID] = f
	e.waiting = append(e.waiting, f)
	h.pump(s, e, ended{})
}

// pump moves what can move: it asks for a lease, hands runs to a tool that has
// one, and ends the lease when no run is left. last is the run that has just
// ended; it is answered on the way.
func (h *handler) pump(s *supervisor.Supervisor, e *entry, last ended) {
	if !h.move(s, e, last) {
		last.settle()
	}
}

// move is pump without the answer; true: the tool gives it.
func (h *handler) move(s *supervisor.Supervisor, e *entry, last ended) bool {
	e.waiting = slices.DeleteFunc(e.waiting, func(f *flight) bool {
		if f.work.Settled() { // whoever asked has gone
			delete(h.byRun, f.run.ID)
			return true
		}
		return false
	})
	if e.lease == nil {
		if len(e.waiting) > 0 {
			h.leases++
			e.lease = &lease{id: h.leases}
			w, _ := supervisor.NewWork[bool](serve{e.lease})
			s.Submit(e.plan.ID, w)
		}
		return false
	}
	if !e.lease.given {
		return false
	}
	for len(e.waiting) > 0 && h.fits(e) {
		f := e.waiting[0]
		if !s.Send(e.plan.ID, begin{f}) {
			return false // it has just ended; its lease comes back
		}
		e.waiting = e.waiting[1:]
		e.flying[f.run.ID] = f
	}
	if len(e.flying) > 0 || len(e.waiting) > 0 {
		return false
	}
	l := e.lease
	e.lease = nil
	return s.Send(e.plan.ID, release{l, last})
}

// fits reports whether one more run may begin.
func (h *handler) fits(e *entry) bool {
	if !e.plan.Concurrent {
		return len(e.flying) == 0
	}
	return len(e.flying) < h.o.MaxParallel
}

// ended hears that a run has ended.
func (h *handler) ended(s *supervisor.Supervisor, m ended) {
	e := h.entry(m.flight.run.Tool)
	if e.flying[m.flight.run.ID] != m.flight {
		m.settle()
		return
	}
	if m.flight.run.Fetch == "" {
		e.runs++
	}
	h.forget(e, m.flight)
	h.pump(s, e, m)
}

func (h *handler) forget(e *entry, f *flight) {
	delete(h.byRun, f.run.ID)
	delete(e.flying, f.run.ID)
}

// answer settles a run here.
func (h *handler) answer(e *entry, f *flight, r messages.ToolResult) {
	f.work.Settle(r)
	h.forget(e, f)
}

// Spec makes the actor of a tool that has none.
func (h *handler) Spec(_ *supervisor.Supervisor, key string, _ supervisor.Work) (supervisor.Spec, error) {
	e := h.entry(key)
	plan, record := e.plan, e.record
	e.stamp = plan.Stamp
	return supervisor.Spec{
		Kind: kindTool, ManualUp: true, StartTimeout: opportunity.Starting(h.o.StartTimeout, 0).Ceiling + startMargin, StopTimeout: h.o.StopGrace + stopMargin,
		New: func() supervisor.Behaviour { return newTool(&h.o, plan, record, h.tell) },
	}, nil
}

// Changed follows the life of the tools.
func (h *handler) Changed(s *supervisor.Supervisor, ev messages.ChildChanged) {
	if ev.Kind != kindTool && ev.Kind != "" {
		return
	}
	e := h.tools[ev.Key]
	if e == nil {
		return
	}
	switch ev.To {
	case messages.ChildStarting:
		e.spawns++
		s.Pin(ev.Key, e.pinned)
		h.stopped(e)
	case messages.ChildWaiting, messages.ChildGone:
		h.stopped(e)
	}
}

// stopped answers those who wait for the end of a process.
func (h *handler) stopped(e *entry) {
	for _, w := range e.stops {
		w.Settle(true)
	}
	e.stops = nil
}

// Unserved hears that a lease, or a touch, will not be served.
func (h *handler) Unserved(s *supervisor.Supervisor, w supervisor.Work, why *supervisor.ServiceError) {
	w.Settle(why)
	m, ok := w.Msg.(serve)
	if !ok {
		return
	}
	e := h.holder(m.lease)
	if e == nil {
		return // it was released already
	}
	e.lease = nil
	var again []*flight
	for _, f := range inOrder(e.flying) {
		switch {
		case f.work.Settled():
			e.runs++
			h.forget(e, f)
		case f.begun.Load():
			h.answer(e, f, lost(f, why))
		default:
			delete(e.flying, f.run.ID)
			again = append(again, f)
		}
	}
	e.waiting = append(again, e.waiting...)
	if !why.Dispatched {
		for _, f := range e.waiting {
			h.answer(e, f, h.notStarted(f, why))
		}
		e.waiting = nil
	}
	h.pump(s, e, ended{})
}

func inOrder(flying map[string]*flight) []*flight {
	list := make([]*flight, 0, len(flying))
	for _, f := range flying {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *flight) int { return a.arrived.Compare(b.arrived) })
	return list
}

// cancel ends one run early: one that waits is answered here, one in flight is
// the tool's to end.
func (h *handler) cancel(s *supervisor.Supervisor, m messages.ToolCancel) {
	f := h.byRun[m.Run]
	if f == nil || m.Tool != "" && f.run.Tool != m.Tool {
		return
	}
	e := h.entry(f.run.Tool)
	why := causeCancelled
	if m.Cause == messages.CauseTimeout {
		why = causeTimeout
	}
	if e.flying[m.Run] == f {
		s.Send(f.run.Tool, cut{m.Run, why, m.Limit})
		return
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(o *flight) bool { return o == f })
	r := refused(f, messages.ToolErrorCancelled, "the run was cancelled before it began")
	r.Outcome = messages.OutcomeCancelled
	if why == causeTimeout {
		r.Outcome, r.Error.Message = messages.OutcomeTimeout, "the time was up before the run began"
		if m.Limit > 0 {
			r.Error.Message = fmt.Sprintf("the %v that the caller gave the run were up before it began", rounded(m.Limit))
		}
	}
	h.answer(e, f, r)
	h.pump(s, e, ended{})
}

// prewarm starts a tool if that costs no other one its place.
func (h *handler) prewarm(s *supervisor.Supervisor, p plan) messages.ToolQueued {
	e := h.entry(p.ID)
	live, used := 0, p.MemoryMB
	for c := range s.Children() {
		if c.Live() {
			live++
			used += h.memoryMB(c.Key)
		}
	}
	if c, known := s.Child(p.ID); !known || !c.Live() {
		switch {
		case live >= h.o.WarmMax:
			return messages.ToolQueued{Reason: "as many tools are warm as may be; prewarming ends none of them"}
		case h.o.MemoryBudgetMB > 0 && used > h.o.MemoryBudgetMB:
			return messages.ToolQueued{Reason: "the memory of the warm tools is used up; prewarming ends none of them"}
		}
	}
	if len(e.waiting)+len(e.flying) == 0 {
		e.plan = p
	}
	w, _ := supervisor.NewWork[bool](touch{})
	s.Submit(p.ID, w)
	return messages.ToolQueued{Queued: true}
}

// stop ends a tool, and its runs.
func (h *handler) stop(s *supervisor.Supervisor, w supervisor.Work, id string) {
	e := h.tools[id]
	if e == nil {
		w.Settle(false)
		return
	}
	for _, f := range e.waiting {
		r := refused(f, messages.ToolErrorCancelled, "the tool was stopped before the run began")
		r.Outcome = messages.OutcomeCancelled
		h.answer(e, f, r)
	}
	e.waiting = nil
	if c, known := s.Child(id); !known || !c.Live() {
		w.Settle(false)
		return
	}
	e.stops = append(e.stops, w)
	s.End(id, supervisor.Exit{Kind: messages.ExitShutdown, Err: errStopped})
}

// Close answers whatever is left.
func (h *handler) Close(*supervisor.Supervisor, supervisor.Exit) {
	for _, e := range h.tools {
		for _, f := range append(inOrder(e.flying), e.waiting...) {
			r := refused(f, messages.ToolErrorDraining, "the launcher has ended")
			if f.begun.Load() {
				r.Outcome = messages.OutcomeCancelled
			}
			h.answer(e, f, r)
		}
		h.stopped(e)
	}
}

func (h *handler) warmKeep(key string) time.Duration { return h.entry(key).plan.WarmKeep }
func (h *handler) memoryMB(key string) int           { return h.entry(key).plan.MemoryMB }
