package outlive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// TestAHostIsKilledWhileItRestores: what is on disk of the session counts until it is the
// session's for good: the next host restores it, and does not take the half of it for what
// was kept.
func TestAHostIsKilledWhileItRestores(t *testing.T) {
	t.Run(backends.Runner, func(t *testing.T) { killedWhileItRestores(t, newRoleOf(t, false)) })
	t.Run(backends.Gateway, func(t *testing.T) { killedWhileItRestores(t, newRoleOf(t, true)) })
}

func killedWhileItRestores(t *testing.T, r role) {
	t.Helper()
	gate, waits := filepath.Join(r.Home, "gate"), filepath.Join(r.Home, "waits")
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	r.Sessions, r.Asleep, r.Policy = 1, true, hibernate.Lossless
	r.Setup = fmt.Sprintf(`class Slow:
    def __getstate__(self): return 41
    def __setstate__(self, n):
        import os, time
        while not os.path.exists(%q):
            open(%q, 'w').close()
            time.sleep(.005)
        self.n = n
x = Slow()`, gate, waits)
	r.Leave = true // so that it reads when it is to go on
	v := begin(t, r)
	require.NoError(t, v.next())
	v.kill()

	second := r
	require.NoError(t, os.Remove(gate))
	second.Sessions, second.Asleep, second.Leave = 0, false, false
	second.Calls = [][]string{{"print(x.n)"}}
	v = begin(t, second)
	require.Eventually(t, func() bool { _, err := os.Stat(waits); return err == nil }, patience, 5*time.Millisecond)
	v.kill()

	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	host := next(t, r)
	require.Empty(t, host.Kept())
	result, err := host.Session(name(0), coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Owner: "owner", Cells: []messages.Cell{{Code: "x.n"}}})
	require.NoError(t, err)
	require.Equal(t, messages.StateRestored, result.State, result.Text)
	require.Equal(t, "41", result.Cells[0].Output)
	require.True(t, host.Shutdown(context.Background()).Clean())
}

// TestAHostIsKilledBeforeItTells: how a session began is told by the first result that somebody
// gets, also when its host is killed while the call runs: that it was restored, with what is lost, or
// that it was new.
func TestAHostIsKilledBeforeItTells(t *testing.T) {
	for _, c := range []struct{ asleep, gateway bool }{{true, false}, {false, false}, {true, true}, {false, true}} {
		r := newRoleOf(t, c.gateway)
		gate := filepath.Join(r.Home, "gate")
		r.Calls = [][]string{{fmt.Sprintf("print('first')\nimport os, time\nwhile not os.path.exists(%q): time.sleep(.005)\nn = 1", gate)}}
		if c.asleep {
			r.Sessions, r.Asleep, r.Policy = 1, true, hibernate.Lossy
			r.Setup = "import socket\nx, s = 41, socket.socket()"
		}
		v := begin(t, r)
		v.shows(t, 1, isText)
		v.kill()
		middle := r
		middle.Sessions, middle.Calls = 0, nil
		v = begin(t, middle) // a second one that is killed has told nobody either
		require.NoError(t, v.next())
		v.kill()

		host := next(t, r)
		require.NoError(t, os.WriteFile(gate, nil, 0o600))
		call := func() messages.Result {
			result, err := host.Session(name(0), coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Owner: "owner", Cells: []messages.Cell{{Code: "print(n)"}}})
			require.NoError(t, err)
			require.Equal(t, messages.OutcomeOK, result.Outcome, result.Text)
			require.Equal(t, "1", result.Cells[0].Output)
			return result
		}
		result, err := byID(host)["call-s0"].Result(t.Context())
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, result.Outcome, result.Text)
		if c.asleep {
			require.Equal(t, messages.StateRestored, result.State)
			require.Contains(t, result.Restored.Kept, "x")
			require.Len(t, result.Restored.Lost, 1)
			require.Equal(t, "s", result.Restored.Lost[0].Name)
		} else {
			require.Equal(t, messages.StateFresh, result.State)
		}
		require.Equal(t, messages.StateKept, call().State)
		if c.gateway { // also for one that comes after
			host.Leave(context.Background())
			host = next(t, r)
			require.Equal(t, messages.StateKept, call().State)
		}
		require.True(t, host.Shutdown(context.Background()).Clean())
		r.gone(t)
	}
}

// TestAHostIsKilledWhileItWrites: what it wrote of the session is not there, and the session
// is, as it was; the copy that wrote it and the interpreter that read it have ended.
func TestAHostIsKilledWhileItWrites(t *testing.T) {
	t.Run(backends.Runner, func(t *testing.T) { killedWhileItWrites(t, newRoleOf(t, false)) })
	t.Run(backends.Gateway, func(t *testing.T) { killedWhileItWrites(t, newRoleOf(t, true)) })
}

func killedWhileItWrites(t *testing.T, r role) {
	t.Helper()
	gate, waits := filepath.Join(r.Home, "gate"), filepath.Join(r.Home, "waits")
	r.Sessions, r.Asleep, r.Policy = 1, true, hibernate.Lossless
	for _, step := range []string{"__getstate__", "__setstate__"} {
		r.Setup = fmt.Sprintf(`def wait():
    import os, time
    while not os.path.exists(%q):
        open(%q, 'w').close()
        time.sleep(.005)
class Slow:
    def __getstate__(self):
        if %[3]q == '__getstate__': wait()
        return 41
    def __setstate__(self, n):
        import os, time
        while %[3]q == '__setstate__' and not os.path.exists(%[1]q):
            open(%[2]q, 'w').close()
            time.sleep(.005)
        self.n = n
x = Slow()
x.n = 41`, gate, waits, step)
		v := begin(t, r)
		require.Eventually(t, func() bool { _, err := os.Stat(waits); return err == nil }, patience, 5*time.Millisecond)
		v.kill()

		host := next(t, r)
		require.NoError(t, os.WriteFile(gate, nil, 0o600))
		list, err := host.Hibernated(t.Context())
		require.NoError(t, err)
		require.Empty(t, list)
		result, err := host.Session(name(0), coppice.In(r.Home)).Execute(t.Context(), coppice.Request{Owner: "owner", Cells: []messages.Cell{{Code: "x.n"}}})
		require.NoError(t, err)
		require.Equal(t, messages.StateKept, result.State, result.Text)
		require.Equal(t, "41", result.Cells[0].Output)
		sessions, err := host.Sessions(t.Context())
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		require.NoError(t, host.Session(name(0), coppice.In(r.Home)).Close(t.Context()))
		require.True(t, host.Shutdown(context.Background()).Clean())
		r.gone(t)
		require.NoError(t, os.Remove(gate))
		require.NoError(t, os.Remove(waits))
	}
}
