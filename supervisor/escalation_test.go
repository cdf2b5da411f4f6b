package supervisor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// TestEscalation: a root that fails ends the tree, and says so once.
func TestEscalation(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		strategy strategy.Strategy
		tell     error
		kind     messages.ExitKind
	}{
		{"too many failures", strategy.Chain(strategy.OneForOne(), strategy.EscalateAfter(0, time.Minute)), errTest, messages.ExitEscalated},
		{"the strategy panics", badStrategy{func(e strategy.Event) bool { _, ok := e.(strategy.Fail); return ok }, func() { panic(errTest) }}, errTest, messages.ExitPanicked},
		{"a significant child is done", strategy.AutoShutdown(false), supervisor.ErrDone, messages.ExitShutdown},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &log{}
				exits := make(chan supervisor.Exit, 5)
				a := logged(l, "a", 0, 0)
				a.Significant = true
				sys := startOnly(t, supervisor.SystemOptions{
					Strategy: row.strategy, OnEscalate: func(e supervisor.Exit) { exits <- e },
					Children: []supervisor.Spec{a, logged(l, "b", 0, 0)},
				})
				ended := sys.Monitor()
				require.True(t, sys.Ref("a").Tell(row.tell))
				exit := <-exits
				require.Equal(t, row.kind, exit.Kind)
				if row.kind != messages.ExitShutdown {
					require.ErrorIs(t, exit, errTest)
				}
				<-ended
				synctest.Wait()
				require.Empty(t, exits)
				require.Zero(t, sys.Live(), "the tree is down")
				require.Equal(t, []string{"+a", "+b"}, l.take()[:2])
				stop(t, sys)
			})
		})
	}
}

// TestNoEscalationHook: without OnEscalate the tree is down all the same.
func TestNoEscalationHook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := startOnly(t, supervisor.SystemOptions{
			Strategy: strategy.EscalateAfter(0, time.Minute),
			Children: []supervisor.Spec{{Key: "a", New: of(behaviour{handle: func(*supervisor.Ctx, any) error { return errTest }})}},
		})
		ended := sys.Monitor()
		require.True(t, sys.Ref("a").Tell(1))
		require.Equal(t, messages.ExitEscalated, (<-ended).Kind)
		stop(t, sys)
	})
}

// TestStuckSupervisor: a supervisor that hangs is abandoned by its parent. Its
// children are ended, its work is settled, and another incarnation takes its
// place.
func TestStuckSupervisor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		release := make(chan struct{})
		g := newGated("a")
		newGate := func() supervisor.Behaviour {
			d := dynamic(g.behaviour())
			d.handle = func(*supervisor.Supervisor, any) error { <-release; return nil }
			return supervisor.New(supervisor.Options{Handler: d, Children: []supervisor.Spec{logged(l, "below", 0, 0)}})
		}
		sys := startOnly(t, supervisor.SystemOptions{
			Strategy: strategy.Chain(strategy.RestartOnce(), strategy.Heartbeat(2*time.Second)),
			Children: []supervisor.Spec{{Key: "gate", New: newGate}},
		})
		gate, below := sys.Ref("gate"), sys.Ref("gate", "below")
		runs, waits := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		synctest.Wait()
		_, asked, err := supervisor.Begin[int](gate, question(1)) // hangs in its hand
		require.NoError(t, err)
		ended := gate.Monitor()
		require.Equal(t, messages.ExitHung, (<-ended).Kind)
		for _, r := range []supervisor.Reply[any]{runs, waits} {
			_, err := r.Wait(t.Context())
			require.ErrorIs(t, err, supervisor.ErrGone)
		}
		_, err = asked.Wait(t.Context())
		require.ErrorIs(t, err, supervisor.ErrGone)
		synctest.Wait()
		require.ElementsMatch(t, []string{"+below", "-below", "+below"}, l.take())
		require.True(t, below.Tell(errTest), "the Ref of the static child finds the new one")
		r := submit(t, gate, "a", 3)
		g.open["a"] <- nil
		require.Equal(t, 3, answer(t, r))
		require.Equal(t, 1, sys.Zombies())
		close(release)
		synctest.Wait()
		require.Zero(t, sys.Zombies())
		stop(t, sys)
	})
}

