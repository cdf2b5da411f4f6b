package jupyter

import (
	"errors"
	"fmt"
	"net"

	"github.com/gorilla/websocket"
)

// connectionLost words the end of a connection. broken says that it may be
// dialled again: the kernel may be well.
func connectionLost(err error) (why *LostError, broken bool) {
	if errors.Is(err, websocket.ErrReadLimit) {
		return &LostError{Reason: "the server sent a message larger than allowed", Err: err}, false
	}
	if ce := (*websocket.CloseError)(nil); errors.As(err, &ce) && ce.Code != websocket.CloseAbnormalClosure {
		// The text that comes with the code is the server's.
		return &LostError{Reason: "its server closed the connection", Err: fmt.Errorf("code %d", ce.Code)}, true
	}
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		return &LostError{Reason: "the connection to its server went silent", Err: err}, true
	}
	return &LostError{Reason: "the connection to its server ended", Err: err}, true
}

// route decides what a message means. It is called by the reader. A result
// that is not nil ends the kernel.
func (k *Kernel) route(m *message) *LostError {
	k.mu.Lock()
	k.stats.Received++
	k.stats.ReceivedBytes += int64(len(m.frame))
	if m.header.Session != k.session {
		k.numbers.observe(m.header.MsgID)
		k.holes.observe(k.numbers.prefix, m)
	}
	k.owed.answer(m.parent.MsgID)
	verified := k.kernelSession
	if m.header.Session == verified {
		k.heard++
	}
	x := k.exec
	a := k.asks[m.parent.MsgID]
	without := x != nil && x.unanswered
	k.mu.Unlock()

	if lost := k.fate(m, verified); lost != nil {
		return lost
	}
	// What the server itself says carries our session id, since the id names
	// the connection. The kernel never uses it.
	if m.header.Session == k.session {
		if saysRateLimited(m) {
			k.markRateLimited(m)
		}
		return nil
	}
	if verified != "" && m.header.Session != "" && m.header.Session != verified {
		if saysRateLimited(m) {
			k.markRateLimited(m)
			return nil
		}
		return &LostError{Reason: "its process was replaced by a new one", Replaced: true}
	}
	if without {
		k.goOnWithout(x)
	}

	if a != nil {
		deliver(a, m)
		return nil
	}
	return k.routeTo(x, m)
}

// routeTo hands a message to the execution that it is about, if that is x, and counts
// what is about nothing of now. It is called by the reader.
func (k *Kernel) routeTo(x *execution, m *message) *LostError {
	parent := m.parent.MsgID
	var q *question
	if x != nil && parent != "" {
		q = x.questionOf(k, parent)
	}
	switch {
	case parent == "":
		k.countForeign()
	case q != nil:
		return k.routeAnswer(x, q, m)
	case x != nil && parent == x.id && x.isNumbered(m):
		k.takeNumbered(x, m)
	case x != nil && parent == x.id:
		k.withoutNumbers(x)
		k.tellHoles(x)
		k.routeExecution(x, m)
	case x != nil && x.isProbe(k, parent):
		k.routeProbe(x, m)
	case m.parent.Session == k.session && !k.asked(parent):
		// The server asks in the name of the connection, to make sure of its sockets, and
		// hears the replies on others.
		k.mu.Lock()
		k.strangers++
		k.mu.Unlock()
	case m.parent.Session == k.session:
		if kind := outputKinds[m.header.MsgType]; kind != 0 && kind != recordComm {
			k.mu.Lock()
			k.countBackgroundLocked(m)
			k.mu.Unlock()
		}
	default:
		k.countForeign()
		k.mu.Lock()
		k.strangers++
		k.mu.Unlock()
	}
	return nil
}

// fate reads the messages that tell what became of the kernel's process.
func (k *Kernel) fate(m *message, verified string) *LostError {
	if m.channel != chanIOPub {
		return nil
	}
	switch m.header.MsgType {
	case typeStatus:
		switch decodeState(m.content) {
		case stateDead:
			return &LostError{Reason: "its process died"}
		case stateRestarting, stateAutorestarting:
			return &LostError{Reason: "its process died and the server started a new one", Replaced: true}
		case stateTerminating:
			return &LostError{Reason: "it was shut down from outside"}
		case stateStarting:
			// Every process says so once, before all else. The verified one has
			// said it.
			if verified != "" && m.header.Session != k.session {
				return &LostError{Reason: "its process was replaced by a new one", Replaced: true}
			}
		}
	case typeShutdownReply:
		// The kernel answers a shutdown that somebody asked the server for.
		if decodeRestart(m.content) {
			return &LostError{Reason: "it was restarted from outside", Replaced: true}
		}
		return &LostError{Reason: "it was shut down from outside"}
	}
	return nil
}

// The states of a kernel, in status messages and in its model.
const (
	stateStarting       = "starting"
	stateRestarting     = "restarting"
	stateAutorestarting = "autorestarting"
	stateTerminating    = "terminating"
	stateDead           = "dead"
)

// deliver hands an answer to whoever asked. Answers that find no room are
// repeated ones; they are dropped.
func deliver(a *ask, m *message) {
	out := answer{id: m.parent.MsgID, session: m.header.Session}
	switch m.header.MsgType {
	case typeInfoReply, typeInterruptReply:
		out.content = append([]byte(nil), m.content...)
	case typeStatus:
		if decodeState(m.content) != "idle" {
			return
		}
		out.idle = true
	default:
		return
	}
	select {
	case a.answers <- out:
	default:
	}
}

// isProbe reports whether id is that of a probe of x.
func (x *execution) isProbe(k *Kernel, id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return x.probes[id] != nil
}

// countForeign counts a message that is not for us.
func (k *Kernel) countForeign() {
	k.mu.Lock()
	k.stats.Foreign++
	k.mu.Unlock()
}
