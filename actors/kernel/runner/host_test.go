//go:build linux

package runner_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
)

// TestKilledHostLeavesNothing kills a host with SIGKILL while its sessions do
// all sorts of things.
func TestKilledHostLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"host", "host without fork"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			mark := messages.NewID()
			exe, err := os.Executable()
			require.NoError(t, err)
			host := exec.Command(exe)
			host.Env = append(os.Environ(), roleEnv+"="+role, "PI_TEST_MARK="+mark)
			out, err := host.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, host.Start())
			said, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "ready\n", said)
			require.GreaterOrEqual(t, len(proc.WithEnv("PI_TEST_MARK", mark)), len(hostCells)+1)
			require.NoError(t, host.Process.Kill())
			_ = host.Wait() // it says that it was killed
			require.Eventually(t, func() bool { return len(proc.WithEnv("PI_TEST_MARK", mark)) == 0 }, patience, 5*time.Millisecond, "left behind: %v", proc.WithEnv("PI_TEST_MARK", mark))
		})
	}
}

// TestKilledForkServer: sessions go on without their fork server, those that
// come get another one, and nothing is left in the end.
func TestKilledForkServer(t *testing.T) {
	t.Parallel()
	f := startServer(runner.ServerOptions{})
	t.Cleanup(func() { require.NoError(t, f.stop()) })
	var sessions []*runner.Interpreter
	var children []process.Identity
	for range 8 {
		i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
		ok(t, i, "import subprocess\nx = 42\np = subprocess.Popen(['sleep', '1000'])")
		sessions = append(sessions, i)
		started, err := process.Descendants(mustIdentify(t, i))
		require.NoError(t, err)
		require.Len(t, started, 1)
		children = append(children, started...)
	}
	pid := <-f.pids
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	err := <-f.ended
	require.ErrorContains(t, err, "the fork server has ended: it was ended by signal 9 (killed)")

	for _, i := range sessions {
		require.Equal(t, "=> 42", ok(t, i, "x").text())
		require.NoError(t, i.Ping(t.Context()))
	}
	cell := background(t, sessions[1], "print('go')\nwhile True: pass")
	cell.waitFor(t, "go\n")
	require.NoError(t, sessions[1].Interrupt(t.Context()))
	require.True(t, cell.end(t).Interrupted)

	// How they end is not known any more, that they end is.
	got := run(t, sessions[2], "import os\nos._exit(3)")
	var lost *kernel.LostError
	require.ErrorAs(t, got.err, &lost)
	require.Contains(t, lost.Reason, "how it ended is not known")
	require.NoError(t, syscall.Kill(sessions[3].Info().PID, syscall.SIGKILL))
	select {
	case <-sessions[3].Done():
	case <-time.After(patience):
		require.FailNow(t, "its end was not noticed")
	}

	// One that comes before there is another fork server waits for it.
	early := make(chan error, 1)
	go func() { // ends with Start; early is its join
		i, err := runner.New(runner.Options{Server: f.server}).Start(t.Context(), kernel.StartOptions{})
		if err == nil {
			err = i.Close(context.Background())
		}
		early <- err
	}()
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	go func() { f.ended <- f.server.Run(ctx, func(pid int) { f.pids <- pid }) }() // ends with cancel; f.stop is its join
	require.NotEqual(t, pid, <-f.pids)
	require.NoError(t, <-early)
	i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
	require.Equal(t, "=> 1", ok(t, i, "1").text())

	cell = background(t, sessions[0], "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('go')\nwhile True: pass")
	cell.waitFor(t, "go\n")
	for n, s := range sessions {
		closeSession(t, s)
		_, err := process.Identify(s.Info().PID)
		require.ErrorIs(t, err, process.ErrNoProcess, "session %d", n)
	}
	cell.end(t)
	for _, id := range children {
		require.False(t, process.Alive(id), "a child of a session is left")
	}
}

// TestAForkServerComesBackInAStorm ends every probe of the interpreter while the fork
// server is down: it has served, so it is not asked again.
func TestAForkServerComesBackInAStorm(t *testing.T) {
	t.Parallel()
	stormy, err := filepath.Abs(filepath.Join("testdata", "stormy-python"))
	require.NoError(t, err)
	rt, err := pyenv.Resolve(t.Context(), pyenv.Options{Python: python()})
	require.NoError(t, err)
	storm := filepath.Join(t.TempDir(), "storm")
	f := startServer(runner.ServerOptions{Python: stormy, Env: append(os.Environ(), "PI_TEST_PYTHON="+rt.Path, "PI_TEST_STORM="+storm)})
	t.Cleanup(func() { require.NoError(t, f.stop()) })
	require.Equal(t, "=> 1", ok(t, sessionOn(t, f, runner.Options{}, kernel.StartOptions{}), "1").text())

	require.NoError(t, os.WriteFile(storm, nil, 0o600))
	require.NoError(t, syscall.Kill(<-f.pids, syscall.SIGKILL))
	require.Error(t, <-f.ended)
	_, err = pyenv.Resolve(t.Context(), pyenv.Options{Python: stormy, Env: append(os.Environ(), "PI_TEST_STORM="+storm)})
	require.ErrorContains(t, err, "6 times in a row", "the storm is a real one")
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	go func() { f.ended <- f.server.Run(ctx, func(pid int) { f.pids <- pid }) }() // ends with cancel; f.stop is its join
	require.Equal(t, "=> 2", ok(t, sessionOn(t, f, runner.Options{}, kernel.StartOptions{}), "2").text())
}