// TestSupervisorComesBack: what an abandoned supervisor does when it comes back
// touches nothing in the tree, where another incarnation has taken its place.
func TestSupervisorComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		late := make(chan supervisor.Reply[any], 3)
		supervisors, closed := 0, 0
		newGate := func() supervisor.Behaviour {
			supervisors++
			first := supervisors == 1
			d := dynamic(echo)
			d.handle = func(s *supervisor.Supervisor, _ any) error {
				<-release
				for _, key := range []string{"a", "b", "new"} {
					s.Restart(key, supervisor.Exit{})
					w, r := supervisor.NewWork[any]("late")
					s.Submit(key, w)
					s.End(key, supervisor.Exit{})
					late <- r
				}
				s.Restart("static", supervisor.Exit{})
				return nil
			}
			d.close = func(*supervisor.Supervisor, supervisor.Exit) {
				if first {
					closed++
				}
			}
			return supervisor.New(supervisor.Options{Handler: d, Children: []supervisor.Spec{{Key: "static", New: of(echo)}}})
		}
		sys := startOnly(t, supervisor.SystemOptions{
			Strategy: strategy.Chain(strategy.RestartOnce(), strategy.Heartbeat(2*time.Second)),
			Children: []supervisor.Spec{{Key: "gate", New: newGate}},
		})
		gate := sys.Ref("gate")
		answer(t, submit(t, gate, "a", 1))
		ended := gate.Monitor()
		require.True(t, gate.Tell("hang"))
		<-ended
		synctest.Wait()
		answer(t, submit(t, gate, "a", 2))
		answer(t, submit(t, gate, "b", 2))
		before := states(t, gate)
		refs := []supervisor.Ref{sys.Ref("gate", "a"), sys.Ref("gate", "b"), sys.Ref("gate", "static")}
		close(release)
		for range 3 {
			_, err := (<-late).Wait(t.Context())
			require.ErrorIs(t, err, supervisor.ErrGone)
		}
		synctest.Wait()
		require.Equal(t, before, states(t, gate))
		require.Equal(t, 5, sys.Live(), "the root, the gate and its three children")
		for i, path := range []string{"a", "b", "static"} {
			require.Equal(t, refs[i], sys.Ref("gate", path))
			require.True(t, refs[i].Tell("hello"))
		}
		require.Equal(t, 1, closed, "it has closed its Handler")
		require.Zero(t, sys.Zombies())
		stop(t, sys)
	})
}

// TestOrphans: below a supervisor that was abandoned, what does not end is
// abandoned as well.
func TestOrphans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := clinging(release)
		stuckSupervisor := func(kids ...supervisor.Spec) supervisor.Options {
			return supervisor.Options{Children: kids, Handler: deaf(release)}
		}
		sys := startOnly(t, supervisor.SystemOptions{Strategy: strategy.Heartbeat(2 * time.Second), Children: []supervisor.Spec{
			supervise("s", stuckSupervisor(
				supervisor.Spec{Key: "hung", New: of(stuck)},
				supervisor.Spec{Key: "fine", New: of(echo)},
				supervise("deep", stuckSupervisor(supervisor.Spec{Key: "hung", New: of(stuck)})),
			)),
		}})
		require.True(t, sys.Ref("s", "deep").Tell("hang"))
		require.True(t, sys.Ref("s").Tell("hang"))
		synctest.Wait()
		later(time.Hour)
		require.Equal(t, 4, sys.Zombies(), "s, s/hung, s/deep and s/deep/hung")
		r := sys.Shutdown(context.Background())
		require.Len(t, r.Leftovers, 4)
		close(release)
		synctest.Wait()
		require.Zero(t, sys.Zombies())
		check(t, sys)
	})
}

// TestOrphansAtShutdown: those that are still about to end when the system
// shuts down are given up with it.
func TestOrphansAtShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		sys := startOnly(t, supervisor.SystemOptions{Strategy: strategy.Heartbeat(2 * time.Second), Children: []supervisor.Spec{
			supervise("s", supervisor.Options{
				Handler:  deaf(release),
				Children: []supervisor.Spec{{Key: "slow", StopTimeout: time.Hour, New: of(clinging(release))}},
			}),
		}})
		ended := sys.Monitor("s")
		require.True(t, sys.Ref("s").Tell("hang"))
		<-ended
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		r := sys.Shutdown(ctx)
		require.Len(t, r.Leftovers, 2)
		close(release)
		synctest.Wait()
		check(t, sys)
	})
}
