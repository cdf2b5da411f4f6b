package sinks

import (
	"slices"
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
	results                  [len(outcomes) + 1][len(states) + 1]atomic.Uint64
}

// outcomes and states are what a result is counted by, in the order of the counters; the
// last one of each counts what is not among them.
var (
	outcomes = [...]messages.Outcome{
		messages.OutcomeOK, messages.OutcomeError, messages.OutcomeTimeout,
		messages.OutcomeCancelled, messages.OutcomeLost, messages.OutcomeNotStarted,
	}
	states = [...]messages.State{messages.StateKept, messages.StateFresh, messages.StateRestored, messages.StateLost}
)

// ResultCount is how many calls ended in one way.
type ResultCount struct {
	// Outcome is how they ended, State what became of the variables; "" when nothing
	// is said of them.
	Outcome messages.Outcome `json:"outcome"`
	State   messages.State   `json:"state"`
	Count   uint64           `json:"count"`
}

// eventTypes are the types of events, in the order of their counters.
var eventTypes = [...]string{"status", "stdout", "stderr", "display", "result", "clear", "error", "input_request", "notice", "final"}

// MetricsSnapshot is what was counted up to one moment.
type MetricsSnapshot struct {
	// Calls were opened in all, and Open of them are not closed. Those without cells, with which
	// a copy or what is restored gets its place, count nowhere here.
	Calls uint64 `json:"calls"`
	Open  uint64 `json:"open"`
	// Events counts the events that were emitted, by type; Bytes their size. The final one
	// counts once for each result, whether or not a sink has asked for it, and without a size.
	Events map[string]uint64 `json:"events"`
	Bytes  uint64            `json:"bytes"`
	// Dropped counts what lossy sinks of closed calls had no credit for, Lost
	// what failing sinks of closed calls did not handle.
	Dropped uint64 `json:"dropped"`
	Lost    uint64 `json:"lost"`
	// Results counts the results of calls by what they say, without the ways that none
	// has ended in.
	Results []ResultCount `json:"results"`
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
	for i := range m.results {
		for j := range m.results[i] {
			if n := m.results[i][j].Load(); n > 0 {
				c := ResultCount{Count: n}
				if i < len(outcomes) {
					c.Outcome = outcomes[i]
				}
				if j < len(states) {
					c.State = states[j]
				}
				s.Results = append(s.Results, c)
			}
		}
	}
	return s
}

// finished counts the result of a call.
func (m *Metrics) finished(r messages.Result) {
	if m == nil {
		return
	}
	at := func(i, most int) int {
		if i < 0 {
			return most
		}
		return i
	}
	i, j := slices.Index(outcomes[:], r.Outcome), slices.Index(states[:], r.State)
	m.results[at(i, len(outcomes))][at(j, len(states))].Add(1)
	m.events[slices.Index(eventTypes[:], messages.Final{}.Type())].Add(1)
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
