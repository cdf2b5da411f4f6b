package httpapi

import (
	"sync"
	"time"

	"github.com/coppice-run/coppice/messages"
)

// countFor is how long a count of sleeping sessions stands: each of them is read for one.
const countFor = 5 * time.Second

// count is how many sessions are kept on disk.
type count struct {
	mu sync.Mutex
	n  int       // guarded by mu
	at time.Time // of the count; zero: it is not known; guarded by mu
}

func (c *count) note(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n, c.at = n, time.Now()
}

func (c *count) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Time{}
}

func (c *count) recent() (n int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n, !c.at.IsZero() && time.Since(c.at) < countFor
}

// listed is what is kept with a list in it, which null is not.
func listed(m messages.Memory) messages.Memory {
	if m.Kept == nil {
		m.Kept = []string{}
	}
	return m
}
