package supervisor

import (
	"context"
	"slices"
	"sync"
)

// Credit bounds how many bytes are on their way between a producer and a
// consumer. It is a weighted semaphore: the producer acquires what it is about
// to send, the consumer releases what it has handled. Waiters are served in
// order, so that a large request is not starved by small ones. Any goroutine
// may use it.
type Credit struct {
	max int64

	mu      sync.Mutex
	used    int64
	waiters []*creditWaiter // oldest first
}

type creditWaiter struct {
	n     int64
	ready chan struct{} // closed with the credit taken
}

// NewCredit returns a Credit of that many bytes. Less than 1 counts as 1.
func NewCredit(bytes int64) *Credit { return &Credit{max: max(bytes, 1)} }

// clamp makes a request that no Credit could ever serve one that takes all of
// it. Acquire and Release clamp alike, so the account stays even.
func (c *Credit) clamp(n int64) int64 { return min(max(n, 0), c.max) }

// Acquire takes n bytes, n beyond the whole Credit counting as the whole. It
// blocks until they are free, and gives up with the cause of ctx.
func (c *Credit) Acquire(ctx context.Context, n int64) error {
	n = c.clamp(n)
	c.mu.Lock()
	if len(c.waiters) == 0 && c.used+n <= c.max {
		c.used += n
		c.mu.Unlock()
		return nil
	}
	w := &creditWaiter{n: n, ready: make(chan struct{})}
	c.waiters = append(c.waiters, w)
	c.mu.Unlock()

	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, o := range c.waiters {
		if o == w {
			c.waiters = slices.Delete(c.waiters, i, i+1)
			c.serve() // those behind it may fit now
			return context.Cause(ctx)
		}
	}
	c.used -= n // it was served just when ctx ended
	c.serve()
	return context.Cause(ctx)
}

// TryAcquire takes n bytes if they are free and no Acquire waits.
func (c *Credit) TryAcquire(n int64) bool {
	n = c.clamp(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiters) > 0 || c.used+n > c.max {
		return false
	}
	c.used += n
	return true
}

// Release gives n bytes back: the n that Acquire was called with. Giving back
// more than is in use is an error of the caller and counts as all that is.
func (c *Credit) Release(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = max(c.used-c.clamp(n), 0)
	c.serve()
}

// InUse returns how many bytes are taken.
func (c *Credit) InUse() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// serve wakes waiters in order for as long as they fit. The mutex is held.
func (c *Credit) serve() {
	i := 0
	for ; i < len(c.waiters) && c.used+c.waiters[i].n <= c.max; i++ {
		c.used += c.waiters[i].n
		close(c.waiters[i].ready)
	}
	c.waiters = slices.Delete(c.waiters, 0, i)
}
