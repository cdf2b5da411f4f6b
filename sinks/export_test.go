package sinks

import "github.com/coppice-run/coppice/internal/opportunity"

// StallWith says when this process stood still.
func (c *Call) StallWith(s opportunity.Stalls) { c.stalls = s }

// Sabotage puts s in the place of the call's result sink until it fails; the
// real one then goes on, and gets what s says.
func (c *Call) Sabotage(s Sink) { c.result.sink = s }

// InUse returns how many bytes of credit the subscription has given out.
func (c *Call) InUse(i int) int64 {
	sub, ok := c.subs[i].(*subscription)
	if !ok {
		return 0
	}
	return sub.credit.InUse()
}

// Singles returns how many actors of single subscriptions the hub knows.
func (h *Hub) Singles() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.singles)
}

// Results counts the subscriptions of results that are open.
func (h *Hub) Results() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, sa := range h.shards {
		n += len(sa.subs)
	}
	return n
}
