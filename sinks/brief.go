package sinks

import (
	"context"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// This file is what a short call does in place of its sink's actor. To have that flush what
// it was not even woken for takes two changes of the goroutine, which is more than all that
// is to be done.

// What waits is flushed by who asks when it is no more than this.
const (
	briefBytes  = 1 << 10
	briefEvents = 16
)

// flushHere flushes a result of which little waits and nobody else knows: its actor was not
// woken for it, and is not until this is done. No file is opened for so little, so that
// nothing here waits. False: nothing was done, the actor has to.
func (sub *subscription) flushHere(b *barrier) bool {
	sub.mu.Lock()
	if !sub.brief || sub.inside || sub.here != nil || sub.woken || sub.busy || sub.dead != nil || sub.failures > 0 || !isBrief(sub.queue[sub.head:], sub.bytes) {
		sub.mu.Unlock()
		return false
	}
	if s, ok := sub.sink.(*resultSink); !ok || s.fold.Begun() { // no incarnation is inside, so the sink is ours
		sub.mu.Unlock()
		return false
	}
	here := make(chan struct{})
	sub.here = here
	sub.queue = append(sub.queue, item{b: b})
	sub.mu.Unlock()
	defer func() { // also when the sink has panicked: then the actor goes on with what is in hand
		sub.mu.Lock()
		sub.here = nil
		wake := !sub.woken && (sub.busy || sub.head < len(sub.queue))
		sub.woken = sub.woken || wake
		sub.mu.Unlock()
		close(here)
		if wake {
			sub.actor.wake(sub)
		}
	}()
	supervisor.Guarded(func() error {
		for {
			it, ok := sub.pop()
			if !ok {
				return nil
			}
			if err := sub.handle(context.Background(), it); err != nil {
				return err
			}
		}
	}, func(error) {})
	return true
}

// isBrief reports whether items are few, small and text.
func isBrief(items []item, bytes int64) bool {
	if len(items) > briefEvents || bytes > briefBytes {
		return false
	}
	for _, it := range items {
		switch e := it.e.(type) {
		case messages.Stream, messages.Status, messages.Error:
		case messages.ExecuteResult:
			if _, plain := e.Data["text/plain"]; len(e.Data) != 1 || !plain {
				return false
			}
		default:
			return false
		}
	}
	return true
}
