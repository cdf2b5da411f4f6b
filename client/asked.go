package client

import (
	"errors"
	"net/http"
	"sync"

	"github.com/coppice-run/coppice/messages"
)

// asked are the executions that Run follows, with the questions of each that the client has
// answered. A server that takes over what runs asks again what the one before it has asked: who
// has answered is not asked twice. The zero value is empty.
type asked struct {
	mu sync.Mutex
	of map[string]map[string]bool // by execution and question; guarded by mu
}

// follow says that the events of an execution are read from now on.
func (a *asked) follow(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[string]map[string]bool{}
	}
	a.of[id] = map[string]bool{}
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
	if of := a.of[id]; of != nil && (status == messages.InputAccepted || status == messages.InputAnswered) {
		of[question] = true
	}
}

// again reports whether an event asks what was answered.
func (a *asked) again(id string, e messages.Event) bool {
	q, ok := e.(messages.InputRequest)
	if !ok {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[id][q.ID]
}

// refused is what it means that an answer is refused with err: a server that does not know an
// execution whose events are read was started again.
func (a *asked) refused(id string, err error) error {
	told, ok := errors.AsType[*Error](err)
	if !ok || told.Status != http.StatusNotFound || told.Code != "not_found" {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[id] == nil {
		return err
	}
	return errGone()
}
