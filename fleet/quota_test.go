package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

func most(n int) func(*fleet.Options) { return func(o *fleet.Options) { o.Most = n } }

// TestQuota: the members of a fleet have no more keys together than they may. What is released, and
// what a dead member had, is anybody's.
func TestQuota(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a", most(3)), w.join("b", most(3))
		x := w.claim(a, "x")
		w.claim(a, "y")
		w.claim(b, "z")
		require.Same(t, x, w.claim(a, "x"), "it has it")
		for _, n := range []*node{a, b} {
			_, err := n.Claim(t.Context(), "one more")
			full, is := errors.AsType[*fleet.QuotaError](err)
			require.True(t, is, err)
			require.Equal(t, 3, full.Most)
		}
		require.NoError(t, x.Release(t.Context()))
		w.claim(b, "x")
		_, err := a.Claim(t.Context(), "one more")
		require.ErrorContains(t, err, "the fleet has 3 keys, as many as it may have")

		a.link.Cut()
		time.Sleep(failover + ttl)
		w.claim(b, "one more")
		_, err = b.Claim(t.Context(), "and one")
		require.ErrorContains(t, err, "as many as it may have")
	})
}

// TestWhatTheDeadHad is anybody's, whoever they were.
func TestWhatTheDeadHad(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		b := w.join("b", most(2))
		w.claim(b, "b")
		for range 10 {
			a := w.join("a", most(2))
			w.claim(a, "a")
			a.link.Cut()
			time.Sleep(failover + ttl)
			require.NoError(t, w.claim(b, "another").Release(t.Context()))
		}
	})
}

// TestFreeKeys do not count: neither are they refused, nor do they take the place of others.
func TestFreeKeys(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.join("a", most(1), func(o *fleet.Options) { o.Free = func(key string) bool { return key == "free" } })
		free := w.claim(a, "free")
		x := w.claim(a, "x")
		require.NoError(t, free.Release(t.Context()))
		_, err := a.Claim(t.Context(), "y")
		require.ErrorContains(t, err, "as many as it may have", "what was released had no place")
		w.claim(a, "free")
		require.NoError(t, x.Release(t.Context()))
		w.claim(a, "y")
	})
}

