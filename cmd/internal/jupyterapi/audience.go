package jupyterapi

import (
	"fmt"
	"sync"
)

// maxKept bounds what is kept for a client that is away, in bytes.
const maxKept = 4 << 20

// audience are the clients that listen to a kernel. While there is none, what the kernel says
// is kept for the one that went last, as Jupyter Server keeps it: a network that was lost for
// a minute costs a client nothing.
type audience struct {
	mu      sync.Mutex
	clients map[*client]struct{} // guarded by mu, as the rest
	asks    question             // what waits for an answer
	leased  bool                 // the kernel ends when the last client goes
	away    string               // the session of the client that went last, "" if there is one or it has none
	kept    []message            // for that, the oldest first
	size    int                  // of kept, in bytes
	dropped int                  // how many older messages did not fit
}

// question is what code asks of a client; the zero value is none.
type question struct {
	id      string
	session string  // of the client, see [client]
	asked   message // as it was sent
}

// join lets a client listen. A connection that it had before is replaced, as Jupyter Server
// does it: where the network was lost, nothing else says that it is gone. What was kept for
// the client is c's to write before all else. It returns what the client was asked before.
func (a *audience) join(c *client) question {
	a.mu.Lock()
	defer a.mu.Unlock()
	for other := range a.clients {
		if c.session != "" && other.session == c.session {
			delete(a.clients, other)
			other.leave()
		}
	}
	a.clients[c] = struct{}{}
	if c.session != "" && a.away == c.session {
		c.missed, c.lost = a.kept, a.dropped
	}
	a.away, a.kept, a.size, a.dropped = "", nil, 0, 0
	if c.session != "" && a.asks.session == c.session {
		return a.asks
	}
	return question{}
}

// part lets a client listen no more; true: the kernel ends with it.
func (a *audience) part(c *client) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, there := a.clients[c]; there {
		delete(a.clients, c)
		if len(a.clients) == 0 {
			a.away = c.session
		}
	}
	return a.leased && len(a.clients) == 0
}

// lease says whether the kernel ends with its last client.
func (a *audience) lease(leased bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leased = leased
}

func (a *audience) len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.clients)
}

// all hands a message to everyone.
func (a *audience) all(m message) {
	a.mu.Lock()
	everyone := make([]*client, 0, len(a.clients))
	for c := range a.clients {
		everyone = append(everyone, c)
	}
	a.keep(m)
	a.mu.Unlock()
	for _, c := range everyone {
		c.send(m)
	}
}

// one hands a message to a client or, where that has gone, to the connection that took its
// place.
func (a *audience) one(c *client, m message) {
	a.mu.Lock()
	to := a.now(c)
	if c.session == a.away {
		a.keep(m)
	}
	a.mu.Unlock()
	if to != nil {
		to.send(m)
	}
}

// ask hands a question to a client, and keeps it until it is answered.
func (a *audience) ask(c *client, id string, m message) {
	a.mu.Lock()
	a.asks = question{id, c.session, m}
	to := a.now(c)
	a.mu.Unlock()
	if to != nil {
		to.send(m)
	}
}

// question is what waits for an answer, the zero value if nothing does.
func (a *audience) question() question {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asks
}

// answered says that a question waits no more, or none at all for "".
func (a *audience) answered(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id == "" || a.asks.id == id { // and no other since
		a.asks = question{}
	}
}

// now is the connection of a client: itself, or the one that took its place; nil if it is
// away. mu is held.
func (a *audience) now(c *client) *client {
	if _, there := a.clients[c]; there {
		return c
	}
	for other := range a.clients {
		if c.session != "" && other.session == c.session {
			return other
		}
	}
	return nil
}

// keep keeps a message for the client that is away. mu is held.
func (a *audience) keep(m message) {
	if a.away == "" {
		return
	}
	a.kept, a.size = append(a.kept, m), a.size+m.size()
	drop := 0
	for ; a.size > maxKept; drop++ {
		a.size -= a.kept[drop].size()
		a.kept[drop] = message{} // what stays holds the array
	}
	a.kept, a.dropped = a.kept[drop:], a.dropped+drop
}

// size is about how much memory a message takes, in bytes.
func (m message) size() int {
	n := len(m.Header) + len(m.Parent) + len(m.Metadata) + len(m.Content)
	for _, b := range m.Buffers {
		n += len(b)
	}
	return n
}

// apology is what a client is told of messages that were not kept for it, "" if all were.
func apology(dropped int) string {
	if dropped == 0 {
		return ""
	}
	return fmt.Sprintf("%d messages came while you were not connected, and were not kept: %d MiB are, the latest\n", dropped, maxKept>>20)
}
