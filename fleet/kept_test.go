package fleet_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// long is until when what is kept in these tests is there.
func long() time.Time { return time.Now().Add(100 * forgotten) }

// unheard has no swap of a claim be heard of: with one of these faults, and no read either.
func (n *node) unheard(fault fleettest.Fault) {
	n.link.Faults(func(op, key string) fleettest.Fault {
		switch {
		case !strings.HasPrefix(key, "session."):
			return fleettest.Fault{}
		case op == "get":
			return fleettest.Fault{Drop: true}
		}
		return fault
	})
}

// soon is a context for what has no answer.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ttl/10)
	t.Cleanup(cancel)
	return ctx
}

// TestKept: what an owner has kept is for the next one, once, whether the first has released
// the key, has left or is dead.
func TestKept(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, a *node, o *fleet.Ownership){
		"released": func(t *testing.T, _ *node, o *fleet.Ownership) {
			t.Helper()
			require.NoError(t, o.End(t.Context(), "it is kept"))
		},
		"left": func(t *testing.T, a *node, _ *fleet.Ownership) {
			t.Helper()
			require.NoError(t, a.Leave(t.Context()))
		},
		"dead": func(_ *testing.T, a *node, _ *fleet.Ownership) { a.link.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.join("a"), w.join("b")
				first := w.claim(a, "k")
				require.Empty(t, first.Kept())
				require.NoError(t, w.begin(first, fleet.Call{}).Answer(t.Context()))
				require.NoError(t, first.Keep(t.Context(), "1.1", long()))
				require.Equal(t, "1.1", first.Kept())
				end(t, a, first)
				next, _ := w.takes(b, "k")
				require.EqualValues(t, 2, next.Epoch())
				require.EqualValues(t, 1, next.Used())
				require.Equal(t, "1.1", next.Kept())
				require.NoError(t, next.Take(t.Context()))
				require.Empty(t, next.Kept())
				require.Equal(t, "1.1", next.Past().Kept, "that is how it began")
				require.NoError(t, next.Release(t.Context()))
				last := w.claim(b, "k")
				require.Empty(t, last.Kept(), "it was taken")
				require.Empty(t, last.Past().Kept)
			})
		})
	}
}

// TestWhoIsLate: an owner that another one has followed can take nothing and keep nothing,
// whenever it has begun.
func TestWhoIsLate(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		old := w.claim(a, "k")
		require.NoError(t, old.Keep(t.Context(), "1.1", long()))
		a.link.Cut()
		done := make(chan [3]error)
		go func() { // they are on their way while another one has the key
			done <- [3]error{old.Take(t.Context()), old.Keep(t.Context(), "1.2", long()), old.Drop(t.Context())}
		}()
		next, _ := w.takes(b, "k")
		require.Equal(t, "1.1", next.Kept())
		a.link.Mend()
		for i, err := range <-done {
			require.Error(t, err, i)
		}
		require.NoError(t, next.Keep(t.Context(), "2.1", long()))
		require.NoError(t, next.Release(t.Context()))
		require.Error(t, next.Keep(t.Context(), "2.2", long()))
		require.Equal(t, "2.1", w.claim(b, "k").Kept())
	})
}

// TestWhoIsLateDrops: an owner that another one has followed does not say that nothing is kept,
// also where it never had anything written down.
func TestWhoIsLateDrops(t *testing.T) {
	for mode, change := range map[string]func(*fleet.Options){"by the lease": func(*fleet.Options) {}, "strict": strict} {
		t.Run(mode, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.join("a", change), w.join("b", change)
				old := w.claim(a, "k")
				require.NoError(t, old.Drop(t.Context()), "there is nothing")
				a.link.Cut()
				next, _ := w.takes(b, "k")
				require.NoError(t, next.Keep(t.Context(), "2.1", long()))
				require.NoError(t, next.Release(t.Context()))
				require.Error(t, old.Drop(soon(t)), "it is not known whose the key is")
				a.link.Mend()
				require.Error(t, old.Drop(t.Context()), "the key is another one's")
				require.Equal(t, "2.1", w.claim(b, "k").Kept())
			})
		})
	}
	t.Run("released", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *world) {
			old := w.claim(w.join("a"), "k")
			require.NoError(t, old.Release(t.Context()))
			require.ErrorIs(t, old.Drop(t.Context()), fleet.ErrReleased)
		})
	})
}

