package fakegateway

import "slices"

// attach adds a connection; false when the kernel is gone. As in
// jupyter_server, an older connection of the same session is closed, and what
// was buffered for the session comes first; what was buffered for another one
// is thrown away.
func (k *Kernel) attach(c *client) bool {
	k.outMu.Lock()
	defer k.outMu.Unlock()
	k.mu.Lock()
	if k.ended {
		k.mu.Unlock()
		return false
	}
	var stale []*client
	for old := range k.clients {
		if old.session == c.session {
			stale = append(stale, old)
			delete(k.clients, old)
		}
	}
	k.clients[c] = true
	k.attached++
	var waiting []Message
	if k.bufferFor == c.session {
		waiting = k.buffer
	}
	k.bufferFor, k.buffer = "", nil
	k.mu.Unlock()
	for _, old := range stale {
		old.drop()
	}
	for _, m := range waiting {
		c.send(m)
	}
	return true
}

// detach removes a connection. When it was the last one, its messages are
// buffered from now on.
func (k *Kernel) detach(c *client) {
	k.mu.Lock()
	if k.clients[c] {
		delete(k.clients, c)
		k.attached++
		if len(k.clients) == 0 {
			k.bufferFor, k.buffer = c.session, nil
		}
	}
	k.mu.Unlock()
	_ = c.ws.Close()
}

// deliver sends a message to the connection of a session, or to all for "".
func (k *Kernel) deliver(session string, m Message) {
	k.outMu.Lock()
	defer k.outMu.Unlock()
	k.mu.Lock()
	if k.server.opts.Recover && m.numbered() {
		parent, _ := m.Parent["msg_id"].(string)
		k.numbers[parent]++
		m.Header["coppice_number"] = k.numbers[parent]
		k.history = append(k.history, m)
		if most := k.server.opts.Remember; most > 0 && len(k.history) > most {
			k.history = slices.Delete(k.history, 0, len(k.history)-most)
		}
	}
	var to []*client
	for c := range k.clients {
		if session == "" || c.session == session {
			to = append(to, c)
		}
	}
	if k.lose > 0 && m.Channel == "iopub" {
		k.lose--
		to = nil
	} else if len(to) == 0 && k.bufferFor != "" && (session == "" || session == k.bufferFor) {
		k.buffer = append(k.buffer, m)
	}
	k.mu.Unlock()
	for _, c := range to {
		c.send(m)
	}
}

// Lose makes the next n messages on iopub vanish between the kernel and its
// server, as a full ZeroMQ queue does.
func (k *Kernel) Lose(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lose = n
}

// Swallow makes everything vanish that goes over the connections of this moment
// from now on, as a connection does that breaks: out is what the kernel sends,
// in what it would receive.
func (k *Kernel) Swallow(out, in bool) {
	for _, c := range k.everybody() {
		c.swallowOut.Store(out)
		c.swallowIn.Store(in)
	}
}

// Swallowed counts the messages that came in and vanished, all of them or those of a type.
func (k *Kernel) Swallowed(types ...string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for typ, count := range k.swallowed {
		if len(types) == 0 || slices.Contains(types, typ) {
			n += count
		}
	}
	return n
}

func (k *Kernel) swallow(m Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	typ, _ := m.Header["msg_type"].(string)
	k.swallowed[typ]++
}

// Attached counts how often connections came and went.
func (k *Kernel) Attached() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.attached
}

// Idle reports whether no cell runs.
func (k *Kernel) Idle() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cell == nil
}

// recover answers a request for what did not come: the messages of one parent
// whose numbers are beyond since and not beyond until (0: any), as many as limit
// allows, 4096 bytes each.
func (k *Kernel) recover(from *client, m Message) {
	k.Publish("status", m.Header, map[string]any{"execution_state": "busy"})
	parent, _ := m.Content["parent"].(string)
	since, until, limit := m.count("since"), m.count("until"), m.count("limit")
	k.mu.Lock()
	history, sent := slices.Clone(k.history), k.numbers[parent]
	k.mu.Unlock()
	page, more, through := []any{}, false, sent
	if until > 0 {
		through = min(sent, until)
	}
	for _, h := range history {
		p, _ := h.Parent["msg_id"].(string)
		n, _ := h.Header["coppice_number"].(int)
		if p != parent || n <= since || n > through {
			continue
		}
		if len(page) >= max(1, limit/4096) {
			more = true
			break
		}
		page = append(page, map[string]any{
			"number": n, "id": h.field("msg_id"), "type": h.field("msg_type"), "channel": h.Channel, "content": h.Content,
		})
	}
	if more {
		last, _ := page[len(page)-1].(map[string]any)
		through, _ = last["number"].(int)
	}
	if limit > 0 {
		k.deliver(from.session, Message{
			Channel: "control", Header: k.header("coppice_repeat_reply"), Parent: m.Header,
			Content: map[string]any{"messages": page, "through": through, "sent": sent, "more": more},
		})
	}
	k.Publish("status", m.Header, map[string]any{"execution_state": "idle"})
}

// Numbered sends a line of output with any number, to everybody.
func (k *Kernel) Numbered(parent map[string]any, n int64) {
	h := k.header("stream")
	h["coppice_number"] = n
	for _, c := range k.everybody() {
		c.send(Message{Channel: "iopub", Header: h, Parent: parent, Content: map[string]any{"name": "stdout", "text": "\n"}})
	}
}

// numbered reports whether a kernel that can repeat its output numbers m.
func (m Message) numbered() bool {
	typ, _ := m.Parent["msg_type"].(string)
	switch m.field("msg_type") {
	case "execute_reply", "input_request", "stream", "display_data", "update_display_data", "execute_result",
		"error", "clear_output", "execute_input", "status", "complete_reply", "inspect_reply":
		return typ == "execute_request" || typ == "complete_request" || typ == "inspect_request"
	}
	return false
}

// count returns a number of the content.
func (m Message) count(name string) int {
	n, _ := m.Content[name].(float64)
	return int(n)
}
