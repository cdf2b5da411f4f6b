package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// onClaims makes faults of swaps of claims alone.
func onClaims(f fleettest.Fault) func(op, key string) fleettest.Fault {
	return func(op, key string) fleettest.Fault {
		if op == "swap" && strings.HasPrefix(key, "session.") {
			return f
		}
		return fleettest.Fault{}
	}
}

// TestUnacknowledgedClaim: a claim of which its node has heard nothing is adopted in its
// epoch, as one ownership, whoever asks; to all others the key is that node's.
func TestUnacknowledgedClaim(t *testing.T) {
	for name, fault := range map[string]fleettest.Fault{"mute": {Mute: true}, "late": {Late: ttl}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.join("a"), w.join("b")
				a.link.Faults(func(op, key string) fleettest.Fault {
					if op == "get" && time.Since(w.start) > time.Millisecond {
						return fleettest.Fault{Drop: true} // what has happened it cannot read
					}
					return onClaims(fault)(op, key)
				})
				ctx, cancel := context.WithTimeout(t.Context(), ttl/10)
				defer cancel()
				_, err := a.Claim(ctx, "k")
				require.ErrorIs(t, err, context.DeadlineExceeded)
				a.link.Faults(nil)
				time.Sleep(2 * ttl)
				_, err = b.Claim(t.Context(), "k")
				var owned *fleet.OwnedError
				require.ErrorAs(t, err, &owned)
				require.Equal(t, a.ID(), owned.Node)

				var (
					all  sync.WaitGroup
					many [20]*fleet.Ownership
				)
				for i := range many {
					all.Go(func() { many[i], _ = a.Claim(t.Context(), "k") })
				}
				all.Wait()
				for _, o := range many {
					require.Same(t, many[0], o)
				}
				require.EqualValues(t, 1, many[0].Epoch())
				require.NoError(t, w.begin(many[0], fleet.Call{Epoch: 1}).Answer(t.Context()))
			})
		})
	}
}

// TestUnacknowledgedRelease: an ownership that was given up is not taken up again, whether
// the directory knows of its end or not: what it had is gone.
func TestUnacknowledgedRelease(t *testing.T) {
	for name, fault := range map[string]fleettest.Fault{"mute": {Mute: true}, "dropped": {Drop: true}, "late": {Late: ttl}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.join("a"), w.join("b")
				o := w.claim(a, "k")
				turn := w.begin(o, fleet.Call{})
				a.link.Faults(func(op, key string) fleettest.Fault {
					if op == "get" {
						return fleettest.Fault{Drop: true}
					}
					return onClaims(fault)(op, key)
				})
				ctx, cancel := context.WithTimeout(t.Context(), ttl/10)
				defer cancel()
				require.ErrorIs(t, o.Release(ctx), fleet.ErrUnknown)
				<-o.Ended()
				a.link.Faults(nil)
				require.Empty(t, a.Owned())
				require.ErrorIs(t, turn.Answer(t.Context()), fleet.ErrLost)
				again := w.claim(a, "k")
				require.EqualValues(t, 2, again.Epoch())
				require.EqualValues(t, 1, again.Used(), "a turn had begun")
				require.Equal(t, fleet.Past{}, again.Past())
				time.Sleep(2 * ttl) // what was late has arrived, for nothing
				_, err := b.Claim(t.Context(), "k")
				require.Error(t, err)
				require.NoError(t, again.Release(t.Context()))
				require.EqualValues(t, 3, w.claim(b, "k").Epoch())
			})
		})
	}
}

// TestStaleClaims: who reads old claims finds out by the swap.
func TestStaleClaims(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		n := 0
		stale := func(op, _ string) fleettest.Fault { n++; return fleettest.Fault{Stale: op == "get" && n%3 > 0} }
		a.link.Faults(stale)
		b.link.Faults(stale)
		for epoch := uint64(1); epoch < 20; epoch++ {
			of, other := a, b
			if epoch%2 == 0 {
				of, other = b, a
			}
			o, _ := w.takes(of, "k")
			require.Equal(t, epoch, o.Epoch())
			_, err := other.Claim(t.Context(), "k")
			var owned *fleet.OwnedError
			require.ErrorAs(t, err, &owned)
			require.NoError(t, o.Release(t.Context()))
		}
	})
}

// TestCalls: what a turn is refused for.
func TestCalls(t *testing.T) {
	for _, mode := range []string{"by the lease", "strict"} {
		t.Run(mode, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a := w.join("a", func(o *fleet.Options) { o.Strict = mode == "strict" })
				o := w.claim(a, "k")
				turn := w.begin(o, fleet.Call{ID: "1", Epoch: 1})
				_, err := o.Begin(t.Context(), fleet.Call{ID: "1", Epoch: 1})
				require.ErrorIs(t, err, fleet.ErrBegun)
				_, err = o.Begin(t.Context(), fleet.Call{ID: "2", Epoch: 7})
				var other *fleet.EpochError
				require.ErrorAs(t, err, &other)
				require.Equal(t, fleet.EpochError{Meant: 7, Now: 1}, *other)
				_, err = o.Begin(t.Context(), fleet.Call{ID: strings.Repeat("x", fleet.MaxID+1)})
				require.Error(t, err)
				for i := range 100 {
					w.begin(o, fleet.Call{ID: fmt.Sprint("of many ", i)})
				}
				_, err = o.Begin(t.Context(), fleet.Call{ID: "of many 99"})
				require.ErrorIs(t, err, fleet.ErrBegun)
				w.begin(o, fleet.Call{})
				w.begin(o, fleet.Call{})
				require.NoError(t, turn.Answer(t.Context()))
				require.NoError(t, turn.Answer(t.Context()))
			})
		})
	}
}

