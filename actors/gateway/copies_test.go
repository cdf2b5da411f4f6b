package gateway_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/gateway"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/supervisor"
)

// given is the error of a request that is answered with true.
func given(tr *tree, msg any) error {
	_, err := supervisor.Ask[bool](context.Background(), tr.ref(), msg)
	return err
}

// TestWhatCanBeCopied, put back to a copy or kept on disk: a session with a kernel in which nothing
// runs. One without can be put back, and so can one that was given up.
func TestWhatCanBeCopied(t *testing.T) {
	inTree(t, gateway.Options{Hibernation: &onDisk{}}, func(t *testing.T, tr *tree) {
		fork := func(session string) error { return given(tr, messages.Fork{Key: key(session)}) }
		rewind := func(session string) error { return given(tr, messages.Rewind{Key: key(session)}) }
		keep := func(session string) error { return given(tr, messages.Hibernate{Key: key(session)}) }
		refused := func(err error, reason messages.ForkReason) {
			t.Helper()
			var no *messages.ForkRefused
			require.ErrorAs(t, err, &no)
			require.Equal(t, reason, no.Reason)
		}
		notKept := func(err error, reason messages.HibernateReason) {
			t.Helper()
			var no *messages.HibernateRefused
			require.ErrorAs(t, err, &no)
			require.Equal(t, reason, no.Reason)
		}
		refused(fork("none"), messages.ForkNoKernel)
		notKept(keep("none"), messages.HibernateNoKernel)
		require.NoError(t, rewind("none"))

		running := tr.begin(call("r", "a", "sleep 1h"))
		time.Sleep(2 * tr.start)
		refused(fork("a"), messages.ForkBusy)
		refused(rewind("a"), messages.ForkBusy)
		notKept(keep("a"), messages.HibernateBusy)
		require.Equal(t, messages.OutcomeOK, tr.wait(running).Outcome)
		require.NoError(t, fork("a"))
		require.NoError(t, keep("a"))
		require.Equal(t, messages.StateKept, tr.run("a", "x").State, "all that has ended nothing")

		require.NoError(t, rewind("a"))
		refused(rewind("a"), messages.ForkStarting) // the kernel before is about to end
		require.Equal(t, messages.StateFresh, tr.run("a", "x").State)

		for range 2 {
			tr.run("a", "panic")
		}
		require.Equal(t, messages.RefusedExhausted, tr.run("a", "x").Refusal)
		refused(fork("a"), messages.ForkNoKernel)
		notKept(keep("a"), messages.HibernateNoKernel)
		require.NoError(t, rewind("a"))
		require.Equal(t, messages.StateFresh, tr.run("a", "x").State)
	})
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		tr.run("a", "x")
		var no *messages.HibernateRefused
		require.ErrorAs(t, given(tr, messages.Hibernate{Key: key("a")}), &no)
		require.Equal(t, messages.HibernateOff, no.Reason)
	})
}

// TestTheEndOfAWorkspace ends the kernels in it, and none beside it; the answer comes when they are
// gone, at once where there are none.
func TestTheEndOfAWorkspace(t *testing.T) {
	for _, o := range []gateway.Options{{}, {Hibernation: &onDisk{}}} {
		inTree(t, o, func(t *testing.T, tr *tree) {
			in := func(session, workspace string) messages.Execute {
				exec := call(messages.NewID(), session, "x")
				exec.Key.Workspace = workspace
				return exec
			}
			for _, exec := range []messages.Execute{in("a", "w"), in("b", "w"), in("c", "other"), in("d", "")} {
				require.Equal(t, messages.OutcomeOK, tr.wait(tr.begin(exec)).Outcome)
			}
			begin := time.Now()
			require.True(t, tr.ask(messages.EndWorkspace{Workspace: "none", Reason: "over"}))
			require.Zero(t, time.Since(begin))
			require.Zero(t, tr.ended.Load())
			tr.stop.Store(int64(time.Second))
			require.True(t, tr.ask(messages.EndWorkspace{Workspace: "w", Reason: "over"}))
			require.EqualValues(t, 2, tr.ended.Load())
			require.EqualValues(t, 2, tr.live.Load(), "they are gone")
			tr.stop.Store(0)
			for _, exec := range []messages.Execute{in("c", "other"), in("d", "")} {
				require.Equal(t, messages.StateKept, tr.wait(tr.begin(exec)).State)
			}
			require.Equal(t, messages.StateFresh, tr.wait(tr.begin(in("a", "w"))).State)
		})
	}
}
