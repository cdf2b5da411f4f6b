//go:build linux

package toolproc_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/coppice-run/coppice/internal/toolproc"
	"github.com/coppice-run/coppice/internal/toolspec"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/proc"
	"github.com/coppice-run/coppice/test/toolbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func options(t *testing.T, tool toolbox.Tool) (toolproc.Options, *toolbox.Box) {
	t.Helper()
	box := toolbox.New(t)
	tool.ID = "x"
	e := toolspec.Read(t.Context(), box.Add(tool))
	require.NoError(t, e.Err)
	return toolproc.Options{Tool: e.Tool, Dir: e.Dir, Artifacts: t.TempDir()}, box
}

func TestOneProcess(t *testing.T) {
	t.Parallel()
	o, box := options(t, toolbox.Tool{})
	p, err := toolproc.Start(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, p.Healthy(t.Context()))
	require.Empty(t, p.Drift())
	require.Positive(t, p.Memory())
	dir := p.RunDir("r1", time.Now())
	a := p.Do(t.Context(), toolproc.Call{Run: "r1", Inputs: toolbox.Inputs("write", map[string]any{"files": 1, "bytes": 3}), Dir: dir})
	require.Nil(t, a.Error)
	require.Equal(t, []string{"f0.bin"}, a.Files)
	require.Equal(t, toolproc.Usage{Bytes: 3, Files: 1}, toolproc.Measure(dir))
	require.NoError(t, p.Stop(t.Context(), 5*time.Second))
	select {
	case <-p.Done():
	default:
		require.FailNow(t, "Stop returns when the process was reaped")
	}
	require.Empty(t, proc.WithEnv("TOOLBOX_MARK", box.Mark))
	a = p.Do(t.Context(), toolproc.Call{Run: "r2", Inputs: toolbox.Inputs("echo", 1)})
	require.True(t, a.Ended)
	require.Equal(t, messages.ToolErrorCrashed, a.Error.Kind)
	require.Error(t, p.Cancel(t.Context(), "r2"))
}

// TestACancelThatComesFirst is repeated until the tool knows the run.
func TestACancelThatComesFirst(t *testing.T) {
	t.Parallel()
	o, _ := options(t, toolbox.Tool{})
	p, err := toolproc.Start(t.Context(), o)
	require.NoError(t, err)
	cancelled := make(chan error, 1)
	go func() { cancelled <- p.Cancel(t.Context(), "late") }()
	require.Never(t, func() bool { return len(cancelled) > 0 }, 100*time.Millisecond, 10*time.Millisecond, "the tool knows no such run yet")
	a := p.Do(t.Context(), toolproc.Call{Run: "late", Inputs: toolbox.Inputs("sleep", 60)})
	require.Nil(t, a.Error)
	require.Contains(t, string(a.Outputs), `"cancelled":true`)
	require.NoError(t, <-cancelled)
	gone, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, p.Stop(gone, time.Second))
	require.Error(t, p.Cancel(t.Context(), "never"), "there is no process to ask")
}

// TestAStartThatIsGivenUp leaves nothing behind.
func TestAStartThatIsGivenUp(t *testing.T) {
	t.Parallel()
	o, box := options(t, toolbox.Tool{Env: "START=sick"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := toolproc.Start(ctx, o)
		ended <- err
	}()
	require.Eventually(t, func() bool { return len(proc.WithEnv("TOOLBOX_MARK", box.Mark)) == 1 }, 3*time.Minute, 5*time.Millisecond)
	cancel()
	err := <-ended
	var failed *toolproc.StartError
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "given up: context canceled")
	require.Empty(t, proc.WithEnv("TOOLBOX_MARK", box.Mark))
}

// TestAnEndEndsTheWait at once, not when the time is up.
func TestAnEndEndsTheWait(t *testing.T) {
	t.Parallel()
	o, _ := options(t, toolbox.Tool{Env: "START=exit 9"})
	o.StartTimeout = time.Hour
	_, err := toolproc.Start(t.Context(), o)
	require.ErrorContains(t, err, "it exited with code 9 before it was healthy")
}

// TestThePortThatSomebodyTook is tried again with another one.
func TestThePortThatSomebodyTook(t *testing.T) {
	t.Parallel()
	o, box := options(t, toolbox.Tool{Main: `
import os, sys
if not os.path.exists("once"):
    open("once", "w").close()
    print("OSError: [Errno 98] Address already in use", file=sys.stderr)
    sys.exit(1)
exec(open("real.py").read())
`})
	box.Write("x", "real.py", toolbox.Script())
	p, err := toolproc.Start(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, p.Stop(t.Context(), -1))
}

func TestPortsAreFreeAndDiffer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[int]bool{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				port, err := toolproc.FreePort(context.Background())
				mu.Lock()
				if err != nil || seen[port] || port < 1024 {
					t.Errorf("port %d: %v", port, err)
				}
				seen[port] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	port, err := toolproc.FreePort(t.Context())
	require.NoError(t, err)
	l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	require.NoError(t, err)
	require.NoError(t, l.Close())
}
