package sinks

import (
	"context"
	"sync"

	"github.com/coppice-run/coppice/messages"
)

// Live keeps the latest events of all calls for those who watch: a screen, a status
// page. It is meant as a lossy sink of the hub:
//
//	live := sinks.NewLive(0, 0)
//	sinks.HubOptions{Sinks: []sinks.Attachment{live.Attachment()}}
//
// Any goroutine may use it, and any number may watch.
type Live struct {
	maxEvents, maxBytes int

	mu      sync.Mutex
	events  []LiveEvent // oldest first
	bytes   int
	next    uint64
	changed chan struct{} // closed, and replaced, when an event comes
}

// LiveEvent is an event with the call that it belongs to.
type LiveEvent struct {
	// N counts the events of all calls from 1, without a gap.
	N     uint64
	Exec  string
	Key   messages.SessionKey
	Event messages.Event
}

// NewLive returns a ring of at most so many events and bytes. 0: 1024 events, 4
// MiB.
func NewLive(events, bytes int) *Live {
	if events <= 0 {
		events = 1024
	}
	if bytes <= 0 {
		bytes = 4 << 20
	}
	return &Live{maxEvents: events, maxBytes: bytes, changed: make(chan struct{})}
}

// Attachment connects the ring to all calls of a hub.
func (l *Live) Attachment() Attachment {
	return Attachment{Name: "live", For: l.For, Lossy: true}
}

// For returns the sink of one call.
func (l *Live) For(exec messages.Execute) Sink {
	return &liveSink{live: l, exec: exec.ID, key: exec.Key}
}

// Since returns the events after number n that are still there, and how many
// were dropped in between because they were not asked for in time.
func (l *Live) Since(n uint64) (events []LiveEvent, missed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.next - uint64(len(l.events)) + 1 // of the events that are there
	if n+1 < first {
		missed, n = first-n-1, first-1
	}
	if n < l.next {
		events = append(events, l.events[n-first+1:]...)
	}
	return events, missed
}

// Wait blocks until there is an event after number n, and gives up with the
// cause of ctx.
func (l *Live) Wait(ctx context.Context, n uint64) error {
	for {
		l.mu.Lock()
		changed, ready := l.changed, l.next > n
		l.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *Live) add(e LiveEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	e.N = l.next
	l.events = append(l.events, e)
	l.bytes += e.Event.Size()
	gone := 0
	for len(l.events)-gone > 1 && (len(l.events)-gone > l.maxEvents || l.bytes > l.maxBytes) {
		l.bytes -= l.events[gone].Event.Size()
		l.events[gone] = LiveEvent{}
		gone++
	}
	l.events = l.events[gone:]
	close(l.changed)
	l.changed = make(chan struct{})
}

// liveSink is the sink of one call.
type liveSink struct {
	live *Live
	exec string
	key  messages.SessionKey
}

func (s *liveSink) Consume(_ context.Context, e messages.Event) error {
	s.live.add(LiveEvent{Exec: s.exec, Key: s.key, Event: e})
	return nil
}

func (s *liveSink) Flush(context.Context) error { return nil }
func (s *liveSink) Close() error                { return nil }
