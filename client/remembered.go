package client

import (
	"maps"
	"sync"
)

// mostRemembered bounds what a client remembers of each kind. Of a session that is forgotten one
// learns what became of it from its next result, and of a process only that it is not found.
const mostRemembered = 1 << 16

// remembered is what a client has seen of what it names by keys. The zero value is empty.
type remembered[V any] struct {
	mu sync.Mutex
	of map[string]V // guarded by mu
}

// get returns what is remembered, the zero value when that is nothing.
func (r *remembered[V]) get(key string) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[key]
}

func (r *remembered[V]) set(key string, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || len(r.of) >= mostRemembered {
		r.of = map[string]V{}
	}
	r.of[key] = value
}

// forgetAll forgets what has such a key.
func (r *remembered[V]) forgetAll(of func(key string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.of, func(key string, _ V) bool { return of(key) })
}

func (r *remembered[V]) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, key)
}
