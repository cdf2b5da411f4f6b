package gateway_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

func TestCallsOfAKeyRunInOrderOnOneKernel(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		var replies []supervisor.Reply[messages.Result]
		for i := range 20 {
			replies = append(replies, tr.begin(call(fmt.Sprint(i), "a", "sleep 1s")))
		}
		for i, r := range replies {
			require.Equal(t, fmt.Sprint(i+1), tr.wait(r).Text)
		}
		require.Len(t, tr.order, 20)
	})
}

func TestAWaiterThatLeavesDoesNotDisturbTheOrder(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		a := tr.begin(call("a", "s", "sleep 10s"))
		b := tr.begin(call("b", "s", "sleep 10s"))
		c := tr.begin(call("c", "s", "sleep 10s"))
		time.Sleep(3 * time.Second)
		tr.ref().Tell(messages.Interrupt{Key: key("s"), Exec: "b", Cause: messages.CauseCancelled})
		left := tr.wait(b)
		require.Equal(t, messages.OutcomeCancelled, left.Outcome)
		require.Equal(t, messages.CellPending, left.Cells[0].Status)
		tr.wait(a)
		tr.wait(c)
		require.Equal(t, []string{"a", "c"}, tr.order)
	})
}

func TestADeadlineCountsInTheQueueAndNotWhileTheKernelStarts(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.start = 20 * time.Second
		first := call("first", "s", "sleep 3s")
		first.Timeout, first.Deadline = 5*time.Second, time.Now().Add(5*time.Second)
		second := call("second", "s", "sleep 3s")
		second.Timeout, second.Deadline = 2*time.Second, time.Now().Add(2*time.Second)
		begin := time.Now()
		a, b := tr.begin(first), tr.begin(second)

		rb := tr.wait(b)
		require.Equal(t, messages.OutcomeTimeout, rb.Outcome)
		require.Equal(t, messages.CellPending, rb.Cells[0].Status, "it never ran")
		require.InDelta(t, 22, time.Since(begin).Seconds(), 0.1)
		require.Equal(t, messages.OutcomeOK, tr.wait(a).Outcome)

		third := call("third", "s", "sleep 1h")
		third.Deadline = time.Now().Add(7 * time.Second)
		begin = time.Now()
		require.Equal(t, messages.OutcomeTimeout, tr.wait(tr.begin(third)).Outcome)
		require.InDelta(t, 7, time.Since(begin).Seconds(), 0.1)
	})
}

func TestAPerCallKernelIsAlwaysEnded(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		for i := range 3 {
			exec := call(fmt.Sprint(i), "a", "x")
			exec.Mode = messages.ModePerCall
			r := tr.wait(tr.begin(exec))
			require.Equal(t, messages.StateFresh, r.State)
			require.Empty(t, r.Reason)
			time.Sleep(time.Second)
			require.EqualValues(t, i+1, tr.ended.Load())
		}
	})
}

func TestResetGivesWaitingCallsANewKernel(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.run("a", "x")
		exec := call("r", "a", "x")
		exec.Reset = true
		r := tr.wait(tr.begin(exec))
		require.Equal(t, messages.StateFresh, r.State)
		require.Equal(t, string(messages.ExitReset), r.Reason)

		running := tr.begin(call("running", "a", "sleep 1h"))
		waiting := tr.begin(call("waiting", "a", "x"))
		time.Sleep(5 * time.Second)
		tr.ask(messages.Reset{Key: key("a")})
		require.Equal(t, messages.OutcomeCancelled, tr.wait(running).Outcome)
		require.Equal(t, messages.StateFresh, tr.wait(waiting).State)
	})
}