// TestStrict: with a clock that stands still a node believes in its lease for ever. In the
// strict mode it neither begins nor answers what another node could have owned, and the
// next owner knows the calls of the one before.
func TestStrict(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		still := func(o *fleet.Options) { o.Clock = func() time.Duration { return 0 } }
		a, b := w.join("a", strict, still), w.join("b", strict)
		mine := w.claim(a, "k")
		old := w.begin(mine, fleet.Call{ID: "old"})
		// Its renewals do not come through, and all else does.
		a.link.Faults(func(op, key string) fleettest.Fault {
			return fleettest.Fault{Drop: key == "node."+a.ID()}
		})
		theirs, _ := w.takes(b, "k")
		_, err := theirs.Begin(t.Context(), fleet.Call{ID: "old"})
		require.ErrorIs(t, err, fleet.ErrBegun, "though the caller does not know of epochs")
		require.NoError(t, w.begin(theirs, fleet.Call{ID: "new"}).Answer(t.Context()))
		require.NoError(t, a.Check(), "it believes")
		require.ErrorIs(t, old.Answer(t.Context()), fleet.ErrLost)
		_, err = mine.Begin(t.Context(), fleet.Call{ID: "more"})
		require.ErrorIs(t, err, fleet.ErrReleased)
		<-mine.Ended()
	})
}

// TestStrictUnheard: what was written and not heard of is settled before the next.
func TestStrictUnheard(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a", strict), w.join("b", strict)
		o := w.claim(a, "k")
		a.link.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), ttl/10)
		defer cancel()
		_, err := o.Begin(ctx, fleet.Call{ID: "1"})
		require.Error(t, err)
		a.link.Mend()
		n := 0
		a.link.Faults(func(op, key string) fleettest.Fault {
			if op != "swap" || !strings.HasPrefix(key, "session.") {
				return fleettest.Fault{}
			}
			n++
			return fleettest.Fault{Mute: n%3 == 1, Late: time.Duration(n%3/2) * ttl / 100}
		})
		turn := w.begin(o, fleet.Call{ID: "1"}) // it had not begun
		_, err = o.Begin(t.Context(), fleet.Call{ID: "1"})
		require.ErrorIs(t, err, fleet.ErrBegun)
		require.NoError(t, turn.Answer(t.Context()))
		for i := range 20 {
			turn := w.begin(o, fleet.Call{ID: fmt.Sprint("more", i)})
			require.NoError(t, turn.Answer(t.Context()))
		}
		a.link.Faults(nil)
		held := w.begin(o, fleet.Call{ID: "held"})
		a.link.Cut()
		require.ErrorIs(t, w.answer(held, time.Millisecond), fleet.ErrHeld)
		a.link.Mend()
		require.NoError(t, held.Answer(t.Context()))
		require.NoError(t, o.Release(t.Context()))
		_, err = w.claim(b, "k").Begin(t.Context(), fleet.Call{ID: "held"})
		require.ErrorIs(t, err, fleet.ErrBegun)
	})
}

// TestRoster: who has no part in the fleet sees who has.
func TestRoster(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		d := w.store.Open()
		r := fleet.NewRoster(d, nil)
		a := w.join("a/1", func(o *fleet.Options) {
			o.Labels = map[string]string{"zone": "x"}
			o.Load = func() fleet.Load { return fleet.Load{Sessions: 3} }
		})
		b := w.join("b")
		seen := make(chan []fleet.Node, 1000)
		ended := make(chan error, 1)
		go func() { ended <- r.Watch(t.Context(), func(n []fleet.Node) { seen <- n }) }()
		time.Sleep(ttl)
		nodes, err := r.List(t.Context())
		require.NoError(t, err)
		require.Len(t, nodes, 2)
		require.Equal(t, a.ID(), nodes[0].ID)
		require.Equal(t, 3, nodes[0].Load.Sessions)
		require.Equal(t, "x", nodes[0].Labels["zone"])
		u, rt, err := r.Transport(nodes[1])
		require.NoError(t, err)
		require.NotNil(t, rt)
		require.Equal(t, "http://b", u.String())
		_, _, err = r.Transport(fleet.Node{ID: "x", URL: "gopher://x"})
		require.Error(t, err)
		b.link.Cut()
		time.Sleep(failover + ttl)
		nodes, err = r.List(t.Context())
		require.NoError(t, err)
		require.Len(t, nodes, 1, "a dead one is gone")
		r.Close()
		r.Close()
		require.Error(t, <-ended)
		var last []fleet.Node
		for len(seen) > 0 {
			last = <-seen
		}
		require.Len(t, last, 1)
		require.NoError(t, d.Close())
	})
}

// TestPast: the next owner learns how the last epoch in which anything was begun has ended,
// also over epochs in which nothing was.
func TestPast(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		o := w.claim(a, "k")
		require.Zero(t, o.Past())
		_, err := o.Begin(t.Context(), fleet.Call{})
		require.NoError(t, err)
		long := strings.Repeat("ä", 200)
		require.NoError(t, o.End(t.Context(), long))
		o = w.claim(b, "k")
		require.Equal(t, a.ID(), o.Past().Node)
		require.True(t, utf8.ValidString(o.Past().Why) && strings.HasPrefix(long, o.Past().Why), o.Past().Why)
		require.InDelta(t, 200, len(o.Past().Why), 4)
		require.NoError(t, o.End(t.Context(), "nothing was begun"))
		o = w.claim(b, "k")
		require.Equal(t, a.ID(), o.Past().Node)
		require.EqualValues(t, 1, o.Used())
		_, err = o.Begin(t.Context(), fleet.Call{})
		require.NoError(t, err)
		require.NoError(t, o.Release(t.Context()))
		require.Zero(t, w.claim(a, "k").Past(), "who has released it has not said why")
	})
}
