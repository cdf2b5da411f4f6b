package supervisor_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
	"github.com/coppice-run/coppice/supervisor/strategy"
)

// TestDrain: what runs is finished, nothing else is begun, and every dynamic
// child ends as soon as it is free.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys, gate, g := gatedSupervisor(t, nil, "a", "b")
		r1, r2 := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		rb := submit(t, gate, "b", "b")
		g.open["b"] <- nil
		answer(t, rb)
		synctest.Wait()
		in(t, gate, func(s *supervisor.Supervisor) { s.Drain(supervisor.Exit{}) })
		require.ErrorIs(t, refusal(t, r2), supervisor.ErrDraining)
		require.ErrorIs(t, refusal(t, submit(t, gate, "a", 3)), supervisor.ErrDraining)
		require.ErrorIs(t, refusal(t, submit(t, gate, "new", 4)), supervisor.ErrDraining)
		synctest.Wait()
		require.Equal(t, []string{"a busy"}, states(t, gate))
		g.open["a"] <- nil
		require.Equal(t, 1, answer(t, r1))
		synctest.Wait()
		require.Empty(t, states(t, gate))
		stop(t, sys)
	})
}

// TestChanged: a Handler hears of every step of a child, in order.
func TestChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGated("a")
		d := dynamic(g.behaviour())
		steps := &log{}
		d.changed = func(_ *supervisor.Supervisor, e messages.ChildChanged) {
			s := fmt.Sprintf("%s#%d %s>%s", e.Path, e.Epoch, e.From, e.To)
			if e.Exit != nil {
				s += " " + string(e.Exit.Kind)
			}
			steps.add(s)
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("gate", supervisor.Options{Handler: d, Strategy: strategy.RestartOnce()}),
		}})
		gate := sys.Ref("gate")
		r1, r2 := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		g.open["a"] <- errTest
		refusal(t, r1)
		g.open["a"] <- nil
		answer(t, r2)
		in(t, gate, func(s *supervisor.Supervisor) { s.End("a", supervisor.Exit{}) })
		synctest.Wait()
		require.Equal(t, []string{
			"gate/a#1 >starting", "gate/a#1 starting>idle", "gate/a#1 idle>busy",
			"gate/a#1 busy>suspended failed", "gate/a#1 suspended>restarting failed",
			"gate/a#2 restarting>starting", "gate/a#2 starting>idle", "gate/a#2 idle>busy", "gate/a#2 busy>idle",
			"gate/a#2 idle>stopping shutdown", "gate/a#2 stopping>gone shutdown",
		}, steps.take())
		stop(t, sys)
	})
}

// TestManualUp: work comes after Up, other messages before.
func TestManualUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &log{}
		child := behaviour{handle: func(c *supervisor.Ctx, m any) error {
			switch m := m.(type) {
			case supervisor.Work:
				seen.add("work")
				c.Finish(m, nil)
			case string:
				seen.add(m)
				if m == "ready" {
					c.Up()
					c.Up()
				}
			}
			return nil
		}}
		d := &handler{spec: func(*supervisor.Supervisor, string, supervisor.Work) (supervisor.Spec, error) {
			return supervisor.Spec{New: of(child), ManualUp: true}, nil
		}}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: d})}})
		gate := sys.Ref("gate")
		r := submit(t, gate, "a", 1)
		synctest.Wait()
		require.Equal(t, []string{"a starting"}, states(t, gate))
		in(t, gate, func(s *supervisor.Supervisor) {
			require.True(t, s.Send("a", "hello"))
			require.False(t, s.Send("nobody", "hello"))
		})
		synctest.Wait()
		require.True(t, sys.Ref("gate", "a").Tell("ready"))
		answer(t, r)
		require.Equal(t, []string{"hello", "ready", "work"}, seen.take())
		stop(t, sys)
	})
}

// TestTimeouts: a child that does not start, or does not end, in time.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name                      string
		spec                      supervisor.Spec
		startHangs, ignoresCancel bool
		failsAfter, abandoned     time.Duration
	}{
		{"start, and it listens", supervisor.Spec{}, true, false, 30 * time.Second, 0},
		{"start, and it does not listen", supervisor.Spec{StartTimeout: time.Second, StopTimeout: 2 * time.Second}, true, true, time.Second, 3 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				row.spec.New = of(behaviour{init: func(c *supervisor.Ctx) error {
					if row.ignoresCancel {
						<-release
						return nil
					}
					<-c.Context().Done()
					return context.Cause(c.Context())
				}})
				d := &handler{spec: func(*supervisor.Supervisor, string, supervisor.Work) (supervisor.Spec, error) { return row.spec, nil }}
				sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: d})}})
				began := time.Now()
				e := refusal(t, submit(t, sys.Ref("gate"), "a", 1))
				require.ErrorIs(t, e, supervisor.ErrStartFailed)
				want := row.failsAfter
				if row.abandoned > 0 {
					want = row.abandoned
					require.Equal(t, messages.ExitHung, e.Exit.Kind)
					require.Equal(t, 1, sys.Zombies())
				} else {
					require.ErrorIs(t, e, supervisor.ErrStartTimeout)
				}
				require.Equal(t, want, time.Since(began))
				close(release)
				synctest.Wait()
				require.Zero(t, sys.Zombies(), "it came back after all")
				stop(t, sys)
			})
		})
	}
}

