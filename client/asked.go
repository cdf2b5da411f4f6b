package client

import (
	"sync"

	"github.com/coppice-run/coppice/messages"
)

// asked are the executions that Run follows, with the newest question of each. A server that
// takes over what runs may ask again what the one before it has asked: who has answered is not
// asked twice. Of a server of an earlier version, later questions may have the ids of earlier ones; so
// what comes after something else of the code is a new question. The zero value is empty.
type asked struct {
	mu sync.Mutex
	of map[string]*newest // by execution; guarded by mu
}

// newest is the newest question of an execution, until the code shows that it has gone on.
type newest struct {
	question *messages.InputRequest // nil: there is none
	answered bool
}

// follow says that the events of an execution are read from now on.
func (a *asked) follow(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[string]*newest{}
	}
	a.of[id] = &newest{}
}

// leave says that they are not read any more.
func (a *asked) leave(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, id)
}

// answered notes what became of an answer.
func (a *asked) answered(id, question string, status messages.InputStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.of[id]
	if n != nil && n.question != nil && n.question.ID == question {
		n.answered = status == messages.InputAccepted || status == messages.InputAnswered
	}
}

// again reports whether an event of an execution that is followed asks what was answered.
func (a *asked) again(id string, e messages.Event) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.of[id]
	switch e := e.(type) {
	case messages.Status:
	case messages.InputRequest:
		if n.answered && n.question != nil && n.question.ID == e.ID && n.question.Prompt == e.Prompt {
			return true
		}
		n.question, n.answered = &e, false
	default:
		n.question = nil
	}
	return false
}

// follows reports whether the events of an execution are read.
func (a *asked) follows(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[id] != nil
}
