//go:build linux

package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernel/runner"
	"github.com/coppice-run/coppice/messages"
)

// Modules that end what they are loaded into are given up soon, however many sessions
// wait to be taken, and the session begins without them.
func TestModulesThatEndTheProcess(t *testing.T) {
	t.Parallel()
	const spares = 12
	// The fork server is a child of the test; when it has ended, the parent of its sessions is a stranger.
	fork := fmt.Sprintf("parent = os.getppid()\nif open(f'/proc/{parent}/stat').read().rsplit(')', 1)[1].split()[1] == '%d': os.kill(parent, 9)", os.Getpid())
	for name, tc := range map[string]struct {
		ending string
		most   int // of sessions that load them
		why    string
	}{
		"their own":       {"", 2, "start a session: "}, // a spare, and a new one
		"the fork server": {fork, 5 * (spares + 1), "5 fork servers ended while a session began: start a session: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startServer(runner.ServerOptions{Spares: spares})
			restarted(t, f)
			require.Eventually(t, func() bool { return f.server.Spares() == spares }, patience, time.Millisecond)

			loaded := filepath.Join(t.TempDir(), "loaded")
			i := sessionOn(t, f, runner.Options{Modules: func(string) string {
				return fmt.Sprintf("import os\nopen(%q, 'a').write('.')\n%s\nos._exit(9)\n", loaded, tc.ending)
			}}, kernel.StartOptions{})
			times, err := os.ReadFile(loaded) //nolint:gosec // the test's own
			require.NoError(t, err)
			require.NotEmpty(t, times)
			require.LessOrEqual(t, len(times), tc.most)
			r := run(t, i, "1+1")
			require.NoError(t, r.err)
			require.NotEmpty(t, r.events)
			told, ok := r.events[0].(messages.Notice)
			require.True(t, ok, "%v", r.events)
			require.Contains(t, told.Text, "all modules were left out, since the session did not start with them: "+tc.why)
			require.Equal(t, "(module)=> 2", r.text())
			closeSession(t, i)
		})
	}
}

// restarted starts the fork server again whenever it has ended, until the end of the test.
func restarted(t *testing.T, f *forks) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { // ends with ctx; over is its join
		defer close(over)
		for {
			select {
			case <-f.pids:
			case <-ctx.Done():
				_ = f.stop()
				return
			case err := <-f.ended:
				if err == nil {
					return
				}
				go func() { f.ended <- f.server.Run(ctx, func(pid int) { f.pids <- pid }) }() // ends with ctx; ended is its join
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-over })
}
