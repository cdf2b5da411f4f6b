// Package owned has the set of those who use a session.
package owned

import (
	"maps"
	"slices"
	"sync"
)

// Owners are those who use one session, as long as it has a kernel: the owners of the calls
// that it has served, and of what it was restored from. "" is among them when it was used
// without an owner. It outlives an incarnation of the kernel, since those who used the
// session before a restart have not left it. Any goroutine may call its methods; the zero
// value is empty.
type Owners struct {
	mu  sync.Mutex
	all map[string]struct{} // guarded by mu
}

// Add notes that the session is used by these.
func (o *Owners) Add(names ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[string]struct{}{}
	}
	for _, name := range names {
		o.all[name] = struct{}{}
	}
}

// Remove notes that one has left; it is no error that it was not there.
func (o *Owners) Remove(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, name)
}

// List returns all, sorted.
func (o *Owners) List() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.all))
}
