package inbound

import (
	"net/http"
	"time"
)

// What tests reckon with.
const (
	Patience = patience
	Linger   = linger
)

// Bound is bound.
func Bound(files int) int { return bound(files) }

// GuardMost is Guard with a bound of the test's.
func GuardMost(server *http.Server, most int) *Connections {
	return guard(server, Limits{}, func() int { return most })
}

// Waiting is how many strangers there are, and how many known ones are waited for.
func (c *Connections) Waiting() (strangers, known int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.strangers.Len(), c.waited.Len()
}

// Head is how long a client has for a head, unless Limits say otherwise.
const Head = 10 * time.Second
