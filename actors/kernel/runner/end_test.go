//go:build linux

package runner_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

func TestDeath(t *testing.T) {
	t.Parallel()
	const cutOff = "the code closed the session's own descriptors, and the Python process was ended" // whoever notices it first
	tests := []struct{ name, code, reason, text string }{
		{"os._exit", "import os\nprint('last')\nos._exit(3)", "the Python process exited with code 3", "last\n"},
		{"os._exit with code 0", "import os\nos._exit(0)", "the Python process exited with code 0", ""},
		{"SIGKILL", "import os, signal\nprint('last')\nos.kill(os.getpid(), signal.SIGKILL)", "the Python process was ended by signal 9 .killed.", "last\n"},
		{"SIGTERM", "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", "the Python process was ended by signal 15 .terminated.", ""},
		{"abort says why", "import os\nos.write(2, b'it broke\\n')\nos.abort()", "the Python process was ended by signal 6 .aborted.", "[it broke\n]"},
		{"a fault in native code", "import ctypes\nctypes.string_at(0)", "the Python process was ended by signal 11 .segmentation fault.", ""},
		{"its descriptors are closed", "import os\nos.closerange(3, 200)\nimport time\ntime.sleep(100)", "^" + cutOff + "$", ""},
		{"all descriptors are closed at the end of a cell", "import os\nos.closerange(0, 1000)", "^" + cutOff + "$", ""},
		{"its descriptors are other files", "import os\nfor fd in range(3, 200): os.dup2(0, fd)", "^" + cutOff + "$", ""},
		{"another process holds its descriptors", "import os\nimport ctypes\nif ctypes.CDLL(None).fork() == 0:\n    os.setsid()\n    import time\n    time.sleep(2)\n    os._exit(0)\nos._exit(4)", "the Python process exited with code 4", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := session(t)
			got := run(t, i, tt.code)
			var lost *kernel.LostError
			require.ErrorAs(t, got.err, &lost)
			require.Regexp(t, tt.reason, lost.Reason)
			require.False(t, lost.Replaced)
			require.Equal(t, tt.text, got.text())
			<-i.Done()
			require.Equal(t, error(lost), i.Err())
			require.ErrorAs(t, i.Ping(t.Context()), &lost)
			require.Zero(t, i.RSS())
			_, err := process.Identify(i.Info().PID)
			require.ErrorIs(t, err, process.ErrNoProcess)
		})
	}
}

// A session that was killed lets go of its descriptors, too. Its fork server may be late
// to say how it ended; that is not taken for code that closed them.
func TestDeathThatIsReportedLate(t *testing.T) {
	t.Parallel()
	f := startServer(runner.ServerOptions{})
	defer func() { require.NoError(t, f.stop()) }()
	i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{Key: messages.SessionKey{Cwd: t.TempDir()}})
	server := <-f.pids
	require.NoError(t, syscall.Kill(server, syscall.SIGSTOP))
	require.NoError(t, syscall.Kill(i.Info().PID, syscall.SIGKILL))
	select {
	case <-i.Done():
		require.FailNow(t, "its end was reported while the fork server stood still")
	case <-time.After(2 * runner.KillWait):
	}
	require.NoError(t, syscall.Kill(server, syscall.SIGCONT))
	select {
	case <-i.Done():
	case <-time.After(patience):
		require.FailNow(t, "its end was not noticed")
	}
	require.EqualError(t, i.Err(), "the Python process was ended by signal 9 (killed)")
}

func TestDeathBetweenCells(t *testing.T) {
	t.Parallel()
	i := session(t)
	require.NoError(t, syscall.Kill(i.Info().PID, syscall.SIGKILL))
	select {
	case <-i.Done():
	case <-time.After(patience):
		require.FailNow(t, "its end was not noticed")
	}
	require.EqualError(t, i.Err(), "the Python process was ended by signal 9 (killed)")
	got := run(t, i, "1")
	var lost *kernel.LostError
	require.ErrorAs(t, got.err, &lost)
}

func TestClose(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, before string
		running      string
	}{
		{name: "at once"},
		{name: "twice"},
		{name: "with threads", before: "import threading, time\nthreading.Thread(target=time.sleep, args=(100,)).start()"},
		{name: "with a child", before: "import subprocess\np = subprocess.Popen(['sleep', '100'])"},
		{name: "with a child that ignores SIGTERM", before: "import subprocess\np = subprocess.Popen(['sh', '-c', 'trap \"\" TERM; sleep 100'])"},
		{name: "an exit function that hangs", before: "import atexit, time\n_ = atexit.register(time.sleep, 100)"},
		{name: "while a cell runs", running: "print('go')\nwhile True: pass"},
		{name: "while a cell ignores SIGTERM", running: "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('go')\nwhile True: pass"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			i := session(t)
			ok(t, i, tt.before)
			self, err := process.Identify(i.Info().PID)
			require.NoError(t, err)
			started, err := process.Descendants(self)
			require.NoError(t, err)
			var cell *running
			if tt.running != "" {
				cell = background(t, i, tt.running)
				cell.waitFor(t, "go\n")
			}
			closeSession(t, i)
			closeSession(t, i)
			require.False(t, process.Alive(self))
			for _, id := range started {
				require.Eventually(t, func() bool { return !process.Alive(id) }, patience, 5*time.Millisecond, "a child outlived its session")
			}
			if cell != nil {
				var lost *kernel.LostError
				require.ErrorAs(t, cell.end(t).err, &lost)
			}
		})
	}
}

func TestCloseRunsExitFunctions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	i := session(t)
	ok(t, i, "import atexit, pathlib\n_ = atexit.register(pathlib.Path("+quote(dir)+", 'done').write_text, 'x')")
	closeSession(t, i)
	require.FileExists(t, dir+"/done")
}

// A cell that heeds no interrupt and is given up gets a SIGTERM, with all that it has
// started, before it is killed.
func TestTheLadderToItsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	i := sessionOn(t, shared.get(), runner.Options{}, kernel.StartOptions{Key: messages.SessionKey{Cwd: dir}})
	ctx, cancel := context.WithCancelCause(t.Context())
	going, ended := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go func() { // ends with the cell, which is given up; ended is its join
		_, err := i.Execute(ctx, kernel.CellRequest{Code: `import os, signal, subprocess, sys, time
def term(*_): open('told', 'w').close()
signal.signal(signal.SIGTERM, term)
child = subprocess.Popen([sys.executable, '-c', """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
def term(*_): open('child told', 'w').close()
signal.signal(signal.SIGTERM, term)
print('child', flush=True)
while True: time.sleep(1)
"""], stdout=subprocess.PIPE)
child.stdout.readline()
while True:
    try:
        print('go')
        while True: time.sleep(1)
    except KeyboardInterrupt: pass
`}, func(context.Context, messages.Event) error {
			once.Do(func() { close(going) })
			return nil
		})
		ended <- err
	}()
	<-going
	own := mustIdentify(t, i)
	started, err := process.Descendants(own)
	require.NoError(t, err)
	require.Len(t, started, 1)
	require.NoError(t, i.Interrupt(t.Context()))
	enough := errors.New("enough")
	cancel(enough)
	require.ErrorIs(t, <-ended, enough)
	closeSession(t, i)
	require.FileExists(t, filepath.Join(dir, "told"))
	require.FileExists(t, filepath.Join(dir, "child told"))
	require.False(t, process.Alive(own))
	// One signal was for all of the group; that they end at the same instant is not said.
	require.Eventually(t, func() bool { return !process.Alive(started[0]) }, 3*time.Minute, time.Millisecond)
	require.ErrorContains(t, i.Err(), "signal 9")
}
