package workspace

import (
	"cmp"
	"errors"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// Messages to the actor of the set.
type (
	// create makes a workspace. It is answered with the *Workspace, or with the one that
	// is there.
	create struct {
		w *Workspace
		// any takes the one that is there, however it was made.
		any bool
	}
	// occupy says that a workspace is in use, until its supervisor gets a release of the
	// same turn, or of a later one.
	occupy struct {
		w    *Workspace
		turn uint64
	}
	release struct{ turn uint64 }
	pin     struct {
		w  *Workspace
		on bool
	}
	// withdraw says that no one waits for a workspace any more. It is answered with whether
	// there is one that ends now.
	withdraw struct{ w *Workspace }
	end      struct {
		w      *Workspace
		reason Reason
		detail string
	}
	// retime says that the end time, the idle time or the use has changed.
	retime struct{ w *Workspace }
	// due says that a time has come at which a workspace may have to end.
	due struct{ w *Workspace }
)

// handler is the set's part of its supervisor. Everything in it belongs to the
// supervisor's goroutine.
type handler struct {
	supervisor.BaseHandler
	set    *Set
	timers map[string]func() // stop the timer of a workspace
	// waiting are those that want a name whose workspace ends.
	waiting map[string][]supervisor.Work
}

// Open lets the set reach its actor.
func (h *handler) Open(s *supervisor.Supervisor) error {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	h.set.self = s.Ctx().Self()
	return nil
}

// Handle serves what the supervisor itself does not know.
func (h *handler) Handle(s *supervisor.Supervisor, msg any) error {
	switch m := msg.(type) {
	case supervisor.Work:
		return h.work(s, m)
	case end:
		if h.lives(m.w) {
			h.end(s, m.w, m.reason, m.detail)
		}
	case retime:
		h.arm(s, m.w)
	case due:
		if at, reason, detail := m.w.due(); h.lives(m.w) && !at.IsZero() && !at.After(s.Now()) {
			h.end(s, m.w, reason, detail)
		} else {
			h.arm(s, m.w)
		}
	default:
		return supervisor.Unknown(msg)
	}
	return nil
}

func (h *handler) work(s *supervisor.Supervisor, w supervisor.Work) error {
	switch m := w.Msg.(type) {
	case create:
		h.create(s, w, m)
	case withdraw:
		if h.lives(m.w) {
			h.end(s, m.w, ReasonAsked, "no one waited for it any more")
		}
		_, there := s.Child(m.w.name)
		w.Settle(there && h.of(m.w.name) == m.w)
	case occupy:
		if !h.lives(m.w) {
			w.Settle(m.w.Err())
			break
		}
		s.Submit(m.w.name, w)
	case pin:
		if !h.lives(m.w) || !s.Pin(m.w.name, m.on) {
			w.Settle(cmp.Or(m.w.Err(), error(ErrUnknown)))
			break
		}
		m.w.mu.Lock()
		m.w.pinned = m.on
		m.w.mu.Unlock()
		w.Settle(true)
	default:
		return supervisor.Unknown(w.Msg)
	}
	return nil
}

// lives reports whether w is the workspace of its name, and has not ended.
func (h *handler) lives(w *Workspace) bool { return h.of(w.name) == w && w.Err() == nil }

// of is the workspace of a name; nil when nothing is left of it.
func (h *handler) of(name string) *Workspace {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	return h.set.all[name]
}

// create makes a workspace, or answers with the one that is there.
func (h *handler) create(s *supervisor.Supervisor, w supervisor.Work, m create) {
	there := h.of(m.w.name)
	switch {
	case there != nil && there.Err() != nil:
		h.waiting[m.w.name] = append(h.waiting[m.w.name], w)
		return
	case there != nil && (m.any || there.o.same(m.w.o)):
		w.Settle(there)
		return
	case there != nil:
		w.Settle(&ExistsError{m.w.name})
		return
	}
	h.set.mu.Lock()
	h.set.all[m.w.name] = m.w
	h.set.mu.Unlock()
	w.Owner = m.w.o.Owner
	s.Submit(m.w.name, w)
}

// Spec makes the supervisor of a workspace.
func (h *handler) Spec(_ *supervisor.Supervisor, key string, work supervisor.Work) (supervisor.Spec, error) {
	m, ok := work.Msg.(create)
	if !ok {
		return supervisor.Spec{}, &EndedError{Workspace: key, Reason: ReasonFailed, Detail: "it is not there any more"}
	}
	return supervisor.Spec{Key: key, Kind: Kind, Owner: m.w.o.Owner, StopTimeout: stopTimeout, New: func() supervisor.Behaviour { return m.w.supervisor() }}, nil
}

// Unserved answers work for a workspace that could not be made, or that has ended.
func (h *handler) Unserved(s *supervisor.Supervisor, w supervisor.Work, why *supervisor.ServiceError) {
	m, ok := w.Msg.(create)
	if !ok {
		w.Settle(why)
		return
	}
	err := error(why)
	if failed, ok := errors.AsType[*folderError](why.Exit.Err); ok {
		err = failed.err
	}
	if _, there := s.Child(m.w.name); !there {
		m.w.close(ReasonFailed, err.Error())
		h.gone(s, m.w)
	}
	w.Settle(err) // last: whoever has the answer may ask for the name again, and must not find this one
}

// end ends a workspace.
func (h *handler) end(s *supervisor.Supervisor, w *Workspace, reason Reason, detail string) {
	w.close(reason, detail)
	if !s.End(w.name, supervisor.Exit{Kind: messages.ExitShutdown, Err: w.Err()}) {
		h.gone(s, w) // it never began: no one waited for it any more
	}
}

// arm sets the timer of a workspace to when it may have to end.
func (h *handler) arm(s *supervisor.Supervisor, w *Workspace) {
	if stop := h.timers[w.name]; stop != nil {
		stop()
		delete(h.timers, w.name)
	}
	if at, _, _ := w.due(); h.lives(w) && !at.IsZero() {
		h.timers[w.name] = s.Ctx().After(max(at.Sub(s.Now()), 0), due{w})
	}
}

// Changed follows the life of the workspaces.
func (h *handler) Changed(s *supervisor.Supervisor, e messages.ChildChanged) {
	w := h.of(e.Key)
	if w == nil {
		return
	}
	switch e.To {
	case messages.ChildIdle:
		if e.From == messages.ChildStarting {
			h.arm(s, w)
		}
	case messages.ChildStopping:
		if e.Exit != nil {
			w.close(reasonOf(*e.Exit))
		}
	case messages.ChildFailed, messages.ChildRestarting:
		s.End(e.Key, supervisor.Exit{Kind: messages.ExitShutdown})
	case messages.ChildGone:
		exit := messages.Exit{Kind: messages.ExitShutdown}
		if e.Exit != nil {
			exit = *e.Exit
		}
		w.close(reasonOf(exit))
		h.gone(s, w)
	}
}

// gone forgets a workspace of which nothing is left, and serves those who wait for its
// name.
func (h *handler) gone(s *supervisor.Supervisor, w *Workspace) {
	if stop := h.timers[w.name]; stop != nil {
		stop()
		delete(h.timers, w.name)
	}
	h.set.forget(w)
	w.once.Do(func() { close(w.done) })
	waiting := h.waiting[w.name]
	delete(h.waiting, w.name)
	for _, work := range waiting {
		if m, ok := work.Msg.(create); ok && !work.Settled() {
			h.create(s, work, m)
		}
	}
}

// Close answers those who still wait: the host ends.
func (h *handler) Close(*supervisor.Supervisor, supervisor.Exit) {
	h.set.mu.Lock()
	all := make([]*Workspace, 0, len(h.set.all))
	for _, w := range h.set.all {
		all = append(all, w)
	}
	h.set.mu.Unlock()
	for _, w := range all {
		w.close(ReasonShutdown, "its host has been shut down")
		h.set.forget(w)
		w.once.Do(func() { close(w.done) })
	}
	for _, list := range h.waiting {
		for _, work := range list {
			work.Settle(supervisor.ErrGone)
		}
	}
	if err := h.set.groups.close(); err != nil {
		h.set.o.Logger.Warn("remove the control groups of workspaces", "err", err)
	}
}

// reasonOf is why a workspace ended whose supervisor was asked to stop, or failed.
func reasonOf(exit messages.Exit) (r Reason, detail string) {
	switch exit.Kind {
	case messages.ExitEvicted:
		return ReasonEvicted, "another workspace needed its place"
	case messages.ExitShutdown, messages.ExitNormal:
		return ReasonShutdown, "its host has been shut down"
	default:
		return ReasonFailed, cmp.Or(exit.Reason, "it failed")
	}
}
