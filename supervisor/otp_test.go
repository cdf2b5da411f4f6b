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

// The cases of supervisor_SUITE in Erlang/OTP (lib/stdlib/test) and what
// becomes of them here.
//
//	sup_start_normal, sup_start_map         TestStartOrder
//	sup_start_fail, ..._error_return        TestStartFailsInOrder, TestGuardChild
//	sup_start_ignore_*                      no: a behaviour has no "ignore"; a child that is not wanted is not listed
//	sup_start_timeout                       TestTimeouts, TestStartGivesUp
//	sup_stop_infinity, sup_stop_timeout     TestShutdownHung, TestStopTimeout
//	sup_stop_brutal_kill                    no: Go cannot kill; the nearest is Abandon, TestHungInCall
//	sup_stop_race                           TestShutdownShared
//	child_adm, child_adm_simple             no start_child for static children; Submit, End and Restart: TestEnd, TestRestart
//	child_specs                             TestSameKeyTwice, TestGuardNew
//	permanent_normal, transient_normal,
//	temporary_normal                        TestOTPTypes: "done"
//	permanent_shutdown, transient_...,
//	temporary_shutdown                      TestOTPTypes: "shutdown"
//	permanent_abnormal, transient_...,
//	temporary_abnormal                      TestOTPTypes: "fails"
//	temporary_bystander                     TestOTPGroups: temporary siblings
//	one_for_one, one_for_one_escalation     TestOTPGroups, TestOTPIntensity
//	one_for_all, ..._escalation             TestOTPGroups, TestOTPIntensity
//	one_for_all_other_child_fails_restart   TestOTPSiblingFails
//	rest_for_one, ..._escalation            TestOTPGroups, TestOTPIntensity
//	rest_for_one_other_child_fails_restart  TestOTPSiblingFails
//	simple_one_for_one and its variants     dynamic children: submit_test.go, policy_test.go
//	simple_one_for_one_scale_many_...       TestShutdownParallel, BenchmarkSpawn
//	child_unlink                            no: there are no links; TestPoison
//	tree                                    TestOTPTree
//	count_children                          TestSnapshot
//	do_not_save_start_parameters_...        a dynamic key that ended is forgotten: TestLast
//	significant_*, auto_shutdown_*          TestOTPSignificant
//	hanging_restart_loop and its variants   TestOTPEndInBackoff: a child that does not come up can be ended
//	code_change*, format_log*, simple_global no: there is no code change, no logger and no global name here

// otpChild is a child of a group: it writes its life down and fails when it is
// told an error.
func otpChild(l *log, key string, r strategy.RestartType) supervisor.Spec {
	return supervisor.Spec{Key: key, Restart: r, New: of(behaviour{
		init: func(c *supervisor.Ctx) error { l.add(fmt.Sprintf("+%s%d", key, c.Epoch())); return nil },
		handle: func(_ *supervisor.Ctx, m any) error {
			if m == "panic" {
				panic("on purpose")
			}
			return m.(error)
		},
		terminate: func(c *supervisor.Ctx, _ supervisor.Exit) { l.add(fmt.Sprintf("-%s%d", key, c.Epoch())) },
	})}
}

// group starts a system whose supervisor "g" has the children.
func group(t *testing.T, s strategy.Strategy, children ...supervisor.Spec) *supervisor.System {
	t.Helper()
	return startOnly(t, supervisor.SystemOptions{Children: []supervisor.Spec{
		supervise("g", supervisor.Options{Handler: &handler{}, Strategy: s, Children: children}),
	}})
}

// TestOTPTypes: restart type times the way in which a child ends.
func TestOTPTypes(t *testing.T) {
	t.Parallel()
	shutdown := supervisor.Exit{Kind: messages.ExitShutdown, Err: errTest}
	for _, row := range []struct {
		restart strategy.RestartType
		how     string
		tell    any
		again   bool
	}{
		{strategy.Permanent, "done", supervisor.ErrDone, true},
		{strategy.Permanent, "fails", errTest, true},
		{strategy.Permanent, "panics", "panic", true},
		{strategy.Permanent, "shutdown", shutdown, true},
		{strategy.Transient, "done", supervisor.ErrDone, false},
		{strategy.Transient, "fails", errTest, true},
		{strategy.Transient, "panics", "panic", true},
		{strategy.Transient, "shutdown", shutdown, false},
		{strategy.Temporary, "done", supervisor.ErrDone, false},
		{strategy.Temporary, "fails", errTest, false},
		{strategy.Temporary, "panics", "panic", false},
		{strategy.Temporary, "shutdown", shutdown, false},
	} {
		t.Run(string(row.restart)+"/"+row.how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &log{}
				sys := group(t, strategy.OneForOne(), otpChild(l, "a", row.restart))
				require.True(t, sys.Ref("g", "a").Tell(row.tell))
				synctest.Wait()
				if row.again {
					require.Equal(t, []string{"+a1", "-a1", "+a2"}, l.take())
					require.Equal(t, []string{"a idle"}, states(t, sys.Ref("g")))
				} else {
					require.Equal(t, []string{"+a1", "-a1"}, l.take())
					require.Equal(t, []string{"a gone"}, states(t, sys.Ref("g")))
				}
				stop(t, sys)
			})
		})
	}
}

