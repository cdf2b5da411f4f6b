package gateway

import (
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// fork hands a request for copies to the session's kernel, unless that has
// something else to do: a copy of a session in which a cell runs would be a copy
// of an arbitrary moment.
func (h *handler) fork(s *supervisor.Supervisor, w supervisor.Work, m messages.Fork) {
	child := m.Key.ID()
	if why := h.atRest(s, child); why != nil {
		w.Settle(why)
		return
	}
	s.Submit(child, w)
}

// rewind replaces the session's kernel by the copy that waits for it. A session
// without a kernel gets the copy when it needs one.
func (h *handler) rewind(s *supervisor.Supervisor, w supervisor.Work, m messages.Rewind) {
	child := m.Key.ID()
	why := h.atRest(s, child)
	view, known := s.Child(child)
	if known && why != nil && view.State != messages.ChildFailed {
		w.Settle(why)
		return
	}
	h.startOver(child)
	s.Restart(child, supervisor.Exit{Kind: messages.ExitReset})
	w.Settle(true)
}

// atRest returns why a session cannot be copied now; nil when it can.
func (h *handler) atRest(s *supervisor.Supervisor, child string) *messages.ForkRefused {
	view, ok := s.Child(child)
	if !ok {
		return &messages.ForkRefused{Reason: messages.ForkNoKernel, Problem: "it has no kernel; run a cell first"}
	}
	busy := &messages.ForkRefused{Reason: messages.ForkBusy, Problem: "a call runs or waits in it; wait for its result first"}
	// Work that was answered a moment ago is in hand until the supervisor hears
	// of it.
	if running, ok := s.Running(child); ok && !running.Settled() {
		return busy
	}
	if len(s.Waiting(child)) > 0 {
		return busy
	}
	switch view.State {
	case messages.ChildIdle, messages.ChildBusy:
		return nil
	case messages.ChildFailed, messages.ChildGone:
		return &messages.ForkRefused{Reason: messages.ForkNoKernel, Problem: "its kernel is " + string(view.State) + "; reset the session first"}
	case messages.ChildStopping:
		return &messages.ForkRefused{Reason: messages.ForkStarting, Problem: "its kernel is ending, as after it was kept on disk; its next cell begins another one"}
	default:
		return &messages.ForkRefused{Reason: messages.ForkStarting, Problem: "its kernel is " + string(view.State) + "; run a cell first"}
	}
}

// hibernate hands a request to keep a session on disk, or a checkpoint of it, to its kernel,
// unless that has something else to do.
func (h *handler) hibernate(s *supervisor.Supervisor, w supervisor.Work, key messages.SessionKey) {
	if h.o.Hibernation == nil {
		w.Settle(&messages.HibernateRefused{Reason: messages.HibernateOff, Problem: "this host keeps no sessions on disk; set Options.Hibernate (coppice serve --hibernate lossless)"})
		return
	}
	child := key.ID()
	if why := h.atRest(s, child); why != nil {
		reason := messages.HibernateBusy
		if why.Reason == messages.ForkNoKernel {
			reason = messages.HibernateNoKernel
		}
		w.Settle(&messages.HibernateRefused{Reason: reason, Problem: why.Problem})
		return
	}
	s.Submit(child, w)
}

// restore replaces the session's kernel by one that begins with a checkpoint. A session
// without a kernel gets it with its next one.
func (h *handler) restore(s *supervisor.Supervisor, w supervisor.Work, m messages.RestoreCheckpoint) {
	refuse := func(reason messages.RestoreReason, problem string) {
		w.Settle(&messages.RestoreRefused{Reason: reason, Problem: problem})
	}
	if h.o.Hibernation == nil {
		refuse(messages.RestoreOff, "this host keeps no sessions on disk; set Options.Hibernate (coppice serve --hibernate lossless)")
		return
	}
	child := m.Key.ID()
	why := h.atRest(s, child)
	if view, known := s.Child(child); known && why != nil && view.State != messages.ChildFailed {
		reason := messages.RestoreBusy
		if why.Reason == messages.ForkStarting {
			reason = messages.RestoreStarting
		}
		refuse(reason, why.Problem)
		return
	}
	if !h.o.Hibernation.Begin(m.Key, m.Ready) {
		refuse(messages.RestoreFailed, "it was given up meanwhile; try again")
		return
	}
	s.Restart(child, supervisor.Exit{Kind: messages.ExitReset})
	w.Settle(true)
}

// Hibernate asks an idle kernel to keep its session on disk and to end then. One that
// cannot has had something to do, so that it is not asked again before it was idle for
// as long.
func (h *handler) Hibernate(s *supervisor.Supervisor, child string, _ supervisor.Exit) {
	key, ok := messages.ParseSessionKey(child)
	if !ok || h.o.Hibernation == nil {
		return
	}
	w, _ := supervisor.NewWork[messages.Hibernated](messages.Hibernate{Key: key, Idle: true}) // no one waits for the answer
	s.Submit(child, w)
}

// startOver drops what is kept on disk of a session that is to start over, or is closed, and
// what an earlier host has left of it.
func (h *handler) startOver(child string) {
	key, ok := messages.ParseSessionKey(child)
	if !ok {
		return
	}
	if h.o.Hibernation != nil {
		h.o.Hibernation.Forget(key)
	}
	if e := h.past.get(child); e != nil && (e.Kind == messages.ExitHibernated || e.Kind == messages.ExitEvicted) {
		h.past.put(child, messages.Exit{Kind: messages.ExitReset}) // its state could have come back, but for this
	}
	if h.o.Left != nil {
		h.o.Left(key)
	}
}

var _ supervisor.Hibernator = (*handler)(nil)
