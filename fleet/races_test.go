package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// first has a fault befall the first so many requests of a kind for keys with a prefix.
func first(count int, op, prefix string, f fleettest.Fault) (faults func(op, key string) fleettest.Fault, seen *atomic.Int64) {
	seen = new(atomic.Int64)
	return func(o, key string) fleettest.Fault {
		if o == op && strings.HasPrefix(key, prefix) && seen.Add(1) <= int64(count) {
			return f
		}
		return fleettest.Fault{}
	}, seen
}

// state is what the directory says of a node.
func (w *world) state(n *node) fleet.State {
	w.t.Helper()
	d := w.store.Open()
	defer func() { require.NoError(w.t, d.Close()) }()
	e, err := d.Get(w.t.Context(), "node."+n.ID())
	require.NoError(w.t, err)
	for _, s := range []fleet.State{fleet.Up, fleet.Draining, fleet.Dead, fleet.Left} {
		if strings.Contains(string(e.Value), `"state":"`+string(s)+`"`) {
			return s
		}
	}
	return ""
}

// TestOwner: who has a key is read from its claim and from the record of the node.
func TestOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		says := func(node string, epoch uint64) {
			t.Helper()
			n, e, err := a.Owner(t.Context(), "k")
			require.NoError(t, err)
			require.Equal(t, node, n)
			require.Equal(t, epoch, e)
		}
		says("", 0)
		o := w.claim(a, "k")
		says(a.ID(), 1)
		require.NoError(t, o.Release(t.Context()))
		says("", 1)
		w.claim(b, "k")
		says(b.ID(), 2)
		b.link.Cut()
		time.Sleep(failover + ttl)
		says("", 2)

		a.link.Faults(func(string, string) fleettest.Fault { return fleettest.Fault{Drop: true} })
		_, _, err := a.Owner(t.Context(), "k")
		require.Error(t, err)
		a.link.Faults(nil)
		w.claim(a, "k")
		d := w.store.Open()
		ctx, stop := context.WithCancel(t.Context())
		_ = d.Watch(ctx, "session.", func(e fleet.Entry) { // of the one key
			if stop(); e.Key != "" {
				_, err = d.Swap(t.Context(), e.Key, []byte("{"), e.Rev)
				require.NoError(t, err)
			}
		})
		require.NoError(t, d.Close())
		_, _, err = a.Owner(t.Context(), "k")
		require.ErrorContains(t, err, "read the record")
	})
}

// TestClaimedMeanwhile: a claim that comes too late is told so at once, and the epochs go on from
// the first.
func TestClaimedMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		faults, _ := first(1, "swap", "session.", fleettest.Fault{Before: ttl / 10})
		a.link.Faults(faults)
		refused := make(chan error)
		begun := time.Now()
		go func() {
			_, err := a.Claim(t.Context(), "k")
			refused <- err
		}()
		time.Sleep(ttl / 100)
		o := w.claim(b, "k")
		var owned *fleet.OwnedError
		require.ErrorAs(t, <-refused, &owned)
		require.Equal(t, b.ID(), owned.Node)
		require.Less(t, time.Since(begun), ttl/5)
		for epoch := uint64(1); epoch < 4; epoch++ {
			require.Equal(t, epoch, o.Epoch())
			require.EqualValues(t, 1, o.First())
			require.NoError(t, o.Release(t.Context()))
			o = w.claim(b, "k")
		}
	})
}

// TestNothingIsHeldOnTo: a member knows nothing of keys that it does not have.
func TestNothingIsHeldOnTo(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		w.claim(b, "taken")
		for _, key := range []string{"x", "y"} {
			o := w.claim(a, key)
			require.Equal(t, map[string]uint64{key: 1}, a.Owned())
			require.Equal(t, 1, a.Slots())
			_, err := a.Claim(t.Context(), "taken")
			require.Error(t, err)
			require.NoError(t, o.Release(t.Context()))
			require.Empty(t, a.Owned())
			require.Zero(t, a.Slots())
		}
	})
}

// TestTwoLearnWhatIsForgotten at the same time, and neither waits for long.
func TestTwoLearnWhatIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := []*node{w.join("a"), w.join("b")}
		for round := range 3 {
			claimed := make(chan error)
			begun := time.Now()
			for i, n := range nodes {
				faults, _ := first(1, "swap", "forgotten", fleettest.Fault{Before: time.Duration(1+i) * ttl / 100})
				n.link.Faults(faults)
				go func() {
					_, err := n.Claim(t.Context(), fmt.Sprint(n.ID(), round))
					claimed <- err
				}()
			}
			require.NoError(t, <-claimed)
			require.NoError(t, <-claimed)
			require.Less(t, time.Since(begun), ttl/10)
			time.Sleep(5 * ttl) // longer than they rely on it
		}
	})
}

// TestHowOftenTheFloorIsLearnt: once for as long as it is relied on.
func TestHowOftenTheFloorIsLearnt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.join("a")
		faults, swaps := first(0, "swap", "forgotten", fleettest.Fault{})
		a.link.Faults(faults)
		for round := int64(1); round <= 3; round++ {
			for i := range 10 {
				w.claim(a, fmt.Sprint(round, i))
				time.Sleep(ttl / 10)
			}
			require.Equal(t, round, swaps.Load())
			time.Sleep(5 * ttl)
		}

		// In the strict mode for each claim anew.
		b := w.join("b", strict)
		faults, swaps = first(0, "swap", "forgotten", fleettest.Fault{})
		b.link.Faults(faults)
		for i := range 3 {
			before := swaps.Load()
			w.claim(b, fmt.Sprint("strict", i))
			require.Greater(t, swaps.Load(), before)
		}
	})
}

