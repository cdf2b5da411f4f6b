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

// These are the cases of supervisor_SUITE about what becomes of the supervisor
// itself; the table is in otp_test.go.

// TestOTPIntensity: one failure too many within the period ends the group, and
// is a failure of the supervisor; outside of the period it is not.
func TestOTPIntensity(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]strategy.Strategy{
		"one for one": strategy.OneForOne(), "one for all": strategy.OneForAll(), "rest for one": strategy.RestForOne(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &log{}
				sys := group(t, strategy.Chain(s, strategy.EscalateAfter(2, 5*time.Second)),
					otpChild(l, "a", strategy.Permanent), otpChild(l, "b", strategy.Permanent))
				ended := sys.Monitor("g")
				fail := func(key string) {
					require.True(t, sys.Ref("g", key).Tell(errTest))
					synctest.Wait()
				}
				for range 5 {
					fail("a")
					later(3 * time.Second)
				}
				fail("b")
				require.Empty(t, ended)
				fail("a")
				exit := <-ended
				require.Equal(t, messages.ExitEscalated, exit.Kind)
				require.ErrorIs(t, exit, errTest)
				synctest.Wait()
				require.Equal(t, 1, sys.Live(), "nothing is left but the root")
				stop(t, sys)
			})
		})
	}
}

// TestOTPEscalates: the failure of a supervisor is an ordinary failure one
// level up.
func TestOTPEscalates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		inner := func() supervisor.Behaviour {
			return supervisor.New(supervisor.Options{
				Strategy: strategy.Chain(strategy.OneForOne(), strategy.EscalateAfter(1, time.Hour)),
				Children: []supervisor.Spec{otpChild(l, "a", strategy.Permanent)},
			})
		}
		sys := group(t, strategy.OneForOne(), supervisor.Spec{Key: "inner", New: inner, Restart: strategy.Transient}, otpChild(l, "b", strategy.Permanent))
		l.take()
		a := sys.Ref("g", "inner", "a")
		for range 2 {
			require.True(t, a.Tell(errTest))
			synctest.Wait()
		}
		require.Equal(t, []string{"-a1", "+a2", "-a2", "+a1"}, l.take(), "its children begin again, b does not hear of it")
		n, err := sys.Snapshot(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, n.Children[0].Children[0].Epoch)
		require.Equal(t, messages.ExitEscalated, n.Children[0].Children[0].LastExit.Kind)
		stop(t, sys)
	})
}

// TestOTPResumedSupervisor: a parent may also let a supervisor that has failed
// go on.
func TestOTPResumedSupervisor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		sys := startOnly(t, supervisor.SystemOptions{Strategy: resumer{}, Children: []supervisor.Spec{
			supervise("g", supervisor.Options{
				Handler: &handler{}, Strategy: strategy.Chain(strategy.OneForOne(), strategy.EscalateAfter(0, time.Hour)),
				Children: []supervisor.Spec{otpChild(l, "a", strategy.Permanent), otpChild(l, "b", strategy.Permanent)},
			}),
		}})
		require.True(t, sys.Ref("g", "a").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"a gone", "b idle"}, states(t, sys.Ref("g")), "the child that made it fail has ended")
		require.Equal(t, []string{"+a1", "+b1", "-a1"}, l.take())
		in(t, sys.Ref("g"), func(s *supervisor.Supervisor) { s.Restart("a", supervisor.Exit{}) })
		synctest.Wait()
		require.Equal(t, []string{"a idle", "b idle"}, states(t, sys.Ref("g")))
		stop(t, sys)
	})
}

