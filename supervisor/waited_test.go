package supervisor_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// fading is an owner that is not heard of any more from some moment on; for six seconds from then it
// has next to no processor.
type fading struct {
	owner
	fades time.Time
}

func (f fading) Handle(ctx *supervisor.Ctx, msg any) error {
	if _, ask := msg.(askDue); ask && time.Now().After(f.fades) && time.Now().Before(f.fades.Add(6*time.Second)) {
		ctx.Waited(900 * time.Millisecond)
	}
	return f.owner.Handle(ctx, msg)
}

// TestWhatWasWaitedBeforeAStall excuses nothing after it: one that is not heard of then is ended when
// it has been asked again. Its end is none that was put off.
func TestWhatWasWaitedBeforeAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pretended{}
		fades := time.Now().Add(54 * time.Second)
		sys := startOnly(t, supervisor.SystemOptions{Stalls: p, Children: []supervisor.Spec{
			supervise("s", supervisor.Options{Handler: &handler{}, Strategy: strategy.Heartbeat(2 * time.Second), Tick: 700 * time.Millisecond, Children: []supervisor.Spec{
				{Key: "a", New: func() supervisor.Behaviour {
					return fading{owner{func() bool { return time.Now().After(fades) }}, fades}
				}},
			}}),
		}})
		for range 3 { // what was ended before is not counted again
			in(t, sys.Ref("s"), func(s *supervisor.Supervisor) { s.Restart("a", supervisor.Exit{}) })
			synctest.Wait()
		}
		a := sys.Monitor("s", "a")
		later(time.Minute)
		require.Empty(t, a)
		p.stand(20 * time.Second)
		back := time.Now()
		putOff := func() int64 {
			n, err := sys.Snapshot(t.Context())
			require.NoError(t, err)
			return n.Busy.Postponed
		}
		for before := putOff(); ; before = putOff() {
			later(100 * time.Millisecond)
			if len(a) > 0 {
				require.Equal(t, before, putOff())
				require.Positive(t, before)
				break
			}
			require.LessOrEqual(t, putOff()-before, int64(1), "one at a tick")
			require.Less(t, time.Since(back), 5*time.Second)
		}
		exit := <-a
		require.Equal(t, messages.ExitHung, exit.Kind)
		require.Greater(t, time.Since(back), 3*time.Second)
		stop(t, sys)
	})
}

// TestOrphansThatSupervise have the time of supervisors to end, and others theirs.
func TestOrphansThatSupervise(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]time.Duration{"plain": 5 * time.Second, "supervisor": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			orphan := supervisor.Spec{Key: "a", New: of(clinging(release))}
			if name == "supervisor" {
				orphan = supervise("a", supervisor.Options{Handler: &handler{close: func(*supervisor.Supervisor, supervisor.Exit) { <-release }}})
			}
			sys := startOnly(t, supervisor.SystemOptions{Strategy: strategy.Heartbeat(2 * time.Second), Children: []supervisor.Spec{
				supervise("s", supervisor.Options{Handler: deaf(release), Children: []supervisor.Spec{orphan}}),
			}})
			ended := sys.Monitor("s")
			require.True(t, sys.Ref("s").Tell("hang"))
			<-ended
			later(limit - time.Second)
			require.Equal(t, 1, sys.Zombies(), name)
			later(2 * time.Second)
			require.Equal(t, 2, sys.Zombies(), name)
			close(release)
			synctest.Wait()
			stop(t, sys)
		})
	}
}

// TestCatchUp: one whose time was nearly over when this process stood still has a moment for what
// came meanwhile.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &pretended{}
		sys := startOnly(t, supervisor.SystemOptions{Stalls: p, Children: []supervisor.Spec{{Key: "a", New: of(behaviour{
			handle:    obedient.handle,
			terminate: func(*supervisor.Ctx, supervisor.Exit) { time.Sleep(15*time.Second + 50*time.Millisecond) },
		})}}})
		ended := sys.Monitor("a")
		require.True(t, sys.Ref("a").Tell(supervisor.ErrDone))
		synctest.Wait()
		time.Sleep(5*time.Second - 10*time.Millisecond)
		p.stand(10*time.Second + 10*time.Millisecond) // the deadline is looked at in the instant in which it ends
		require.Equal(t, messages.ExitNormal, (<-ended).Kind)
		synctest.Wait()
		stop(t, sys)
	})
}

// TestDies: a child that ends by itself is seen to, and has its time to end, and no more.
func TestDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		child := clinging(release)
		child.handle = obedient.handle
		sys, gate := policySupervisor(t, nil, child)
		answer(t, submit(t, gate, "a", 1))
		require.True(t, sys.Ref("gate", "a").Tell(supervisor.ErrDone))
		synctest.Wait()
		require.Equal(t, []string{"a stopping"}, states(t, gate))
		ended := sys.Monitor("gate", "a")
		begin := time.Now()
		<-ended
		require.InDelta(t, 5*time.Second, time.Since(begin), float64(100*time.Millisecond))
		synctest.Wait()
		require.Empty(t, states(t, gate))
		close(release)
		synctest.Wait()
		stop(t, sys)
	})
}
