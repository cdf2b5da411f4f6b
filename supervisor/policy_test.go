package supervisor_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// These tests run whole supervisors under their strategies through hours of
// virtual time.

// policySupervisor starts a system with one supervisor of children a.
func policySupervisor(t *testing.T, s strategy.Strategy, a behaviour) (*supervisor.System, supervisor.Ref) {
	t.Helper()
	sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
		supervise("gate", supervisor.Options{Handler: dynamic(a), Strategy: s}),
	}})
	return sys, sys.Ref("gate")
}

// later lets d pass, and a little more, so that what happens at d has happened.
func later(d time.Duration) {
	time.Sleep(d + time.Millisecond)
	synctest.Wait()
}

func TestIdleFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate := policySupervisor(t, strategy.Pin(strategy.IdleTTL(5*time.Minute)), echo)
		answer(t, submit(t, gate, "a", 1))
		answer(t, submit(t, gate, "pinned", 1))
		in(t, gate, func(s *supervisor.Supervisor) {
			require.True(t, s.Pin("pinned", true))
			require.False(t, s.Pin("nobody", true))
		})
		later(4 * time.Minute)
		answer(t, submit(t, gate, "a", 2)) // its time begins again
		later(4 * time.Minute)
		require.Equal(t, []string{"a idle", "pinned idle"}, states(t, gate))

		n, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(time.Minute), n.Children[0].Children[0].TTL, time.Second)
		require.Zero(t, n.Children[0].Children[1].TTL)

		later(2 * time.Minute)
		require.Equal(t, []string{"pinned idle"}, states(t, gate))
		later(3 * time.Hour)
		require.Equal(t, []string{"pinned idle"}, states(t, gate))
		in(t, gate, func(s *supervisor.Supervisor) { s.Pin("pinned", false) })
		later(time.Second)
		require.Empty(t, states(t, gate))
		stop(t, sys)
	})
}

// TestBusyForHours: whatever takes long is not idle.
func TestBusyForHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGated("a", "b")
		sys, gate := policySupervisor(t, strategy.Chain(strategy.IdleTTL(time.Minute), strategy.LRU(1)), g.behaviour())
		r := submit(t, gate, "a", 1)
		later(8 * time.Hour)
		e := refusal(t, submit(t, gate, "b", 1))
		require.ErrorIs(t, e, supervisor.ErrOverloaded)
		require.EqualError(t, e, "b: overloaded: overloaded: 1 of 1 places are taken, and none is idle")
		g.open["a"] <- nil
		require.Equal(t, 1, answer(t, r))
		stop(t, sys)
	})
}

// TestFailedKeyIsForgotten: what stays failed does so for the TTL.
func TestFailedKeyIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ill := true
		a := echo
		a.handle = func(c *supervisor.Ctx, m any) error {
			if ill {
				return errTest
			}
			return echo.handle(c, m)
		}
		sys, gate := policySupervisor(t, strategy.Chain(strategy.RestartOnce(), strategy.IdleTTL(5*time.Minute)), a)
		refusal(t, submit(t, gate, "a", 1))
		refusal(t, submit(t, gate, "a", 1))
		later(4 * time.Minute)
		require.ErrorIs(t, refusal(t, submit(t, gate, "a", 1)), supervisor.ErrExhausted)
		later(time.Minute + time.Second)
		require.Empty(t, states(t, gate))
		ill = false
		require.Equal(t, 2, answer(t, submit(t, gate, "a", 2)))
		stop(t, sys)
	})
}

// TestMakesRoom: the least recently used child goes, and a key that comes back
// while its child ends gets a new one.
func TestMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := echo
		slow.terminate = func(*supervisor.Ctx, supervisor.Exit) { time.Sleep(time.Second) }
		sys, gate := policySupervisor(t, strategy.LRUQueue(2, 10), slow)
		for _, k := range []string{"a", "b", "a"} {
			answer(t, submit(t, gate, k, 1))
			later(time.Second)
		}
		rc := submit(t, gate, "c", 1)
		synctest.Wait()
		require.Equal(t, []string{"a idle", "b stopping", "c waiting"}, states(t, gate))
		rb := submit(t, gate, "b", 2)
		require.Equal(t, 1, answer(t, rc))
		require.Equal(t, 2, answer(t, rb), "b waits for its own end, and then for a's")
		synctest.Wait()
		require.Equal(t, []string{"b idle", "c idle"}, states(t, gate))
		stop(t, sys)
	})
}