// TestOTPTree: levels of supervisors end in reverse, deepest first.
func TestOTPTree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		level := func(key string, kids ...supervisor.Spec) supervisor.Spec {
			return supervise(key, supervisor.Options{Strategy: strategy.OneForAll(), Children: kids})
		}
		c := func(key string) supervisor.Spec { return otpChild(l, key, strategy.Permanent) }
		sys := group(t, strategy.OneForAll(), c("a"), level("l1", c("b"), level("l2", c("c"), c("d"))), c("e"))
		require.Equal(t, []string{"+a1", "+b1", "+c1", "+d1", "+e1"}, l.take())
		require.True(t, sys.Ref("g", "l1", "l2", "d").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"-d1", "-c1", "+c2", "+d2"}, l.take())
		stop(t, sys)
		require.Equal(t, []string{"-e1", "-d2", "-c2", "-b1", "-a1"}, l.take())
	})
}

// TestOTPSignificant: auto shutdown.
func TestOTPSignificant(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		strategy strategy.Strategy
		types    [3]strategy.RestartType // a and b are significant, c is not
		tell     []string                // "a done", "b fails"
		ends     bool
	}{
		{"never", strategy.OneForOne(), [3]strategy.RestartType{strategy.Transient, strategy.Transient, strategy.Transient}, []string{"a done", "b done"}, false},
		{"any, transient, done", strategy.Chain(strategy.OneForOne(), strategy.AutoShutdown(false)), [3]strategy.RestartType{strategy.Transient, strategy.Transient, strategy.Transient}, []string{"a done"}, true},
		{"any, transient, fails", strategy.Chain(strategy.OneForOne(), strategy.AutoShutdown(false)), [3]strategy.RestartType{strategy.Transient, strategy.Transient, strategy.Transient}, []string{"a fails"}, false},
		{"any, temporary, fails", strategy.Chain(strategy.OneForOne(), strategy.AutoShutdown(false)), [3]strategy.RestartType{strategy.Temporary, strategy.Transient, strategy.Transient}, []string{"a fails"}, true},
		{"any, not significant", strategy.Chain(strategy.OneForOne(), strategy.AutoShutdown(false)), [3]strategy.RestartType{strategy.Transient, strategy.Transient, strategy.Temporary}, []string{"c done"}, false},
		{"all, the first", strategy.Chain(strategy.OneForOne(), strategy.AutoShutdown(true)), [3]strategy.RestartType{strategy.Transient, strategy.Temporary, strategy.Transient}, []string{"a done"}, false},
		{"all, both", strategy.Chain(strategy.OneForOne(), strategy.AutoShutdown(true)), [3]strategy.RestartType{strategy.Transient, strategy.Temporary, strategy.Transient}, []string{"a done", "b fails"}, true},
		{"ended because of a sibling", strategy.Chain(strategy.OneForAll(), strategy.AutoShutdown(false)), [3]strategy.RestartType{strategy.Temporary, strategy.Temporary, strategy.Permanent}, []string{"c fails"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &log{}
				var children []supervisor.Spec
				for i, r := range row.types {
					c := otpChild(l, string(rune('a'+i)), r)
					c.Significant = i < 2
					children = append(children, c)
				}
				sys := group(t, row.strategy, children...)
				ended := sys.Monitor("g")
				for _, step := range row.tell {
					tell := error(supervisor.ErrDone)
					if step[2:] == "fails" {
						tell = errTest
					}
					require.True(t, sys.Ref("g", step[:1]).Tell(tell))
					synctest.Wait()
				}
				if row.ends {
					require.Equal(t, messages.ExitShutdown, (<-ended).Kind)
					synctest.Wait()
					require.Equal(t, 1, sys.Live())
				} else {
					require.Empty(t, ended)
				}
				stop(t, sys)
			})
		})
	}
}