// TestKeptWithoutAnAnswer: as long as it is not known whether the next owner goes by a record,
// this one answers nothing; and then nobody goes by it.
func TestKeptWithoutAnAnswer(t *testing.T) {
	type after struct {
		name string
		do   func(t *testing.T, o *fleet.Ownership, turn *fleet.Turn) error
	}
	for _, mode := range []string{"by the lease", "strict"} {
		for fault, f := range map[string]fleettest.Fault{"mute": {Mute: true}, "dropped": {Drop: true}, "late": {Late: ttl / 4}} {
			for _, then := range []after{
				{"a turn begins", func(t *testing.T, o *fleet.Ownership, _ *fleet.Turn) error {
					t.Helper()
					_, err := o.Begin(soon(t), fleet.Call{ID: "later"})
					return err
				}},
				{"an answer leaves", func(t *testing.T, _ *fleet.Ownership, turn *fleet.Turn) error {
					t.Helper()
					return turn.Answer(soon(t))
				}},
				{"it is released", func(t *testing.T, o *fleet.Ownership, _ *fleet.Turn) error {
					t.Helper()
					return o.Release(t.Context())
				}},
			} {
				t.Run(mode+"/"+fault+"/"+then.name, func(t *testing.T) {
					inBubble(t, func(t *testing.T, w *world) {
						a, b := w.join("a", func(o *fleet.Options) { o.Strict = mode == "strict" }), w.join("b")
						o := w.claim(a, "k")
						turn := w.begin(o, fleet.Call{ID: "first"})
						a.unheard(f)
						require.ErrorIs(t, o.Keep(soon(t), "1.1", long()), fleet.ErrUnknown)
						require.Empty(t, o.Kept())
						if then.name != "it is released" {
							require.Error(t, then.do(t, o, turn), "not before that is known")
						}
						a.link.Faults(nil)
						require.NoError(t, then.do(t, o, turn))
						time.Sleep(ttl / 2) // what was late has come
						if !ended(o) {
							require.NoError(t, o.Release(t.Context()))
						}
						require.Empty(t, w.claim(b, "k").Kept())
					})
				})
			}
		}
	}
}

// ended reports whether an ownership was released.
func ended(o *fleet.Ownership) bool {
	select {
	case <-o.Ended():
		return true
	default:
		return false
	}
}

// TestTakenWithoutAnAnswer: what could not be taken is kept as before, and what was dropped
// never comes back.
func TestTakenWithoutAnAnswer(t *testing.T) {
	for fault, f := range map[string]fleettest.Fault{"mute": {Mute: true}, "dropped": {Drop: true}, "late": {Late: ttl / 4}} {
		for do, want := range map[string]string{"take": "1.1", "drop": ""} {
			t.Run(do+"/"+fault, func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					a, b := w.join("a"), w.join("b")
					first := w.claim(a, "k")
					require.NoError(t, first.Keep(t.Context(), "1.1", long()))
					require.NoError(t, first.Release(t.Context()))
					o := w.claim(a, "k")
					a.unheard(f)
					if do == "take" {
						require.ErrorIs(t, o.Take(soon(t)), fleet.ErrUnknown)
					} else {
						require.ErrorIs(t, o.Drop(soon(t)), fleet.ErrUnknown)
					}
					require.Equal(t, want, o.Kept())
					a.link.Faults(nil)
					require.NoError(t, w.begin(o, fleet.Call{}).Answer(t.Context()))
					time.Sleep(ttl / 2)
					require.NoError(t, o.Release(t.Context()))
					require.Equal(t, want, w.claim(b, "k").Kept())
				})
			})
		}
	}
}

// TestKeptIsNotForgotten: the name of a key is remembered for as long as what is kept of it
// is there, and no longer.
func TestKeptIsNotForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a", forgets), w.join("b", forgets)
		for n, key := range []string{"released", "dead"} {
			o := w.claim([]*node{a, b}[n], key)
			require.NoError(t, o.Keep(t.Context(), "1.1", time.Now().Add(3*forgotten)))
			if key == "released" {
				require.NoError(t, o.Release(t.Context()))
			}
		}
		b.link.Cut()
		time.Sleep(2 * forgotten)
		require.Len(t, w.claims(), 2)
		for _, key := range []string{"released", "dead"} {
			c, found, err := a.Look(t.Context(), key)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, "1.1", c.Kept)
		}
		time.Sleep(3 * forgotten)
		require.Empty(t, w.claims())
		require.Empty(t, w.claim(a, "released").Kept(), "it has expired")
		_, found, err := a.Look(t.Context(), "never")
		require.NoError(t, err)
		require.False(t, found)
		o := w.claim(a, "k")
		require.Error(t, o.Keep(t.Context(), "", long()))
		require.Error(t, o.Keep(t.Context(), strings.Repeat("x", fleet.MaxKept+1), long()))
		require.Error(t, o.Keep(t.Context(), "1.1", time.Now()))
	})
}

