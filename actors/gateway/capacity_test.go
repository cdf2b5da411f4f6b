package gateway_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

func TestTheFifthSessionEvictsTheLeastRecentlyUsed(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		for _, s := range []string{"a", "b", "c", "d"} {
			require.Equal(t, messages.StateFresh, tr.run(s, "x").State)
			time.Sleep(time.Second)
		}
		require.Equal(t, messages.StateKept, tr.run("a", "x").State)
		require.Equal(t, messages.StateFresh, tr.run("e", "x").State)
		require.Equal(t, messages.StateKept, tr.run("a", "x").State)
		again := tr.run("b", "x")
		require.Equal(t, messages.StateFresh, again.State)
		require.Equal(t, string(messages.ExitEvicted), again.Reason)
	})
}

func TestBusyAndPinnedSessionsAreNotEvicted(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		busy := tr.begin(call("busy", "busy", "sleep 1h"))
		tr.run("pinned", "x")
		require.True(t, tr.ask(messages.Pin{Key: key("pinned"), Pinned: true}))
		time.Sleep(30 * time.Minute)
		for i := range 6 {
			tr.run(fmt.Sprint(i), "x")
		}
		require.Equal(t, messages.StateKept, tr.run("pinned", "x").State)
		require.Equal(t, messages.OutcomeOK, tr.wait(busy).Outcome)
		require.Equal(t, messages.StateKept, tr.run("busy", "x").State)
	})
}

func TestAnIdleSessionEndsAfterItsTTL(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.run("a", "sleep 10m") // longer than the TTL: idle is counted from the end
		time.Sleep(4 * time.Minute)
		require.Equal(t, messages.StateKept, tr.run("a", "x").State)
		time.Sleep(6 * time.Minute)
		require.EqualValues(t, 1, tr.ended.Load())
		require.Equal(t, messages.StateFresh, tr.run("a", "x").State)
	})
}

func TestWhenNothingCanBeEvictedTheAnswerIsOverloaded(t *testing.T) {
	inTree(t, gateway.Options{Strategy: gateway.Policy{IdleTTL: time.Hour, MaxKernels: 1}.Strategy()}, func(t *testing.T, tr *tree) {
		busy := tr.begin(call("busy", "a", "sleep 1h"))
		time.Sleep(5 * time.Second)
		r := tr.run("b", "x")
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
		require.Contains(t, r.Reason, "overloaded")
		require.Equal(t, messages.OutcomeOK, tr.wait(busy).Outcome)
		require.Equal(t, messages.OutcomeOK, tr.run("b", "x").Outcome)
	})
}

func TestNewSessionsMayWaitForAPlace(t *testing.T) {
	inTree(t, gateway.Options{Strategy: gateway.Policy{IdleTTL: time.Hour, MaxKernels: 1, MaxWaiting: 1}.Strategy()}, func(t *testing.T, tr *tree) {
		a := tr.begin(call("a", "a", "sleep 1m"))
		time.Sleep(5 * time.Second)
		b := tr.begin(call("b", "b", "x"))
		time.Sleep(5 * time.Second)
		require.Equal(t, messages.OutcomeNotStarted, tr.run("c", "x").Outcome)
		tr.wait(a)
		require.Equal(t, messages.OutcomeOK, tr.wait(b).Outcome)
	})
}

// An owner owns a kernel, not a name: who used the session before its kernel
// was evicted does not keep the next one.
func TestAnEvictedKernelHasNoOwners(t *testing.T) {
	inTree(t, gateway.Options{Strategy: gateway.Policy{IdleTTL: time.Minute}.Strategy()}, func(t *testing.T, tr *tree) {
		use := func(owner string) {
			exec := call(messages.NewID(), "shared", "x")
			exec.Owner = owner
			require.Equal(t, messages.OutcomeOK, tr.wait(tr.begin(exec)).Outcome)
		}
		use("x")
		use("y")
		time.Sleep(2 * time.Minute)
		require.EqualValues(t, 1, tr.ended.Load(), "it is evicted")
		use("x")
		tr.ask(messages.ReleaseOwner{Owner: "x"})
		time.Sleep(time.Second)
		require.EqualValues(t, 2, tr.ended.Load())
	})
}

func TestOneOwnerCannotTakeAllPlaces(t *testing.T) {
	inTree(t, gateway.Options{Strategy: gateway.Policy{MaxKernels: 4, MaxPerOwner: 2}.Strategy()}, func(t *testing.T, tr *tree) {
		begin := func(owner string, n int, code string) supervisor.Reply[messages.Result] {
			exec := call(messages.NewID(), fmt.Sprint(owner, n), code)
			exec.Owner = owner
			return tr.begin(exec)
		}
		a, b := begin("greedy", 1, "sleep 1h"), begin("greedy", 2, "sleep 1h")
		time.Sleep(5 * time.Second)
		require.Equal(t, messages.OutcomeNotStarted, tr.wait(begin("greedy", 3, "x")).Outcome)
		require.Equal(t, messages.OutcomeOK, tr.wait(begin("modest", 1, "x")).Outcome)
		tr.wait(a)
		tr.wait(b)
		require.Equal(t, messages.OutcomeOK, tr.wait(begin("greedy", 3, "x")).Outcome, "an idle one makes room")
	})
}

func TestExhaustionMakesRoomAndTriesOnce(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.run("idle", "x")
		tr.run("pinned", "x")
		tr.ask(messages.Pin{Key: key("pinned"), Pinned: true})
		tr.refuse.Store(1)
		require.Equal(t, messages.OutcomeOK, tr.run("new", "x").Outcome)
		require.Equal(t, messages.StateKept, tr.run("pinned", "x").State)
		again := tr.run("idle", "x")
		require.Equal(t, messages.StateFresh, again.State)
		require.Equal(t, string(messages.ExitEvicted), again.Reason)

		tr.refuse.Store(2)
		r := tr.run("another", "x")
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
		require.Contains(t, r.Reason, "too many open files")
	})
	// A Kernel Gateway that other hosts have filled.
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.refusal = errors.New("POST /api/kernels: status 403: the server's kernel limit is reached")
		tr.run("idle", "x")
		tr.refuse.Store(1)
		require.Equal(t, messages.OutcomeOK, tr.run("new", "x").Outcome)
		require.Equal(t, string(messages.ExitEvicted), tr.run("idle", "x").Reason)
	})
}
