package fleet_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// ttl is that of the tests.
const ttl = 2 * time.Second

// failover is how long a silent node lives for the others.
const failover = ttl + ttl/10

// world is a fleet in a bubble.
type world struct {
	t     *testing.T
	store *fleettest.Memory
	start time.Time
}

// node is a member with its way to the directory.
type node struct {
	*fleet.Member
	link *fleettest.Link
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f(t, &world{t: t, store: fleettest.NewMemory(), start: time.Now()})
	})
}

// clock is that of a machine in the bubble.
func (w *world) clock() time.Duration { return time.Since(w.start) }

// join begins a life, which the test ends.
func (w *world) join(name string, change ...func(*fleet.Options)) *node {
	w.t.Helper()
	link := fleettest.NewLink(w.store)
	o := fleet.Options{Directory: link, Name: name, URL: "http://" + name, TTL: ttl, Clock: w.clock}
	for _, c := range change {
		c(&o)
	}
	m, err := fleet.Join(w.t.Context(), o)
	require.NoError(w.t, err)
	n := &node{Member: m, link: link}
	w.t.Cleanup(func() {
		link.Faults(nil)
		link.Mend()
		_ = m.Leave(context.Background())
		_ = link.Close()
	})
	return n
}

func strict(o *fleet.Options) { o.Strict = true }

// claim claims what is free.
func (w *world) claim(n *node, key string) *fleet.Ownership {
	w.t.Helper()
	o, err := n.Claim(w.t.Context(), key)
	require.NoError(w.t, err)
	return o
}

// takes waits until a node has the key, and returns how long that was.
func (w *world) takes(n *node, key string) (*fleet.Ownership, time.Duration) {
	w.t.Helper()
	from := time.Now()
	for {
		o, err := n.Claim(w.t.Context(), key)
		if err == nil {
			return o, time.Since(from)
		}
		require.Less(w.t, time.Since(from), time.Minute, "the key stays where it is: %v", err)
		time.Sleep(10 * time.Millisecond)
	}
}

// begin begins a turn.
func (w *world) begin(o *fleet.Ownership, c fleet.Call) *fleet.Turn {
	w.t.Helper()
	turn, err := o.Begin(w.t.Context(), c)
	require.NoError(w.t, err)
	return turn
}

// answer answers within a time.
func (w *world) answer(turn *fleet.Turn, d time.Duration) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	return turn.Answer(ctx)
}
