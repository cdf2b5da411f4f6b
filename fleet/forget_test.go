package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// forget is after how long keys are forgotten in these tests.
const forget = 10 * ttl

// forgets has a node forget soon.
func forgets(o *fleet.Options) { o.Forget = forget }

// forgotten is longer than a key that nobody has is remembered: until a look at the claims
// after that time, and until nobody relies on the floor that was.
const forgotten = forget + forget/24 + 6*ttl

// claims are the claims that the directory has, by their keys.
func (w *world) claims() map[string]fleet.Claim {
	w.t.Helper()
	d := w.store.Open()
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	found := map[string]fleet.Claim{}
	err := d.Watch(ctx, "session.", func(e fleet.Entry) {
		if e.Key == "" {
			stop()
			return
		}
		var c fleet.Claim
		if err := json.Unmarshal(e.Value, &c); err != nil {
			w.t.Error(err)
		}
		found[c.Key] = c
	})
	require.ErrorIs(w.t, err, context.Canceled)
	require.NoError(w.t, d.Close())
	return found
}

// TestForgotten: a key that was released, or whose owner is over, leaves nothing in the
// directory in the end; its epochs go on all the same.
func TestForgotten(t *testing.T) {
	for _, mode := range []string{"by the lease", "strict"} {
		t.Run(mode, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				how := func(o *fleet.Options) { forgets(o); o.Strict = mode == "strict" }
				a, b := w.join("a", how), w.join("b", how)
				kept := w.claim(a, "kept")
				for range 5 {
					o := w.claim(a, "released")
					w.begin(o, fleet.Call{})
					require.NoError(t, o.Release(t.Context()))
				}
				w.claim(b, "orphan")
				b.link.Cut()
				time.Sleep(failover + forget/2)
				require.Len(t, w.claims(), 3, "not so soon")
				require.NoError(t, w.claim(a, "used").Release(t.Context()))
				time.Sleep(2 * forgotten)
				claims := w.claims()
				require.Len(t, claims, 1)
				require.Equal(t, a.ID(), claims["kept"].Node)
				require.NoError(t, w.begin(kept, fleet.Call{Epoch: 1}).Answer(t.Context()))

				again := w.claim(a, "released")
				require.EqualValues(t, 6, again.Epoch(), "the next one")
				require.EqualValues(t, 6, again.First())
				require.Zero(t, again.Used(), "it is like new")
				_, err := again.Begin(t.Context(), fleet.Call{Epoch: 5})
				var other *fleet.EpochError
				require.ErrorAs(t, err, &other)
				require.EqualValues(t, 6, w.claim(a, "never before").Epoch(), "nobody can know")
				require.NoError(t, kept.Release(t.Context()))
				later := w.claim(a, "kept")
				require.EqualValues(t, 6, later.Epoch())
				require.EqualValues(t, 1, later.Used())
			})
		})
	}
}

// TestTakenMeanwhile: a claim that was made when its key was about to be forgotten stays.
func TestTakenMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a", forgets), w.join("b", forgets)
		require.NoError(t, w.claim(a, "k").Release(t.Context()))
		var removed atomic.Bool
		a.link.Faults(func(op, _ string) fleettest.Fault {
			if op != "remove" {
				return fleettest.Fault{}
			}
			removed.Store(true)
			return fleettest.Fault{Before: ttl / 2}
		})
		for end := time.Now().Add(2 * forgotten); !removed.Load(); time.Sleep(time.Millisecond) {
			require.True(t, time.Now().Before(end), "nobody forgets it")
		}
		o := w.claim(b, "k")
		require.EqualValues(t, 2, o.Epoch())
		time.Sleep(ttl)
		require.Equal(t, b.ID(), w.claims()["k"].Node)
		require.NoError(t, w.begin(o, fleet.Call{Epoch: 2}).Answer(t.Context()))
	})
}

