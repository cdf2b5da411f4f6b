package client

import (
	"strings"

	"github.com/coppice-run/coppice/messages"
)

// startedAgain is why a session begins anew that another life of its server had.
const startedAgain = "the server was started again, and does not have what the session had"

// sessions is in which life of the server a client has had a result of each session last. A
// server that was started again, and has not kept its sessions, knows nothing of those before: it
// cannot say that a session is anew. The zero value is empty.
type sessions struct {
	had   remembered[string]
	begun remembered[begun] // by execution, until its result
}

// begun is an execution that the client has begun.
type begun struct{ session, life string }

// began notes in which life of the server an execution began. A fleet, which has epochs for this,
// names none.
func (s *sessions) began(id, session, life string) {
	if life != "" {
		s.begun.set(id, begun{session, life})
	}
}

// told is an event as the caller gets it: a result has what its server cannot know.
func (s *sessions) told(id string, e messages.Event) messages.Event {
	final, ok := e.(messages.Final)
	if !ok {
		return e
	}
	b := s.begun.get(id)
	s.begun.forget(id)
	r := &final.Result
	if b.life == "" || r.State == "" { // nothing ran
		return e
	}
	before := s.had.get(b.session)
	if r.State == messages.StateLost { // it is known that nothing is left
		s.had.forget(b.session)
	} else {
		s.had.set(b.session, b.life)
	}
	if r.State != messages.StateFresh || r.Reason != "" || before == "" || before == b.life {
		return e
	}
	r.Reason, r.Progress.First = startedAgain, false
	r.Text = strings.TrimSuffix("["+r.Variables()+"]\n\n"+r.Text, "\n\n")
	return final
}

// ended is for a workspace that the client has ended, and its sessions with it.
func (s *sessions) ended(workspace string) {
	s.had.forgetAll(func(session string) bool { return workspaceOf(session) == workspace })
}

// forget is for a session that the client has ended, or its kernel: it knows what is gone.
func (s *sessions) forget(session string) { s.had.forget(session) }
