package fleet_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

// TestLeaseBeforeWork: a node that was cut off begins nothing once its lease is over,
// which is before anybody else can own what it had. Without the first look at the lease
// its turn would begin, beside the one of the new owner.
func TestLeaseBeforeWork(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		mine := w.claim(a, "k")
		a.link.Cut()
		var last time.Time
		for {
			_, err := mine.Begin(t.Context(), fleet.Call{})
			if err != nil {
				require.ErrorIs(t, err, fleet.ErrSuspended)
				break
			}
			last = time.Now()
			require.Less(t, time.Since(w.start), failover, "somebody else can own the key now")
			time.Sleep(time.Millisecond)
		}
		theirs, _ := w.takes(b, "k")
		require.EqualValues(t, 2, theirs.Epoch())
		require.GreaterOrEqual(t, time.Since(last), ttl/10)
		w.begin(theirs, fleet.Call{})
		_, err := mine.Begin(t.Context(), fleet.Call{})
		require.ErrorIs(t, err, fleet.ErrSuspended, "it cannot know yet that it is dead")
		a.link.Mend()
		<-a.Done()
		_, err = mine.Begin(t.Context(), fleet.Call{})
		require.ErrorIs(t, err, fleet.ErrOver)
		require.ErrorContains(t, a.Err(), b.ID())
	})
}

// TestLeaseBeforeAnswer: work that began in time, and ended after the key had another
// owner who has answered, has an answer that is lost. Without the second look at the lease
// it would leave.
func TestLeaseBeforeAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		old := w.begin(w.claim(a, "k"), fleet.Call{ID: "old"})
		a.link.Cut()
		theirs, _ := w.takes(b, "k")
		require.NoError(t, w.begin(theirs, fleet.Call{ID: "new"}).Answer(t.Context()))

		err := w.answer(old, time.Second)
		require.ErrorIs(t, err, fleet.ErrHeld, "it cannot know yet that it is dead")
		require.NotErrorIs(t, err, fleet.ErrLost)
		a.link.Mend()
		require.ErrorIs(t, old.Answer(t.Context()), fleet.ErrLost)
		require.ErrorIs(t, old.Answer(t.Context()), fleet.ErrLost)
	})
}

// TestLeaseFromSending: a renewal whose answer is long on its way counts from before it
// was sent.
func TestLeaseFromSending(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		slow := ttl / 3
		a := w.join("a")
		var (
			mu   sync.Mutex
			sent time.Time
		)
		a.link.Faults(func(op, _ string) fleettest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if !sent.IsZero() {
				return fleettest.Fault{Drop: true}
			}
			sent = time.Now()
			return fleettest.Fault{After: slow}
		})
		time.Sleep(ttl/4 + slow) // the first answer has come, after it nothing does
		mu.Lock()
		from := sent
		mu.Unlock()
		require.NotZero(t, from)
		require.Equal(t, ttl/4, from.Sub(w.start))
		time.Sleep(time.Until(from.Add(ttl - time.Millisecond)))
		require.NoError(t, a.Check())
		time.Sleep(time.Millisecond)
		require.ErrorIs(t, a.Check(), fleet.ErrSuspended)
	})
}

// TestFailover: a node that is gone is declared dead when its silence has lasted for TTL
// and a tenth, not before, and its key has another owner at once.
func TestFailover(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		w.claim(a, "k")
		time.Sleep(10*ttl + ttl/8) // between two renewals
		_, err := b.Claim(t.Context(), "k")
		var owned *fleet.OwnedError
		require.ErrorAs(t, err, &owned)
		require.Equal(t, a.ID(), owned.Node)
		a.link.Cut()
		_, took := w.takes(b, "k")
		require.Greater(t, took, failover-ttl/4-time.Millisecond, "since its last renewal, at most a quarter of TTL ago")
		require.LessOrEqual(t, took, failover+20*time.Millisecond)
	})
}

// TestDirectoryAway: while the directory is away for everybody nobody is declared dead, no
// key changes its owner, and what was running is answered afterwards.
func TestDirectoryAway(t *testing.T) {
	for _, away := range []time.Duration{ttl / 4, ttl / 2, 3 * ttl / 4, ttl, failover, 2 * ttl, 3 * ttl, 100 * ttl} {
		t.Run(away.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				nodes := []*node{w.join("a"), w.join("b"), w.join("c")}
				var owned []*fleet.Ownership
				var turns []*fleet.Turn
				for i, n := range nodes {
					owned = append(owned, w.claim(n, string(rune('x'+i))))
					turns = append(turns, w.begin(owned[i], fleet.Call{}))
					time.Sleep(ttl / 10)
				}
				for _, n := range nodes {
					n.link.Cut()
				}
				time.Sleep(away)
				if away >= ttl {
					for i, n := range nodes {
						require.ErrorIs(t, n.Check(), fleet.ErrSuspended)
						_, err := owned[i].Begin(t.Context(), fleet.Call{})
						require.ErrorIs(t, err, fleet.ErrSuspended)
						require.ErrorIs(t, w.answer(turns[i], time.Millisecond), fleet.ErrHeld)
					}
				}
				for _, n := range nodes {
					n.link.Mend()
				}
				for i, n := range nodes {
					require.NoError(t, turns[i].Answer(t.Context()))
					require.Same(t, owned[i], w.claim(n, owned[i].Key()), "it is the same, with all that it has")
				}
				time.Sleep(10 * ttl)
				for i, n := range nodes {
					require.NoError(t, n.Check())
					require.NoError(t, w.begin(owned[i], fleet.Call{}).Answer(t.Context()))
				}
			})
		})
	}
}

