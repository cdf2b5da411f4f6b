//go:build linux

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/messages"
)

// A copy is a session in all respects, whether its original was forked or
// started, and whether the fork server lives or not.
func TestCopies(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*forks{"forked": startServer(runner.ServerOptions{}), "started": startServer(runner.ServerOptions{NoFork: true})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() { _ = f.stop(); _ = f.server.Close() }) // it was killed
			server := f.server
			key := func(n int) messages.SessionKey { return messages.SessionKey{Session: fmt.Sprint(n)} }
			i := sessionOn(t, f, runner.Options{Prelude: "p = 'prelude'"}, kernel.StartOptions{Env: map[string]string{"COPPICE_E": "e"}})
			ok(t, i, "import threading\nlock = threading.Lock()\nx = [0]")
			if pid := <-f.pids; pid != 0 {
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
				require.Error(t, <-f.ended)
				f.ended <- nil // for the cleanup
			}
			require.NoError(t, i.Copy(t.Context(), []string{key(1).ID(), key(2).ID(), "kept"}))
			require.Len(t, server.Waiting(""), 3)
			var copies []*runner.Interpreter
			for n := range 2 {
				c := sessionOn(t, f, runner.Options{}, kernel.StartOptions{Key: key(n + 1)})
				require.True(t, c.Info().Copy)
				require.NotEqual(t, i.Info().PID, c.Info().PID)
				copies = append(copies, c)
			}
			require.Equal(t, []string{"kept"}, server.Waiting(""))
			for n, c := range copies {
				ok(t, c, fmt.Sprintf("x.append(%d)", n))
			}
			for n, c := range copies {
				require.Equal(t, fmt.Sprintf("=> ([0, %d], True, 'prelude', 'e')", n), ok(t, c, "import os\nx, lock.acquire(), p, os.environ['COPPICE_E']").text())
			}
			require.Equal(t, "=> [0]", ok(t, i, "x").text())

			// Output of all kinds, interrupts, death, the last words of a copy.
			require.Equal(t, "a\nb\n[c]", ok(t, copies[0], "import os\nprint('a')\nos.system('echo b')\n_ = os.write(2, b'c')").text())
			cell := background(t, copies[0], "print('go')\nwhile True: pass")
			cell.waitFor(t, "go\n")
			require.NoError(t, copies[0].Interrupt(t.Context()))
			require.True(t, cell.end(t).Interrupted)
			require.NoError(t, copies[0].Ping(t.Context()))
			got := run(t, copies[0], "os.write(1, b'last')\nos._exit(3)")
			var lost *kernel.LostError
			require.ErrorAs(t, got.err, &lost)
			require.Contains(t, lost.Reason, "it was a copy")
			require.Equal(t, "last", got.text())
			require.NoError(t, copies[1].Copy(t.Context(), []string{"again"}))
			require.True(t, server.DropWaiting("again"))
			require.False(t, server.DropWaiting("again"))
			require.NoError(t, server.CopyWaiting(t.Context(), "kept", "kept again"))
			own, all := server.MemoryOf("kept again")
			require.Positive(t, own)
			require.Greater(t, all, own)
			require.Equal(t, []string{"kept", "kept again"}, server.Waiting("kept"))
		})
	}
}

func TestCopiesThatAreRefused(t *testing.T) {
	t.Parallel()
	i := session(t)
	refused := func(err error) messages.ForkReason {
		t.Helper()
		r, is := errors.AsType[*messages.ForkRefused](err)
		require.True(t, is, "%v", err)
		return r.Reason
	}
	require.Equal(t, messages.ForkTooMany, refused(i.Copy(t.Context(), make([]string, 65))))
	ok(t, i, "import threading\nstop = threading.Event()\nt = threading.Thread(target=stop.wait)\nt.start()")
	require.Equal(t, messages.ForkThreads, refused(i.Copy(t.Context(), []string{"a"})))
	ok(t, i, "stop.set()\nt.join()\nimport asyncio\ntask = asyncio.ensure_future(asyncio.sleep(100))\nawait asyncio.sleep(0)")
	require.Equal(t, messages.ForkTasks, refused(i.Copy(t.Context(), []string{"a"})))
	ok(t, i, "task.cancel()\nawait asyncio.sleep(0)")
	require.Equal(t, messages.ForkUnknown, refused(shared.get().server.CopyWaiting(t.Context(), "no such", "a")))

	// A session that cannot fork says so, and goes on.
	ok(t, i, "import os\nfork, os.fork = os.fork, lambda: 1 / 0")
	err := i.Copy(t.Context(), []string{"a"})
	require.ErrorContains(t, err, "ZeroDivisionError")
	require.Equal(t, "=> 2", ok(t, i, "os.fork = fork\n1 + 1").text())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	require.Error(t, i.Copy(ctx, []string{"a"}))
}