// TestWaitsForRoom: with everything busy keys wait in order; the first child
// that becomes free makes room for the first of them.
func TestWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGated("a", "b", "c", "d", "e")
		sys, gate := policySupervisor(t, strategy.LRUQueue(2, 2), g.behaviour())
		ra, rb := submit(t, gate, "a", 1), submit(t, gate, "b", 1)
		rc, rd := submit(t, gate, "c", 1), submit(t, gate, "d", 1)
		require.ErrorIs(t, refusal(t, submit(t, gate, "e", 1)), supervisor.ErrOverloaded)
		synctest.Wait()
		require.Equal(t, []string{"a busy", "b busy", "c waiting", "d waiting"}, states(t, gate))
		g.open["b"] <- nil
		answer(t, rb)
		synctest.Wait()
		require.Equal(t, []string{"a busy", "c busy", "d waiting"}, states(t, gate))
		g.open["c"] <- nil
		g.open["d"] <- nil
		g.open["a"] <- nil
		for _, r := range []supervisor.Reply[any]{ra, rc, rd} {
			answer(t, r)
		}
		stop(t, sys)
	})
}

// TestUnpinMakesRoom: a key that waits does not wait for the next tick.
func TestUnpinMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate := policySupervisor(t, strategy.Pin(strategy.LRUQueue(1, 1)), echo)
		answer(t, submit(t, gate, "a", 1))
		in(t, gate, func(s *supervisor.Supervisor) { s.Pin("a", true) })
		r := submit(t, gate, "b", 2)
		synctest.Wait()
		require.Equal(t, []string{"a idle", "b waiting"}, states(t, gate))
		in(t, gate, func(s *supervisor.Supervisor) { s.Pin("a", false) })
		require.Equal(t, 2, answer(t, r))
		stop(t, sys)
	})
}

// TestQuotas: an owner's children make room for that owner's only.
func TestQuotas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate := policySupervisor(t, strategy.Chain(strategy.Quota(1), strategy.LRU(3)), echo)
		by := func(o string) func(*supervisor.Work) { return func(w *supervisor.Work) { w.Owner = o } }
		for i, o := range []string{"ann", "bob", "ann", "ann"} {
			answer(t, submitWork(t, gate, fmt.Sprint(i), 1, by(o)))
		}
		synctest.Wait()
		require.Equal(t, []string{"1 idle", "3 idle"}, states(t, gate))
		stop(t, sys)
	})
}

// TestGrown: a child whose process has grown is ended when it is idle.
func TestGrown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := behaviour{handle: func(c *supervisor.Ctx, m any) error {
			w := m.(supervisor.Work)
			c.Note(supervisor.Facts{PID: 7, RSS: w.Msg.(int64) << 20, Detail: "grows"})
			c.Finish(w, c.Epoch())
			return nil
		}}
		sys, gate := policySupervisor(t, strategy.MaxRSS(100<<20), a)
		answer(t, submit(t, gate, "a", int64(100)))
		later(time.Second)
		require.Equal(t, []string{"a idle"}, states(t, gate))
		n, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		node := n.Children[0].Children[0]
		require.EqualValues(t, 100<<20, node.RSS)
		require.Equal(t, 7, node.PID)
		require.Equal(t, "grows", node.Detail)
		answer(t, submit(t, gate, "a", int64(101)))
		ended := sys.Monitor("gate", "a")
		require.EqualError(t, <-ended, "evicted: its memory, 101 MiB, is over the limit of 100 MiB")
		synctest.Wait()
		require.Empty(t, states(t, gate))
		stop(t, sys)
	})
}

// TestHungInCall: a call that does not return. Work that was not begun goes to
// the next incarnation, work in hand is lost, and hanging again exhausts the
// key.
func TestHungInCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		a := behaviour{handle: func(c *supervisor.Ctx, m any) error {
			w := m.(supervisor.Work)
			switch w.Msg {
			case "beat, then hang":
				c.Beat()
				<-release
			case "hang":
				<-release
			case "wait":
				c.Hold(true)
				<-release
			}
			c.Finish(w, c.Epoch())
			return nil
		}}
		sys, gate := policySupervisor(t, strategy.Chain(strategy.RestartOnce(), strategy.Heartbeat(2*time.Second)), a)
		held := submit(t, gate, "patient", "wait")
		began := time.Now()
		r1, r2 := submit(t, gate, "a", "hang"), submit(t, gate, "a", "work")
		e := refusal(t, r1)
		require.ErrorIs(t, e, supervisor.ErrLost)
		require.Equal(t, messages.ExitHung, e.Exit.Kind)
		require.InDelta(t, 5*time.Second, time.Since(began), float64(1100*time.Millisecond))
		node, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		require.Nil(t, node.Busy, "nothing was put off")
		require.EqualValues(t, 2, answer(t, r2))

		r3, r4 := submit(t, gate, "a", "beat, then hang"), submit(t, gate, "a", "hang")
		r5 := submit(t, gate, "a", "work")
		require.ErrorIs(t, refusal(t, r3), supervisor.ErrLost)
		require.ErrorIs(t, refusal(t, r4), supervisor.ErrLost)
		require.ErrorIs(t, refusal(t, r5), supervisor.ErrExhausted)
		require.Equal(t, 3, sys.Zombies())
		close(release)
		require.EqualValues(t, 1, answer(t, held), "one that waits for others is left alone")
		synctest.Wait()
		require.Zero(t, sys.Zombies())
		stop(t, sys)
	})
}