// TestRenewalsUnheard: renewals whose answers are lost, or that arrive late, are found by
// reading, also when reads are stale; the node lives on, and in time.
func TestRenewalsUnheard(t *testing.T) {
	for name, fault := range map[string]fleettest.Fault{
		"mute": {Mute: true}, "late": {Late: ttl / 8}, "dropped": {Drop: true}, "slow": {Before: ttl / 20, After: ttl / 20},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.join("a"), w.join("b")
				n := 0
				a.link.Faults(func(op, _ string) fleettest.Fault {
					if n++; op == "get" {
						return fleettest.Fault{Stale: n%2 == 0}
					} else if n%2 == 0 {
						return fault
					}
					return fleettest.Fault{}
				})
				for range 200 {
					time.Sleep(ttl / 20)
					require.NoError(t, a.Check())
				}
				require.NoError(t, b.Check())
			})
		})
	}
}

// TestRecordLost: a directory that has lost the record of a node, or the last renewal in
// it, ends the node's life, for the node's claims may be lost as well. Stale reads do not.
func TestRecordLost(t *testing.T) {
	for name, lose := range map[string]func(*world, *node, fleet.Entry){
		"record": func(w *world, a *node, _ fleet.Entry) { w.store.Forget("node." + a.ID()) },
		"last renewals": func(w *world, _ *node, old fleet.Entry) {
			w.store.Restore(old)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a := w.join("a")
				old, err := a.link.Get(t.Context(), "node."+a.ID())
				require.NoError(t, err)
				time.Sleep(2 * ttl)
				lose(w, a, old)
				<-a.Done()
				require.ErrorIs(t, a.Err(), fleet.ErrOver)
				require.ErrorContains(t, a.Err(), "lost its record")
				b := w.join("b")
				require.NotEqual(t, a.ID(), b.ID())
			})
		})
	}
}

// TestOwnerWithoutRecord: the claim of a node that the directory does not know is free
// once the silence has lasted.
func TestOwnerWithoutRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		w.claim(a, "k")
		a.link.Cut()
		time.Sleep(ttl / 2)
		c := w.join("c") // it has never seen a
		w.store.Forget("node." + a.ID())
		require.NoError(t, b.Leave(t.Context()))
		_, took := w.takes(c, "k")
		require.GreaterOrEqual(t, took, failover-ttl/2)
		a.link.Mend()
		<-a.Done()
	})
}

// TestLeave: who leaves is not waited for.
func TestLeave(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.join("a"), w.join("b")
		o := w.claim(a, "k")
		turn := w.begin(o, fleet.Call{})
		other := w.claim(a, "other")
		require.NoError(t, a.Drain(t.Context()))
		_, err := a.Claim(t.Context(), "new")
		require.ErrorIs(t, err, fleet.ErrDraining)
		require.Same(t, o, w.claim(a, "k"), "what it has it keeps")
		require.Equal(t, map[string]uint64{"k": 1, "other": 1}, a.Owned())
		require.NoError(t, other.Release(t.Context()))
		require.NoError(t, other.Release(t.Context()))
		_, err = other.Begin(t.Context(), fleet.Call{})
		require.ErrorIs(t, err, fleet.ErrReleased)
		require.EqualValues(t, 2, w.claim(b, "other").Epoch())

		require.NoError(t, a.Leave(t.Context()))
		require.NoError(t, a.Leave(t.Context()))
		require.ErrorIs(t, a.Err(), fleet.ErrOver)
		require.ErrorIs(t, turn.Answer(t.Context()), fleet.ErrLost)
		require.EqualValues(t, 2, w.claim(b, "k").Epoch())
		require.NoError(t, o.Release(t.Context()), "there is nothing to release")
		_, err = a.Claim(t.Context(), "k")
		require.ErrorIs(t, err, fleet.ErrOver)
	})
}

// TestJoinGoesOn: a request that comes to nothing is sent again.
func TestJoinGoesOn(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.join("a", func(o *fleet.Options) {
			faults, _ := first(1, "swap", "node.", fleettest.Fault{Drop: true})
			o.Directory.(*fleettest.Link).Faults(faults)
		})
	})
}

// TestJoinFails: without a directory there is no life, and nothing is left of the attempt.
func TestJoinFails(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		link := fleettest.NewLink(w.store)
		link.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), 3*ttl)
		defer cancel()
		_, err := fleet.Join(ctx, fleet.Options{Directory: link, TTL: ttl, Clock: w.clock})
		require.Error(t, err)
		require.NoError(t, link.Close())
		_, err = fleet.Join(t.Context(), fleet.Options{Directory: link, TTL: ttl, Clock: w.clock})
		require.ErrorIs(t, err, fleet.ErrClosed)
		_, err = fleet.Join(t.Context(), fleet.Options{})
		require.Error(t, err)
		_, err = fleet.Join(t.Context(), fleet.Options{Directory: link, TTL: time.Millisecond})
		require.Error(t, err)
	})
}