// TestClaimOfThePast: a swap that was on its way until its key was forgotten makes the
// claim again in an old epoch. Nobody owns the key in that a second time, neither the node
// that had sent it nor another.
func TestClaimOfThePast(t *testing.T) {
	for _, who := range []string{"its node", "another, once that is dead"} {
		t.Run(who, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.join("a", forgets), w.join("b", forgets)
				sent := 0
				a.link.Faults(func(op, key string) fleettest.Fault {
					if op == "swap" && strings.HasPrefix(key, "session.") {
						if sent++; sent == 1 {
							return fleettest.Fault{Late: 3 * forgotten}
						}
					}
					return fleettest.Fault{}
				})
				first := w.claim(a, "k") // by a second attempt
				require.EqualValues(t, 1, first.Epoch())
				require.NoError(t, first.Release(t.Context()))
				require.NoError(t, w.claim(a, "k").Release(t.Context()))
				time.Sleep(2 * forgotten)
				require.Empty(t, w.claims())
				time.Sleep(forgotten + time.Second)
				claims := w.claims()
				require.Equal(t, a.ID(), claims["k"].Node, "it has arrived")
				require.EqualValues(t, 1, claims["k"].Epoch)
				_, err := b.Claim(t.Context(), "k")
				var owned *fleet.OwnedError
				require.ErrorAs(t, err, &owned)
				node := a
				if who != "its node" {
					a.link.Cut()
					time.Sleep(failover + ttl)
					node = b
				}
				o := w.claim(node, "k")
				require.EqualValues(t, 3, o.Epoch(), "it was in 1 and 2")
			})
		})
	}
}

// TestLateClaim: a swap that makes the claim of a key nobody has had, and is on its way until
// others had it and it was forgotten, comes to an epoch that nobody has had.
func TestLateClaim(t *testing.T) {
	for mode, epochs := range map[string]uint64{"by the lease": 3, "strict": 3, "by the lease, of one epoch": 1} {
		t.Run(mode, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				how := func(o *fleet.Options) { forgets(o); o.Strict = mode == "strict" }
				a, b := w.join("a", how), w.join("b", how)
				w.claim(b, "other") // it knows the floor
				b.link.Faults(onClaims(fleettest.Fault{Before: 2 * forgotten}))
				late := make(chan *fleet.Ownership)
				go func() {
					o, err := b.Claim(t.Context(), "k")
					if err != nil {
						t.Error(err)
					}
					late <- o
				}()
				time.Sleep(ttl)
				for range epochs {
					require.NoError(t, w.claim(a, "k").Release(t.Context()))
				}
				time.Sleep(2*forgotten - 2*ttl)
				require.NotContains(t, w.claims(), "k", "it is forgotten")
				b.link.Faults(nil)
				o := <-late
				require.Equal(t, epochs+1, o.Epoch())
				require.Equal(t, epochs+1, o.First())
				require.Zero(t, o.Used())
			})
		})
	}
}

// TestRelied: whoever relies on what it knew of the floor before it was raised does not come
// to an epoch that was forgotten: the claims wait for it.
func TestRelied(t *testing.T) {
	for phase := range 8 {
		t.Run(fmt.Sprint(phase), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.join("a", forgets), w.join("b", forgets)
				for range 3 {
					require.NoError(t, w.claim(a, "k").Release(t.Context()))
				}
				time.Sleep(time.Duration(phase) * ttl / 2) // it is relied on for four times as long
				for n, end := 0, time.Now().Add(2*forgotten); ; n++ {
					_, there, err := a.Look(t.Context(), "k")
					require.NoError(t, err)
					if !there {
						break
					}
					require.True(t, time.Now().Before(end), "nobody forgets it")
					require.NoError(t, w.claim(b, fmt.Sprint(n)).Release(t.Context())) // it looks at the floor, or relies on what it knows
					time.Sleep(ttl / 20)
				}
				require.EqualValues(t, 4, w.claim(b, "k").Epoch())
			})
		})
	}
}

// TestTheEndOfAnOrphan: a claim that another node releases for one that is dead does not say that
// its last epoch has ended in order, as the one before may have.
func TestTheEndOfAnOrphan(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a", forgets), w.join("b", forgets)
		first := w.claim(a, "k")
		w.begin(first, fleet.Call{ID: "one"})
		require.NoError(t, first.End(t.Context(), "it was closed"))
		next := w.claim(b, "k")
		require.Equal(t, "it was closed", next.Past().Why)
		w.begin(next, fleet.Call{ID: "two"})
		b.link.Cut()
		time.Sleep(failover + forget/2)
		c, found, err := a.Look(t.Context(), "k")
		require.NoError(t, err)
		require.True(t, found)
		require.Empty(t, c.Node, "it was released")
		last := w.claim(a, "k")
		require.EqualValues(t, 2, last.Used())
		require.Equal(t, fleet.Past{}, last.Past(), "nobody can say what was begun")
	})
}