// TestSilent: a child that beats, and then does not, is stopped and restarted.
func TestSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type pulse struct{}
		began := time.Now()
		a := behaviour{
			init: func(c *supervisor.Ctx) error { c.Tell(pulse{}); return nil },
			handle: func(c *supervisor.Ctx, m any) error {
				if w, ok := m.(supervisor.Work); ok {
					c.Finish(w, c.Epoch())
					return nil
				}
				if c.Epoch() == 1 && c.Now().Sub(began) > time.Hour {
					return nil // what it owns has died
				}
				c.Beat()
				c.After(time.Second, pulse{})
				return nil
			},
		}
		sys, gate := policySupervisor(t, strategy.Chain(strategy.RestartOnce(), strategy.Heartbeat(2*time.Second)), a)
		require.EqualValues(t, 1, answer(t, submit(t, gate, "a", 1)))
		ended := sys.Monitor("gate", "a")
		exit := <-ended
		require.Equal(t, messages.ExitHung, exit.Kind)
		require.InDelta(t, time.Hour+5*time.Second, time.Since(began), float64(2*time.Second))
		later(3 * time.Hour)
		require.EqualValues(t, 2, answer(t, submit(t, gate, "a", 1)), "the next one beats")
		stop(t, sys)
	})
}

// TestBacksOff: restarts wait, longer each time; work waits with them.
func TestBacksOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fails := 3
		starts := &log{}
		began := time.Now()
		a := echo
		a.init = func(c *supervisor.Ctx) error {
			starts.add(time.Since(began).String())
			if fails--; fails >= 0 {
				return errTest
			}
			return nil
		}
		sys, gate := policySupervisor(t, strategy.Backoff(strategy.BackoffOptions{Initial: time.Minute, Multiplier: 2, Max: time.Hour}), a)
		r := submit(t, gate, "a", 1)
		synctest.Wait()
		require.Equal(t, []string{"a restarting"}, states(t, gate))
		require.Equal(t, 1, answer(t, r))
		require.Equal(t, []string{"0s", "1m0s", "3m0s", "7m0s"}, starts.take())

		// A reset does not wait.
		fails = 1
		ended := sys.Monitor("gate", "a")
		in(t, gate, func(s *supervisor.Supervisor) { s.Restart("a", supervisor.Exit{}) })
		<-ended
		synctest.Wait()
		require.Equal(t, []string{"a restarting"}, states(t, gate))
		r = submit(t, gate, "a", 2)
		in(t, gate, func(s *supervisor.Supervisor) { s.Restart("a", supervisor.Exit{}) })
		require.Equal(t, 2, answer(t, r))
		require.Equal(t, []string{"7m0s", "7m0s"}, starts.take())
		stop(t, sys)
	})
}

// TestIntense: one failure too many within the period.
func TestIntense(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := behaviour{handle: func(*supervisor.Ctx, any) error { return errTest }}
		sys, gate := policySupervisor(t, strategy.Intensity(2, time.Hour), a)
		crash := func() error { return refusal(t, submit(t, gate, "a", 1)) }
		for range 10 { // one every 35 minutes: never more than two within the hour
			require.ErrorIs(t, crash(), supervisor.ErrLost)
			later(35 * time.Minute)
		}
		require.ErrorIs(t, crash(), supervisor.ErrLost)
		require.ErrorIs(t, crash(), supervisor.ErrLost)
		synctest.Wait()
		require.ErrorIs(t, crash(), supervisor.ErrExhausted)
		stop(t, sys)
	})
}

// TestTickRhythm: a supervisor without children does not tick, and keeps its
// rhythm.
func TestTickRhythm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ticks := &ticker{began: time.Now()}
		sys, gate := policySupervisor(t, ticks, echo)
		later(90 * time.Minute)
		require.Empty(t, ticks.l.take())
		later(400 * time.Millisecond)
		answer(t, submit(t, gate, "a", 1))
		later(2 * time.Second)
		require.Equal(t, []string{"1h30m1s", "1h30m2s"}, ticks.l.take())
		stop(t, sys)
	})
}

// ticker writes its ticks down.
type ticker struct {
	began time.Time
	l     log
}

func (k *ticker) Decide(v strategy.View, e strategy.Event) []strategy.Directive {
	if _, ok := e.(strategy.Tick); ok {
		k.l.add(fmt.Sprint(v.Now().Sub(k.began)))
	}
	return nil
}
