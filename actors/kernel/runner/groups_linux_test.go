package runner_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/messages"
)

// groupBase makes a control group for a test, in which controllers can be had.
// Where they cannot, it sees that the limits hold without, and returns "".
func groupBase(t *testing.T, controllers ...string) string {
	t.Helper()
	own, have, lacking, err := cgroup.Check(cgroup.Options{Want: controllers})
	if err != nil || lacking != "" || len(have) != len(controllers) {
		withoutGroups(t)
		return ""
	}
	if _, err := os.Stat(filepath.Join(own, "cgroup.controllers")); err != nil {
		legacyGroups(t)
		return ""
	}
	if len(controllers) > 0 { // the test stands where a host would
		tree, err := cgroup.Open(t.Context(), cgroup.Options{Want: controllers})
		require.NoError(t, err)
		require.NoError(t, tree.Close(t.Context()))
	}
	dir := filepath.Join(own, "test-of-coppice-"+strconv.Itoa(os.Getpid())+"-"+t.Name())
	require.NoError(t, os.Mkdir(dir, 0o700))
	t.Cleanup(func() { require.NoError(t, os.Remove(dir)) })
	return dir
}

// withoutGroups has each process of a session keep to its limits for itself, and the
// host say why.
func withoutGroups(t *testing.T) {
	t.Helper()
	f := startServer(runner.ServerOptions{Limits: kernel.Limits{Memory: 64 << 20}, Spares: -1})
	t.Cleanup(func() { require.NoError(t, f.stop()); require.NoError(t, f.server.Close()) })
	i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
	controllers, why, err := f.server.Groups(t.Context())
	require.NoError(t, err)
	require.Equal(t, len(controllers) == 0, why != "", "%v %s", controllers, why)
	s := run(t, i, "x = bytearray(1 << 30)")
	require.NoError(t, s.err)
	require.Equal(t, messages.LimitMemory, s.Exceeded.Limit)
	require.Positive(t, i.RSS())
}

// manyForks starts more than there may be, each in a session of its own.
const manyForks = `
import os
for n in range(1000):
    if os.fork() == 0:
        os.setsid()
        os.read(os.pipe()[0], 1)`

// manyThreads starts more than there may be, after it has mapped nearly all that it may.
const manyThreads = `
import mmap, threading
end, most = threading.Event(), 64
while most > 0:
    try:
        mmap.mmap(-1, most << 20).close()
        break
    except OSError:
        most -= 1
threading.stack_size(32768)
try:
    for n in range(1000):
        threading.Thread(target=end.wait).start()
finally:
    end.set()`

// withoutErrors leaves out what stands in stderr: what manyForks has started may still say there
// that it was interrupted, and what says when that was.
func withoutErrors(s seen) seen {
	s.events = slices.DeleteFunc(s.events, func(e messages.Event) bool {
		switch e := e.(type) {
		case messages.Stream:
			return e.Name == messages.StderrStream
		case messages.Notice:
			return e.Code == messages.LateOutput
		}
		return false
	})
	return s
}

// legacyGroups has control groups of version 1 keep to the limits that they can.
func legacyGroups(t *testing.T) {
	t.Helper()
	for name, o := range map[string]runner.ServerOptions{"forked": {Spares: -1}, "started": {NoFork: true}} {
		t.Run("version 1 "+name, func(t *testing.T) {
			o.Limits = kernel.Limits{Memory: 64 << 20, Processes: 3, Processors: 0.5}
			f := startServer(o)
			t.Cleanup(func() { require.NoError(t, f.stop()); require.NoError(t, f.server.Close()) })
			i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
			controllers, why, err := f.server.Groups(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{cgroup.PIDs, cgroup.CPU}, controllers)
			require.Contains(t, why, "a limit of memory holds for each process by itself")
			dir, err := cgroup.OfProcessors("", i.Info().PID)
			require.NoError(t, err)
			quota, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us")) //nolint:gosec // of the system
			require.NoError(t, err)
			require.Equal(t, "50000\n", string(quota))

			key := messages.SessionKey{Session: "copy"}
			require.NoError(t, i.Copy(t.Context(), []string{key.ID()}))
			c := sessionOn(t, f, runner.Options{}, kernel.StartOptions{Key: key})
			own, err := cgroup.OfProcessors("", c.Info().PID)
			require.NoError(t, err)
			require.NotEqual(t, dir, own, "its copy has a group of its own")

			s := run(t, i, "x = bytearray(1 << 30)")
			require.NoError(t, s.err)
			require.Equal(t, messages.LimitMemory, s.Exceeded.Limit)
			s = run(t, i, manyForks)
			require.NoError(t, s.err)
			require.Equal(t, messages.LimitProcesses, s.Exceeded.Limit)
			require.Equal(t, "=> 1", withoutErrors(ok(t, i, "1")).text())
			// Threads count as processes, and it is not their memory that is refused, though the
			// session had come near the end of that.
			s = run(t, c, manyThreads)
			require.NoError(t, s.err)
			require.Equal(t, messages.LimitProcesses, s.Exceeded.Limit, s.text())
			require.Equal(t, "ResourceLimitExceeded", s.Error.Name)
			require.NotContains(t, strings.Join(s.Error.Traceback, "\n"), "memory")
			closeSession(t, i)
			require.NoDirExists(t, dir)
		})
	}
}

const whichGroup = "[line for line in open('/proc/self/cgroup') if line.startswith('0::')][0].split('/')[-1].strip()"