// TestOTPEndInBackoff: what does not come up, again and again, can be ended,
// and stays down.
func TestOTPEndInBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		ill := false
		sys := group(t, strategy.Chain(strategy.OneForOne(), strategy.Backoff(strategy.BackoffOptions{Initial: time.Second, Multiplier: 1, Max: time.Second})),
			supervisor.Spec{Key: "a", Restart: strategy.Permanent, New: of(behaviour{
				init: func(*supervisor.Ctx) error {
					if tries++; ill {
						return errTest
					}
					return nil
				},
				handle: func(*supervisor.Ctx, any) error { ill = true; return errTest },
			})})
		require.True(t, sys.Ref("g", "a").Tell(1))
		later(10 * time.Second)
		require.Equal(t, 11, tries)
		require.Equal(t, []string{"a restarting"}, states(t, sys.Ref("g")))
		in(t, sys.Ref("g"), func(s *supervisor.Supervisor) { s.End("a", supervisor.Exit{}) })
		later(time.Hour)
		require.Equal(t, 11, tries)
		require.Equal(t, []string{"a gone"}, states(t, sys.Ref("g")))
		require.ErrorIs(t, (<-sys.Monitor("g", "a")), supervisor.ErrNoProcess)
		stop(t, sys)
	})
}

// TestOTPGroupBackoff: a group waits as long as its slowest, and still starts
// in order.
func TestOTPGroupBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		sys := group(t, strategy.Chain(strategy.OneForAll(), strategy.Backoff(strategy.BackoffOptions{Initial: time.Minute})),
			otpChild(l, "a", strategy.Permanent), otpChild(l, "b", strategy.Permanent), otpChild(l, "c", strategy.Permanent))
		l.take()
		require.True(t, sys.Ref("g", "b").Tell(errTest))
		later(time.Second)
		require.Equal(t, []string{"-c1", "-b1", "-a1", "+a2"}, l.take())
		require.Equal(t, []string{"a idle", "b restarting", "c restarting"}, states(t, sys.Ref("g")))
		later(time.Minute)
		require.Equal(t, []string{"+b2", "+c2"}, l.take())
		stop(t, sys)
	})
}

// TestRestartedWhileItWaitsToEnd: a child that fails, or is to be restarted by itself, while a group
// of children ends, of which it is one, ends in its turn all the same.
func TestRestartedWhileItWaitsToEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, release, alone := &log{}, make(chan struct{}), false
		slow := otpChild(l, "c", strategy.Permanent)
		born := slow.New
		slow.New = func() supervisor.Behaviour { return lingering{born(), release} }
		sys := group(t, scripted(func(ev strategy.Event) []strategy.Directive {
			fail, failed := ev.(strategy.Fail)
			_, tick := ev.(strategy.Tick)
			switch {
			case failed && fail.Key == "b":
				return []strategy.Directive{strategy.Restart("a", 0), strategy.Restart("b", 0), strategy.Restart("c", 0)}
			case failed, tick && alone:
				alone = false
				return []strategy.Directive{strategy.Restart("a", 0)}
			}
			return nil
		}), otpChild(l, "a", strategy.Permanent), otpChild(l, "b", strategy.Permanent), slow)
		l.take()
		require.True(t, sys.Ref("g", "b").Tell(errTest))
		synctest.Wait()
		require.True(t, sys.Ref("g", "a").Tell(errTest))
		synctest.Wait()
		require.Empty(t, l.take(), "c has not ended")
		in(t, sys.Ref("g"), func(*supervisor.Supervisor) { alone = true })
		for waits := true; waits; {
			later(100 * time.Millisecond)
			in(t, sys.Ref("g"), func(*supervisor.Supervisor) { waits = alone })
		}
		require.Empty(t, l.take(), "c has not ended")
		close(release)
		synctest.Wait()
		require.Equal(t, []string{"-c1", "-b1", "-a1", "+a2", "+b2", "+c2"}, l.take())
		stop(t, sys)
	})
}

// lingering is a behaviour that is not let go before release is closed.
type lingering struct {
	supervisor.Behaviour
	release <-chan struct{}
}

func (b lingering) Terminate(c *supervisor.Ctx, exit supervisor.Exit) {
	<-b.release
	b.Behaviour.Terminate(c, exit)
}
