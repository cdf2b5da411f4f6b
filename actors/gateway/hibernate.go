package gateway

import (
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// hibernate hands a request to keep a session on disk to its kernel, unless that has
// something else to do.
func (h *handler) hibernate(s *supervisor.Supervisor, w supervisor.Work, m messages.Hibernate) {
	if h.o.Hibernation == nil {
		w.Settle(&messages.HibernateRefused{Reason: messages.HibernateOff, Problem: "this host keeps no sessions on disk; set Options.Hibernate"})
		return
	}
	child := m.Key.ID()
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

// Hibernate asks an idle kernel to keep its session on disk and to end then. One that
// cannot has had something to do, so that it is not asked again before it was idle for
// as long.
func (h *handler) Hibernate(s *supervisor.Supervisor, child string, _ supervisor.Exit) {
	key, ok := messages.ParseSessionKey(child)
	if !ok || h.o.Hibernation == nil {
		return
	}
	w, _ := supervisor.NewWork[messages.Hibernated](messages.Hibernate{Key: key}) // no one waits for the answer
	s.Submit(child, w)
}

// startOver drops what is kept on disk of a session that is to start over, or is closed.
func (h *handler) startOver(child string) {
	if key, ok := messages.ParseSessionKey(child); ok && h.o.Hibernation != nil {
		h.o.Hibernation.Forget(key)
	}
}

var _ supervisor.Hibernator = (*handler)(nil)