func TestAResetDuringAResetIsRefused(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		reset := func(id, code string) messages.Execute {
			exec := call(id, "a", code)
			exec.Reset = true
			return exec
		}
		tr.run("a", "x")
		first := tr.begin(reset("first", "x"))
		second := tr.wait(tr.begin(reset("second", "x")))
		require.Equal(t, messages.OutcomeNotStarted, second.Outcome)
		require.Equal(t, messages.RefusedResetting, second.Refusal)
		require.Empty(t, second.State, "nothing ran: no claim")
		require.Contains(t, second.Reason, "another call resets the session")
		plain := tr.begin(call("plain", "a", "x"))
		require.Equal(t, messages.OutcomeOK, tr.wait(first).Outcome)
		require.Equal(t, messages.StateKept, tr.wait(plain).State, "a call without a reset has the new kernel")

		// A reset waits for a call that runs, and for one without a reset before it.
		running := tr.begin(reset("running", "sleep 5s"))
		time.Sleep(2 * time.Second)
		waiting := tr.begin(reset("waiting", "x"))
		require.Equal(t, messages.OutcomeOK, tr.wait(running).Outcome)
		require.Equal(t, messages.OutcomeOK, tr.wait(waiting).Outcome)
	})
}

func TestAResetForgivesASessionThatWasGivenUp(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		giveUp := func() {
			tr.run("a", "panic")
			tr.run("a", "panic")
			r := tr.run("a", "x")
			require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
			require.Equal(t, messages.RefusedExhausted, r.Refusal)
			require.Empty(t, r.State, "nothing ran: no claim")
			require.Contains(t, r.Reason, "nothing of earlier calls is left")
			require.Contains(t, r.Reason, "as told")
			require.Contains(t, r.Reason, "reset the session")
		}
		giveUp()
		exec := call("reset", "a", "x")
		exec.Reset = true
		require.Equal(t, messages.OutcomeOK, tr.wait(tr.begin(exec)).Outcome)
		giveUp()
		tr.ask(messages.Reset{Key: key("a")})
		require.Equal(t, messages.OutcomeOK, tr.run("a", "x").Outcome)
	})
}

// TestACallThatNoKernelTakesForALimitSaysSo: the kernel was ended for one, or could not be
// started for one.
func TestACallThatNoKernelTakesForALimitSaysSo(t *testing.T) {
	refused := func(t *testing.T, r messages.Result, why messages.Refusal) {
		t.Helper()
		require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
		require.Equal(t, why, r.Refusal)
		require.Equal(t, &messages.ResourceLimitExceeded{Limit: messages.LimitMemory}, r.Exceeded, "and nothing of another call")
		require.Contains(t, r.Reason, "ResourceLimitExceeded: memory")
	}
	t.Run("again right after a restart", func(t *testing.T) {
		inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
			tr.run("a", "limit memory")
			tr.run("a", "limit memory")
			refused(t, tr.run("a", "x"), messages.RefusedExhausted)
			refused(t, tr.run("a", "x"), messages.RefusedExhausted)
			exec := call("reset", "a", "x")
			exec.Reset = true
			r := tr.wait(tr.begin(exec))
			require.Equal(t, messages.OutcomeOK, r.Outcome)
			require.Nil(t, r.Exceeded)
			for range 2 { // while a call waits for it
				running, waits := tr.begin(call("running", "a", "limit memory")), tr.begin(call("waits", "a", "limit memory"))
				tr.wait(running)
				tr.wait(waits)
			}
			refused(t, tr.run("a", "x"), messages.RefusedExhausted)
		})
	})
	t.Run("while it started", func(t *testing.T) {
		inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
			tr.refusal = fmt.Errorf("start a session: %w", &messages.ResourceLimitExceeded{Limit: messages.LimitMemory})
			tr.refuse.Store(2)
			refused(t, tr.run("a", "x"), messages.RefusedStart)
			tr.refuse.Store(0)
			require.Nil(t, tr.run("a", "x").Exceeded)
		})
	})
}

func TestCloseForgetsTheSession(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		running := tr.begin(call("running", "a", "sleep 1h"))
		waiting := tr.begin(call("waiting", "a", "x"))
		time.Sleep(5 * time.Second)
		tr.ask(messages.Close{Key: key("a")})
		require.Equal(t, messages.OutcomeCancelled, tr.wait(running).Outcome)
		w := tr.wait(waiting)
		require.Equal(t, messages.OutcomeNotStarted, w.Outcome)
		require.Contains(t, w.Reason, "closed")
		time.Sleep(5 * time.Second)
		r := tr.run("a", "x")
		require.Equal(t, messages.StateFresh, r.State)
	})
}

