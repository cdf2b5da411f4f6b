//go:build linux

package jupyter

import (
	"bufio"
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/test/fakegateway"
	"github.com/coppice-run/coppice/test/testpython"
)

const (
	computes = "while True: pass\n"
	// passes is what threads do that pass messages on, while native code holds the
	// interpreter: a little, again and again.
	passes = "while True:\n    time.sleep(.1)\n    end = time.process_time() + .003\n    while time.process_time() < end: pass\n"
	// starved computes with what another process leaves of the same processor.
	starved = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n" +
		"if os.fork() == 0:\n    signal.signal(signal.SIGTERM, signal.SIG_DFL)\n    os.execv(sys.executable, [sys.executable, '-c', 'while True: pass'])\n" +
		"os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass\n"
)

// TestPingOfAKernelThatDoesNotAnswer looks at what the process of a kernel does that
// does not answer: native code holds the interpreter, to compute or for good.
func TestPingOfAKernelThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code  string
		stop  bool
		alive bool
	}{
		"it computes":                        {code: computes, alive: true},
		"it computes, and has no processor":  {code: starved, alive: true},
		"it hangs, and passes messages on":   {code: passes},
		"it sleeps":                          {code: "time.sleep(1000)"},
		"it is stopped while it computes":    {code: computes, stop: true},
		"it is stopped while it passes some": {code: passes, stop: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := silentKernel(t, tc.code, tc.stop)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := i.Ping(ctx)
			if tc.alive {
				require.NoError(t, err)
				return
			}
			// Of a process that wants a processor at the last look it is not known for how
			// long it has waited, which speaks for it: one of the next pings tells.
			for err == nil && ctx.Err() == nil {
				err = i.Ping(ctx)
			}
			var silent *jupyter.SilentError
			require.ErrorAs(t, err, &silent)
		})
	}
}

// silentKernel is a kernel that answers nothing, with a process that runs code.
func silentKernel(t *testing.T, code string, stopped bool) *Interpreter {
	t.Helper()
	s, err := fakegateway.Start(fakegateway.Options{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	c, err := jupyter.NewClient(jupyter.Options{URL: s.URL() + "/", Token: s.Token(), SpoolDir: t.TempDir(), RequestTimeout: 3 * time.Second})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	k, err := c.Start(t.Context(), jupyter.StartRequest{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.Delete(context.Background()) })
	s.Live()[0].Freeze()

	cmd := exec.CommandContext(t.Context(), testpython.Path(t), "-c", "import os, signal, sys, time\nprint('ready', flush=True)\n"+code)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it forks ends with it
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
		require.Error(t, cmd.Wait())
	})
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	id, err := process.Identify(cmd.Process.Pid)
	require.NoError(t, err)
	if stopped {
		require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	}
	return &Interpreter{kernel: k, server: &Endpoint{Client: c, Local: true}, identity: id}
}