// TestStartsWhileTheForkServerIsKilled: those that it was just asked for wait for the next
// one, whoever notices first that it has ended.
func TestStartsWhileTheForkServerIsKilled(t *testing.T) {
	t.Parallel()
	f := startServer(runner.ServerOptions{Python: python()})
	t.Cleanup(func() { require.NoError(t, f.stop()) })
	b := runner.New(runner.Options{Server: f.server})
	const kills, starters = 3, 16
	over := make(chan struct{})
	failed := make(chan error, starters)
	var wg sync.WaitGroup
	for range starters {
		wg.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				i, err := b.Start(context.Background(), kernel.StartOptions{})
				if err == nil {
					err = i.Close(context.Background())
				}
				var lost *kernel.LostError
				if err != nil && !errors.As(err, &lost) { // one that it had begun ends with it
					failed <- err
					return
				}
			}
		})
	}
	for range kills {
		require.NoError(t, syscall.Kill(<-f.pids, syscall.SIGKILL))
		require.Error(t, <-f.ended)
		ctx, cancel := context.WithCancel(context.Background())
		f.cancel = cancel
		go func() { f.ended <- f.server.Run(ctx, func(pid int) { f.pids <- pid }) }() // ends with cancel; f.stop is its join
	}
	ok(t, sessionOn(t, f, runner.Options{}, kernel.StartOptions{}), "1")
	close(over)
	wg.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
}

// TestCrowd runs many sessions at once: none sees another's variables, output
// or descriptors.
func TestCrowd(t *testing.T) {
	const sessions, rounds = 200, 5
	f := shared.get()
	b := runner.New(runner.Options{Server: f.server})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, sessions)
	seeds := make([]string, sessions)
	for n := range sessions {
		wg.Go(func() {
			errs[n] = func() error {
				i, err := b.Start(ctx, kernel.StartOptions{Env: map[string]string{"NUMBER": fmt.Sprint(n)}})
				if err != nil {
					return err
				}
				defer func() { errs[n] = errors.Join(errs[n], i.Close(ctx)) }()
				for r := range rounds {
					code := fmt.Sprintf("import os, random\nmine = globals().get('mine', %d)\nos.system('echo s%d')\nprint(mine, %d, os.environ['NUMBER'], len(os.listdir('/proc/self/fd')) < 15)\nrandom.random()", n, n, r)
					var text strings.Builder
					reply, err := i.Execute(ctx, kernel.CellRequest{Code: code}, func(_ context.Context, e messages.Event) error {
						switch e := e.(type) {
						case messages.Stream:
							text.WriteString(e.Text)
						case messages.ExecuteResult:
							seeds[n], _ = e.Data.Text(messages.MIMEPlain)
						}
						return nil
					})
					if err != nil || !reply.OK || reply.Incomplete != "" {
						return fmt.Errorf("%w %+v", err, reply)
					}
					if want := fmt.Sprintf("s%d\n%d %d %d True\n", n, n, r, n); text.String() != want {
						return fmt.Errorf("%q, not %q", text.String(), want)
					}
				}
				return nil
			}()
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	distinct := map[string]bool{}
	for _, s := range seeds {
		distinct[s] = true
	}
	require.Len(t, distinct, sessions, "random numbers of sessions are their own")
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*forks{"forked": shared.get(), "started": plain.get()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := func(code string) *runner.Backend {
				return runner.New(runner.Options{Server: f.server, Prelude: code})
			}
			_, err := b("").Start(t.Context(), kernel.StartOptions{Key: messages.SessionKey{Cwd: "/no/such/folder"}})
			require.ErrorContains(t, err, "start a session: ")
			require.ErrorContains(t, err, "No such file or directory: '/no/such/folder'")
			_, err = b("x = 1\ny = x / 0").Start(t.Context(), kernel.StartOptions{})
			require.ErrorContains(t, err, "File \"<prelude>\", line 2")
			require.ErrorContains(t, err, "ZeroDivisionError")
			_, err = b("import os\nos._exit(7)").Start(t.Context(), kernel.StartOptions{})
			require.ErrorContains(t, err, "exited with code 7")

			enough := errors.New("enough")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, enough)
			defer cancel()
			_, err = b("import time\ntime.sleep(1000)").Start(ctx, kernel.StartOptions{})
			require.ErrorIs(t, err, enough)
		})
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	f := startServer(runner.ServerOptions{Python: "/no/such/python"})
	require.Error(t, <-f.ended)
	_, err := runner.New(runner.Options{Server: f.server}).Start(t.Context(), kernel.StartOptions{})
	require.ErrorContains(t, err, "/no/such/python")

	idle := runner.NewServer(runner.ServerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = runner.New(runner.Options{Server: idle}).Start(ctx, kernel.StartOptions{})
	require.ErrorIs(t, err, context.Canceled)
	f.cancel()
}

// TestPlainSessions: without a fork server a session is the same, only later.
func TestPlainSessions(t *testing.T) {
	t.Parallel()
	i := sessionOn(t, plain.get(), runner.Options{}, kernel.StartOptions{Key: messages.SessionKey{Cwd: t.TempDir()}})
	require.Equal(t, "a\nb\n=> 3", ok(t, i, "import os\nprint('a')\nos.system('echo b')\n3").text())
	require.NoError(t, i.Ping(t.Context()))
	cell := background(t, i, "print('go')\nwhile True: pass")
	cell.waitFor(t, "go\n")
	require.NoError(t, i.Interrupt(t.Context()))
	require.True(t, cell.end(t).Interrupted)
	got := run(t, i, "import os\nos.write(2, b'words\\n')\nos.abort()")
	require.EqualError(t, got.err, "the Python process was ended by signal 6 (aborted)")
	require.Equal(t, "[words\n]", got.text())
}
