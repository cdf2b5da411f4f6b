package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/internal/cgroup"
	"github.com/coppice-run/coppice/messages"
)

// counted are the ways in which a host tells what belongs to a session.
func counted(t *testing.T) map[string]runner.ServerOptions {
	t.Helper()
	all := map[string]runner.ServerOptions{
		"by its part": runner.ServerOptions{Spares: -1}.InGroups(filepath.Join(t.TempDir(), "none")),
	}
	own, have, lacking, err := cgroup.Check(cgroup.Options{Want: []string{cgroup.PIDs}})
	switch _, unified := os.Stat(filepath.Join(own, "cgroup.controllers")); {
	case err != nil || lacking != "" || len(have) == 0:
		t.Log("no control group can be had here")
	case unified == nil:
		all["by its group"] = runner.ServerOptions{Spares: -1}.InGroups(groupBase(t, cgroup.PIDs))
	default:
		all["by its group"] = runner.ServerOptions{Spares: -1}
	}
	return all
}

// most is the limit of processes of these sessions.
const most = 8

const (
	// doubling doubles itself until there are 500, and of most the parents have ended.
	doubling = `
import subprocess
bomb = 'f() { [ $1 -gt 7 ] && exec sleep 1000; f $(($1 + 1)) | f $(($1 + 1)) & }; f 0'
subprocess.Popen(["sh", "-c", bomb], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
`
	// left starts processes, each in the background: none descends from the session.
	// Those that are not too many end by themselves.
	left = `
import os, time
def away():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    os.wait()
`
	children = `
import os, time
def child():
    if os.fork() == 0:
        time.sleep(1000)
`
	waits = "\nimport time\ntime.sleep(1000)\n"
)

// What a session has started is stopped when it is too much, whatever it descends from, and the
// result says so in all places.
func TestTooManyProcesses(t *testing.T) {
	cells := map[string]string{
		"doubling":                          doubling + waits,
		"in the background":                 left + "for _ in range(20): away()" + waits,
		"in the background, and at once":    left + "for _ in range(20): away()",
		"children, and at once":             children + "for _ in range(20): child()",
		"until one is refused, or for ever": children + "while True: child()",
		"what the limit raises is dropped":  children + "try:\n    while True: child()\nexcept BaseException: pass",
		"the cell fails for another reason": children + "for _ in range(20): child()\n1 / 0",
	}
	for name, o := range counted(t) {
		t.Run(name, func(t *testing.T) {
			o.Limits = kernel.Limits{Processes: most}
			f := startServer(o)
			t.Cleanup(func() { require.NoError(t, f.stop()); require.NoError(t, f.server.Close()) })
			for name, code := range cells {
				t.Run(name, func(t *testing.T) {
					i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
					s := run(t, i, code)
					require.NoError(t, s.err)
					require.False(t, s.OK)
					require.NotNil(t, s.Exceeded)
					require.Equal(t, messages.LimitProcesses, s.Exceeded.Limit)
					require.Equal(t, "ResourceLimitExceeded", s.Error.Name)
					require.Equal(t, "processes: the session may have 8 processes besides its own", s.Error.Message)
					var shown []messages.Error
					for _, e := range s.events {
						if e, is := e.(messages.Error); is {
							shown = append(shown, e)
						}
					}
					require.Len(t, shown, 1)
					require.Equal(t, "ResourceLimitExceeded: "+s.Error.Message, shown[0].Traceback[len(shown[0].Traceback)-1])
					require.Zero(t, i.Others(), "they are ended")
					require.Equal(t, "=> 2", withoutErrors(ok(t, i, "1 + 1")).text())
				})
			}
		})
	}
}

// What a short cell has left behind is found, however long ago the machine was looked at.
func TestTooManyProcessesOfAShortCell(t *testing.T) {
	o := runner.ServerOptions{Spares: -1, Limits: kernel.Limits{Processes: most}}.InGroups(filepath.Join(t.TempDir(), "none"))
	f := startServer(o)
	t.Cleanup(func() { require.NoError(t, f.stop()); require.NoError(t, f.server.Close()) })
	i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
	for range 3 {
		runner.KeepCensus()
		s := run(t, i, left+"for _ in range(20): away()")
		require.NoError(t, s.err)
		require.NotNil(t, s.Exceeded)
		require.Equal(t, messages.LimitProcesses, s.Exceeded.Limit)
		require.Zero(t, i.Others())
	}
}

// As many as there may be are nobody's harm, nor are more that come and go.
func TestAsManyProcessesAsThereMayBe(t *testing.T) {
	cells := map[string]string{
		"a pool":              "import multiprocessing, time\nwith multiprocessing.get_context('fork').Pool(8) as p: p.map(time.sleep, [0.05] * 16)",
		"one after the other": "import subprocess\nfor _ in range(20): subprocess.run(['true'])",
		"zombies":             "import os\nfor _ in range(20):\n    if os.fork() == 0: os._exit(0)\nfor _ in range(20): os.wait()",
		"in the background":   left + "for _ in range(7): away()\ntime.sleep(0.3)",
		"threads":             "import threading, time\nts = [threading.Thread(target=time.sleep, args=[0.3]) for _ in range(20)]\nfor t in ts: t.start()\nfor t in ts: t.join()",
	}
	for name, o := range counted(t) {
		t.Run(name, func(t *testing.T) {
			o.Limits = kernel.Limits{Processes: most}
			f := startServer(o)
			t.Cleanup(func() { require.NoError(t, f.stop()); require.NoError(t, f.server.Close()) })
			for name, code := range cells {
				t.Run(name, func(t *testing.T) {
					i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
					ok(t, i, code)
					require.Equal(t, "=> 2", ok(t, i, "1 + 1").text())
				})
			}
		})
	}
}

// What a session has is not its copy's, nor that of another session.
func TestProcessesAreCountedForEachSession(t *testing.T) {
	for name, o := range counted(t) {
		t.Run(name, func(t *testing.T) {
			o.Limits = kernel.Limits{Processes: most}
			f := startServer(o)
			t.Cleanup(func() { require.NoError(t, f.stop()); require.NoError(t, f.server.Close()) })
			i := sessionOn(t, f, runner.Options{}, kernel.StartOptions{})
			ok(t, i, left)
			key := messages.SessionKey{Session: "copy"}
			require.NoError(t, i.Copy(t.Context(), []string{key.ID(), "kept"}))
			c := sessionOn(t, f, runner.Options{}, kernel.StartOptions{Key: key})
			some := strings.Replace(left, "1000", "1000.5", 1) + "for _ in range(6): away()\ntime.sleep(0.3)"
			for _, one := range []*runner.Interpreter{i, c, sessionOn(t, f, runner.Options{}, kernel.StartOptions{})} {
				ok(t, one, some)
				require.Equal(t, 6, one.Others())
			}
			s := run(t, c, "for _ in range(6): away()\ntime.sleep(1000)")
			require.NoError(t, s.err)
			require.Equal(t, messages.LimitProcesses, s.Exceeded.Limit)
			require.Zero(t, c.Others())
			require.Equal(t, 6, i.Others())
			require.True(t, f.server.DropWaiting("kept"), "the copy that waits is none of them")
		})
	}
}
