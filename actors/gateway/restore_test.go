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

// onDisk hears what becomes of sessions on disk.
type onDisk struct {
	ready  map[string]bool // what sessions may begin with
	begun  []string        // the sessions that do
	forgot int
}

func (d *onDisk) Forget(messages.SessionKey) { d.forgot++ }
func (d *onDisk) ForgetWorkspace(string)     {}
func (d *onDisk) Begin(key messages.SessionKey, ready string) bool {
	if d.ready[ready] {
		d.begun = append(d.begun, key.Session)
	}
	return d.ready[ready]
}

// TestACheckpointIsRestored by a new kernel, and never while something runs or waits: nothing
// has ended then.
func TestACheckpointIsRestored(t *testing.T) {
	disk := &onDisk{ready: map[string]bool{"r": true}}
	inTree(t, gateway.Options{Hibernation: disk}, func(t *testing.T, tr *tree) {
		restore := func(session, ready string) error {
			_, err := supervisor.Ask[bool](context.Background(), tr.ref(), messages.RestoreCheckpoint{Key: key(session), Ready: ready})
			return err
		}
		refused := func(err error, reason messages.RestoreReason) {
			t.Helper()
			var no *messages.RestoreRefused
			require.ErrorAs(t, err, &no)
			require.Equal(t, reason, no.Reason, no.Problem)
			require.Empty(t, disk.begun)
			require.Zero(t, tr.ended.Load())
		}
		starting := tr.begin(call("first", "a", "sleep 1h"))
		time.Sleep(tr.start / 2)
		refused(restore("a", "r"), messages.RestoreBusy) // a call waits for it to start
		time.Sleep(tr.start)
		refused(restore("a", "r"), messages.RestoreBusy)
		require.Equal(t, messages.OutcomeOK, tr.wait(starting).Outcome)
		refused(restore("a", "given up"), messages.RestoreFailed)
		require.Equal(t, messages.StateKept, tr.run("a", "x").State)

		require.NoError(t, restore("a", "r"))
		require.Equal(t, []string{"a"}, disk.begun)
		r := tr.run("a", "x")
		require.Equal(t, messages.StateFresh, r.State, "a new kernel")
		require.Equal(t, string(messages.ExitReset), r.Reason)
		require.NoError(t, restore("b", "r"), "one that has no kernel")
		require.Equal(t, []string{"a", "b"}, disk.begun)
		require.Zero(t, disk.forgot, "what is on disk of a session is there until it is restored")

		var no *messages.RestoreRefused
		require.NoError(t, restore("a", "r"))
		require.ErrorAs(t, restore("a", "r"), &no)
		require.Equal(t, messages.RestoreStarting, no.Reason, "the kernel before is about to end")
	})
	inTree(t, gateway.Options{}, func(t *testing.T, tr *tree) {
		var no *messages.RestoreRefused
		_, err := supervisor.Ask[bool](context.Background(), tr.ref(), messages.RestoreCheckpoint{Key: key("a"), Ready: "r"})
		require.ErrorAs(t, err, &no)
		require.Equal(t, messages.RestoreOff, no.Reason)
		var not *messages.HibernateRefused
		_, err = supervisor.Ask[messages.Hibernated](context.Background(), tr.ref(), messages.SaveCheckpoint{Key: key("a")})
		require.ErrorAs(t, err, &not)
		require.Equal(t, messages.HibernateOff, not.Reason)
	})
}
