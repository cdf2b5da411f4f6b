package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// TestWhenASilentKernelHangs: after two and a half times what it is expected to beat in.
func TestWhenASilentKernelHangs(t *testing.T) {
	for every, patience := range map[time.Duration]time.Duration{0: 12500 * time.Millisecond, time.Minute: 150 * time.Second} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			inTree(t, gateway.Options{Strategy: gateway.Policy{Heartbeat: every, IdleTTL: time.Hour}.Strategy()}, func(t *testing.T, tr *tree) {
				tr.run("a", "beat")
				time.Sleep(patience - time.Second)
				require.Zero(t, tr.ended.Load())
				time.Sleep(3 * time.Second) // it is looked once in a second
				require.EqualValues(t, 1, tr.ended.Load())
			})
		})
	}
}

// TestAGivenUpSessionSaysHowItsKernelFailed: hung is told apart from died.
func TestAGivenUpSessionSaysHowItsKernelFailed(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		for range 2 {
			require.Equal(t, messages.StateLost, tr.run("a", "hang").State)
		}
		r := tr.run("a", "x")
		require.Equal(t, messages.RefusedExhausted, r.Refusal)
		require.Contains(t, r.Reason, "(it did not answer its heartbeat: ")
		for range 2 {
			tr.run("b", "panic")
		}
		r = tr.run("b", "x")
		require.Equal(t, messages.RefusedExhausted, r.Refusal)
		require.NotContains(t, r.Reason, "heartbeat")
	})
}

// TestWhatAnIdleKernelMayHold: more memory than it may have ends it, and nothing does unless
// that was asked for.
func TestWhatAnIdleKernelMayHold(t *testing.T) {
	for limit, ends := range map[int64]int64{0: 0, 1 << 20: 1} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			inTree(t, gateway.Options{Strategy: gateway.Policy{MaxRSS: limit}.Strategy()}, func(t *testing.T, tr *tree) {
				tr.run("a", "hold")
				time.Sleep(5 * time.Second)
				require.Equal(t, ends, tr.ended.Load())
			})
		})
	}
}

// TestHowLongTheEndOfAKernelMayTake: one that takes longer is given up, and what waits for its
// session gets another kernel.
func TestHowLongTheEndOfAKernelMayTake(t *testing.T) {
	for given, takes := range map[time.Duration]time.Duration{0: 17 * time.Second, 3 * time.Second: 3 * time.Second} {
		t.Run(fmt.Sprint(given), func(t *testing.T) {
			inTree(t, gateway.Options{StopTimeout: given}, func(t *testing.T, tr *tree) {
				tr.run("a", "x")
				tr.stop.Store(int64(time.Minute))
				begun := time.Now()
				tr.ask(messages.Reset{Key: key("a")})
				require.Equal(t, messages.StateFresh, tr.run("a", "x").State)
				require.InDelta(t, takes+tr.start, time.Since(begun), float64(100*time.Millisecond))
				tr.stop.Store(0)
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// TestWhichKernelIsMade: one for a single call knows it, and those of a session know of each
// other.
func TestWhichKernelIsMade(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.run("a", "x")
		exec := call("one", "a", "x")
		exec.Mode, exec.Owner = messages.ModePerCall, "me"
		tr.wait(tr.begin(exec))
		require.Len(t, tr.specs, 2)
		require.False(t, tr.specs[0].Once)
		require.NotNil(t, tr.specs[0].Served)
		require.True(t, tr.specs[1].Once)
		require.Nil(t, tr.specs[1].Served)
		require.Equal(t, "me", tr.specs[1].Owner)
	})
}

// TestASingleCallIsNotItsOwnersSession: it goes on when its owner leaves.
func TestASingleCallIsNotItsOwnersSession(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		exec := call("one", "a", "sleep 1m")
		exec.Mode, exec.Owner = messages.ModePerCall, "me"
		reply := tr.begin(exec)
		time.Sleep(5 * time.Second)
		tr.ask(messages.ReleaseOwner{Owner: "me"})
		require.Equal(t, messages.OutcomeOK, tr.wait(reply).Outcome)
	})
}

// TestAnOwnerLeavesEachOfItsSessions: those of others, in between, stay.
func TestAnOwnerLeavesEachOfItsSessions(t *testing.T) {
	const each = 8
	inTree(t, gateway.Options{Strategy: gateway.Policy{MaxKernels: 3 * each, IdleTTL: time.Hour}.Strategy()}, func(t *testing.T, tr *tree) {
		var replies []supervisor.Reply[messages.Result]
		for i := range each {
			for _, owner := range []string{"x", "y", ""} {
				exec := call(messages.NewID(), fmt.Sprint(owner, i), "x")
				exec.Owner = owner
				replies = append(replies, tr.begin(exec))
			}
		}
		for _, r := range replies {
			require.Equal(t, messages.OutcomeOK, tr.wait(r).Outcome)
		}
		tr.ask(messages.ReleaseOwner{Owner: "x"})
		time.Sleep(time.Second)
		require.EqualValues(t, each, tr.ended.Load())
	})
}

// TestAnIdleKernelIsAskedToHibernate once in the time that it may idle, where sessions are kept
// on disk: one that cannot goes on.
func TestAnIdleKernelIsAskedToHibernate(t *testing.T) {
	for name, c := range map[string]struct {
		disk  gateway.Forgetter
		asked int64
	}{"on disk": {&onDisk{}, 2}, "nowhere": {nil, 0}} {
		t.Run(name, func(t *testing.T) {
			o := gateway.Options{Strategy: gateway.Policy{IdleTTL: time.Hour, Hibernate: true}.Strategy(), Hibernation: c.disk}
			inTree(t, o, func(t *testing.T, tr *tree) {
				tr.run("a", "x")
				time.Sleep(2*time.Hour + time.Minute)
				require.Equal(t, c.asked, tr.asked.Load())
				require.Zero(t, tr.ended.Load())
				require.Equal(t, messages.StateKept, tr.run("a", "x").State)
			})
		})
	}
}