// Each session and each copy has a group of its own from before it reads its first
// request, and leaves nothing behind when it ends, whatever has left the session.
func TestSessionsInControlGroups(t *testing.T) {
	t.Parallel()
	base := groupBase(t)
	if base == "" {
		return
	}
	for name, o := range map[string]runner.ServerOptions{"forked": {Spares: 1}, "started": {NoFork: true}} {
		t.Run(name, func(t *testing.T) {
			f := startServer(o.InGroups(base))
			t.Cleanup(func() { require.NoError(t, f.stop()); require.NoError(t, f.server.Close()) })
			start := func(id string) *runner.Interpreter {
				return sessionOn(t, f, runner.Options{Prelude: "at_start = " + whichGroup}, kernel.StartOptions{Key: messages.SessionKey{Session: id}})
			}
			i := start("one")
			mine := ok(t, i, "at_start == "+whichGroup+", at_start").text()
			require.Regexp(t, `^=> \(True, '\d+'\)$`, mine)
			other := ok(t, start("two"), "at_start").text()
			require.NotContains(t, mine, other[len("=> "):])

			key := messages.SessionKey{Session: "copy"}
			require.NoError(t, i.Copy(t.Context(), []string{key.ID()}))
			c := sessionOn(t, f, runner.Options{}, kernel.StartOptions{Key: key})
			require.Equal(t, "=> True", ok(t, c, "at_start != "+whichGroup).text())

			// A process that left the session twice over.
			left := ok(t, i, `
import os, subprocess
out = subprocess.run("setsid sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!' &", shell=True, capture_output=True, text=True).stdout
print(out, end="")`).text()
			pid, err := strconv.Atoi(strings.TrimSpace(left))
			require.NoError(t, err)
			id, err := process.Identify(pid)
			require.NoError(t, err)
			closeSession(t, i)
			require.False(t, process.Alive(id))
			require.Equal(t, "=> 1", ok(t, c, "1").text())

			// One that is killed.
			require.NoError(t, syscall.Kill(c.Info().PID, syscall.SIGKILL))
			<-c.Done()
			require.Error(t, c.Err())
			controllers, why, err := f.server.Groups(t.Context())
			require.NoError(t, err)
			require.Empty(t, controllers)
			require.Empty(t, why)
		})
	}
	entries, err := filepath.Glob(filepath.Join(base, "coppice-*"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Where the system counts, a session and what it has started are bounded together.
func TestAControlGroupBoundsASession(t *testing.T) {
	t.Parallel()
	base := groupBase(t, cgroup.Memory, cgroup.PIDs, cgroup.CPU)
	if base == "" {
		return
	}
	for name, o := range map[string]runner.ServerOptions{"forked": {}, "started": {NoFork: true}} {
		t.Run(name, func(t *testing.T) {
			o.Limits = kernel.Limits{Memory: 128 << 20, Processes: 600, Processors: 0.5}
			f := startServer(o.InGroups(base))
			t.Cleanup(func() { require.NoError(t, f.stop()); require.NoError(t, f.server.Close()) })
			i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
			// What one process takes is reported as before, and costs nothing but the
			// cell.
			s := run(t, i, "x = bytearray(1 << 30)")
			require.NoError(t, s.err)
			require.Equal(t, messages.LimitMemory, s.Exceeded.Limit)
			before := i.RSS()
			ok(t, i, "y = bytearray(b'y' * (50 << 20))")
			require.InDelta(t, 50<<20, i.RSS()-before, 20<<20)
			require.Equal(t, "=> '50000 100000'", ok(t, i, "open('/sys/fs/cgroup' + open('/proc/self/cgroup').read().strip().split(':')[-1] + '/cpu.max').read().strip()").text())

			// What many take is not more than one may.
			s = run(t, i, `
import subprocess, sys
print("words", file=sys.stderr, flush=True)
hog = "x = bytearray(b'x' * (100 << 20)); input()"
ps = [subprocess.Popen([sys.executable, "-c", hog], stdin=subprocess.PIPE) for _ in range(4)]
[p.wait() for p in ps]`)
			var lost *kernel.LostError
			require.ErrorAs(t, s.err, &lost)
			require.NotNil(t, s.Exceeded)
			require.Equal(t, messages.LimitMemory, s.Exceeded.Limit)
			require.Equal(t, "words\n", s.Exceeded.Stderr)
			require.Contains(t, lost.Reason, "ResourceLimitExceeded: memory: the session and what it had started used more than 192 MiB")
			require.ErrorContains(t, i.Err(), "used more than 192 MiB")

			// The same in a copy, whose exit status cannot be known.
			key := messages.SessionKey{Session: "copy"}
			i = sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
			require.NoError(t, i.Copy(t.Context(), []string{key.ID()}))
			c := sessionOn(t, f, runner.Options{}, kernel.StartOptions{Key: key})
			s = run(t, c, "import os\nfor _ in range(4):\n    if os.fork() == 0:\n        x = b'x' * (100 << 20)\n        os.read(os.pipe()[0], 1)\nos.read(os.pipe()[0], 1)")
			require.ErrorAs(t, s.err, &lost)
			require.Equal(t, messages.LimitMemory, s.Exceeded.Limit)
			require.Equal(t, "=> 1", ok(t, i, "1").text(), "its original has a group of its own")
		})
	}
	t.Run("tasks", func(t *testing.T) {
		f := startServer(runner.ServerOptions{Limits: kernel.Limits{Processes: 3}}.InGroups(base))
		t.Cleanup(func() { require.NoError(t, f.stop()); require.NoError(t, f.server.Close()) })
		i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
		s := run(t, i, manyForks)
		require.NoError(t, s.err)
		require.Equal(t, messages.LimitProcesses, s.Exceeded.Limit)
		require.Equal(t, "=> 1", withoutErrors(ok(t, i, "1")).text())
	})
	entries, err := filepath.Glob(filepath.Join(base, "coppice-*"))
	require.NoError(t, err)
	require.Empty(t, entries)
}
