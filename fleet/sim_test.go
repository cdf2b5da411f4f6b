package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// step is one event of a schedule.
type step struct {
	// After is the time since the step before.
	After time.Duration
	// Do is call, repeat, release, keep, drop, cut, away, kill or leave.
	Do   string
	Node int
	Key  string
	// For is how long the work takes, or the failure lasts.
	For time.Duration
	// Faults is how the node's requests fail from then on, in turn.
	Faults []fleettest.Fault
}

// schedules draws what happens to a fleet of three.
func schedules() *rapid.Generator[[]step] {
	tenth := func(most int) *rapid.Generator[time.Duration] {
		return rapid.Map(rapid.IntRange(0, most), func(n int) time.Duration { return time.Duration(n) * ttl / 10 })
	}
	fault := rapid.Custom(func(t *rapid.T) fleettest.Fault {
		f := fleettest.Fault{Before: tenth(2).Draw(t, "before"), After: tenth(2).Draw(t, "after")}
		switch rapid.IntRange(0, 5).Draw(t, "fault") {
		case 0:
			f.Drop = true
		case 1:
			f.Mute = true
		case 2:
			f.Late = tenth(20).Draw(t, "late") + time.Millisecond
		case 3:
			f.Stale = true
		}
		return f
	})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			After: rapid.OneOf(tenth(8), tenth(8), tenth(8), rapid.Just(forgotten)).Draw(t, "after"),
			Do: rapid.SampledFrom([]string{
				"call", "call", "call", "call", "repeat", "repeat", "release", "keep", "keep", "keep", "drop", "cut", "cut", "away", "kill", "leave",
			}).Draw(t, "do"),
			Node:   rapid.IntRange(0, 2).Draw(t, "node"),
			Key:    rapid.SampledFrom([]string{"x", "y"}).Draw(t, "key"),
			For:    tenth(30).Draw(t, "for"),
			Faults: rapid.SliceOfN(fault, 0, 4).Draw(t, "faults"),
		}
	}), 1, 24)
}

// history is what a fleet did.
type history struct {
	start time.Time

	mu      sync.Mutex
	owners  map[string]*fleet.Ownership
	runs    map[string]int
	answers map[string]map[uint64]time.Duration // when the first one of an epoch of a key left
	told    int                                 // how many have left
	wrong   []string
	last    fleet.Call
	lastKey string
	memory  *memory
}

// owned notes an ownership: there is one of an epoch.
func (h *history) owned(o *fleet.Ownership) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name := fmt.Sprint(o.Key(), " ", o.Epoch())
	if past := o.Past(); past.Kept != "" && !past.Before.IsZero() {
		h.wrong = append(h.wrong, name+" has what was kept, and that is out of date")
	}
	if was := h.owners[name]; was != nil && was != o {
		h.wrong = append(h.wrong, "two owners of "+name)
	}
	h.owners[name] = o
}

func (h *history) answered(key string, epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told++
	now := time.Since(h.start)
	for later, at := range h.answers[key] {
		// What leaves at one instant has no order.
		if later > epoch && at < now {
			h.wrong = append(h.wrong, fmt.Sprintf("an answer of epoch %d of %s at %s, after one of epoch %d at %s", epoch, key, now, later, at))
		}
	}
	if h.answers[key] == nil {
		h.answers[key] = map[uint64]time.Duration{}
	}
	if _, ok := h.answers[key][epoch]; !ok {
		h.answers[key][epoch] = now
	}
}

func newHistory() *history {
	return &history{
		start: time.Now(), owners: map[string]*fleet.Ownership{}, runs: map[string]int{}, answers: map[string]map[uint64]time.Duration{}, memory: newMemory(),
	}
}

// mode is how the nodes of a simulation are.
type mode struct {
	strict bool
	forget time.Duration
	// epochs says that calls name the epoch that they are for.
	epochs bool
}

// simulated is a node whose lives follow each other.
type simulated struct {
	link *fleettest.Link
	mode
	h *history
	// ahead is how far the node's clock is ahead of others, and fast how much faster it goes.
	ahead time.Duration
	fast  float64

	mu     sync.Mutex
	member *fleet.Member
}

func (s *simulated) options() fleet.Options {
	start := s.h.start
	return fleet.Options{
		Directory: s.link, TTL: ttl, Strict: s.strict, Forget: s.forget,
		Clock: func() time.Duration {
			if s.strict {
				return 0 // clocks have no part in it
			}
			passed := time.Since(start)
			return s.ahead + passed + time.Duration(s.fast*float64(passed))
		},
	}
}

func (s *simulated) now() *fleet.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.member
}

// live joins, and again when a life is over, until ctx ends.
func (s *simulated) live(ctx context.Context) {
	for ctx.Err() == nil {
		m, err := fleet.Join(ctx, s.options())
		if err != nil {
			continue
		}
		s.mu.Lock()
		s.member = m
		s.mu.Unlock()
		select {
		case <-m.Done():
		case <-ctx.Done():
		}
		// A process that ends says nothing; who leaves has said it.
		silent, cancel := context.WithCancel(context.Background())
		cancel()
		_ = m.Leave(silent)
	}
}

