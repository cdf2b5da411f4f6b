package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// full has the machine have room for one kernel, which is idle and takes two seconds to
// end.
func (tr *tree) full() {
	tr.t.Helper()
	tr.places = 1
	tr.stop.Store(int64(2 * time.Second))
	require.Equal(tr.t, messages.OutcomeOK, tr.run("idle", "x").Outcome)
}

// A kernel that is ended to make room has made none before it is gone: the start that
// needs it comes then, and later calls of its session come after it.
func TestRoomIsThereWhenTheEndedKernelsAreGone(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.full()
		began := time.Now()
		first := tr.begin(call("first", "new", "x"))
		time.Sleep(500 * time.Millisecond)
		second := tr.begin(call("second", "new", "x"))
		time.Sleep(500 * time.Millisecond)
		third := tr.begin(call("third", "new", "x"))
		for _, r := range []messages.Result{tr.wait(first), tr.wait(second), tr.wait(third)} {
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Reason)
		}
		require.Equal(t, time.Duration(tr.stop.Load())+tr.start, time.Since(began), "no second was lost")
		require.Equal(t, []string{"first", "second", "third"}, tr.order[1:])
	})
}

// Of many idle kernels some are ended for a start, those that were used longest ago.
func TestRoomIsMadeByAFew(t *testing.T) {
	inTree(t, gateway.Options{Strategy: gateway.Policy{IdleTTL: time.Hour, MaxKernels: 100}.Strategy()}, func(t *testing.T, tr *tree) {
		const many = 20
		tr.places = many
		tr.stop.Store(int64(time.Second))
		for i := range many {
			require.Equal(t, messages.OutcomeOK, tr.run(fmt.Sprint("idle ", i), "x").Outcome)
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, messages.OutcomeOK, tr.run("new", "x").Outcome)
		for i := 8; i < many; i++ {
			r := tr.run(fmt.Sprint("idle ", i), "x")
			require.Equal(t, messages.StateKept, r.State, "%d %s", i, r.Reason)
		}
	})
}

// No more kernels are ended than calls without room need, those counted that end already. A
// call of a session that has its kernel waits for none of that.
func TestHowMuchRoomIsMade(t *testing.T) {
	const each, starts, many = 8, 2, 40
	inTree(t, gateway.Options{Strategy: gateway.Policy{IdleTTL: time.Hour, MaxKernels: 100}.Strategy()}, func(t *testing.T, tr *tree) {
		for i := range many {
			tr.run(fmt.Sprint("idle ", i), "x")
			time.Sleep(time.Millisecond)
		}
		tr.refuse.Store(starts)
		tr.stop.Store(int64(10 * time.Second))
		var replies []supervisor.Reply[messages.Result]
		for i := range starts {
			replies = append(replies, tr.begin(call(fmt.Sprint("new", i), fmt.Sprint("new ", i), "x")))
			time.Sleep(time.Second)
			require.EqualValues(t, (each+1)*(i+1), tr.ended.Load(), "with the one that could not start")
		}
		began := time.Now()
		require.Equal(t, messages.StateKept, tr.run(fmt.Sprint("idle ", many-1), "x").State)
		require.Zero(t, time.Since(began))
		later := tr.begin(call("later", "new 0", "x"))
		for _, r := range append(replies, later) {
			require.Equal(t, messages.OutcomeOK, tr.wait(r).Outcome)
		}
		require.EqualValues(t, (each+1)*starts, tr.ended.Load())
		require.Less(t, slices.Index(tr.order, "new0"), slices.Index(tr.order, "later"))
	})
}

// Who closes a session gives up its calls that wait for room, and those of no other.
func TestAClosedSessionNeedsNoRoom(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.run("idle", "x")
		tr.stop.Store(int64(2 * time.Second))
		tr.refuse.Store(2)
		closed, other := tr.begin(call("a", "closed", "x")), tr.begin(call("b", "other", "x"))
		time.Sleep(time.Second)
		tr.ask(messages.Close{Key: key("closed")})
		refused := tr.wait(closed)
		require.Equal(t, messages.RefusedClosed, refused.Refusal)
		require.Equal(t, messages.RemedyRetry, refused.Remedy, "the session is made anew")
		require.Equal(t, messages.OutcomeOK, tr.wait(other).Outcome)
	})
}

// A call that waits when its workspace ends would not be served if it were made again.
func TestACallOfAnEndedWorkspaceIsToBeMended(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		in := func(id, code string) messages.Execute {
			exec := call(id, "s", code)
			exec.Key.Workspace = "w"
			return exec
		}
		tr.begin(in("a", "sleep 10s"))
		waits := tr.begin(in("b", "x"))
		require.True(t, tr.ask(messages.EndWorkspace{Workspace: "w", Reason: "the workspace w has ended: it was asked to end"}))
		r := tr.wait(waits)
		require.Equal(t, [2]string{"session_closed", "mend_request"}, [2]string{string(r.Refusal), string(r.Remedy)})
		require.Equal(t, "the session was closed: the workspace w has ended: it was asked to end; make the workspace anew, or use another one", r.Reason)
	})
}

