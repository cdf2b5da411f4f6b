package fleettest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coppice-run/coppice/fleet"
)

// Memory is the store of a directory in memory, which ends with the process. [Memory.Open]
// makes the directories. Any goroutine may call its methods.
type Memory struct {
	mu      sync.Mutex
	last    uint64
	entries map[string]fleet.Entry
	// before has what each key held before its latest entry, for stale reads.
	before  map[string]fleet.Entry
	watches map[*watch]struct{}
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		entries: map[string]fleet.Entry{}, before: map[string]fleet.Entry{}, watches: map[*watch]struct{}{},
	}
}

// Open returns a directory of the store. Each has an end of its own.
func (m *Memory) Open() *Handle { return &Handle{store: m, closed: make(chan struct{})} }

// Forget takes an entry away, as a store does that has lost what it had promised to keep.
func (m *Memory) Forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
	delete(m.before, key)
}

// Restore puts back what was there before, as a store does that has lost the last write.
func (m *Memory) Restore(e fleet.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries[e.Key] = e
	delete(m.before, e.Key)
}

// Handle is a directory of a [Memory]. What it returns is fresh.
type Handle struct {
	store  *Memory
	once   sync.Once
	closed chan struct{}
}

var _ fleet.Directory = (*Handle)(nil)

func (h *Handle) check(ctx context.Context) error {
	select {
	case <-h.closed:
		return fleet.ErrClosed
	default:
		return ctx.Err()
	}
}

// Get implements [fleet.Directory].
func (h *Handle) Get(ctx context.Context, key string) (fleet.Entry, error) {
	return h.get(ctx, key, func() fleet.Entry { return h.store.entries[key] })
}

// Stale is Get as a server answers that has not heard of the latest change.
func (h *Handle) Stale(ctx context.Context, key string) (fleet.Entry, error) {
	return h.get(ctx, key, func() fleet.Entry { return h.store.before[key] })
}

func (h *Handle) get(ctx context.Context, key string, of func() fleet.Entry) (fleet.Entry, error) {
	if err := h.check(ctx); err != nil {
		return fleet.Entry{}, err
	}
	if err := fleet.ValidKey(key); err != nil {
		return fleet.Entry{}, err
	}
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	e := of()
	return fleet.Entry{Key: key, Value: bytes.Clone(e.Value), Rev: e.Rev}, nil
}

// Swap implements [fleet.Directory].
func (h *Handle) Swap(ctx context.Context, key string, value []byte, prev fleet.Revision) (fleet.Revision, error) {
	if err := h.check(ctx); err != nil {
		return "", err
	}
	if err := fleet.ValidEntry(key, value); err != nil {
		return "", err
	}
	m := h.store
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.entries[key]
	if was.Rev != prev {
		return "", fmt.Errorf("swap %s: %w", key, fleet.ErrConflict)
	}
	m.last++
	e := fleet.Entry{Key: key, Value: bytes.Clone(value), Rev: fleet.Revision(strconv.FormatUint(m.last, 10))}
	m.before[key], m.entries[key] = was, e
	for w := range m.watches {
		w.add(e)
	}
	return e.Rev, nil
}

// Remove implements [fleet.Directory].
func (h *Handle) Remove(ctx context.Context, key string, prev fleet.Revision) error {
	if err := h.check(ctx); err != nil {
		return err
	}
	if err := fleet.ValidKey(key); err != nil {
		return err
	}
	m := h.store
	m.mu.Lock()
	defer m.mu.Unlock()
	if was := m.entries[key]; was.Rev != "" && was.Rev == prev {
		m.before[key] = was
		delete(m.entries, key)
	}
	return nil
}

// Watch implements [fleet.Directory].
func (h *Handle) Watch(ctx context.Context, prefix string, f func(fleet.Entry)) error {
	if err := h.check(ctx); err != nil {
		return err
	}
	m := h.store
	w := &watch{prefix: prefix, more: make(chan struct{}, 1)}
	m.mu.Lock()
	for _, key := range slices.Sorted(maps.Keys(m.entries)) {
		w.add(m.entries[key])
	}
	w.queue = append(w.queue, fleet.Entry{})
	m.watches[w] = struct{}{}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.watches, w)
		m.mu.Unlock()
	}()
	for {
		m.mu.Lock()
		queue := w.queue
		w.queue = nil
		m.mu.Unlock()
		for _, e := range queue {
			if err := h.check(ctx); err != nil {
				return err
			}
			f(fleet.Entry{Key: e.Key, Value: bytes.Clone(e.Value), Rev: e.Rev})
		}
		if len(queue) > 0 {
			continue
		}
		select {
		case <-w.more:
		case <-h.closed:
			return fleet.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close implements [fleet.Directory].
func (h *Handle) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// watch is a call of Watch: what it has yet to tell. The store's lock guards the queue.
type watch struct {
	prefix string
	queue  []fleet.Entry
	more   chan struct{}
}

func (w *watch) add(e fleet.Entry) {
	if !strings.HasPrefix(e.Key, w.prefix) {
		return
	}
	w.queue = append(w.queue, e)
	select {
	case w.more <- struct{}{}:
	default:
	}
}