// TestStopTimeout: an incarnation that does not end is abandoned; the next one
// starts, and the old one's late words do not count.
func TestStopTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		late := make(chan [2]bool, 1)
		terminated := 0
		child := behaviour{
			handle: func(c *supervisor.Ctx, m any) error {
				w, ok := m.(supervisor.Work)
				if !ok {
					return nil
				}
				if c.Epoch() == 1 {
					<-release
					late <- [2]bool{c.Tell("x"), c.Finish(w, "late")}
					return nil
				}
				c.Finish(w, c.Epoch())
				return nil
			},
			terminate: func(c *supervisor.Ctx, e supervisor.Exit) {
				if c.Epoch() == 1 {
					terminated++
				}
			},
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: dynamic(child)})}})
		gate := sys.Ref("gate")
		r1, r2 := submit(t, gate, "a", 1), submit(t, gate, "a", 2)
		synctest.Wait()
		old := sys.Monitor("gate", "a")
		began := time.Now()
		in(t, gate, func(s *supervisor.Supervisor) { s.Restart("a", supervisor.Exit{}) })
		require.EqualValues(t, 2, answer(t, r2))
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Equal(t, messages.ExitHung, (<-old).Kind)
		e := refusal(t, r1)
		require.ErrorIs(t, e, supervisor.ErrLost)
		require.Equal(t, messages.ExitHung, e.Exit.Kind)
		require.Equal(t, 1, sys.Zombies())
		close(release)
		require.Equal(t, [2]bool{false, false}, <-late)
		synctest.Wait()
		require.Equal(t, 1, terminated, "it still terminates")
		require.Zero(t, sys.Zombies())
		stop(t, sys)
	})
}

// TestMaxAbandoned: a supervisor whose children hang again and again gives up.
func TestMaxAbandoned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		child := clinging(release)
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("gate", supervisor.Options{Handler: dynamic(child), MaxAbandoned: 2}),
		}})
		gate := sys.Ref("gate")
		ended := gate.Monitor()
		for i := range 3 {
			submit(t, gate, "a", i)
			synctest.Wait()
			in(t, gate, func(s *supervisor.Supervisor) { s.End("a", supervisor.Exit{}) })
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		exit := <-ended
		require.Equal(t, messages.ExitEscalated, exit.Kind)
		close(release)
		synctest.Wait()
		stop(t, sys)
	})
}

// TestStaticWork: static children take work like any other; one that has ended
// for good refuses it.
func TestStaticWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := echo
		child.handle = func(c *supervisor.Ctx, m any) error {
			if w := m.(supervisor.Work); w.Msg == "end" {
				c.Finish(w, "ended")
				return supervisor.ErrDone
			}
			return echo.handle(c, m)
		}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
			supervise("gate", supervisor.Options{Handler: &handler{}, Children: []supervisor.Spec{{Key: "a", New: of(child)}}}),
		}})
		gate := sys.Ref("gate")
		require.Equal(t, 1, answer(t, submit(t, gate, "a", 1)))
		require.Equal(t, "ended", answer(t, submit(t, gate, "a", "end")))
		synctest.Wait()
		require.Equal(t, []string{"a gone"}, states(t, gate))
		require.ErrorIs(t, refusal(t, submit(t, gate, "a", 2)), supervisor.ErrEnded)
		in(t, gate, func(s *supervisor.Supervisor) { s.Restart("a", supervisor.Exit{}) })
		require.Equal(t, 3, answer(t, submit(t, gate, "a", 3)))
		e := refusal(t, submit(t, gate, "stranger", 4))
		require.ErrorIs(t, e, supervisor.ErrStartFailed)
		require.ErrorIs(t, e, supervisor.ErrNoProcess)
		stop(t, sys)
	})
}

func TestSameKeyTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Children: []supervisor.Spec{
			{Key: "a", New: of(echo)}, {Key: "a", New: of(echo)},
		}})
		require.ErrorContains(t, err, `two children are called "a"`)
	})
}

// TestSupervisorTwice: a Supervisor value serves one incarnation.
func TestSupervisorTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := supervisor.New(supervisor.Options{})
		_, err := supervisor.Start(t.Context(), supervisor.SystemOptions{Children: []supervisor.Spec{
			{Key: "a", New: func() supervisor.Behaviour { return one }}, {Key: "b", New: func() supervisor.Behaviour { return one }},
		}})
		require.ErrorContains(t, err, "one incarnation")
	})
}

// TestNobodysMessages: a supervisor without a Handler drops its messages.
func TestNobodysMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("plain", supervisor.Options{})}})
		_, err := supervisor.Ask[int](t.Context(), sys.Ref("plain"), nil)
		require.ErrorIs(t, err, supervisor.ErrGone)
		require.True(t, sys.Ref("plain").Tell("hello"))
		synctest.Wait()
		require.True(t, sys.Ref("plain").Tell("still there"))
		require.NotErrorIs(t, err, supervisor.ErrNoProcess)
		stop(t, sys)
	})
}

// TestAHandlerEndsTheKeyThatItIsAskedAbout: no child comes of what it says then.
func TestAHandlerEndsTheKeyThatItIsAskedAbout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := 0
		h := &handler{spec: func(s *supervisor.Supervisor, key string, _ supervisor.Work) (supervisor.Spec, error) {
			require.True(t, s.End(key, supervisor.Exit{}))
			return supervisor.Spec{New: func() supervisor.Behaviour { made++; return of(echo)() }}, nil
		}}
		sys := startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{supervise("gate", supervisor.Options{Handler: h})}})
		gate := sys.Ref("gate")
		require.ErrorIs(t, refusal(t, submit(t, gate, "a", 1)), supervisor.ErrEnded)
		synctest.Wait()
		require.Empty(t, states(t, gate))
		require.Zero(t, made)
		h.spec = func(*supervisor.Supervisor, string, supervisor.Work) (supervisor.Spec, error) {
			return supervisor.Spec{New: of(echo)}, nil
		}
		require.Equal(t, 2, answer(t, submit(t, gate, "a", 2)))
		stop(t, sys)
	})
}