// TestQuotasHold whatever the members do, and however the directory fails: there are never more keys
// than there may be, and in the end as many can be had.
func TestQuotasHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		steps := schedules().Draw(rt, "steps")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			const bound = 2
			w := &world{t: t, store: fleettest.NewMemory(), start: time.Now()}
			var nodes []*node
			for i := range 3 {
				nodes = append(nodes, w.join(fmt.Sprint("n", i), most(bound)))
			}
			has := map[string]*fleet.Ownership{} // by node and key
			var dead [3]atomic.Bool
			for _, s := range steps {
				time.Sleep(min(s.After, ttl))
				if dead[s.Node].Load() {
					continue
				}
				n, at := nodes[s.Node], fmt.Sprint(s.Node, s.Key)
				ctx, cancel := context.WithTimeout(t.Context(), s.For+time.Millisecond)
				switch s.Do {
				case "call", "repeat", "keep", "drop":
					n.link.Faults(inTurn(s.Faults))
					if o, err := n.Claim(ctx, s.Key+fmt.Sprint(len(s.Faults))); err == nil {
						has[at+fmt.Sprint(len(s.Faults))] = o
					}
				case "release":
					if o := has[at]; o != nil {
						_ = o.Release(ctx)
					}
				case "cut":
					n.link.Cut()
					time.AfterFunc(s.For, func() {
						if !dead[s.Node].Load() {
							n.link.Mend()
						}
					})
				case "kill":
					n.link.Cut()
					dead[s.Node].Store(true)
				}
				cancel()
				lives := 0
				for at, o := range has {
					select {
					case <-o.Ended():
						delete(has, at)
					case <-nodes[at[0]-'0'].Done():
						delete(has, at)
					default:
						// Without a lease it acts on none, and others may have been told so.
						if nodes[at[0]-'0'].Check() == nil {
							lives++
						}
					}
				}
				if lives > bound {
					wrong = fmt.Sprintf("%d keys of %d", lives, bound)
				}
			}
			for i, n := range nodes {
				n.link.Faults(nil)
				if !dead[i].Load() {
					n.link.Mend()
				}
			}
			time.Sleep(4 * failover)
			for at, o := range has {
				if !dead[at[0]-'0'].Load() {
					_ = o.Release(t.Context())
				}
			}
			time.Sleep(ttl)
			last := w.join("last", most(bound))
			time.Sleep(2 * failover) // there may be nobody else to see who is silent
			for i := range bound {
				if _, err := last.Claim(t.Context(), fmt.Sprint("last", i)); err != nil {
					wrong = err.Error()
				}
			}
			if _, err := last.Claim(t.Context(), "beyond"); err == nil {
				wrong = "one beyond the bound"
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// TestWithin: a part of a directory is a directory, of which others see nothing.
func TestWithin(t *testing.T) {
	t.Parallel()
	t.Run("a directory", func(t *testing.T) {
		t.Parallel()
		d := fleet.Within(fleettest.NewMemory().Open(), "a")
		rev, err := d.Swap(t.Context(), "node.x", []byte("1"), "")
		require.NoError(t, err)
		_, err = d.Swap(t.Context(), "node.x", []byte("2"), "")
		require.ErrorIs(t, err, fleet.ErrConflict)
		_, err = d.Swap(t.Context(), "node x", []byte("2"), "")
		require.ErrorContains(t, err, "cannot have there")
		e, err := d.Get(t.Context(), "node.x")
		require.NoError(t, err)
		require.Equal(t, fleet.Entry{Key: "node.x", Value: []byte("1"), Rev: rev}, e)
		ctx, cancel := context.WithCancel(t.Context())
		var seen []string
		err = d.Watch(ctx, "node.", func(e fleet.Entry) {
			if seen = append(seen, e.Key); e.Key == "" {
				cancel()
			}
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []string{"node.x", ""}, seen)
		require.NoError(t, d.Remove(t.Context(), "node.x", rev))
		e, err = d.Get(t.Context(), "node.x")
		require.NoError(t, err)
		require.Empty(t, e.Rev)
		ended := make(chan error)
		go func() { ended <- d.Watch(t.Context(), "", func(fleet.Entry) { _ = d.Close() }) }() // ends with Close
		require.ErrorIs(t, <-ended, fleet.ErrClosed)
		_, err = d.Swap(t.Context(), "node.x", nil, "")
		require.ErrorIs(t, err, fleet.ErrClosed)
		require.ErrorIs(t, d.Remove(t.Context(), "node.x", rev), fleet.ErrClosed)
	})
	t.Run("apart", func(t *testing.T) {
		t.Parallel()
		store := fleettest.NewMemory().Open()
		a, b := fleet.Within(store, "a"), fleet.Within(store, "b")
		_, err := a.Swap(t.Context(), "session.x", []byte("of a"), "")
		require.NoError(t, err)
		for _, d := range []fleet.Directory{b, store} {
			e, err := d.Get(t.Context(), "session.x")
			require.NoError(t, err)
			require.Empty(t, e.Value)
			ctx, cancel := context.WithCancel(t.Context())
			err = d.Watch(ctx, "session.", func(e fleet.Entry) {
				if e.Key != "" {
					t.Error("it is told of " + e.Key)
				}
				cancel()
			})
			require.ErrorIs(t, err, context.Canceled)
		}
		require.Panics(t, func() { fleet.Within(store, "a.b") })
		require.NoError(t, a.Close())
		_, err = a.Get(t.Context(), "session.x")
		require.ErrorIs(t, err, fleet.ErrClosed)
		_, err = store.Get(t.Context(), "session.x")
		require.NoError(t, err)
	})
}
