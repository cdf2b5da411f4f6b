package fakegateway

import (
	"slices"
	"strconv"
	"strings"
)

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
	if k.server.opts.Recover {
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
	if len(to) == 0 && k.bufferFor != "" && (session == "" || session == k.bufferFor) {
		k.buffer = append(k.buffer, m)
	}
	k.mu.Unlock()
	for _, c := range to {
		c.send(m)
	}
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

// Swallowed counts the messages that came in and vanished.
func (k *Kernel) Swallowed() int { return int(k.swallowed.Load()) }

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

// recover answers a request for what a connection has swallowed: the messages
// of one parent whose numbers are beyond since and not in have, at most as many
// as limit allows, 4096 bytes each.
func (k *Kernel) recover(from *client, m Message) {
	parent, _ := m.Content["parent"].(string)
	since, _ := m.Content["since"].(float64)
	limit, _ := m.Content["limit"].(float64)
	have, _ := m.Content["have"].([]any)
	k.mu.Lock()
	history := slices.Clone(k.history)
	k.mu.Unlock()
	evicted := -1
	if k.server.opts.Remember > 0 && len(history) > 0 {
		evicted = number(history[0]) - 1
	}
	var page []any
	more, sent := false, 0
	for _, h := range history {
		p, _ := h.Parent["msg_id"].(string)
		if p == parent {
			sent++
		}
		if p != parent || number(h) <= int(since) || slices.Contains(have, any(float64(number(h)))) {
			continue
		}
		if len(page) >= int(limit)/4096 {
			more = true
			continue
		}
		page = append(page, map[string]any{"id": h.field("msg_id"), "type": h.field("msg_type"), "channel": h.Channel, "content": h.Content})
	}
	k.deliver(from.session, Message{
		Channel: "control", Header: k.header("coppice_replay_reply"), Parent: m.Header,
		Content: map[string]any{"messages": page, "evicted": evicted, "sent": sent, "more": more},
	})
}

// number is the last part of a message's id.
func number(m Message) int {
	id := m.field("msg_id")
	n, _ := strconv.Atoi(id[strings.LastIndexByte(id, '_')+1:])
	return n
}