// TestWhatWasBegunIsKeptToo: who has what was kept knows what was begun in the epoch before, so
// that nothing of it begins again and all else may; a claim has that no longer than it is needed.
func TestWhatWasBegunIsKeptToo(t *testing.T) {
	for _, mode := range []string{"by the lease", "strict"} {
		for _, turns := range []int{0, 1, 100, 101} {
			t.Run(fmt.Sprint(mode, "/", turns), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					how := func(o *fleet.Options) { o.Strict = mode == "strict" }
					a, b := w.join("a", how), w.join("b", how)
					o := w.claim(a, "k")
					require.NoError(t, w.begin(o, fleet.Call{}).Answer(t.Context()))
					for i := range turns {
						require.NoError(t, w.begin(o, fleet.Call{ID: fmt.Sprint("id ", i)}).Answer(t.Context()))
					}
					require.NoError(t, o.Keep(t.Context(), "1.1", long()))
					require.NoError(t, o.End(t.Context(), "it is kept"))
					require.NoError(t, w.claim(b, "k").Release(t.Context())) // it begins nothing
					next := w.claim(b, "k")
					require.Equal(t, fleet.Past{Node: a.ID(), Why: "it is kept", All: turns <= 100, Kept: "1.1"}, next.Past())
					for i := range min(turns, 100) {
						_, err := next.Begin(t.Context(), fleet.Call{ID: fmt.Sprint("id ", i)})
						if turns <= 100 {
							require.ErrorIs(t, err, fleet.ErrBegun)
						}
					}
					w.begin(next, fleet.Call{ID: "new"})
					require.NoError(t, next.Take(t.Context()))
					require.NoError(t, next.End(t.Context(), "it was closed"))
					last, _, err := a.Look(t.Context(), "k")
					require.NoError(t, err)
					require.False(t, last.All)
					require.Equal(t, fleet.Past{Node: b.ID(), Why: "it was closed"}, w.claim(a, "k").Past())
					if mode != "strict" {
						require.Empty(t, last.Recent, "it was said once")
					}
				})
			})
		}
	}
}

// TestWhenItWasLastKept: who has a key after the death of an owner that had taken what was kept
// learns when that was written down, and nobody else does: not after an end in order, nor where it
// was dropped, nor where it is kept still, nor of an epoch in which nobody had it.
func TestWhenItWasLastKept(t *testing.T) {
	for name, c := range map[string]struct {
		then func(t *testing.T, w *world, a *node, o *fleet.Ownership)
		wait time.Duration
		want bool
	}{
		"dead": {func(_ *testing.T, _ *world, a *node, _ *fleet.Ownership) { a.link.Cut() }, 0, true},
		"left": {func(t *testing.T, _ *world, a *node, _ *fleet.Ownership) {
			t.Helper()
			require.NoError(t, a.Leave(t.Context()))
		}, 0, true},
		"an orphan": {func(_ *testing.T, _ *world, a *node, _ *fleet.Ownership) { a.link.Cut() }, failover + forget/2, true},
		"ended": {func(t *testing.T, _ *world, _ *node, o *fleet.Ownership) {
			t.Helper()
			require.NoError(t, o.End(t.Context(), "it was closed"))
		}, 0, false},
		"released": {func(t *testing.T, _ *world, _ *node, o *fleet.Ownership) {
			t.Helper()
			require.NoError(t, o.Release(t.Context()))
		}, 0, false},
		"dropped": {func(t *testing.T, _ *world, a *node, o *fleet.Ownership) {
			t.Helper()
			require.NoError(t, o.Drop(t.Context()))
			a.link.Cut()
		}, 0, false},
		"kept again": {func(t *testing.T, _ *world, a *node, o *fleet.Ownership) {
			t.Helper()
			require.NoError(t, o.Keep(t.Context(), "2.1", long()))
			a.link.Cut()
		}, 0, false},
		"dropped, and not heard of": {func(t *testing.T, _ *world, a *node, o *fleet.Ownership) {
			t.Helper()
			a.unheard(fleettest.Fault{Mute: true})
			require.ErrorIs(t, o.Drop(soon(t)), fleet.ErrUnknown)
			a.link.Cut()
		}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				first := w.claim(w.join("first", forgets), "k")
				a, b := w.join("a", forgets), w.join("b", forgets)
				require.NoError(t, w.begin(first, fleet.Call{ID: "one"}).Answer(t.Context()))
				kept := time.Now()
				require.NoError(t, first.Keep(t.Context(), "1.1", long()))
				require.NoError(t, first.Release(t.Context()))
				time.Sleep(10 * time.Second)
				o := w.claim(a, "k")
				require.Zero(t, o.Past().Before, "it is what was kept")
				require.NoError(t, o.Take(t.Context()))
				require.NoError(t, w.begin(o, fleet.Call{ID: "two"}).Answer(t.Context()))
				c.then(t, w, a, o)
				time.Sleep(c.wait)
				next, _ := w.takes(b, "k")
				past := next.Past()
				if !c.want {
					require.Zero(t, past.Before)
					return
				}
				require.Equal(t, kept.UTC().Truncate(time.Second), past.Before)
				require.Empty(t, next.Kept(), "it is out of date")
				require.NoError(t, next.Release(t.Context())) // it has begun nothing
				next = w.claim(b, "k")
				require.Equal(t, past.Before, next.Past().Before)
				require.NoError(t, w.begin(next, fleet.Call{ID: "three"}).Answer(t.Context()))
				b.link.Cut()
				last, _ := w.takes(w.join("c", forgets), "k")
				require.EqualValues(t, 4, last.Used())
				require.Zero(t, last.Past().Before, "that was another epoch's")
			})
		})
	}
}