// TestDropOfWhatWasKept: what a claim says to be kept is not found by the next owner.
func TestDropOfWhatWasKept(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		o := w.claim(a, "k")
		require.Error(t, o.Keep(t.Context(), strings.Repeat("r", fleet.MaxKept+1), long()))
		require.NoError(t, o.Keep(t.Context(), strings.Repeat("r", fleet.MaxKept), long()))
		require.NoError(t, o.Drop(t.Context()))
		require.Empty(t, w.claims()["k"].Kept)

		// Nor what it may say without having been heard of.
		other := w.claim(a, "other")
		a.unheard(fleettest.Fault{Mute: true})
		require.ErrorIs(t, other.Keep(soon(t), "1", long()), fleet.ErrUnknown)
		a.link.Faults(nil)
		require.Equal(t, "1", w.claims()["other"].Kept)
		require.NoError(t, other.Drop(t.Context()))
		require.Empty(t, w.claims()["other"].Kept)
		require.NoError(t, o.Release(t.Context()))
		require.Empty(t, w.claim(b, "k").Kept())
	})
}

// TestDrainIsKnown once Drain has returned.
func TestDrainIsKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.join("a")
		faults, _ := first(1, "swap", "node.", fleettest.Fault{Before: ttl / 10})
		a.link.Faults(faults)
		require.NoError(t, a.Drain(t.Context()))
		require.Equal(t, fleet.Draining, w.state(a))
	})
}

// TestLeaveIsSaid: also after a renewal that had no answer, and not of a node that was declared dead.
func TestLeaveIsSaid(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		faults, seen := first(1, "swap", "node.", fleettest.Fault{Mute: true})
		a.link.Faults(faults)
		for seen.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		require.NoError(t, a.Leave(t.Context()))
		require.Equal(t, fleet.Left, w.state(a))

		c := w.join("c")
		b.link.Cut()
		time.Sleep(failover + ttl)
		require.Equal(t, fleet.Dead, w.state(b))
		b.link.Mend()
		require.NoError(t, b.Leave(t.Context()))
		require.Equal(t, fleet.Dead, w.state(b))
		require.NoError(t, c.Check())
	})
}

// TestARequestThatHangs: a renewal is given up in time for another, and so is what declares a
// silent node dead.
func TestARequestThatHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		w.claim(b, "k")
		faults, seen := first(1, "swap", "node."+a.ID(), fleettest.Fault{Before: time.Hour})
		a.link.Faults(faults)
		for end := time.Now().Add(3 * ttl); time.Now().Before(end); time.Sleep(ttl / 100) {
			require.NoError(t, a.Check())
		}
		require.Positive(t, seen.Load())
		for _, fault := range []fleettest.Fault{{Before: time.Hour}, {Drop: true}} {
			node := w.join("c")
			w.claim(node, node.ID())
			faults, seen = first(1, "swap", "node."+node.ID(), fault)
			a.link.Faults(faults)
			b.link.Faults(func(op, key string) fleettest.Fault { // it leaves that to the other
				return fleettest.Fault{Drop: op == "swap" && strings.HasPrefix(key, "node."+node.ID())}
			})
			node.link.Cut()
			_, after := w.takes(a, node.ID())
			require.Less(t, after, failover+ttl/4+ttl/8)
			require.EqualValues(t, 2, seen.Load())
		}
	})
}

// TestAReleaseThatIsNotCounted is counted with the next renewal.
func TestAReleaseThatIsNotCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a", most(1)), w.join("b", most(1))
		o := w.claim(a, "x")
		a.link.Faults(func(_, key string) fleettest.Fault { return fleettest.Fault{Drop: key == "quota"} })
		ctx, cancel := context.WithTimeout(t.Context(), ttl/10)
		defer cancel()
		require.NoError(t, o.Release(ctx))
		_, err := b.Claim(t.Context(), "y")
		require.ErrorContains(t, err, "as many as it may have")
		a.link.Faults(nil)
		time.Sleep(ttl)
		o = w.claim(b, "y")

		// Nor is a claim that was given up.
		require.NoError(t, o.Release(t.Context()))
		b.link.Faults(onClaims(fleettest.Fault{Drop: true}))
		ctx, cancel = context.WithTimeout(t.Context(), ttl/10)
		defer cancel()
		_, err = b.Claim(ctx, "z")
		require.Error(t, err)
		b.link.Faults(nil)
		time.Sleep(ttl)
		w.claim(a, "x")
	})
}

// TestTheLongestID is taken.
func TestTheLongestID(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		o := w.claim(w.join("a"), "k")
		w.begin(o, fleet.Call{ID: strings.Repeat("x", fleet.MaxID)})
		_, err := o.Begin(t.Context(), fleet.Call{ID: strings.Repeat("x", fleet.MaxID+1)})
		require.ErrorContains(t, err, "at most 128")
	})
}
