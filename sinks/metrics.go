package sinks

import (
	"sync/atomic"

	"github.com/coppice-run/coppice/messages"
)

// Metrics counts what goes through a hub. The zero value is ready; give it to
// HubOptions. Counting costs a call a few atomic additions. Any goroutine may
// use it.
type Metrics struct {
	callsOpened, callsClosed atomic.Uint64
	events                   [len(eventTypes)]atomic.Uint64
	bytes                    atomic.Uint64
	dropped, lost            atomic.Uint64
}

// eventTypes are the types of events, in the order of their counters.
var eventTypes = [...]string{"status", "stdout", "stderr", "display", "result", "clear", "error", "input_request", "notice", "final"}

// MetricsSnapshot is what was counted up to one moment.
type MetricsSnapshot struct {
	// Calls were opened in all, and Open of them are not closed.
	Calls uint64 `json:"calls"`
	Open  uint64 `json:"open"`
	// Events counts the events that were emitted, by type; Bytes their size.
	Events map[string]uint64 `json:"events"`
	Bytes  uint64            `json:"bytes"`
	// Dropped counts what lossy sinks of closed calls had no credit for, Lost
	// what failing sinks of closed calls did not handle.
	Dropped uint64 `json:"dropped"`
	Lost    uint64 `json:"lost"`
}

// Snapshot returns the counters. They are read one after the other, so that
// numbers of a moment may be off by what happened in between.
func (m *Metrics) Snapshot() MetricsSnapshot {
	s := MetricsSnapshot{Events: make(map[string]uint64, len(eventTypes))}
	closed := m.callsClosed.Load()
	s.Calls = m.callsOpened.Load()
	s.Open = s.Calls - closed
	for i, name := range eventTypes {
		s.Events[name] = m.events[i].Load()
	}
	s.Bytes, s.Dropped, s.Lost = m.bytes.Load(), m.dropped.Load(), m.lost.Load()
	return s
}

func (m *Metrics) opened() {
	if m != nil {
		m.callsOpened.Add(1)
	}
}

func (m *Metrics) emitted(e messages.Event, n int64) {
	if m == nil {
		return
	}
	name := e.Type()
	for i := range eventTypes {
		if eventTypes[i] == name {
			m.events[i].Add(1)
			break
		}
	}
	m.bytes.Add(uint64(n))
}

func (m *Metrics) closed(reports []SinkReport) {
	if m == nil {
		return
	}
	for _, r := range reports {
		m.dropped.Add(r.Dropped)
		m.lost.Add(r.Lost)
	}
	m.callsClosed.Add(1)
}