// A call that comes to wait for the same thing again has waited for all of it.
func TestWaitsAddUp(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		for i := range 4 {
			tr.begin(call(fmt.Sprint("long", i), "s", "sleep 10s"))
		}
		reply := tr.begin(call("a", "s", "x"))
		time.Sleep(26 * time.Second)
		tr.ask(messages.Reset{Key: key("s")}) // the kernel of the calls that wait is another
		time.Sleep(3 * time.Second)
		tr.ref().Tell(messages.Interrupt{Key: key("s"), Exec: "a", Cause: messages.CauseCancelled})
		require.Equal(t, messages.Waited{Kernel: 2 * time.Second, Turn: 27 * time.Second}, tr.wait(reply).Progress.Waited)
	})
	inTree(t, gateway.Options{Strategy: gateway.Policy{MaxKernels: 2, MaxWaiting: 1}.Strategy()}, func(t *testing.T, tr *tree) {
		tr.begin(call("long", "other", "sleep 10s"))
		tr.begin(call("longer", "another", "sleep 11s"))
		reply := tr.begin(call("a", "s", "x"))
		time.Sleep(5 * time.Second)
		tr.refuse.Store(1)
		tr.stop.Store(int64(2 * time.Second))
		time.Sleep(10*time.Second + 500*time.Millisecond)
		tr.ref().Tell(messages.Interrupt{Key: key("s"), Exec: "a", Cause: messages.CauseCancelled})
		require.Equal(t, messages.Waited{Place: 15 * time.Second, Kernel: 500 * time.Millisecond}, tr.wait(reply).Progress.Waited)
	})
}

// A call that waits for the end of kernels can be left, closed and drained as any other,
// and says what it waited for.
func TestACallThatWaitsForRoomCanEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		end     func(*tree)
		outcome messages.Outcome
		refusal messages.Refusal
		stop    messages.Stop
	}{
		"cancelled": {func(tr *tree) {
			tr.ref().Tell(messages.Interrupt{Key: key("new"), Exec: "a", Cause: messages.CauseCancelled})
		}, messages.OutcomeCancelled, "", messages.StopCancel},
		"the caller's deadline": {func(tr *tree) {
			tr.ref().Tell(messages.Interrupt{Key: key("new"), Exec: "a", Cause: messages.CauseTimeout, Deadline: time.Second})
		}, messages.OutcomeTimeout, "", messages.StopDeadline},
		"closed":  {func(tr *tree) { tr.ask(messages.Close{Key: key("new")}) }, messages.OutcomeNotStarted, messages.RefusedClosed, messages.StopClosed},
		"drained": {func(tr *tree) { tr.ask(messages.Drain{}) }, messages.OutcomeNotStarted, messages.RefusedDraining, messages.StopShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
				tr.full()
				reply := tr.begin(call("a", "new", "x"))
				time.Sleep(time.Second)
				tt.end(tr)
				r := tr.wait(reply)
				require.Equal(t, tt.outcome, r.Outcome, r.Reason)
				require.Equal(t, tt.refusal, r.Refusal)
				require.Equal(t, tt.stop, r.Progress.Stop)
				require.Equal(t, messages.ReachPlace, r.Progress.Reach)
			})
		})
	}
}

// A call that left the queue says what it waited for, and how long, whichever it was.
func TestWhatACallWaitedFor(t *testing.T) {
	const left = 5 * time.Second
	for name, tt := range map[string]struct {
		policy gateway.Policy
		before func(*tree)
		want   messages.Progress
		reason string
	}{
		"earlier calls": {
			before: func(tr *tree) {
				tr.run("s", "x")
				tr.begin(call("long", "s", "sleep 1h"))
			},
			want:   messages.Progress{Reach: messages.ReachTurn, Waited: messages.Waited{Turn: left}},
			reason: "it was still waiting for earlier calls of its session, and the code was not run",
		},
		"its kernel": {
			before: func(tr *tree) { tr.start = time.Hour },
			want:   messages.Progress{Reach: messages.ReachKernel, Waited: messages.Waited{Kernel: left}},
			reason: "it was still waiting for its kernel, and the code was not run",
		},
		"a kernel, and then earlier calls": {
			before: func(tr *tree) { tr.begin(call("long", "s", "sleep 1h")) },
			want:   messages.Progress{Reach: messages.ReachTurn, Waited: messages.Waited{Kernel: time.Second, Turn: left - time.Second}},
			reason: "it was still waiting for earlier calls of its session, and the code was not run",
		},
		"a place": {
			policy: gateway.Policy{MaxKernels: 1, MaxWaiting: 1},
			before: func(tr *tree) {
				tr.run("other", "x")
				tr.begin(call("long", "other", "sleep 1h"))
			},
			want:   messages.Progress{Reach: messages.ReachPlace, Waited: messages.Waited{Place: left}},
			reason: "it was still waiting for a place, and the code was not run; close a session, or raise the number of sessions",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inTree(t, gateway.Options{Strategy: tt.policy.Strategy()}, func(t *testing.T, tr *tree) {
				tt.before(tr)
				reply := tr.begin(call("a", "s", "x"))
				time.Sleep(left)
				tr.ref().Tell(messages.Interrupt{Key: key("s"), Exec: "a", Cause: messages.CauseTimeout, Deadline: left})
				r := tr.wait(reply)
				tt.want.Cells, tt.want.Stop, tt.want.Limit = 1, messages.StopDeadline, left
				require.Equal(t, tt.want, r.Progress)
				require.Equal(t, tt.reason, r.Reason)
				require.Equal(t, messages.RemedyMoreTime, r.Remedy)
				require.Empty(t, r.State)
			})
		})
	}
}
