package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-run/coppice/fleet"
)

// memory is what a simulated fleet has in memory and on disk: of each key a number, which is
// another one after each turn.
type memory struct {
	mu   sync.Mutex
	next int
	// live is what each ownership has; guarded by mu, as is the rest.
	live map[*fleet.Ownership]*state
	// disk has the records, and taken says which were read by an owner that has it then.
	disk  map[string]int
	taken map[string]bool
	// told is the last number that whoever uses a key has heard of.
	told  map[string]int
	wrong []string
}

// state is what one owner has. turn is taken by who uses it.
type state struct {
	turn chan struct{}
	has  bool
	n    int
}

func newMemory() *memory {
	return &memory{live: map[*fleet.Ownership]*state{}, disk: map[string]int{}, taken: map[string]bool{}, told: map[string]int{}}
}

// of is what an owner has, once nobody else uses it.
func (m *memory) of(ctx context.Context, o *fleet.Ownership) *state {
	m.mu.Lock()
	s := m.live[o]
	if s == nil {
		s = &state{turn: make(chan struct{}, 1)}
		m.live[o] = s
	}
	m.mu.Unlock()
	select {
	case s.turn <- struct{}{}:
		return s
	case <-ctx.Done():
		return nil
	}
}

func (s *state) free() { <-s.turn }

// run has a turn change what its owner has, which is what was kept if it has nothing, and says
// what it is then. It reports false when what is kept could not be had.
func (m *memory) run(ctx context.Context, o *fleet.Ownership, work time.Duration) (n int, ran bool) {
	s := m.of(ctx, o)
	if s == nil {
		return 0, false
	}
	defer s.free()
	if record := o.Kept(); !s.has && record != "" {
		m.mu.Lock()
		kept := m.disk[record]
		m.mu.Unlock()
		if err := o.Take(ctx); err != nil {
			return 0, false
		}
		m.mu.Lock()
		if m.taken[record] {
			m.wrong = append(m.wrong, record+" was had twice")
		}
		if told := m.told[o.Key()]; kept < told {
			m.wrong = append(m.wrong, fmt.Sprintf("%s is what %s was at %d, of which %d was told", record, o.Key(), kept, told))
		}
		m.taken[record] = true
		m.mu.Unlock()
	}
	<-time.After(work) // of the bubble
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	s.has, s.n = true, m.next
	return s.n, true
}

// answered notes what somebody was told of a key.
func (m *memory) answered(key string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told[key] = max(m.told[key], n)
}

// keep writes down what an owner has, which it has no more then.
func (m *memory) keep(ctx context.Context, o *fleet.Ownership) {
	s := m.of(ctx, o)
	if s == nil {
		return
	}
	defer s.free()
	if !s.has {
		return
	}
	m.mu.Lock()
	m.next++
	record := fmt.Sprintf("%d.%d", o.Epoch(), m.next)
	m.disk[record] = s.n
	m.mu.Unlock()
	if o.Keep(ctx, record, time.Now().Add(time.Hour)) == nil {
		s.has = false
	}
}

// drop ends what an owner has, and what is kept: whoever hears of it finds neither.
func (m *memory) drop(ctx context.Context, o *fleet.Ownership) {
	s := m.of(ctx, o)
	if s == nil {
		return
	}
	defer s.free()
	s.has = false
	m.mu.Lock()
	m.next++ // as of now: what a later owner has begun and kept before the answer is here is not blamed
	n := m.next
	m.mu.Unlock()
	if o.Drop(ctx) == nil {
		m.answered(o.Key(), n)
	}
}
