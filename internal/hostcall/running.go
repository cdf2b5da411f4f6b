package hostcall

import (
	"context"
	"fmt"
	"sync"

	"github.com/coppice-run/coppice/messages"
)

// running are the goroutines that run code of the host: functions, primitives,
// input handlers. The host owns them; each ends when that code does, and
// Shutdown joins them as far as they end.
type running struct {
	mu    sync.Mutex
	names map[string]int // what runs; guarded by mu
	none  chan struct{}  // closed when nothing runs; nil while nothing waits for that; guarded by mu
}

func (r *running) start(name string, f func()) {
	r.mu.Lock()
	if r.names == nil {
		r.names = map[string]int{}
	}
	r.names[name]++
	r.mu.Unlock()
	go func() {
		defer r.done(name)
		f()
	}()
}

func (r *running) done(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names[name]--; r.names[name] == 0 {
		delete(r.names, name)
	}
	if len(r.names) == 0 && r.none != nil {
		close(r.none)
		r.none = nil
	}
}

// wait returns when nothing runs any more, or with the names of what still does
// when ctx ends.
func (r *running) wait(ctx context.Context) []messages.Leftover {
	r.mu.Lock()
	if len(r.names) == 0 {
		r.mu.Unlock()
		return nil
	}
	if r.none == nil {
		r.none = make(chan struct{})
	}
	none := r.none
	r.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []messages.Leftover
	for name, n := range r.names {
		left = append(left, messages.Leftover{
			Path: "host-function/" + name,
			Exit: messages.Exit{Kind: messages.ExitHung, Reason: fmt.Sprintf("%d calls have not returned", n)},
		})
	}
	return left
}