// call runs a call at the node, if it may, and returns it as it was made.
func (s *simulated) call(ctx context.Context, key string, c fleet.Call, work time.Duration) fleet.Call {
	m := s.now()
	if m == nil {
		return c
	}
	o, err := m.Claim(ctx, key)
	if err != nil {
		return c
	}
	s.h.owned(o)
	if c.Epoch == 0 && s.epochs {
		c.Epoch = o.Epoch() // as a client asks for it first
	}
	s.h.mu.Lock()
	s.h.last, s.h.lastKey = c, key
	s.h.mu.Unlock()
	turn, err := o.Begin(ctx, c)
	if err != nil {
		return c
	}
	s.h.mu.Lock()
	if s.h.runs[c.ID]++; s.h.runs[c.ID] > 1 {
		s.h.wrong = append(s.h.wrong, c.ID+" was run twice")
	}
	s.h.mu.Unlock()
	n, ran := s.h.memory.run(ctx, o, work)
	if !ran {
		return c
	}
	for {
		err := turn.Answer(ctx)
		if err == nil {
			s.h.answered(key, o.Epoch())
			s.h.memory.answered(key, n)
		}
		if !errors.Is(err, fleet.ErrHeld) || ctx.Err() != nil {
			return c
		}
	}
}

// play runs a schedule, and then looks whether the fleet comes to rest.
func play(t *testing.T, steps []step, how mode) *history {
	h := newHistory()
	store := fleettest.NewMemory()
	ctx, cancel := context.WithCancel(context.Background())
	var (
		all   sync.WaitGroup
		nodes [3]*simulated
	)
	for i := range nodes {
		nodes[i] = &simulated{link: fleettest.NewLink(store), mode: how, h: h}
		all.Go(func() { nodes[i].live(ctx) })
	}
	synctest.Wait()
	for i, st := range steps {
		time.Sleep(st.After)
		if n := nodes[st.Node]; n.now() != nil {
			all.Go(func() { n.do(ctx, nodes, st, fmt.Sprint("call ", i)) })
		}
		synctest.Wait()
	}
	time.Sleep(4 * ttl)
	for _, n := range nodes {
		n.link.Faults(nil)
		n.link.Mend()
	}
	time.Sleep(4 * ttl)
	for _, key := range []string{"x", "y"} {
		owners := 0
		for _, n := range nodes {
			require.NoError(t, n.now().Check())
			o, err := n.now().Claim(ctx, key)
			if err != nil {
				continue
			}
			h.owned(o)
			if _, err := o.Begin(ctx, fleet.Call{}); err == nil {
				owners++
			}
		}
		require.Equal(t, 1, owners, "in the end each key has an owner")
	}
	cancel()
	all.Wait()
	for _, n := range nodes {
		require.NoError(t, n.link.Close())
	}
	h.wrong = append(h.wrong, h.memory.wrong...)
	return h
}

// do is one step.
func (s *simulated) do(ctx context.Context, nodes [3]*simulated, st step, id string) {
	s.link.Faults(inTurn(st.Faults))
	ctx, cancel := context.WithTimeout(ctx, 4*ttl)
	defer cancel()
	switch st.Do {
	case "call":
		s.call(ctx, st.Key, fleet.Call{ID: id}, st.For)
	case "repeat": // at any node, as a client does that got no answer
		s.h.mu.Lock()
		c, key := s.h.last, s.h.lastKey
		s.h.mu.Unlock()
		if c.ID != "" {
			s.call(ctx, key, c, st.For)
		}
	case "release":
		if o, err := s.now().Claim(ctx, st.Key); err == nil {
			s.h.owned(o)
			_ = o.Release(ctx)
		}
	case "keep", "drop":
		if o, err := s.now().Claim(ctx, st.Key); err == nil {
			s.h.owned(o)
			if st.Do == "keep" {
				s.h.memory.keep(ctx, o)
			} else {
				s.h.memory.drop(ctx, o)
			}
		}
	case "cut":
		s.link.Cut()
		time.Sleep(st.For)
		s.link.Mend()
	case "away":
		for _, n := range nodes {
			n.link.Cut()
		}
		time.Sleep(st.For)
		for _, n := range nodes {
			n.link.Mend()
		}
	case "kill":
		silent, cancel := context.WithCancel(ctx)
		cancel()
		_ = s.now().Leave(silent)
	case "leave":
		_ = s.now().Leave(ctx)
	}
}

func inTurn(faults []fleettest.Fault) func(op, key string) fleettest.Fault {
	if len(faults) == 0 {
		return nil
	}
	n := 0
	return func(string, string) fleettest.Fault {
		n++
		if n%3 == 0 {
			return fleettest.Fault{} // something comes through
		}
		return faults[n%len(faults)]
	}
}

// TestSchedules: whatever happens, an epoch has one owner, no answer of an older epoch
// comes after one of a newer, nothing is run twice, what is kept is had once and is no older than
// what was told, and in the end each key has an owner.
func TestSchedules(t *testing.T) {
	for name, how := range map[string]mode{
		"by the lease": {forget: 2 * ttl, epochs: true},
		"strict":       {strict: true, forget: -1},
		// Whoever names no epoch is not known again once the key is forgotten.
		"strict, and keys are forgotten": {strict: true, forget: 2 * ttl, epochs: true},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				steps := schedules().Draw(rt, "steps")
				var h *history
				synctest.Test(t, func(t *testing.T) { h = play(t, steps, how) })
				if h == nil {
					rt.Fatal("the fleet has not come to rest")
				}
				if len(h.wrong) > 0 {
					rt.Fatal(h.wrong)
				}
			})
		})
	}
}