// TestOTPGroups: who ends and starts when b fails, and in which order.
func TestOTPGroups(t *testing.T) {
	t.Parallel()
	const p, tr, tmp = strategy.Permanent, strategy.Transient, strategy.Temporary
	for _, row := range []struct {
		name     string
		strategy strategy.Strategy
		types    [4]strategy.RestartType
		fails    string
		want     []string
	}{
		{"one for one", strategy.OneForOne(), [4]strategy.RestartType{p, p, p, p}, "b", []string{"-b1", "+b2"}},
		{"one for all", strategy.OneForAll(), [4]strategy.RestartType{p, p, p, p}, "b", []string{"-d1", "-c1", "-b1", "-a1", "+a2", "+b2", "+c2", "+d2"}},
		{"one for all, the first", strategy.OneForAll(), [4]strategy.RestartType{p, tr, p, tr}, "a", []string{"-d1", "-c1", "-b1", "-a1", "+a2", "+b2", "+c2", "+d2"}},
		{"rest for one", strategy.RestForOne(), [4]strategy.RestartType{p, p, p, p}, "b", []string{"-d1", "-c1", "-b1", "+b2", "+c2", "+d2"}},
		{"rest for one, the last", strategy.RestForOne(), [4]strategy.RestartType{p, p, p, p}, "d", []string{"-d1", "+d2"}},
		{"one for all, temporary siblings", strategy.OneForAll(), [4]strategy.RestartType{tmp, p, tmp, p}, "b", []string{"-d1", "-c1", "-b1", "-a1", "+b2", "+d2"}},
		{"rest for one, temporary siblings", strategy.RestForOne(), [4]strategy.RestartType{tmp, p, tmp, p}, "b", []string{"-d1", "-c1", "-b1", "+b2", "+d2"}},
		{"one for all, a temporary fails", strategy.OneForAll(), [4]strategy.RestartType{p, tmp, p, p}, "b", []string{"-b1"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &log{}
				var children []supervisor.Spec
				for i, r := range row.types {
					children = append(children, otpChild(l, string(rune('a'+i)), r))
				}
				sys := group(t, row.strategy, children...)
				require.Equal(t, []string{"+a1", "+b1", "+c1", "+d1"}, l.take())
				require.True(t, sys.Ref("g", row.fails).Tell(errTest))
				synctest.Wait()
				require.Equal(t, row.want, l.take())
				stop(t, sys)
			})
		})
	}
}

// TestOTPGoneSibling: one for all also starts again what had ended in order.
func TestOTPGoneSibling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		sys := group(t, strategy.OneForAll(), otpChild(l, "a", strategy.Transient), otpChild(l, "b", strategy.Permanent))
		require.True(t, sys.Ref("g", "a").Tell(supervisor.ErrDone))
		synctest.Wait()
		require.Equal(t, []string{"a gone", "b idle"}, states(t, sys.Ref("g")))
		l.take()
		require.True(t, sys.Ref("g", "b").Tell(errTest))
		synctest.Wait()
		require.Equal(t, []string{"-b1", "+a2", "+b2"}, l.take())
		stop(t, sys)
	})
}

// TestOTPSiblingFails: a sibling that does not come up again while the group is
// restarted has the group restarted once more.
func TestOTPSiblingFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		strategy strategy.Strategy
		want     []string
	}{
		"one for all":  {strategy.OneForAll(), []string{"-c1", "-b1", "-a1", "+a2", "+b2", "!c2", "-c2", "-b2", "-a2", "+a3", "+b3", "+c3"}},
		"rest for one": {strategy.RestForOne(), []string{"-c1", "-b1", "+b2", "!c2", "-c2", "+c3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &log{}
				c := otpChild(l, "c", strategy.Permanent)
				c.New = of(behaviour{
					init: func(ctx *supervisor.Ctx) error {
						if ctx.Epoch() == 2 {
							l.add("!c2")
							return errTest
						}
						l.add(fmt.Sprint("+c", ctx.Epoch()))
						return nil
					},
					terminate: func(ctx *supervisor.Ctx, _ supervisor.Exit) { l.add(fmt.Sprint("-c", ctx.Epoch())) },
				})
				sys := group(t, row.strategy, otpChild(l, "a", strategy.Permanent), otpChild(l, "b", strategy.Permanent), c)
				l.take()
				require.True(t, sys.Ref("g", "b").Tell(errTest))
				synctest.Wait()
				require.Equal(t, row.want, l.take())
				stop(t, sys)
			})
		})
	}
}

// TestOTPMoreFailuresAtOnce: siblings that fail while the group is being
// restarted are part of it.
func TestOTPMoreFailuresAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &log{}
		slow := otpChild(l, "c", strategy.Permanent)
		slow.New = of(behaviour{terminate: func(c *supervisor.Ctx, _ supervisor.Exit) {
			time.Sleep(time.Second)
			l.add(fmt.Sprint("-c", c.Epoch()))
		}})
		sys := group(t, strategy.OneForAll(), otpChild(l, "a", strategy.Permanent), otpChild(l, "b", strategy.Permanent), slow)
		l.take()
		require.True(t, sys.Ref("g", "a").Tell(errTest))
		synctest.Wait()
		require.True(t, sys.Ref("g", "b").Tell(errTest)) // while c ends
		later(2 * time.Second)
		require.Equal(t, []string{"-c1", "-b1", "-a1", "+a2", "+b2"}, l.take())
		require.Equal(t, []string{"a idle", "b idle", "c idle"}, states(t, sys.Ref("g")))
		stop(t, sys)
	})
}