func TestAnActorThatPanicsLosesOnlyItsCall(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.run("a", "x")
		bad := tr.begin(call("bad", "a", "panic"))
		next := tr.begin(call("next", "a", "x"))
		r := tr.wait(bad)
		require.NotEqual(t, messages.OutcomeOK, r.Outcome)
		require.Equal(t, messages.StateLost, r.State)
		require.Equal(t, messages.StateFresh, tr.wait(next).State)
	})
}

func TestTheLastOwnerThatLeavesEndsTheSession(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		for _, c := range []struct{ session, owner string }{{"shared", "x"}, {"shared", "y"}, {"mine", "x"}, {"nobodys", ""}} {
			exec := call(messages.NewID(), c.session, "x")
			exec.Owner = c.owner
			require.Equal(t, messages.OutcomeOK, tr.wait(tr.begin(exec)).Outcome)
		}
		tr.ask(messages.ReleaseOwner{Owner: "x"})
		tr.ask(messages.ReleaseOwner{Owner: "x"}) // again: nothing left to release
		time.Sleep(time.Second)
		require.EqualValues(t, 1, tr.ended.Load(), "the session that only x used")
		require.Equal(t, messages.StateKept, tr.run("shared", "x").State)
		tr.ask(messages.ReleaseOwner{Owner: "y"})
		time.Sleep(time.Second)
		require.EqualValues(t, 2, tr.ended.Load())
		require.Equal(t, messages.StateFresh, tr.run("shared", "x").State)
		require.Equal(t, messages.StateKept, tr.run("nobodys", "x").State)
	})
}

// TestARestoredSessionHasItsOwners: one who leaves does not end a session that others used
// before it was restored, and no kernel has the owners of another one.
func TestARestoredSessionHasItsOwners(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.users = []string{"", "x", "y"}
		run := func(session string) {
			exec := call(messages.NewID(), session, "x")
			exec.Owner = "x"
			require.Equal(t, messages.OutcomeOK, tr.wait(tr.begin(exec)).Outcome)
		}
		run("shared")
		tr.users = nil
		run("mine")
		tr.ask(messages.ReleaseOwner{Owner: "x"})
		time.Sleep(time.Second)
		require.EqualValues(t, 1, tr.ended.Load(), "the session that only x used")
		tr.ask(messages.ReleaseOwner{Owner: ""})
		time.Sleep(time.Second)
		require.EqualValues(t, 1, tr.ended.Load())
		tr.ask(messages.ReleaseOwner{Owner: "y"})
		time.Sleep(time.Second)
		require.EqualValues(t, 2, tr.ended.Load())
	})
}

func TestADrainLetsRunningCallsEnd(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		running := tr.begin(call("running", "a", "sleep 1m"))
		waiting := tr.begin(call("waiting", "a", "x"))
		time.Sleep(5 * time.Second)
		begin := time.Now()
		tr.ask(messages.Drain{})
		require.InDelta(t, 56, time.Since(begin).Seconds(), 1.1)
		require.Equal(t, messages.OutcomeOK, tr.wait(running).Outcome)
		for _, r := range []messages.Result{tr.wait(waiting), tr.run("b", "x")} {
			require.Equal(t, messages.OutcomeNotStarted, r.Outcome)
			require.Contains(t, r.Reason, "shutting down")
		}
		tr.ask(messages.Drain{}) // nothing runs: answered at once
	})
}

func TestShutdownAnswersEveryCall(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		var replies []supervisor.Reply[messages.Result]
		for i := range 3 {
			for j := range 3 {
				replies = append(replies, tr.begin(call(fmt.Sprint(i, j), fmt.Sprint(i), "sleep 1h")))
			}
		}
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		tr.system.Shutdown(ctx)
		for _, r := range replies {
			res := tr.wait(r)
			require.Contains(t, []messages.Outcome{messages.OutcomeCancelled, messages.OutcomeNotStarted}, res.Outcome)
		}
	})
}
