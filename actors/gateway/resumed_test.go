package gateway_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/messages"
)

// TestACallThatAnEarlierHostHasBegunHasRun: when it is to end early and has no kernel yet,
// nobody says that its code was not run; its kernel is told when it has it.
func TestACallThatAnEarlierHostHasBegunHasRun(t *testing.T) {
	stop := map[messages.Outcome]func(*tree, messages.Execute){
		messages.OutcomeCancelled: func(tr *tree, e messages.Execute) {
			require.True(tr.t, tr.ref().Tell(messages.Interrupt{Key: e.Key, Exec: e.ID, Cause: messages.CauseCancelled}))
		},
		messages.OutcomeTimeout: func(tr *tree, e messages.Execute) {
			require.True(tr.t, tr.ref().Tell(messages.Interrupt{Key: e.Key, Exec: e.ID, Cause: messages.CauseTimeout}))
		},
	}
	for outcome, end := range stop {
		t.Run(string(outcome), func(t *testing.T) {
			inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
				exec := call("begun", "s", "sleep 1h")
				exec.Resumed = true
				begun := time.Now()
				reply := tr.begin(exec)
				end(tr, exec)
				r := tr.wait(reply)
				require.Equal(t, outcome, r.Outcome)
				require.Equal(t, messages.StateFresh, r.State, "its kernel has answered")
				require.Equal(t, tr.start, time.Since(begun))
				require.Equal(t, []string{"begun"}, tr.order)
			})
		})
	}
}

// TestACallThatAnEarlierHostHasBegunGoesOn: nobody ends it that was not asked to, and when its
// kernel dies it is this one that has lost it.
func TestACallThatAnEarlierHostHasBegunGoesOn(t *testing.T) {
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		exec := call("begun", "s", "sleep 1m")
		exec.Resumed = true
		require.Equal(t, messages.OutcomeOK, tr.wait(tr.begin(exec)).Outcome)
		exec = call("dies", "s", "vanish")
		exec.Resumed = true
		r := tr.wait(tr.begin(exec))
		require.Equal(t, messages.OutcomeLost, r.Outcome)
		require.Equal(t, "the kernel's actor ended: as told (in messages.Execute)", r.Reason)
		r = tr.wait(tr.begin(messages.Execute{ID: "empty", Key: key("s")}))
		require.Equal(t, messages.OutcomeLost, r.Outcome)
		require.Empty(t, r.Cells)
	})
	inTree(t, gateway.Options{Strategy: gateway.Policy{MaxKernels: 1}.Strategy()}, func(t *testing.T, tr *tree) {
		tr.begin(call("busy", "s", "sleep 1m"))
		require.NotContains(t, tr.run("other", "x").Reason, "earlier host")
	})
}

// TestACallThatCannotGoOnIsLost: its kernel could not be started, or the host shuts down
// before that.
func TestACallThatCannotGoOnIsLost(t *testing.T) {
	exec := call("begun", "s", "x")
	exec.Resumed = true
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.refuse.Store(100)
		r := tr.wait(tr.begin(exec))
		require.Equal(t, messages.OutcomeLost, r.Outcome)
		require.Equal(t, messages.StateLost, r.State)
		require.Contains(t, r.Reason, "an earlier host had begun the call, and this one could not go on with it: ")
		require.Contains(t, r.Reason, "too many open files")
		require.True(t, r.Ran())
		require.Empty(t, r.Refusal)
	})
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		reply := tr.begin(exec)
		synctest.Wait()
		require.True(t, tr.system.Shutdown(context.Background()).Clean())
		r := tr.wait(reply)
		require.Equal(t, messages.OutcomeCancelled, r.Outcome)
		require.Equal(t, messages.StateLost, r.State)
		require.True(t, r.Ran())
	})
}
