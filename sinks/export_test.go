package sinks

// Sabotage puts s in the place of the call's result sink until it fails; the
// real one then goes on, and gets what s says.
func (c *Call) Sabotage(s Sink) { c.result.sink = s }

// InUse returns how many bytes of credit the lane has given out.
func (c *Call) InUse(i int) int64 {
	l, ok := c.lanes[i].(*lane)
	if !ok {
		return 0
	}
	return l.credit.InUse()
}

// Singles returns how many actors of single lanes the hub knows.
func (h *Hub) Singles() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.singles)
}

// Results counts the lanes of results that are open.
func (h *Hub) Results() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, st := range h.shards {
		n += len(st.lanes)
	}
	return n
}
